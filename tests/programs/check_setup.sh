#!/usr/bin/env bash
# scripts/setup refuses what it should: unknown arguments (2), a TORCH_ROOT without LibTorch (7), and for a plain user
# with a missing package it prints the one line to run (7) and touches nothing.
set -uo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/scripts" "$folder/bin"
cp "$source/scripts/setup" "$source/scripts/progress.sh" "$folder/scripts/"
expect() { # CODE TEXT COMMAND...
  local code=$1 text=$2 output got=0; shift 2
  output=$("$@" 2>&1) || got=$?
  [[ $got == "$code" ]] || { echo "$*: exit $got, not $code: $output"; exit 1; }
  grep -qF -- "$text" <<<"$output" || { echo "$*: says nothing of '$text': $output"; exit 1; }
}
setup=$folder/scripts/setup
expect 0 "TORCH_ROOT" "$setup" --help
expect 2 "unknown argument --fast" "$setup" --fast
expect 7 "no include/ATen/ATen.h" env TORCH_ROOT="$folder" "$setup"

# A dpkg that knows every package but one; the rest is real.
cat >"$folder/bin/dpkg-query" <<'STUB'
#!/usr/bin/env bash
for word in "${@:3}"; do [[ $word == ninja-build ]] || echo "installed $word"; done
STUB
chmod -R a+rX "$folder"; chmod +x "$folder/bin/dpkg-query"; chmod a+rwx "$folder"
plain_user=()
if [[ $(id -u) == 0 ]]; then plain_user=(setpriv --reuid 65534 --regid 65534 --clear-groups); fi
expect 7 "sudo apt-get update && sudo apt-get install -y --no-install-recommends ninja-build" \
  "${plain_user[@]}" env PATH="$folder/bin:$PATH" TORCH_ROOT= "$setup"
[[ ! -e $folder/.venv && ! -e $folder/scalemark ]] || { echo "something was installed all the same"; exit 1; }
echo "refusals are as promised"
