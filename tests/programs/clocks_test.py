"""The prolog and epilog of Slurm: clocks are fixed for jobs that ask, and left as they were found. Made governors; a
program in place of nvidia-smi, which this machine has no GPU for."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts/slurm"
SMI = """#!/usr/bin/env bash
# Two GPUs; the second has no application clocks. Their state is in files beside this program.
cd "$(dirname "$0")" || exit
case $1 in
  *clocks.max*) echo "GPU-a, 1593, 1410"; echo "GPU-b, [N/A], [N/A]" ;;
  --query*) echo "GPU-a, $(cat GPU-a)"; echo "GPU-b, [N/A], [N/A]" ;;
  -i) [[ $2 == GPU-a && $3 == -ac ]] || exit 1; echo "${4/,/, }" >GPU-a ;;
esac
"""


class Clocks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="scalemark-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.governors = []
        for number, governor in enumerate(("powersave", "schedutil")):
            file = self.folder / f"sys/devices/system/cpu/cpufreq/policy{number}/scaling_governor"
            file.parent.mkdir(parents=True)
            file.write_text(governor + "\n")
            self.governors.append(file)
        self.smi = self.folder / "bin"
        self.smi.mkdir()
        (self.smi / "GPU-a").write_text("1000, 900\n")
        (self.smi / "nvidia-smi").write_text(SMI)
        (self.smi / "nvidia-smi").chmod(0o755)

    def state(self):
        return [file.read_text().strip() for file in (*self.governors, self.smi / "GPU-a")]

    def run_script(self, name, job, comment="fixed_clocks", gpus=True):
        path = {"PATH": f"{self.smi}:{os.environ['PATH']}"} if gpus else {}  # Slurm gives none
        done = subprocess.run([SCRIPTS / name], capture_output=True, text=True, timeout=30, env={
            **path, "SYSFS": str(self.folder / "sys"), "STATE": str(self.folder / "state"), "SLURM_JOB_ID": str(job),
            "SLURM_JOB_COMMENT": comment})
        self.assertEqual(done.returncode, 0, done.stderr)  # else Slurm drains the node
        return done.stderr

    def test_what_was_found_comes_back(self):
        found = self.state()
        self.run_script("prolog", 1)
        self.assertEqual(self.state(), ["performance", "performance", "1593, 1410"])
        self.run_script("epilog", 1)
        self.assertEqual(self.state(), found)
        self.assertFalse((self.folder / "state/found").exists())

    def test_the_last_job_of_a_node_restores(self):
        found = self.state()
        self.run_script("prolog", 1)
        self.run_script("prolog", 2)
        self.run_script("epilog", 1)
        self.assertEqual(self.state(), ["performance", "performance", "1593, 1410"])
        self.run_script("epilog", 2)
        self.assertEqual(self.state(), found)

    def test_who_does_not_ask_changes_nothing(self):
        found = self.state()
        self.run_script("prolog", 1, comment="a job")
        self.assertEqual(self.state(), found)
        self.run_script("prolog", 2)
        self.run_script("epilog", 1)  # of the job that did not ask
        self.assertEqual(self.state()[0], "performance")
        self.run_script("epilog", 2)
        self.assertEqual(self.state(), found)

    def test_without_gpus_or_governors(self):
        self.run_script("prolog", 1, gpus=False)
        self.assertEqual(self.state(), ["performance", "performance", "1000, 900"])
        self.run_script("epilog", 1, gpus=False)
        self.assertEqual(self.state(), ["powersave", "schedutil", "1000, 900"])
        for file in self.governors:
            file.unlink()
        self.assertEqual(self.run_script("prolog", 2, gpus=False), "")
        self.run_script("epilog", 2, gpus=False)

    def test_what_cannot_be_set_is_said(self):
        self.governors[0].unlink()
        self.governors[0].mkdir()  # nobody can write to it
        self.assertIn("policy0/scaling_governor cannot be set to performance", self.run_script("prolog", 1))
        self.assertEqual(self.governors[1].read_text().strip(), "performance")


if __name__ == "__main__":
    unittest.main()
