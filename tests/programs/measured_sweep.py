"""A sweep that suites only read. measured_sweep.py FOLDER measures it into FOLDER/sweep, once for all suites under ctest
(SCALEMARK_TEST_SWEEP=FOLDER); a suite that is started by hand measures its own. The launches of a point differ by 0.1 %,
whatever else the machine did: what suites ask of a sweep does not depend on how quiet it was.
"""

import atexit
import collections
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from made_records import put_at_level, rescale
from support import SCALEMARK, ProgramTest, environment, scaled

REPEATS = 6
PLAN = {"settings": {"model": "trivial", "batch_size": 4, "num_warmup_batches": 2, "num_batches": 50, "num_intra_threads": 1},
        "axes": {"precision": ["fp32", "bf16"]}, "repeats": REPEATS, "launcher": "mpirun"}


def measure(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(PLAN))
    subprocess.run([SCALEMARK, "sweep", "plan.json", "--output", "sweep"], cwd=folder, env=environment(), check=True, timeout=240)
    levels, launches = {}, collections.Counter()
    for path in sorted((folder / "sweep/runs").iterdir()):
        record = json.loads(path.read_text())
        precision, mean = record["precision"], record["throughput"]["mean"]
        put_at_level(record, levels.setdefault(precision, mean), launches[precision])
        launches[precision] += 1
        path.write_text(json.dumps(record) + "\n")


@functools.cache
def measured():
    if shared := os.environ.get("SCALEMARK_TEST_SWEEP"):
        return pathlib.Path(shared) / "sweep"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="scalemark-sweep-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    measure(folder)
    return folder / "sweep"


class MeasuredSweepTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.sweep = measured()

    def copy(self, name, factor=1.0, change=lambda record: None):
        """The sweep, `factor` times as fast. No two copies tell the same to the last digit, as no two measurements do."""
        shutil.copytree(self.sweep, self.folder / name)
        self.copies = getattr(self, "copies", 0) + 1
        for number, path in enumerate(sorted((self.folder / name / "runs").iterdir())):
            record = scaled(json.loads(path.read_text()), factor)
            change(record)
            rescale(record, 1 + 1e-9 * (100 * self.copies + number) * (-1) ** number)
            path.write_text(json.dumps(record))
        return self.folder / name


if __name__ == "__main__":
    measure(pathlib.Path(sys.argv[1]))
