"""The constants of projections are those that the program projection_check chooses on the published curves, and
docs/projection.md has its table."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "programs"))
from support import SCALEMARK, SOURCE, ProgramTest, main  # noqa: E402

CHECK = SCALEMARK.parent / "projection_check"
PUBLISHED = SOURCE / "configs/published"


@unittest.skipUnless(CHECK.exists(), "projection_check is not built")
class Tuning(ProgramTest):
    def test_the_shipped_constants_are_those_chosen(self):
        out, _ = self.run_program(CHECK, "--leave_one_out", PUBLISHED, timeout=290)  # 1 where other constants are shipped
        documented = (SOURCE / "docs/projection.md").read_text()
        rows = [line for line in out.splitlines() if line.startswith("| ") and not line.startswith(("| curve", "| ---"))]
        self.assertEqual(len(rows), len(list(PUBLISHED.glob("*.json"))) + 1)
        for row in rows:
            self.assertIn(row, documented)


if __name__ == "__main__":
    main()
