"""The fault table (docs/faults.md), end to end: real processes, real mpirun, real signals. Numbers are the table's."""

import json
import os
import pwd
import resource
import shutil
import signal
import subprocess
import time

from fault_table import BROKEN_MPI
from limits import little_memory
from support import ROOT, SCALEMARK, SMALL, ProgramTest, main, mpirun

LONG = [*SMALL, "--num_batches", "100000"]


class LostRanks(ProgramTest):
    def test_01_killed_rank_under_a_users_mpirun_ends_everything(self):
        started = time.monotonic()
        _, err = self.run_program(*mpirun(2, SCALEMARK, "run", *LONG, "--output", "r.json", "--inject", "kill:rank=1:step=3"),
                                  expect=128 + signal.SIGKILL)  # mpirun's own status stands
        self.assertRegex(err, r"process rank 1 [^\n]*exited on\s+signal 9")
        self.assertLess(time.monotonic() - started, 40)
        self.assertFalse((self.folder / "r.json").exists())

    def test_01_killed_rank_under_our_launcher_is_exit_4_with_a_partial_record(self):
        self.run_program(SCALEMARK, "scale", *LONG, "--ranks", "1,2", "--num_batches", "5", "--repeats", "2", "--output", "s.json",
                         "--inject", "kill:rank=1:step=4", expect=4)
        record = self.read("s.json")
        self.assertEqual(record["status"], "failed")
        self.assertIn("kill", record["reason"])

    def test_02_stopped_rank_is_named_and_exit_5(self):
        _, err = self.run_program(*mpirun(2, SCALEMARK, "run", *LONG, "--output", "r.json", "--timeout", "5",
                                          "--inject", "stop:rank=1:step=3"), expect=5)
        self.assertRegex(err, r"rank 1\b.*silent")
        self.assertRegex(err, r"last step: \d+")
        record = self.read("r.json")
        self.assertEqual(record["status"], "timeout")
        self.assertRegex(record["reason"], r"rank 1\b.*silent")

    def test_02_rank_0_stopped_is_in_the_record_of_scale(self):
        self.run_program(SCALEMARK, "scale", *LONG, "--ranks", "2", "--baseline=false", "--timeout", "3", "--output", "s.json",
                         "--inject", "stop:rank=0:step=3", expect=5)
        record = self.read("s.json")
        self.assertEqual(record["status"], "timeout")
        self.assertRegex(record["reason"], r"rank 0\b.*silent")

    def test_03_a_rank_that_never_comes_meets_the_start_up_deadline(self):
        words = [*mpirun(1, SCALEMARK, "run", *LONG, "--timeout", "4"), ":", "-n", "1", "sleep", "600"]
        _, err = self.run_program(*words, expect=5)
        self.assertIn("start-up", err)

    def test_03_a_rank_that_leaves_before_start_up_ends_everything(self):
        process = self.start(*mpirun(2, SCALEMARK, "run", *LONG, "--timeout", "5", "--inject", "exit_before_init:rank=1"))
        _, err = process.communicate(timeout=60)
        self.assertIn((process.returncode, "start-up" in err), ((1, False), (5, True)), err)  # mpirun notices or the deadline does


