#!/usr/bin/env bash
# check_links.sh FRONT_DOOR [ENGINE_WITHOUT_CUDA]: the front door needs no LibTorch, MPI or CUDA library, and the
# engine that is linked without CUDA needs no CUDA library of its own.
set -euo pipefail
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
refuse() { # PROGRAM PATTERN
  local libraries found
  libraries=$(needed "$1")
  [[ -n $libraries ]] || { echo "$1: readelf found no library at all"; exit 1; }
  if found=$(grep -E "$2" <<<"$libraries"); then
    printf '%s needs:\n%s\n' "$1" "$found"
    exit 1
  fi
  echo "$(basename "$1") needs: ${libraries//$'\n'/ }"
}
refuse "$1" 'torch|c10|libmpi|open-rte|cuda|cudart|nccl|nvrtc'
if [[ -n ${2-} ]]; then
  refuse "$2" 'torch_cuda|c10_cuda|cudart|nccl|libcuda|nvrtc|cudnn'
  # The pattern can find something: this engine does need LibTorch.
  grep -q libtorch_cpu <<<"$(needed "$2")" || { echo "$2 does not even need libtorch_cpu"; exit 1; }
fi
