#!/usr/bin/env bash
# scripts/setup refuses what it should: unknown arguments and settings (2), a TORCH_ROOT without LibTorch or with one that is
# too old (7), and for a plain user with a missing package it prints the one line to run (7) and touches nothing. Without
# CUDA it fetches none.
set -uo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/scripts" "$folder/bin"
cp "$source"/scripts/{setup,progress.sh,compile_seconds,compile_weights.awk,compile_left.awk} "$folder/scripts/"
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
words_of_pip SCALEMARK_CUDA=OFF
[[ $words == *" --no-deps torch=="*" nvidia_cuda_runtime=="*" nvidia_cuda_cupti=="* ]] || { echo "$words"; exit 1; }
words_of_pip SCALEMARK_CUDA=OFF SCALEMARK_TORCH_INDEX=/wheels
[[ $words == *" --extra-index-url=/wheels torch=="*"+cpu" ]] || { echo "$words"; exit 1; }
words_of_pip SCALEMARK_CUDA=ON
[[ $words != *--no-deps* && $words == *" torch=="*" nvidia_cuda_crt=="* ]] || { echo "$words"; exit 1; }
echo "refusals are as promised"
