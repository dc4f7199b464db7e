#!/usr/bin/env bash
# faults_test.sh MPIRUN FAULT_RANK: what becomes of a job when one rank fails. Of every fault: the exit code, what
# the message names, that it ends in time, and that no process is left behind.
mpirun=$1 program=$2
source "$(dirname "${BASH_SOURCE[0]}")/fault_support.sh"

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

run "a stopped rank among those that scatter sums" 40 3 stop_scatter 4
expect_status 5
expect_text "timeout: rank [02] of 3 on .* in phase 'reduce_scatter' \(last step: 12\)"

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

finish
