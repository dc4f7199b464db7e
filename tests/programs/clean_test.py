"""scalemark clean: what killed jobs leave goes, what lives stays."""

import os
import pathlib
import signal
import time
import unittest

from support import SCALEMARK, SOURCE, SMALL, ProgramTest, main, mpirun

LONG = [*SMALL, "--num_batches", "1000000"]
SHARED_MEMORY = pathlib.Path("/dev/shm")


def segments():
    return {path for path in SHARED_MEMORY.glob("vader_segment.*")}


class Clean(ProgramTest):
    def setUp(self):
        super().setUp()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.ours = set()

    def clean(self, *words):
        """The lines that are of this test: other suites leave segments, too."""
        out, _ = self.run_program(SCALEMARK, "clean", *words, env=self.environment(TMPDIR=str(self.temporary)))
        return [line for line in out.splitlines() if str(self.folder) in line or any(path.name in line for path in self.ours)]

    def start_measuring(self, *words):
        before = segments()
        process = self.start(*words, "--display_every", "1", env=self.environment(TMPDIR=str(self.temporary)))
        self.wait_for_line(process.stdout, "images/sec:")
        made = {path for path in segments() - before if self.is_mapped_here(path)}
        self.ours |= made
        return process, made

    def is_mapped_here(self, path):
        return any(str(path) in pathlib.Path(f"/proc/{pid}/maps").read_text() for pid in self.processes_left())

    def kill_everything(self, process):
        """As where a node dies: whoever would clean up is gone first."""
        process.kill()
        for _ in range(3):
            for pid in self.processes_left():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        process.communicate()
        self.wait_until(lambda: not self.processes_left())

    @staticmethod
    def make_old(*paths):
        for path in paths:
            for each in (path, *path.rglob("*")):
                try:
                    os.utime(each, (time.time() - 3600,) * 2, follow_symlinks=False)
                except FileNotFoundError:
                    pass  # a living run replaces its checkpoints

    def test_what_a_killed_job_left_goes_and_a_living_one_stays(self):
        results = self.folder / "results"
        scale = ["scale", *LONG, "--ranks", "2", "--baseline=false"]
        dead, dead_segments = self.start_measuring(SCALEMARK, *scale, "--output", results / "dead.json")
        self.kill_everything(dead)
        left = sorted(path.name for path in results.iterdir())
        self.assertIn(".dead.json.tmp", left)
        [sessions] = self.temporary.glob("ompi.*")
        self.assertNotEqual(list(sessions.glob("pid.*")), [])
        self.assertEqual(len(dead_segments & segments()), 2)

        alive, living_segments = self.start_measuring(SCALEMARK, *scale, "--output", results / "alive.json")
        self.make_old(self.temporary, *dead_segments, *living_segments)  # what lives too
        would = self.clean("--dry_run", results)
        self.assertLessEqual(dead_segments, segments())
        out = self.clean(results)
        self.assertEqual(out, [line.replace("would remove", "removed") for line in would])
        for word in ("private folder", "record that was not finished", "Open MPI's session folder", "Open MPI's shared memory"):
            self.assertIn(word, "\n".join(out))
        self.assertEqual(dead_segments & segments(), set())
        self.assertLessEqual(living_segments, segments())
        left = [path.name for path in results.iterdir()]
        self.assertEqual([name for name in left if name.startswith(".dead")], [])
        self.assertIn(".alive.json.tmp", left)
        self.assertEqual(self.clean(results), [])

        alive.send_signal(signal.SIGTERM)
        alive.communicate(timeout=60)
        self.assertEqual(self.read(results / "alive.json")["status"], "interrupted")  # its hand-over was there

    def test_what_is_young_or_in_use_stays(self):
        process, ours = self.start_measuring(*mpirun(2, SCALEMARK, "run", *LONG))
        self.kill_everything(process)
        self.clean()
        self.assertEqual(len(ours & segments()), 2)  # less than a minute old
        self.make_old(*ours)
        first, second = sorted(ours)
        with open(first, "rb"):
            self.clean()
            self.assertTrue(first.exists())
            self.assertFalse(second.exists())
        self.clean()
        self.assertFalse(first.exists())

    def test_the_epilog_of_slurm_calls_it(self):
        dead = self.temporary / "scalemark-abcdef"
        dead.mkdir()
        (other := self.temporary / "scalemark-abcdefg").mkdir()  # no name of ours
        (young := self.temporary / "scalemark-abcdeg").mkdir()
        self.make_old(dead, other)
        env = self.environment(TMPDIR=str(self.temporary), SCALEMARK=str(SCALEMARK), STATE=str(self.folder), SLURM_JOB_ID="1")
        self.run_program(SOURCE / "scripts" / "slurm" / "epilog", env=env)
        self.assertFalse(dead.exists())
        self.assertTrue(other.exists())
        self.assertTrue(young.exists())

    @unittest.skipUnless(os.geteuid() == 0, "only root can make files of others")
    def test_what_others_left_is_theirs(self):
        for name in ("scalemark-abcdef", "ompi." + os.uname().nodename.split(".")[0] + ".12345"):
            (self.temporary / name / "pid.99999999").mkdir(parents=True)
        self.make_old(*self.temporary.iterdir())
        for path in (*self.temporary.iterdir(), *self.temporary.rglob("pid.*")):
            os.chown(path, 12345, 12345)
        self.assertEqual(self.clean(), [])
        self.assertEqual(len(self.clean("--all_users")), 2)
        self.assertFalse((self.temporary / "scalemark-abcdef").exists())

    def test_checkpoints_of_a_run_that_was_killed(self):
        words = ["run", *LONG, "--checkpoint_every", "1"]
        dead, _ = self.start_measuring(SCALEMARK, *words)
        self.wait_until(lambda: list(self.temporary.glob("scalemark-checkpoints-*/*.pt")))
        self.kill_everything(dead)
        dead, = self.temporary.glob("scalemark-checkpoints-*")
        alive, _ = self.start_measuring(SCALEMARK, *words)
        self.make_old(self.temporary)
        out = self.clean()
        self.assertEqual([line for line in out if "checkpoints" in line and str(dead) in line], [line for line in out if "(checkpoints, " in line])
        self.assertFalse(dead.exists())
        self.assertEqual(len(list(self.temporary.glob("scalemark-checkpoints-*"))), 1)
        alive.send_signal(signal.SIGTERM)
        alive.communicate(timeout=60)
        self.assertEqual(list(self.temporary.glob("scalemark-checkpoints-*")), [])

    def test_what_version_5_of_open_mpi_leaves(self):
        host, ended = os.uname().nodename.split(".")[0], 4194305  # beyond the largest process id
        dead, alive = ([self.temporary / f"{name}.{process}" for name in (f"prterun.session.{host}.{os.geteuid()}", "ompi")]  # of 5.0.11
                       for process in (ended, os.getpid()))
        segment = SHARED_MEMORY / f"sm_segment.{host}.{os.geteuid()}.{self.tag}.0"
        self.addCleanup(lambda: segment.unlink(missing_ok=True))
        for folder in (*dead, *alive):
            folder.mkdir()
        segment.touch()
        self.ours.add(segment)
        self.make_old(*dead, *alive, segment)
        self.assertEqual(len(self.clean()), 3)
        self.assertEqual([path.exists() for path in (*dead, *alive, segment)], [False, False, True, True, False])

    def test_wrong_words(self):
        _, err = self.run_program(SCALEMARK, "clean", "/nowhere", expect=2)
        self.assertIn("/nowhere is no folder", err)


if __name__ == "__main__":
    main()
