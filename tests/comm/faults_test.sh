#!/usr/bin/env bash
# faults_test.sh MPIRUN FAULT_RANK: what becomes of a job when one rank fails. Of every fault: the exit code, what
# the message names, that it ends in time, and that no process is left behind.
mpirun=$1 program=$2
tag="scalemark-fault-$$"
output=$(mktemp)
trap 'rm -f "$output"' EXIT
failures=0

wrong() { echo "FAILED: $*"; failures=$((failures + 1)); }
left_behind() { pgrep -f "[ ]$tag" || true; }

# run NAME LIMIT_SECONDS RANKS KIND TIMEOUT: runs the job; its status in $status.
run() {
  name=$1
  echo "== $name"
  local start=$SECONDS
  timeout -k 1 "$2" "$mpirun" "$3" "$program" "$4" "$5" "$tag" >"$output" 2>&1
  status=$?
  if [ $status = 124 ] || { [ $status = 137 ] && [ $((SECONDS - start)) -ge "$2" ]; }; then
    wrong "$name: still running after $2 s"
  fi
  for _ in 1 2 3 4 5 6 7 8 9 10; do [ -z "$(left_behind)" ] && break; sleep 0.2; done
  [ -z "$(left_behind)" ] && return
  wrong "$name: processes left behind: $(left_behind | tr '\n' ' ')"
  left_behind | xargs -r kill -9
}
expect_status() { [ "$status" = "$1" ] || wrong "$name: exit code $status, expected $1"; }
expect_text() { grep -qE -- "$1" "$output" || { wrong "$name: no '$1' in:"; cat "$output"; }; }

run "no fault" 40 2 none 20
expect_status 0

run "a stopped rank (fault 2)" 40 3 stop 4
expect_status 5
expect_text "timeout: rank [02] of 3 on .* in phase 'allreduce' \(last step: 12\)"
expect_text "rank 1 on .*: silent \(stopped, dead or unreachable\)"
expect_text "rank [02] on .* answers: in phase '(allreduce|forward)' at step 12"
expect_text "raise --timeout \(now 4 s\)"
expect_text "last words"

run "a stopped rank among those that gather" 40 3 stop_gather 4
expect_status 5
expect_text "timeout: rank [02] of 3 on .* in phase 'allgather' \(last step: 12\)"

run "a rank that computes for ever" 40 2 compute 4
expect_status 5
expect_text "in phase '(allreduce|forward)' \(last step: 12\)"
expect_text "answers: in phase '(allreduce|forward)' at step 12"

run "a rank that exits before MPI_Init (fault 3)" 40 2 exit_before_init 4
# mpirun says so itself where the other rank had begun MPI_Init by then; else that rank waits, until its time is over.
if [ $status = 1 ]; then
  expect_text "mpirun has exited due to process rank 1"
else
  expect_status 5
  expect_text "rank 0 on .* in phase 'start-up'"
fi

run "a killed rank (fault 1)" 40 2 kill 30
expect_status 137

run "an error on one rank" 40 2 throw 30
expect_status 4
expect_text "scalemark: the loss is not finite"

export SCALEMARK_TEST_ABORT=hang
run "an abort that hangs (fault 4)" 40 2 throw 30
expect_status 4
run "a stopped rank and an abort that hangs" 40 2 stop 4
expect_status 5

[ $failures = 0 ] && echo "all faults end as promised"
exit $((failures > 0))
