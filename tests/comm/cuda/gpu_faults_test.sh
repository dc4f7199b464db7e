#!/usr/bin/env bash
# gpu_faults_test.sh MPIRUN GPU_FAULT_RANK [real]: what becomes of a job on GPUs when one rank fails. Of every fault: the
# exit code, that the cause stands above all else that is said, and that no process is left behind. On real GPUs, those
# faults that need no fake library.
mpirun=$1 program=$2 real=${3:-}
source "$(dirname "${BASH_SOURCE[0]}")/../fault_support.sh"
TMPDIR=$(mktemp -d)  # where the ranks of the fake NCCL meet
export TMPDIR
trap 'rm -rf "$output" "$TMPDIR"' EXIT
patience=$([ -n "$real" ] && echo 15 || echo 4)  # seconds; NCCL must have started by then

run "no fault" 60 2 nccl none 30
expect_status 0

run "an error that all agree on" 60 2 nccl agreed 40
expect_status 4
expect_order "scalemark: rank 1: the loss is not finite" "rank 0 aborts"  # rank 0 says it; of two ranks mpirun mixes
expect_no_text "timeout"

for communicator in nccl mpi; do
  # Its peers wait for it in the sum that it will never begin.
  run "an error on one rank ($communicator)" 60 2 $communicator throw 40
  expect_status 4
  expect_order "scalemark: rank 1: the loss is not finite" "last words"
  expect_order "scalemark: rank 1: the loss is not finite" "rank 1 aborts"
  expect_no_text "timeout"

  run "no memory on one rank ($communicator)" 60 2 $communicator memory 40
  expect_status 4
  expect_order "scalemark: rank 1: cudaMalloc failed: out of memory on the GPU" "last words"
  expect_no_text "timeout"
done

run "a stopped rank" 90 2 nccl stop "$patience"
expect_status 5
expect_text "raise --timeout \(now $patience s\)"

run "a rank that takes no part" 90 2 nccl skip "$patience"
expect_status 5
expect_text "raise --timeout \(now $patience s\)"

run "a killed rank" 60 2 nccl kill 40
expect_status 137
[ -n "$real" ] && finish

# faulty VARIABLE=VALUE NAME COMMUNICATOR TIMEOUT
faulty() {
  export "${1?}"
  run "$2 ($3)" 60 2 "$3" none "$4"
  unset "${1%%=*}"
}
faulty FAKE_NCCL_FAIL=hang:1:13 "an operation that hangs" nccl 4
expect_status 5
expect_text "timeout: (rank 0|an NCCL operation of GPU 0 has not ended)"

faulty FAKE_NCCL_FAIL=error:1:13 "an asynchronous error" nccl 40
expect_status 4
expect_order "scalemark: NCCL: remote process exited or there was a network error" "rank 1 aborts"

faulty FAKE_NCCL_FAIL=late:1:20 "an asynchronous error at the very end" nccl 40
expect_status 4
expect_text "scalemark: NCCL: remote process exited or there was a network error"

faulty FAKE_NCCL_FAIL=start:1 "a failed start-up" nccl 40
expect_status 4
expect_text "rank 1: ncclCommInitRankConfig failed: unhandled system error \(told to fail\)"
expect_text "rank 0: ncclCommInitRankConfig failed: remote process exited .* \(a peer has failed\)"

faulty FAKE_NCCL_FAIL=start_alone:1 "a failed start-up of which no peer hears" nccl 4
expect_status 5
expect_order "scalemark: rank 1: ncclCommInitRankConfig failed: unhandled system error" "timeout: "

faulty FAKE_NCCL_FAIL=memory:1:13 "NCCL without memory" nccl 40
expect_status 4
expect_order "scalemark: rank 1: ncclAllReduce failed: out of memory on the GPU" "rank 1 aborts"

faulty NCCL_HOSTID=same "two ranks on one GPU" nccl 40
expect_status 4
expect_text "Duplicate GPU detected"

faulty FAKE_CUDA_FAIL=cudaStreamCreate:1 "a GPU that one rank cannot use" nccl 40
expect_status 4
expect_text "rank 1: cudaStreamCreateWithPriority failed: CUDA-capable device"

faulty FAKE_CUDA_FAIL=cudaHostAlloc:1 "no memory to pin" mpi 40
expect_status 4
expect_text "scalemark: rank 1: cudaHostAlloc failed: out of memory that can be pinned"

faulty FAKE_CUDA_FAIL=cudaMemcpyAsync:1:2 "a copy that fails" mpi 40
expect_status 4
expect_text "scalemark: rank 1: cudaMemcpyAsync failed: CUDA-capable device"

for communicator in nccl mpi; do
  for at in 13 22; do  # in the middle of the sums, and with NCCL at the copy behind them
    faulty FAKE_CUDA_FAIL=dies:1:$at "a GPU that dies at work $at" $communicator 40
    expect_status 4
    expect_text "scalemark: .*an illegal memory access was encountered"
    expect_no_text "terminate called"
  done
done
finish
