"""run, infer and preflight start their ranks themselves with --ranks, as scale does: same records, same faults."""

import os
import signal

from support import SCALEMARK, SMALL, ProgramTest, main, mpirun

FOREVER = [*SMALL, "--num_batches", "1000000"]


class OwnRanks(ProgramTest):
    def test_run_and_infer_measure_that_many(self):
        for command in ("run", "infer"):
            with self.subTest(command):
                record = self.record_of(command, "--ranks", "2", *SMALL, "--num_batches", "5")
                self.assertEqual((record["status"], record["world_size"]), ("ok", 2))
                self.assertEqual(record["config"]["ranks"]["value"], [2])

    def test_the_configuration_is_that_of_a_users_own_launch(self):
        ours = self.record_of("run", "--ranks", "2", *SMALL, "--num_batches", "5")
        self.run_program(*mpirun(2, SCALEMARK, "run", *SMALL, "--num_batches", "5", "--output", "theirs.json"))
        self.assertEqual(ours["config_hash"], self.read("theirs.json")["config_hash"])

    def test_preflight_checks_them(self):
        _, err = self.run_program(SCALEMARK, "preflight", "--ranks", "2", "--pinning", "--output", "p.json")
        self.assertEqual(len(self.read("p.json")["ranks"]), 2)
        self.assertIn("starts 2 ranks", err)

    def test_a_killed_rank_ends_it_and_leaves_a_record(self):
        for command, kind in (("run", "run"), ("infer", "inference")):
            with self.subTest(command), \
                    self.start(SCALEMARK, command, "--ranks", "2", *FOREVER, "--output", f"{command}.json") as job:
                self.wait_for_line(job.stdout, "images/sec: ")
                os.kill(self.processes("scalemark-engine")[-1], signal.SIGKILL)
                job.communicate(timeout=60)
                self.assertEqual(job.returncode, 4)
                record = self.read(f"{command}.json")
                self.assertEqual((record["kind"], record["status"]), (kind, "failed"))
                self.assertIn("killed", record["reason"])

    def test_what_a_rank_says_is_not_buried(self):
        for flags, code in ((["--device", "cuda"], 7), (["--inject", "nan_loss:step=3"], 4)):
            with self.subTest(flags):
                _, err = self.run_program(SCALEMARK, "run", "--ranks", "2", *SMALL, "--num_batches", "10", *flags, expect=code)
                self.assertNotIn("-----", err)
                self.assertNotIn("mpirun ended", err)
                self.assertRegex(err.splitlines()[-1], "no usable GPU|not finite")

    def test_a_stop_keeps_what_was_measured(self):
        with self.start(SCALEMARK, "run", "--ranks", "2", *FOREVER, "--output", "r.json") as job:
            self.wait_for_line(job.stdout, "images/sec: ")
            job.send_signal(signal.SIGTERM)
            job.communicate(timeout=60)
        record = self.read("r.json")
        self.assertEqual(record["status"], "interrupted")
        self.assertGreater(record["partial_throughput"], 0)

    def test_the_plan_shows_what_would_be_started(self):
        out, err = self.run_program(SCALEMARK, "run", "--ranks", "2", *SMALL, "--dry_run")
        self.assertIn("would start: mpirun", err)
        self.assertRegex(out, r"\n +2 ")

    def test_what_has_no_meaning_is_refused(self):
        _, err = self.run_program(SCALEMARK, "run", "--ranks", "1,2", *SMALL, expect=2)
        self.assertIn("a list is a curve, which is for scalemark scale", err)
        _, err = self.run_program(*mpirun(2, SCALEMARK, "run", "--ranks", "3", *SMALL), expect=2)
        self.assertIn("--ranks asks for 3 ranks, but this launch has a world of 2", err)

    def test_a_file_of_a_curve_starts_nothing(self):
        (self.folder / "curve.json").write_text('{"ranks": [1, 2], "model": "smallnet", "num_batches": 3}')
        record = self.record_of("run", "--config", "curve.json")
        self.assertEqual(record["world_size"], 1)


if __name__ == "__main__":
    main()
