"""lab/growth: its figures on the real program at small sizes, its exponents, what it refuses."""

import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "programs"))
from support import SCALEMARK, SOURCE, environment, main, schema_errors  # noqa: E402

SCRIPT = SOURCE / "lab/growth"
loader = importlib.machinery.SourceFileLoader("growth", str(SCRIPT))
sys.dont_write_bytecode = True
growth = importlib.util.module_from_spec(importlib.util.spec_from_loader("growth", loader))
loader.exec_module(growth)


class Exponents(unittest.TestCase):
    def test_are_of_the_time_beyond_the_smallest_size(self):
        rows = [{"size": size, "run": {"seconds": 0.5 + seconds}} for size, seconds in ((10, 0), (100, 0.1), (1000, 1), (10000, 100))]
        found = growth.growth(rows, "run")
        self.assertIsNone(found[0])  # nothing to compare the smallest with
        self.assertAlmostEqual(found[1], 1)
        self.assertAlmostEqual(found[2], 2)

    def test_say_nothing_of_what_takes_no_time(self):
        rows = [{"size": size, "run": {"seconds": 0.5}} for size in (10, 100, 1000)]
        self.assertEqual(growth.growth(rows, "run"), [None, None])


class Program(unittest.TestCase):
    def run_script(self, *words, expect=0):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([SCRIPT, *map(str, words), "--scalemark", SCALEMARK, "--output", f"{folder}/r.json"],
                                  env=environment(), capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, expect, done.stderr)
            if expect:
                return done, None
            with open(f"{folder}/r.json") as file:
                result = json.load(file)
            self.assertEqual(schema_errors(result), [])
            return done, result

    def test_measures_every_series(self):
        done, result = self.run_script("--series", "steps,records", "--largest", 100, "--repeats", 1)
        self.assertEqual([entry["series"] for entry in result["series"]], ["steps", "records"])
        steps, records = (entry["sizes"] for entry in result["series"])
        self.assertEqual([row["size"] for row in steps], [100])
        self.assertEqual([row["size"] for row in records], [10, 100])
        points = self.run_script("--series", "points", "--largest", 10, "--repeats", 1)[1]["series"][0]["sizes"]
        self.assertEqual([row["size"] for row in points], [10])
        self.assertGreater(steps[0]["record_bytes"], 1000)
        for row in (*steps, *records, *points):
            for figure in row.values():
                if isinstance(figure, dict):
                    self.assertGreater(figure["seconds"], 0)
                    self.assertGreater(figure["peak_rss_bytes"], 1e6)
        self.assertIn("| records | compare | gate | report | export |", done.stdout)

    def test_refuses_what_it_does_not_know(self):
        for words, said in ((("--series", "colours"), "unknown series 'colours'"), (("--repeats", 0), "at least 1")):
            done, _ = self.run_script(*words, expect=2)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    main()
