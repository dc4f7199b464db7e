"""The faults of docs/faults.md that any launcher meets: real kills, stops and wrong sums. Whoever inherits says how ranks
are started. Each row checks the exit code, the message, the time, that no process is left (ProgramTest) and that an earlier
result stays or gives way to a valid one. With FAULT_TIMES=FILE the seconds from fault to end are kept there."""

import json
import os
import pathlib
import signal
import time

from support import BINARY, SCALEMARK, SMALL

LONG = [*SMALL, "--num_batches", "1000000", "--num_intra_threads", "1"]
# Wrong sums, or an abort that never returns: tests/comm/corrupt_mpi.cpp.
BROKEN_MPI = ["env", f"LD_PRELOAD={BINARY / 'bin' / 'libcorrupt_mpi.so'}"]
EARLIER = "an earlier result"
RANK = "${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}"
PROMISED_SECONDS = 10


class FaultTable:
    LAUNCHER = ""  # its name in the table

    def ranks(self, number, *words):
        """The words that start ranks of a user's own launch."""
        raise NotImplementedError

    def setUp(self):
        super().setUp()
        self.result = self.folder / "r.json"
        self.result.write_text(EARLIER)
        self.since = None

    def launch(self, *words, ranks=2, wrap=()):
        return self.start(*self.ranks(ranks, *wrap, SCALEMARK, "run", *words, "--output", self.result))

    def measuring(self, *words):
        process = self.launch(*LONG, *words)
        self.wait_for_line(process.stdout, "images/sec:")
        return process

    def pid_of(self, rank):
        for pid in self.processes("scalemark-engine"):
            variables = dict(word.split("=", 1) for word in pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in word)
            if variables.get("OMPI_COMM_WORLD_RANK", variables.get("SLURM_PROCID")) == str(rank):
                return pid
        return self.fail(f"no rank {rank}")

    def signal_rank(self, rank, number):
        os.kill(self.pid_of(rank), number)
        self.since = time.monotonic()

    def end(self, process, row, within):
        _, err = process.communicate(timeout=60)
        if self.since is not None:
            seconds = time.monotonic() - self.since
            self.assertLess(seconds, within)
            if times := os.environ.get("FAULT_TIMES"):
                with open(times, "a", encoding="utf-8") as file:
                    file.write(json.dumps({"row": row, "launcher": self.LAUNCHER, "seconds": round(seconds, 1)}) + "\n")
        return process.returncode, err

    def assert_earlier(self):
        self.assertEqual(self.result.read_text(), EARLIER)

    def assert_record(self, status, reason=""):
        record = self.read(self.result)
        self.assertEqual(record["status"], status)
        if status != "interrupted":
            self.assertIsNone(record["throughput"])
        if reason:
            self.assertRegex(record["reason"], reason)
        return record

    def test_01_a_killed_rank(self):
        process = self.measuring()
        self.signal_rank(1, signal.SIGKILL)
        code, err = self.end(process, 1, PROMISED_SECONDS)
        self.assertEqual(code, 128 + signal.SIGKILL, err)  # the launcher's own
        self.assert_earlier()

    def test_02_a_stopped_rank(self):
        process = self.measuring("--timeout", "4")
        self.signal_rank(1, signal.SIGSTOP)
        code, err = self.end(process, 2, 4 + PROMISED_SECONDS)
        self.assertEqual(code, 5, err)
        self.assertRegex(err, r"timeout: rank 0 .*last step: \d+(.|\n)*rank 1 on \S+: silent")
        self.assert_record("timeout", r"rank 1 on \S+: silent")

    def test_03_a_rank_that_leaves_before_mpi(self):
        leaves = ["sh", "-c", f'test {RANK} = 1 && exit 0; exec "$@"', "sh"]
        process = self.launch(*LONG, "--timeout", "4", wrap=leaves)
        self.since = time.monotonic()
        code, err = self.end(process, 3, 4 + PROMISED_SECONDS + 5)  # with the start itself
        # mpirun may notice by itself where the other rank has begun MPI_Init.
        self.assertIn((code, "start-up" in err), ((5, True), (1, False)), err)
        self.assert_earlier()

    def test_04_an_abort_that_hangs(self):
        process = self.launch(*LONG, "--timeout", "4", wrap=[*BROKEN_MPI, "HANG_IN_ABORT=1"])
        self.wait_for_line(process.stdout, "images/sec:")
        self.signal_rank(1, signal.SIGSTOP)
        code, err = self.end(process, 4, 4 + 5 + PROMISED_SECONDS)
        self.assertIn(code, (5, 128 + signal.SIGKILL), err)  # srun counts the stopped rank that it kills, too
        self.assert_record("timeout")

    def test_05_a_loss_that_is_no_number(self):
        process = self.launch(*SMALL, "--num_batches", "60", "--init_learning_rate", "1000000", "--momentum", "0.99")
        code, err = self.end(process, 5, 60)
        self.assertEqual(code, 4, err)
        self.assert_record("invalid", "loss")

    def test_06_a_wrong_element(self):
        code, err = self.end(self.launch(*LONG, wrap=[*BROKEN_MPI, "CORRUPT_FROM=1"]), 6, 60)
        self.assertEqual(code, 4, err)
        self.assertIn("the allreduce is wrong on rank", err)
        self.assert_record("failed", "the allreduce is wrong on rank")

    def test_11_a_stop(self):
        process = self.measuring()
        for rank in (0, 1):
            self.signal_rank(rank, signal.SIGTERM)
        code, err = self.end(process, 11, PROMISED_SECONDS)
        self.assertEqual(code, 4, err)
        self.assertGreater(self.assert_record("interrupted")["partial_throughput"], 0)

    def test_15_another_configuration(self):
        differs = ["sh", "-c", f'test {RANK} = 0 || set -- "$@" --num_batches 7; exec "$@"', "sh"]
        code, err = self.end(self.launch(*LONG, wrap=differs), 15, 60)
        self.assertEqual(code, 2, err)
        self.assertRegex(err, r"between rank 0 and rank 1: num_batches")
        self.assert_earlier()

    def test_16_a_batch_that_is_not_divisible(self):
        code, err = self.end(self.launch(*LONG[:2], "--scaling", "strong", "--global_batch_size", "7"), 16, 60)
        self.assertEqual(code, 2, err)
        self.assertRegex(err, r"\b6\b.*\b8\b")
        self.assert_earlier()
