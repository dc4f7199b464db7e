"""Both visits of scripts/gpu_check from the real folder, on the CPU in tiny sizes: every command line that has a form there is
really executed, so that a visit to a GPU is not lost on a wrong flag.
"""

import json
import pathlib
import sys
import tempfile
import unittest

import gpu_folder
from support import PYTHON_HAS_TORCH, ProgramTest, main


@unittest.skipUnless(PYTHON_HAS_TORCH, "no torch in this Python, which the peers need")
class Visits(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.bundle = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="scalemark-bundle-"))) / "folder"
        gpu_folder.make(cls.bundle)

    def visit(self, number, *words):
        """{step: result}; every step is as expected, or skipped for want of a GPU."""
        out, _ = self.run_program(sys.executable, self.bundle / "scripts/gpu_check", "--bundle", "--device", "cpu", "--minutes", "60",
                                  "--visit", number, "--output", f"visit {number}", *words, timeout=840)
        folder = self.folder / f"visit {number}"
        summary = json.loads((folder / "summary.json").read_text())
        self.assertEqual(summary["state"], "complete")
        self.assertEqual(out, (folder / "table.txt").read_text())
        self.assertLessEqual(len(list(folder.iterdir())), 8)
        for step in summary["steps"]:
            with self.subTest(step["step"]):
                self.assertNotEqual(step["verdict"], "not as expected", step)
                if step["verdict"] == "skipped":
                    self.assertRegex(step["why"], "needs a GPU|this build has no")
        return {step["step"]: step for step in summary["steps"]}, summary

    def test_the_first(self):
        steps, summary = self.visit(1)
        self.assertEqual(steps["comm_gpu_test"]["found"]["passed"], 0)
        self.assertGreater(steps["comm_gpu_test"]["found"]["skipped"], 0)
        self.assertEqual((steps["pair_killed"]["exit"], steps["pair_stopped"]["exit"]), (4, 5))
        self.assertEqual(steps["trace_resnet50"]["found"]["kernels"], "no kernel rows")
        self.assertIn("resnet50", {one["name"] for one in summary["ratios"]})

    def test_the_second_repeats_what_failed(self):
        (self.folder / "first.json").write_text(json.dumps({"steps": [
            {"step": "trivial", "verdict": "not as expected"}, {"step": "infer", "verdict": "as expected"},
            {"step": "pinning", "verdict": "skipped", "why": "3 s of the visit are left, and it may take 8 s"}]}))
        steps, summary = self.visit(2, "--after", "first.json")
        self.assertEqual([name for name, step in steps.items() if step["row"] == "again"], ["trivial", "pinning"])
        self.assertIn("resnet50", {one["name"] for one in summary["losses"]})


if __name__ == "__main__":
    main()
