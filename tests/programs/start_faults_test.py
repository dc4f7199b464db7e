"""What goes wrong before the first step: an error of one rank, another build on one host, an MPI that does not start."""

import json
import os
import re
import resource
import shutil
import socket
import sys

from support import SCALEMARK, SMALL, ProgramTest, main, mpirun


class BeforeMpi(ProgramTest):
    def ranks_apart(self, *words, ranks=2, **options):
        """Each rank runs `words` in a folder of its own, 0, 1 ...: what only its host has."""
        script = 'cd "$OMPI_COMM_WORLD_RANK" && exec "$@"'
        return self.run_program(*mpirun(ranks, "sh", "-c", script, "sh", SCALEMARK, *words), **options)

    def test_an_error_of_one_rank_is_told_once_with_its_rank(self):
        for name in ("0", "1", "2"):
            (self.folder / name).mkdir()
        (self.folder / "0" / "c.json").write_text(json.dumps({"num_batches": 5}))
        words = ["run", *SMALL, "--config", "c.json"]
        _, err = self.ranks_apart(*words, ranks=3, expect=2)
        self.assertEqual(err.count("c.json: no such file"), 1, err)
        self.assertRegex(err, rf"scalemark: rank [12] on {socket.gethostname()}: c\.json: no such file")

        (self.folder / "1" / "c.json").write_text("{")
        _, err = self.ranks_apart(*words, ranks=3, expect=2)
        self.assertEqual(len(re.findall(r"scalemark: rank [12] on", err)), 2, err)  # two messages

        (self.folder / "0" / "c.json").unlink()
        _, err = self.ranks_apart("run", *SMALL, "--config", "/nowhere.json", ranks=3, expect=2)
        self.assertEqual(err.count("no such file"), 1, err)
        self.assertIn("scalemark: /nowhere.json", err)

    def test_an_engine_that_one_host_lacks_is_told(self):
        there, gone = (self.folder / name / "bin" for name in ("there", "gone"))
        for folder in (there, gone):
            folder.mkdir(parents=True)
            shutil.copy(SCALEMARK, folder)
        (self.folder / "there" / "libexec").symlink_to(SCALEMARK.parent.parent / "libexec")
        words = [*mpirun(1, there / "scalemark", "run", *SMALL), ":", "-n", "1", gone / "scalemark", "run", *SMALL]
        _, err = self.run_program(*words, expect=7)
        self.assertRegex(err, r"rank 1 on \S+: cannot start the engine .*scripts/setup")

    def test_an_error_of_one_rank_that_we_launched(self):
        """The second host has a variable that the first lacks."""
        launcher = self.write_program("bin/mpirun", f"""#!{sys.executable}
import os, sys
at = sys.argv.index({str(SCALEMARK)!r})
rank = ["sh", "-c", 'test "$OMPI_COMM_WORLD_RANK" = 0 || export SCALEMARK_BATCH_SIZE=four; exec "$@"', "sh"]
os.execv({shutil.which("mpirun")!r}, ["mpirun", *sys.argv[1:at], *rank, *sys.argv[at:]])
""")
        env = self.environment(PATH=f"{launcher.parent}:{os.environ['PATH']}")
        small = [word for word in SMALL if word not in ("--batch_size", "4")]
        _, err = self.run_program(SCALEMARK, "scale", *small, "--ranks", "2", "--output", "s.json", env=env, expect=2)
        self.assertEqual(len(re.findall(r"scalemark: rank 1 on \S+: .*SCALEMARK_BATCH_SIZE", err)), 1, err)


class Builds(ProgramTest):
    def test_another_build_on_one_rank_is_refused(self):
        """A copy of the program that says another revision."""
        out, _ = self.run_program(SCALEMARK, "--version")
        revision = re.search(r"revision:? +([0-9a-f]{7,40}\S*)", out).group(1)
        home, other = SCALEMARK.parent.parent, revision[7::-1]
        engines = [f"libexec/{path.name}" for path in (home / "libexec").iterdir()]
        for name in ("bin/scalemark", *engines):
            copy = self.folder / name
            copy.parent.mkdir(exist_ok=True)
            shutil.copy(home / name, copy)
            binary = copy.read_bytes()
            told = revision[:8].encode()  # the compiler may have split the rest
            self.assertTrue(told in binary, f"{name} is of another revision than bin/scalemark: build both")
            copy.write_bytes(binary.replace(told, other.encode()))
        _, err = self.run_program(*mpirun(1, SCALEMARK, "run", *SMALL), ":", "-n", "1", self.folder / "bin" / "scalemark", "run", *SMALL,
                                  expect=2)
        self.assertRegex(err, rf"differs between rank 0 and rank 1: build.revision .*{other}")


class MpiStart(ProgramTest):
    def test_an_empty_environment(self):
        self.run_program("env", "-i", f"SCALEMARK_LABEL={self.tag}", SCALEMARK, "run", *SMALL, "--num_batches", "2", "--num_intra_threads", "1",
                         "--output", "r.json")
        self.assertEqual(self.read("r.json")["status"], "ok")

    def test_few_descriptors(self):
        def few(number):
            return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))
        _, err = self.run_program(SCALEMARK, "run", *SMALL, expect=7, preexec_fn=few(20))
        self.assertRegex(err, r"open files.*ulimit -n")

    def test_an_mpi_that_cannot_start_is_exit_7(self):
        words = ["run", *SMALL, "--output", "r.json"]
        _, err = self.run_program(SCALEMARK, *words, env=self.environment(OMPI_MCA_pml="nosuch"), expect=7)
        self.assertIn("MPI could not be started", err)
        _, err = self.run_program(SCALEMARK, "scale", *SMALL, "--ranks", "2", env=self.environment(OMPI_MCA_pml="nosuch"), expect=7)
        self.assertEqual(err.count("MPI could not be started"), 1, err)
        self.assertFalse((self.folder / "r.json").exists())

    def test_an_mpi_that_cannot_start_under_a_users_mpirun(self):
        words = mpirun(2, SCALEMARK, "run", *SMALL, "--output", "r.json")
        _, err = self.run_program(*words, env=self.environment(OMPI_MCA_pml="nosuch"), expect=1)  # mpirun's own
        self.assertEqual(err.count("MPI could not be started"), 1, err)
        self.assertFalse((self.folder / "r.json").exists())


if __name__ == "__main__":
    main()
