"""scripts/test with and without the tests of lab/: what it asks ctest for and what it says, and which tests have the label."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SCALEMARK_BINARY_DIR", SOURCE / "build" / "release"))
CTEST = """#!/usr/bin/env bash
printf '[%s]' "$@"
exit 8
"""


def names(*words):
    listed = subprocess.run(["ctest", "--test-dir", BUILD, "-N", *words], check=True, capture_output=True, text=True)
    return set(re.findall(r"^ *Test +#\d+: (\S+)", listed.stdout, re.MULTILINE))


class ScriptsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "scripts").mkdir()
        shutil.copy(SOURCE / "scripts/test", self.folder / "scripts")
        for name, text in (("scripts/setup", "#!/bin/sh\n"), ("ctest", CTEST)):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def run_script(self, *words):
        """(exit code, words of ctest, what is said after it)"""
        done = subprocess.run([self.folder / "scripts/test", *words], capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})
        asked, _, said = done.stdout.rpartition("]")
        return done.returncode, asked.strip("[").split("]["), said

    def test_without_options_all_but_slow_tests_run(self):
        code, words, said = self.run_script("-R", "comm")
        self.assertEqual(code, 8)
        self.assertEqual(words[words.index("-LE") + 1], "slow")
        self.assertEqual(words[-2:], ["-R", "comm"])
        self.assertEqual(said, "")

    def test_without_lab_says_so_and_keeps_the_exit_code(self):
        code, words, said = self.run_script("-L", "unit", "--without-lab", "-j2")
        self.assertEqual(code, 8)
        self.assertEqual(words[words.index("-LE") + 1], "^(slow|lab)$")
        self.assertEqual(words[-3:], ["-L", "unit", "-j2"])
        self.assertEqual(said, "scripts/test: the tests of lab/ were left out; scripts/test -L lab runs them\n")

    @unittest.skipUnless((BUILD / "CTestTestfile.cmake").exists(), f"{BUILD} is no build with tests")
    def test_the_label_is_that_of_the_laboratory_alone(self):
        labelled = names("-L", "^lab$")
        self.assertIn("lab", labelled)
        self.assertEqual({name for name in names() if name.split(".")[0] == "lab"}, labelled)
        self.assertEqual(names("-LE", "^(slow|lab)$"), names("-LE", "slow") - labelled)


if __name__ == "__main__":
    unittest.main()
