"""A reader that pauses, a storage that does not answer, a system without threads, descriptors or room: none of them becomes a
figure, loses one, or ends in a code without a meaning.
"""

import fcntl
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile

from support import BINARY, SCALEMARK, SMALL, ProgramTest, main

TINY = ["--model", "trivial", "--batch_size", "4", "--num_warmup_batches", "1", "--roofline=false"]
FAULTY = BINARY / "bin" / "libfaulty_system.so"
F_SETPIPE_SZ = 1031  # of Linux


class PausedReaders(ProgramTest):
    def paused(self, *words):
        """Starts the program with a small pipe as stdout that nobody reads; returns it and the pipe's reader."""
        reader, writer = os.pipe()
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        process = self.start(SCALEMARK, *words, stdout=writer, stderr=subprocess.DEVNULL)
        os.close(writer)
        return process, os.fdopen(reader)

    def test_the_record_does_not_wait_for_them(self):
        for ranks in ([], ["--ranks", "2"]):
            with self.subTest(ranks=ranks):
                process, reader = self.paused("run", *TINY, "--num_batches", "400", "--display_every", "1", "--output", "r.json", *ranks)
                self.wait_until((self.folder / "r.json").exists)
                self.assertIsNone(process.poll())  # somebody may still want to read
                with reader:
                    lines = reader.read().splitlines()
                self.assertEqual(process.wait(timeout=60), 0)
                self.assertEqual(sum("images/sec:" in line for line in lines), 400 + 1)  # and the total
                record = self.read("r.json")
                self.assertEqual((record["status"], record["steps"]), ("ok", 400))
                (self.folder / "r.json").unlink()

    def test_what_is_dropped_is_counted(self):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        process = self.start(SCALEMARK, "run", *TINY, "--num_batches", "6000", "--display_every", "1", "--output", "r.json",
                             stdout=writer, stderr=writer)
        os.close(writer)
        self.wait_until((self.folder / "r.json").exists, seconds=180)
        with os.fdopen(reader) as file:
            text = file.read()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertRegex(text, r"warning: \d+ lines not printed, since nobody read what came before")


class Storage(ProgramTest):
    def test_a_finished_run_waits_for_one_that_stalls(self):
        """The file is synced where it is opened, and where the record is written."""
        for skip in (0, 1):
            with self.subTest(skip=skip):
                _, err = self.run_program(SCALEMARK, "run", *TINY, "--num_batches", "5", "--timeout", "3", "--ranks", "2",
                                          "--output", "slow.json",
                                          env=self.environment(LD_PRELOAD=str(FAULTY), SMK_TEST_SLOW_FSYNC=f"slow.json:{skip}:9"))
                self.assertEqual(self.read("slow.json")["status"], "ok")
                self.assertIn("its storage has not answered for 5 s; waiting for it, with a copy in", err)
                self.assertFalse(list(pathlib.Path(tempfile.gettempdir()).glob("scalemark-result-*")))

    def test_a_stop_that_comes_while_the_record_is_written_changes_no_exit_code(self):
        process = self.start(SCALEMARK, "instances", "--slots", "0", "--instances", "1", "--repeats", "1", *TINY, "--num_batches", "5",
                             "--output", "slow.json", env=self.environment(LD_PRELOAD=str(FAULTY), SMK_TEST_SLOW_FSYNC="/.slow.json:1:7"))
        self.wait_for_line(process.stderr, "its storage has not answered")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.read("slow.json")["status"], "ok")

    def test_a_folder_that_vanishes_is_made_again(self):
        process = self.start(SCALEMARK, "run", *TINY, "--num_batches", "100000", "--max_seconds", "2", "--output", "gone/r.json",
                             "--display_every", "1")
        self.wait_for_line(process.stdout, "images/sec")
        shutil.rmtree(self.folder / "gone")
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.read("gone/r.json")["status"], "ok")


