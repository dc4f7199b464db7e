#!/usr/bin/env bash
# scripts/setup refuses what it should: unknown arguments and settings (2), a TORCH_ROOT without LibTorch or with one that is
# too old (7), and for a plain user with a missing package it prints the one line to run (7) and touches nothing. Without
# CUDA it fetches none. Whatever pip fetches has a hash, and every package and file that the lists of scripts/lock want one.
set -uo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/scripts" "$folder/bin"
cp -r "$source"/scripts/{setup,lock,progress.sh,compile_seconds,compile_weights.awk,compile_left.awk} "$folder/scripts/"
expect() { # CODE TEXT COMMAND...
  local code=$1 text=$2 output got=0; shift 2
  output=$("$@" 2>&1) || got=$?
  [[ $got == "$code" ]] || { echo "$*: exit $got, not $code: $output"; exit 1; }
  grep -qF -- "$text" <<<"$output" || { echo "$*: says nothing of '$text': $output"; exit 1; }
}
setup=$folder/scripts/setup
expect 0 "TORCH_ROOT" "$setup" --help
expect 2 "unknown argument --fast" "$setup" --fast
expect 2 "neither ON nor OFF" env SCALEMARK_CUDA=no "$setup"
expect 2 "set SCALEMARK_CUDA=OFF too" env SCALEMARK_TORCH_INDEX=folder "$setup"
expect 2 "is no SHA-256" env SCALEMARK_TORCH_HASH=abc "$setup"
expect 7 "no include/ATen/ATen.h" env TORCH_ROOT="$folder" "$setup"

# What a distribution installs tells its version in a header alone.
torch=$folder/torch
mkdir -p "$torch/include/ATen" "$torch/include/torch/headeronly" "$torch/lib" "$folder/project"
touch "$torch/include/ATen/ATen.h" "$torch/lib/libtorch_cpu.so" "$torch/lib/libc10.so"
cat >"$folder/project/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.21)
project(user LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH $source/cmake)
$(grep 'find_package(TorchLib' "$source/CMakeLists.txt")
TEXT
for version in 7:1:"required is at least \"2.8\"" 8:0:"2.8.0"; do
  IFS=: read -r minor code text <<<"$version"
  printf '#define TORCH_VERSION_%s %s\n' MAJOR 2 MINOR "$minor" PATCH 0 >"$torch/include/torch/headeronly/version.h"
  expect "$code" "$text" cmake -G Ninja -S "$folder/project" -B "$folder/project/$minor" -DTORCH_ROOT="$torch"
done

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

# The words for pip, of programs that stand in for it and for CMake.
mkdir -p "$folder/.venv/bin" && printf '#!/bin/sh\necho "$@" >>%q\nexit 1\n' "$folder/pip" >"$folder/.venv/bin/python"
printf '#!/bin/sh\nsleep 0.2\n' >"$folder/bin/cmake"
sed -i 's/ninja-build/nothing/' "$folder/bin/dpkg-query"
chmod +x "$folder/.venv/bin/python" "$folder/bin/cmake"
words_of_pip() { # SETTING...
  rm -rf "$folder/pip" "$folder/build"
  expect 7 "pip failed" env PATH="$folder/bin:$PATH" TORCH_ROOT= "$@" "$setup"
  words=$(head -n 1 "$folder/pip")
}
readonly LISTS=" --no-deps --only-binary=:all: --require-hashes -r scripts/lock/"
words_of_pip SCALEMARK_CUDA=OFF
[[ $words == *"${LISTS}torch.txt -r scripts/lock/report.txt" ]] || { echo "$words"; exit 1; }
words_of_pip SCALEMARK_CUDA=ON
[[ $words == *"${LISTS}torch.txt -r scripts/lock/torch_cuda.txt -r scripts/lock/torch_python.txt -r scripts/lock/report.txt" ]] || { echo "$words"; exit 1; }
words_of_pip SCALEMARK_CUDA=OFF SCALEMARK_TORCH_INDEX=/wheels
[[ $words == *" --index-url=/wheels -r build/log/cpu_wheel.txt" ]] || { echo "$words"; exit 1; }
grep -qxE 'torch==[0-9.]+\+cpu' "$folder/build/log/cpu_wheel.txt" || { cat "$folder/build/log/cpu_wheel.txt"; exit 1; }
digest=$(sha256sum </dev/null | cut -d' ' -f1)
words_of_pip SCALEMARK_CUDA=OFF SCALEMARK_TORCH_INDEX=/wheels SCALEMARK_TORCH_HASH="$digest"
grep -qxE "torch==[0-9.]+\\+cpu --hash=sha256:$digest" "$folder/build/log/cpu_wheel.txt" || { cat "$folder/build/log/cpu_wheel.txt"; exit 1; }

# What is there by a list of today is not asked for again; by one of yesterday it is.
mkdir -p "$folder/.venv/lock"
cp "$source"/scripts/lock/{torch,report}.txt "$folder/.venv/lock/"
echo >>"$folder/.venv/lock/report.txt"
rm -rf "$folder/pip" "$folder/build"
env PATH="$folder/bin:$PATH" TORCH_ROOT= SCALEMARK_CUDA=OFF "$setup" >/dev/null 2>&1 || true  # CMake stands in here
[[ $(<"$folder/pip") == *"${LISTS}report.txt" ]] || { cat "$folder/pip"; exit 1; }

# Every line of a list is a version, with a hash after it, or a hash; what setup names has a list.
for list in "$source"/scripts/lock/*.txt; do
  awk 'NR == 1 && /^# Written by/ { next }
    /^[a-z0-9-]+==[0-9][0-9a-z.]*(; [a-z_]+ [<>=]+ \047[a-z0-9_.*]+\047)? \\$/ && !more { more = 1; next }
    /^    --hash=sha256:[0-9a-f]+( \\)?$/ && length($1) == 78 && more { more = / \\$/; hashes++; next }
    { print FILENAME ": " $0; exit bad = 1 }
    END { exit bad || more || !hashes }' "$list" || { echo "$list is no list of versions with hashes"; exit 1; }
done
for group in torch torch_cuda torch_python report tests sbom; do
  [[ -s $source/scripts/lock/$group.txt ]] || { echo "scripts/lock has no $group.txt"; exit 1; }
done
echo "refusals are as promised"
