"""cmake --install: a tree that works, also after it was moved; its completion and manual page."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import BINARY, SCALEMARK, SOURCE, ProgramTest, main, mpirun

COMPLETION = SOURCE / "scripts/packaging/scalemark.bash"


class Install(ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="scalemark-install-")))
        first = folder / "first place"
        subprocess.run(["cmake", "--install", BINARY, "--prefix", first], check=True, capture_output=True)
        cls.prefix = folder / "moved"
        shutil.move(first, cls.prefix)
        cls.program = cls.prefix / "bin/scalemark"

    def test_a_moved_tree_runs(self):
        self.run_program(*mpirun(2, self.program, "run", "--model", "trivial", "--num_batches", "3", "--output", "run.json"))
        self.assertEqual(self.read("run.json")["world_size"], 2)
        out, _ = self.run_program(self.program, "list", "configs")
        self.assertIn(str(self.prefix / "share/scalemark/configs/sweeps/threads.json"), out)
        out, _ = self.run_program("readelf", "-d", self.prefix / "libexec/scalemark-engine")
        self.assertRegex(out, r"R(UN)?PATH.*\$ORIGIN/../lib")
        self.assertNotIn(str(BINARY), out)

    def test_the_manual_page_is_complete(self):
        page = (self.prefix / "share/man/man1/scalemark.1").read_text()
        overview, _ = self.run_program(self.program, "--help")
        commands = re.findall(r"^  ([a-z]+)  ", overview, re.MULTILINE)
        self.assertGreaterEqual(len(commands), 5)
        self.assertEqual([c for c in commands if f"\n.B {c}\n" not in page], [])
        if shutil.which("man"):
            done = subprocess.run(["man", "--warnings", "-l", self.prefix / "share/man/man1/scalemark.1"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_completion_is_installed(self):
        self.assertEqual((self.prefix / "share/bash-completion/completions/scalemark").read_text(), COMPLETION.read_text())


class Completion(unittest.TestCase):
    def complete(self, *words):
        script = f'. "{COMPLETION}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _scalemark; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", script, "bash", SCALEMARK, *words], capture_output=True, text=True, check=True)
        return done.stdout.split()

    def test_commands_flags_models_and_choices(self):
        self.assertEqual(self.complete("sw"), ["sweep"])
        self.assertIn("--version", self.complete(""))
        self.assertEqual(self.complete("run", "--momen"), ["--momentum"])
        self.assertEqual(self.complete("run", "--repeat"), [])  # a flag of scale
        self.assertEqual(self.complete("scale", "--repeat"), ["--repeats"])
        self.assertIn("resnet50", self.complete("run", "--model", "resnet"))
        self.assertEqual(self.complete("run", "--optimizer", "la"), ["lamb", "lars"])
        self.assertEqual(self.complete("scale", "--launcher", ""), ["auto", "mpirun", "srun"])
        self.assertEqual(self.complete("run", "--seed", ""), [])
        self.assertEqual(self.complete("list", "c"), ["configs"])


if __name__ == "__main__":
    main()
