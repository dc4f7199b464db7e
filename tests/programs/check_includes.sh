#!/usr/bin/env bash
# Who may include what: the LibTorch-free rooms neither LibTorch nor MPI nor CUDA, comm/ no LibTorch, models/ no MPI,
# and CUDA and NCCL headers only below cuda/ folders.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
torch='torch/|ATen/|c10/' mpi='mpi\.h' cuda='cuda[^"/]*\.h|c10/cuda|ATen/cuda|nccl\.h|cudnn\.h|nvml\.h'
failed=0
refuse() { # PATTERN FIND_ARGUMENT...
  local pattern=$1 files found; shift
  mapfile -t files < <(find "$@" \( -name '*.cpp' -o -name '*.hpp' \))
  ((${#files[@]} > 0)) || { echo "no sources in: $*"; failed=1; return; }
  if found=$(grep -nE "^ *# *include *[<\"]($pattern)" "${files[@]}"); then
    echo "$found"
    failed=1
  fi
}
refuse "$torch|$mpi|$cuda" src/config src/platform src/measure src/result src/analysis src/launch src/report
refuse "$torch|$mpi|$cuda" src/error.hpp src/error.cpp models/catalog.hpp bench/scalemark.cpp
refuse "$torch" src/comm -not -path '*/cuda/*'
refuse "$mpi|$cuda" models
refuse "$cuda" src bench -not -path '*/cuda/*'
# The pattern can find something.
[[ $(grep -rlE "^ *# *include *[<\"]($torch)" src/train | wc -l) -gt 0 ]] || { echo "no LibTorch in src/train?"; failed=1; }
((failed)) || echo "includes are where they belong"
exit $failed
