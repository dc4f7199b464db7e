"""--reducer c10d as users call it: LibTorch's Reducer over Gloo, its records, its faults and its refusals."""

import subprocess
import unittest

from support import SCALEMARK, SMALL, ProgramTest, main, mpirun

C10D = [*SMALL, "--reducer", "c10d"]
SHORT = [*C10D, "--num_batches", "10"]
LONG = [*C10D, "--num_batches", "100000"]


def built():
    """Whether this build has it; without Gloo's headers there is nothing to test but the refusal."""
    tried = subprocess.run([SCALEMARK, "run", *C10D, "--num_batches", "1"], capture_output=True, text=True)
    if tried.returncode == 7:
        assert "libgloo-dev" in tried.stderr and "--reducer scalemark" in tried.stderr, tried.stderr
    return tried.returncode == 0


class C10d(ProgramTest):
    @classmethod
    def setUpClass(cls):
        if not built():
            raise unittest.SkipTest("this build has no c10d: libgloo-dev is not installed")

    def losses(self, ranks, *flags):
        self.run_program(*mpirun(ranks, SCALEMARK, "run", *SMALL, "--num_batches", "10", *flags, "--output", "r.json"))
        return self.read("r.json")["loss"]["trace"]

    def test_the_record_says_who_reduced_and_what_travelled(self):
        out, _ = self.run_program(*mpirun(2, SCALEMARK, "run", *SHORT, "--output", "r.json"))
        record = self.read("r.json")
        self.assertEqual(out.count("total images/sec"), 1)
        communication = record["communication"]
        self.assertEqual((communication["reducer"], communication["communicator"], communication["overlap"]), ("c10d", "gloo", "backward"))
        self.assertEqual((communication["algorithm"], communication["transport"]), ("ring", "tcp"))
        self.assertEqual(communication["bytes_per_step"], 4 * record["parameters"])
        self.assertEqual(communication["wire_bytes_per_step"], communication["bytes_per_step"])  # ring: 2(N-1)/N = 1
        self.assertGreaterEqual(communication["messages_per_step"], 1)
        self.assertGreater(communication["total_seconds"], 0)
        self.assertEqual(communication["exposed_method"], "wait")
        self.assertGreater(record["memory"]["gradient_buffer_bytes"], communication["bytes_per_step"])

    def test_both_reducers_train_alike(self):
        for ranks in (1, 2):
            ours, theirs = self.losses(ranks), self.losses(ranks, "--reducer", "c10d")
            self.assertEqual(len(theirs), 10)
            for a, b in zip(ours, theirs):
                self.assertAlmostEqual(a, b, delta=2e-3 * abs(a))

    def test_a_curve_with_a_process_group_a_point(self):
        self.run_program(SCALEMARK, "scale", *SHORT, "--ranks", "1,2", "--repeats", "2", "--output", "s.json")
        curve = self.read("s.json")
        self.assertEqual([point["ranks"] for point in curve["points"]], [1, 2])
        self.assertGreater(curve["points"][1]["baseline_throughput"], 0)
        for point in curve["points"]:
            for repeat in point["repeats"]:
                communication = self.read(repeat["path"])["communication"]
                expected = ("scalemark", "none") if repeat["baseline"] else ("c10d", "gloo")
                self.assertEqual((communication["reducer"], communication["communicator"]), expected)

    def test_more_ranks_than_the_point_needs(self):
        self.run_program(*mpirun(3, SCALEMARK, "scale", *SHORT, "--ranks", "1,2", "--repeats", "1", "--output", "s.json"))
        self.assertEqual(self.read("s.json")["status"], "ok")

    def test_killed_rank_is_exit_4_with_a_partial_record(self):
        self.run_program(SCALEMARK, "scale", *C10D, "--ranks", "1,2", "--num_batches", "5", "--repeats", "2", "--output", "s.json",
                         "--inject", "kill:rank=1:step=4", expect=4)
        self.assertEqual(self.read("s.json")["status"], "failed")

    def test_stopped_rank_is_named_and_exit_5(self):
        _, err = self.run_program(*mpirun(2, SCALEMARK, "run", *LONG, "--output", "r.json", "--timeout", "5",
                                          "--inject", "stop:rank=1:step=3"), expect=5)
        self.assertRegex(err, r"rank 1\b.*silent")

    def test_one_corrupted_element_is_found_before_the_clock(self):
        _, err = self.run_program(*mpirun(2, SCALEMARK, "run", *LONG, "--output", "r.json", "--inject", "corrupt_allreduce:rank=1"),
                                  expect=4)
        self.assertIn("data check", err)

    def test_an_interface_that_is_not_there_is_exit_7(self):
        _, err = self.run_program(*mpirun(2, SCALEMARK, "run", *SHORT), env=self.environment(GLOO_SOCKET_IFNAME="nothing0"),
                                  expect=7)
        self.assertIn("nothing0", err)

    def test_what_has_no_meaning_with_it_is_exit_2(self):
        for flags in (["--overlap", "none"], ["--wire_dtype", "bf16"], ["--communicator", "mpi"], ["--forward_only"]):
            _, err = self.run_program(SCALEMARK, "run", *SHORT, *flags, expect=2)
            self.assertIn("--reducer c10d", err)
            self.assertIn(flags[0], err)


if __name__ == "__main__":
    main()
