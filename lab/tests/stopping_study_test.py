"""lab/stopping_study: both kinds of runs on the real program, the table, what it refuses."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "programs"))
from support import SCALEMARK, SOURCE, environment, main  # noqa: E402

SCRIPT = SOURCE / "lab/stopping_study"


class Program(unittest.TestCase):
    def run_script(self, *words, expect=0):
        done = subprocess.run([SCRIPT, *map(str, words), "--scalemark", SCALEMARK], env=environment(), capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done

    def test_runs_both_kinds_in_turn(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/runs.json"
            done = self.run_script("--models", "trivial", "--rounds", 2, "--steps", 60, "--target", 0.5, "--max_seconds", 5, "--output", path)
            rounds = json.load(open(path))["rounds"]["trivial"]
        self.assertEqual([list(pair) for pair in rounds], [["fixed", "target"], ["target", "fixed"]])
        for pair in rounds:
            fixed, target = pair["fixed"], pair["target"]
            self.assertEqual((fixed["steps"], fixed["stopped_by"]), (60, "num_batches"))
            if target["stopped_by"] == "target_ci":  # a machine that others use may never get there
                # Stated of the rate, if at all; the run stops by the interval of the step, one step before its last.
                self.assertLess(target["half_width"] or 0, 0.75)
            else:
                self.assertEqual(target["stopped_by"], "max_seconds")
                self.assertGreater(target["seconds"], 4.9)
        header, _, row = done.stdout.splitlines()
        reached = sum(pair["target"]["stopped_by"] == "target_ci" for pair in rounds)
        self.assertTrue(row.endswith(f"| {reached} of 2 |"), row)
        self.assertIn("to 50.00 %, s", header)
        self.assertTrue(row.startswith("| trivial |"), row)

    def test_refuses_what_it_does_not_know(self):
        for words, said in ((("--models", "colours"), "unknown model 'colours'"), (("--rounds", 0), "at least 1")):
            self.assertIn(said, self.run_script(*words, expect=2).stderr)


if __name__ == "__main__":
    main()