class Memory(ProgramTest):
    BIG = ["--model", "resnet18", "--batch_size", "256", "--num_batches", "3", "--num_intra_threads", "1"]

    def test_07_what_the_kernel_killed_is_named(self):
        with little_memory(800 << 20) as (enter, _):
            _, err = self.run_program(SCALEMARK, "scale", *self.BIG, "--ranks", "2", "--baseline=false", "--output", "s.json", expect=4,
                                      preexec_fn=enter)
        record = self.read("s.json")
        self.assertEqual(record["status"], "failed")
        for text in (err, record["reason"]):
            self.assertRegex(text, r"killed by signal 9 \(KILL\).*out of memory: the kernel killed \d+ process.*800 MiB.*Remedy")

    def test_07_memory_that_is_refused_is_named_with_the_batch(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
        for launch, words in (("run", [SCALEMARK, "run"]), ("ranks", mpirun(2, SCALEMARK, "run"))):
            with self.subTest(launch=launch):
                _, err = self.run_program(*words, *self.BIG, "--output", f"{launch}.json", expect=4, preexec_fn=limit)
                record = self.read(f"{launch}.json")
                self.assertEqual(record["status"], "failed")
                for text in (err, record["reason"]):
                    self.assertRegex(text, r"out of memory with 256 samples a rank.* MiB.*Remedy")
                    self.assertNotIn("frame #", text)


class WrongNumbers(ProgramTest):
    def test_05_nan_is_invalid_without_throughput(self):
        self.run_program(*mpirun(2, SCALEMARK, "run", *LONG, "--output", "r.json", "--inject", "nan_loss:rank=1:step=4"), expect=4)
        record = self.read("r.json")
        self.assertEqual(record["status"], "invalid")
        self.assertIsNone(record["throughput"])

    def test_06_one_corrupted_element_is_found_before_the_clock(self):
        _, err = self.run_program(*mpirun(2, SCALEMARK, "run", *LONG, "--output", "r.json", "--inject", "corrupt_allreduce:rank=1"),
                                  expect=4)
        self.assertIn("rank 1", err)
        record = self.read("r.json")
        self.assertEqual(record["status"], "failed")
        self.assertIn("rank 1", record["reason"])

    def test_06_an_allreduce_that_breaks_while_the_clock_runs(self):
        """The real thing: an MPI whose sums are wrong from the 60th on (tests/comm/corrupt_mpi.cpp)."""
        def words(start):
            return mpirun(2, *BROKEN_MPI, f"CORRUPT_FROM={start}", SCALEMARK, "run", *SMALL, "--num_batches", "100", "--output", "r.json")
        _, err = self.run_program(*words(60), expect=4)
        self.assertRegex(err, r"the allreduce is wrong on rank .*it was right before the measurement")
        record = self.read("r.json")
        self.assertEqual((record["status"], record["throughput"]), ("failed", None))
        self.assertIn("it was right before the measurement", record["reason"])
        self.run_program(*words(100000))


class ResultPaths(ProgramTest):
    def test_09_no_permission_is_exit_6_at_the_start(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become nobody")
        nobody = pwd.getpwnam("nobody")
        os.chmod(self.folder, 0o755)
        older = self.folder / "r.json"
        older.write_text("older")
        env = self.environment(HOME="/tmp")
        process = self.start(SCALEMARK, "run", *LONG, "--output", older, env=env, user=nobody.pw_uid, group=nobody.pw_gid)
        _, err = process.communicate(timeout=60)
        if process.returncode == 126 or "Permission denied" in err and "r.json" not in err:
            self.skipTest("nobody cannot reach the build folder")
        self.assertEqual(process.returncode, 6, err)
        self.assertEqual(older.read_text(), "older")

    def test_09_full_disk_is_exit_6_and_the_older_file_survives(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to mount a small file system")
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode != 0:
            self.skipTest("cannot mount here")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", disk]))
        (disk / "r.json").write_text("older")
        (disk / "filler").write_bytes(b"x" * 56 * 1024)
        _, err = self.run_program(SCALEMARK, "run", *LONG, "--output", disk / "r.json", expect=6)
        self.assertIn("r.json", err)
        self.assertEqual((disk / "r.json").read_text(), "older")

    def test_09_a_folder_is_no_result_file(self):
        self.run_program(SCALEMARK, "run", *LONG, "--output", self.folder, expect=6)

    def test_18_two_writers_of_one_path_both_survive(self):
        # So slow that the second has its path before the first is done, however busy the machine is.
        words = [SCALEMARK, "run", *SMALL, "--num_batches", "40", "--inject", "delay:milliseconds=200", "--output", "r.json"]
        both = [self.start(*words), self.start(*words)]
        for process in both:
            _, err = process.communicate(timeout=90)
            self.assertEqual(process.returncode, 0, err)
        records = [json.loads(p.read_text())["id"] for p in self.folder.glob("r*.json")]
        self.assertEqual(len(set(records)), 2)


class AgreedStop(ProgramTest):
    def stop(self, words, number, send):
        process = self.start(*words)
        self.wait_for_line(process.stdout, "images/sec:")
        started = time.monotonic()
        send(process, number)
        process.stdout.read()
        process.wait(timeout=30)
        self.assertLess(time.monotonic() - started, 20)
        return process

    def test_11_sigterm_stops_at_a_step_boundary(self):
        process = self.stop([SCALEMARK, "run", *LONG, "--output", "r.json"], signal.SIGTERM, subprocess.Popen.send_signal)
        self.assertEqual(process.returncode, 4, process.stderr.read())
        record = self.read("r.json")
        self.assertEqual(record["status"], "interrupted")
        self.assertIsNone(record["throughput"])
        self.assertGreater(record["partial_throughput"], 0)

    def test_11_usr1_to_mpirun_stops_all_ranks_together(self):
        process = self.stop(mpirun(2, SCALEMARK, "run", *LONG, "--output", "r.json"), signal.SIGUSR1, subprocess.Popen.send_signal)
        self.assertEqual(self.read("r.json")["status"], "interrupted")
        self.assertNotEqual(process.returncode, 0)

    def test_11_sigterm_to_scale_stops_the_ranks_that_it_launched(self):
        process = self.stop([SCALEMARK, "scale", *LONG, "--ranks", "1,2", "--baseline=false", "--output", "s.json"], signal.SIGTERM,
                            subprocess.Popen.send_signal)
        self.assertEqual(process.returncode, 4, process.stderr.read())
        self.assertEqual(self.read("s.json")["status"], "interrupted")


class WrongInput(ProgramTest):
    def refused(self, *words, naming):
        _, err = self.run_program(SCALEMARK, *words, expect=2)
        for text in naming:
            self.assertIn(text, err)

    def test_13_malformed_and_deeply_nested_json(self):
        for text in ("{", "[" * 100000, '{"batch_size": 1' + "0" * 400 + "}"):
            (self.folder / "c.json").write_text(text)
            self.refused("run", "--config", "c.json", naming=["c.json"])
        (self.folder / "c.json").write_text('{"batch_size": "four"}')
        self.refused("run", "--config", "c.json", naming=["c.json", "/batch_size"])

    def test_14_unknown_negative_overflow_and_wrong_type(self):
        self.refused("run", "--batchsize", "4", naming=["batch_size"])
        self.refused("run", "--batch_size=-4", naming=["batch_size", "1"])
        self.refused("run", "--batch_size", "99999999999999999999", naming=["batch_size"])
        self.refused("run", "--batch_size", "four", naming=["batch_size"])
        self.refused("rnu", naming=["run"])

    def test_15_configuration_that_differs_between_ranks(self):
        words = mpirun(1, SCALEMARK, "run", *SMALL) + [":", "-n", "1", str(SCALEMARK), "run", *SMALL, "--num_batches", "7"]
        _, err = self.run_program(*words, expect=2)
        self.assertIn("num_batches", err)
        self.assertIn("rank 1", err)

    def test_16_global_batch_that_does_not_divide(self):
        _, err = self.run_program(*mpirun(2, SCALEMARK, "run", "--model", "smallnet", "--scaling", "strong",
                                          "--global_batch_size", "7"), expect=2)
        self.assertIn("6", err)
        self.assertIn("8", err)


class Singletons(ProgramTest):
    def assert_refused(self, err):
        self.assertIn("world of one", err)
        self.assertEqual(list(self.folder.glob("*.json")), [])

    def test_22_tasks_that_each_see_a_world_of_one(self):
        for env in ({"PMI_SIZE": "2", "PMI_RANK": "0"}, {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2"}):
            _, err = self.run_program(SCALEMARK, "run", *SMALL, "--output", "r.json", env=self.environment(**env), expect=7)
            self.assert_refused(err)

    def test_22_another_mpis_mpirun(self):
        hydra = shutil.which("mpiexec.hydra") or shutil.which("mpiexec.mpich")
        if not hydra:
            self.skipTest("MPICH's mpiexec is not here")
        process = self.start(hydra, "-n", "2", SCALEMARK, "run", *SMALL, "--output", "r.json")
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 7, err)
        self.assert_refused(err)


if __name__ == "__main__":
    main()