class Threads(ProgramTest):
    def test_without_them_the_remedy_is_said(self):
        """Wherever it is that they run out: the front door, MPI, OpenMP, the reducer."""
        codes = {}
        for most in (0, 1, 2, 4):
            for words in (["scale", *SMALL, "--num_batches", "2", "--ranks", "1,2", "--repeats", "1"], ["run", *SMALL, "--num_batches", "2"]):
                with self.subTest(most=most, command=words[0]):
                    process = self.start(SCALEMARK, *words, env=self.environment(
                        LD_PRELOAD=str(FAULTY), SMK_TEST_THREADS=str(most), OMP_NUM_THREADS="2"))
                    _, err = process.communicate(timeout=120)
                    self.assertIn(process.returncode, (0, 4, 7), err)
                    if process.returncode == 7:
                        self.assertRegex(err, "ulimit -u|MPI could not be started|Unable to start listen thread")
                    codes[most, words[0]] = process.returncode
        self.assertEqual(codes[0, "run"], 7)
        self.assertEqual(codes[1, "scale"], 7)


class Limits(ProgramTest):
    def limited(self, kind, most, *words):
        process = self.start(SCALEMARK, *words, preexec_fn=lambda: resource.setrlimit(kind, (most, most)))
        _, err = process.communicate(timeout=180)
        return process.returncode, err

    def test_few_descriptors_for_several_ranks(self):
        for most in (24, 32, 40):
            with self.subTest(most=most):
                code, err = self.limited(resource.RLIMIT_NOFILE, most, "scale", *TINY, "--num_batches", "2", "--ranks", "2", "--repeats", "1")
                self.assertEqual(code, 7, err)
                self.assertRegex(err, r"open files.*ulimit -n")

    def test_checkpoints_beyond_the_size_of_a_file(self):
        code, err = self.limited(resource.RLIMIT_FSIZE, 20_000_000, "run", "--model", "resnet18", "--image_size", "32", "--batch_size", "2",
                                 "--num_batches", "2", "--num_warmup_batches", "0", "--roofline=false", "--checkpoint_every", "1")
        self.assertEqual(code, 6, err)
        self.assertRegex(err, r"checkpoint .*ulimit -f")


class Neighbours(ProgramTest):
    def test_what_a_script_has_started_goes_on(self):
        """A monitor in the background, then exec: its parent is scalemark."""
        script = '(while sleep 0.2; do date; done) >monitor.log 2>/dev/null </dev/null & echo $! >monitor.pid; exec "$@"'
        self.run_program("bash", "-c", script, "x", SCALEMARK, "scale", *TINY, "--num_batches", "2", "--ranks", "1,2", "--repeats", "1")
        monitor = int((self.folder / "monitor.pid").read_text())
        os.kill(monitor, 0)
        os.kill(monitor, signal.SIGKILL)

    def swept(self, before, after, expect=0):
        plan = {"settings": {"model": "trivial", "batch_size": 4, "num_batches": 2, "num_warmup_batches": 0}, "repeats": 1,
                "launcher": "mpirun", "before": [["sh", "-c", before]], "after": [["sh", "-c", after]]}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        self.run_program(SCALEMARK, "sweep", "plan.json", "--output", "out", expect=expect)

    def test_a_daemon_of_a_command_before_a_launch_goes_on_until_it_is_ended(self):
        for start in ("setsid sleep 1000", "sleep 1000"):  # also one in the process group of the command
            self.swept(f"{start} </dev/null >/dev/null 2>&1 & echo $! >daemon.pid", "kill $(cat daemon.pid) && echo ended >daemon.log")
            self.assertEqual((self.folder / "daemon.log").read_text(), "ended\n", start)
            shutil.rmtree(self.folder / "out")
            (self.folder / "daemon.log").unlink()

    def test_a_command_that_fails_leaves_nothing(self):
        self.swept("setsid sleep 1000 & sleep 1000 & exit 3", "true", expect=7)
        self.assertEqual(self.processes_left(), [])


if __name__ == "__main__":
    main()
