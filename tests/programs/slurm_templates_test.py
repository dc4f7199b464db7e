"""The words that the batch templates of scripts/slurm start ranks with, taken down by programs that stand in for srun,
mpirun and apptainer: containers and quoting. Under a real Slurm: slurm_test.py."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TEMPLATES = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "slurm"
STAND_IN = f"""#!{sys.executable}
import json, os, sys
with open(os.environ["TAKEN_DOWN"], "a") as file:
    file.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
sys.exit(int(os.environ.get("PREFLIGHT_CODE", "0")) if "preflight" in sys.argv else 0)
"""
IMAGE = "registry.example#team/scale mark:1; $(false)"


class Words(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="scalemark-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.scripts = self.folder / "my scripts"
        shutil.copytree(TEMPLATES, self.scripts)
        for name in ("srun", "mpirun", "scalemark"):
            (self.folder / name).write_text(STAND_IN)
            (self.folder / name).chmod(0o755)

    def started(self, script, conf, *words, code=0, expect=0):
        """The commands that the script starts, with these lines at the end of site.conf."""
        with open(self.scripts / "site.conf", "a", encoding="utf-8") as file:
            file.write(f"SCALEMARK='{self.folder}/scalemark'\nRESULTS='{self.folder}/my results'\n{conf}\n")
        taken_down = self.folder / "taken_down"
        taken_down.unlink(missing_ok=True)
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "TAKEN_DOWN": str(taken_down),
                       "PREFLIGHT_CODE": str(code), "SLURM_SUBMIT_DIR": str(self.scripts), "SLURM_NTASKS": "4",
                       "SLURM_CPUS_PER_TASK": "8", "SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "job"}
        environment.pop("SITE_CONF", None)
        done = subprocess.run(["bash", self.scripts / script, *words], env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, expect, done.stderr)
        lines = taken_down.read_text().splitlines() if taken_down.exists() else []
        return [json.loads(line) for line in lines], done.stderr

    def test_a_container_of_srun(self):
        conf = f"CONTAINER_IMAGE='{IMAGE}'; CONTAINER_FLAGS=(--container-mounts='/a b:/c')"
        for script, command in (("run.sbatch", "run"), ("curve.sbatch", "scale")):
            [preflight, measured], _ = self.started(script, conf, "--label", "two words")
            for words in (preflight, measured):
                self.assertEqual(words[0], "srun")
                self.assertIn(f"--container-image={IMAGE}", words)
                self.assertIn("--container-mounts=/a b:/c", words)
                self.assertLess(words.index(f"--container-image={IMAGE}"), words.index(f"{self.folder}/scalemark"))
            self.assertEqual(measured[measured.index(f"{self.folder}/scalemark") + 1:],
                             [command, "--label", "two words", "--output", f"{self.folder}/my results/job-7.json"])

    def test_a_container_of_apptainer(self):
        conf = f"LAUNCHER=mpirun; CONTAINER_IMAGE='{IMAGE}'; CONTAINER_FLAGS=(--nv --bind '/a b')"
        [preflight, measured], _ = self.started("run.sbatch", conf)
        for words in (preflight, measured):
            self.assertEqual(words[:7], ["mpirun", "-n", "4", "--map-by", "slot:PE=8", "--bind-to", "core"])
            self.assertEqual(words[7:14], ["apptainer", "exec", "--nv", "--bind", "/a b", IMAGE, f"{self.folder}/scalemark"])

    def test_without_a_container_there_are_no_words_of_one(self):
        for launcher in ("srun", "mpirun"):
            commands, _ = self.started("run.sbatch", f"LAUNCHER={launcher}")
            self.assertEqual(len(commands), 2)
            for words in commands:
                self.assertEqual([word for word in words if "container" in word or word in ("apptainer", "")], [])

    def test_a_curve_starts_its_ranks_itself_without_one(self):
        [_, measured], _ = self.started("curve.sbatch", "LAUNCHER=mpirun")
        self.assertEqual(measured[:4], ["scalemark", "scale", "--launcher", "mpirun"])

    def test_a_sweep_refuses_one(self):
        commands, err = self.started("sweep.sbatch", "CONTAINER_IMAGE=image.sif", "plan.json", expect=2)
        self.assertEqual(commands, [])
        self.assertIn("CONTAINER_IMAGE", err)

    def test_preflight_is_a_switch(self):
        for conf, code, expect, commands in (("PREFLIGHT=yes", 4, 4, ["preflight"]), ("PREFLIGHT=yes", 0, 0, ["preflight", "run"]),
                                             ("PREFLIGHT=warn", 4, 0, ["preflight", "run"]), ("PREFLIGHT=no", 4, 0, ["run"])):
            with self.subTest(conf=conf, code=code):
                started, _ = self.started("run.sbatch", conf, code=code, expect=expect)
                self.assertEqual([words[words.index(f"{self.folder}/scalemark") + 1] for words in started], commands)


if __name__ == "__main__":
    unittest.main(verbosity=2)
