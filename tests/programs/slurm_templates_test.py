"""The words that the batch templates of scripts/slurm start ranks with, taken down by programs that stand in for srun,
mpirun and apptainer: containers and quoting. Under a real Slurm: slurm_test.py."""

import json
import os
import pathlib
import re
import shlex
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

    def started(self, script, conf, *words, code=0, expect=0, cpus="8"):
        """The commands that the script starts, with these lines at the end of site.conf."""
        with open(self.scripts / "site.conf", "a", encoding="utf-8") as file:
            file.write(f"SCALEMARK='{self.folder}/scalemark'\nRESULTS='{self.folder}/my results'\n{conf}\n")
        taken_down = self.folder / "taken_down"
        taken_down.unlink(missing_ok=True)
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "TAKEN_DOWN": str(taken_down),
                       "PREFLIGHT_CODE": str(code), "SLURM_SUBMIT_DIR": str(self.scripts), "SLURM_NTASKS": "4",
                       "SLURM_CPUS_PER_TASK": cpus, "SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "job"}
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

    def test_the_worked_example_starts_32_ranks_as_the_documents_say(self):
        text = (TEMPLATES.parents[1] / "docs/slurm.md").read_text().split("## Worked example")[1]
        line = next(line for line in text.splitlines() if line.startswith("./submit run.sbatch"))
        printed = shlex.split(re.search(r"^ +(srun .*)$", text, re.MULTILINE)[1])
        [_, measured], _ = self.started("run.sbatch", "LAUNCHER=srun", *shlex.split(line.split(" -- ")[1]), cpus="12")
        words = [word.replace(f"{self.folder}/my results/job-7", "RESULTS/scalemark-run-JOB").replace(f"{self.folder}/", "")
                 for word in measured]
        self.assertEqual(words, printed)

    def test_submit_asks_scalemark_first(self):
        (self.folder / "sbatch").write_text(STAND_IN)
        (self.folder / "sbatch").chmod(0o755)
        (self.folder / "scalemark").write_text('#!/bin/sh\ncase "$*" in *--modle*) echo "scalemark: unknown flag --modle" >&2; exit 2;; '
                                               '*cuda*) exit 7;; esac\n')
        taken_down = self.folder / "taken_down"
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "TAKEN_DOWN": str(taken_down)}

        def submit(*words, expect=0):
            taken_down.unlink(missing_ok=True)
            done = subprocess.run(["bash", self.scripts / "submit", *words], env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, expect, done.stderr)
            self.assertEqual(taken_down.exists(), expect == 0)
            return done.stderr

        self.assertIn("SCALEMARK of", submit("run.sbatch", expect=2))
        submit("--no_check", "run.sbatch")
        with open(self.scripts / "site.conf", "a", encoding="utf-8") as file:
            file.write(f"SCALEMARK='{self.folder}/scalemark'\n")
        submit("run.sbatch", "--nodes=2", "--", "--model", "resnet50")
        submit("curve.sbatch", "--", "--device", "cuda")  # which this host need not have
        for script, words in (("run.sbatch", ["--modle", "x"]), ("sweep.sbatch", ["a.json", "--modle"])):
            self.assertIn("submit: unknown flag --modle", submit(script, "--", *words, expect=2))

    def test_a_heterogeneous_job_is_refused(self):
        os.environ["SLURM_HET_SIZE"] = "2"
        self.addCleanup(os.environ.pop, "SLURM_HET_SIZE")
        _, err = self.started("run.sbatch", "", expect=2)
        self.assertIn("submit each component as a job of its own", err)

    def test_without_a_container_there_are_no_words_of_one(self):
        for launcher in ("srun", "mpirun"):
            commands, _ = self.started("run.sbatch", f"LAUNCHER={launcher}")
            self.assertEqual(len(commands), 2)
            for words in commands:
                self.assertEqual([word for word in words if "container" in word or word in ("apptainer", "")], [])

    def test_a_curve_starts_its_ranks_itself_without_one(self):
        [_, measured], _ = self.started("curve.sbatch", "LAUNCHER=mpirun")
        self.assertEqual(measured[:4], ["scalemark", "scale", "--launcher", "mpirun"])

    def test_a_sweep_starts_its_launches_in_one_from_outside(self):
        for launcher, flags, runtime in (("srun", "--container-mounts=/a:/b", "--container-image={image} --container-mounts=/a:/b"),
                                         ("mpirun", "--nv --bind /a", "apptainer exec --nv --bind /a {image}")):
            conf = (f"LAUNCHER={launcher}; CONTAINER_IMAGE='{IMAGE}'; CONTAINER_FLAGS=({flags})\n"
                    f"HOST_SCALEMARK='{self.folder}/scalemark'; SCALEMARK=/opt/inside")
            [preflight, sweep], _ = self.started("sweep.sbatch", conf, "plan.json")
            self.assertIn("/opt/inside", preflight)
            self.assertEqual(sweep, ["scalemark", "sweep", "plan.json", "--output", f"{self.folder}/my results/plan", "--launcher", launcher,
                                     "--container", IMAGE, f"--container_runtime={runtime}", "--container_program", "/opt/inside"])

    def test_a_study_has_its_place_and_its_launcher(self):
        stand_in = STAND_IN.replace("*sys.argv[1:]]", "*sys.argv[1:], os.environ.get('SCALEMARK_LAUNCHER'), os.environ.get('SCALEMARK_CONTAINER')]")
        (self.folder / "scalemark").write_text(stand_in)
        conf = f"LAUNCHER=mpirun; CONTAINER_IMAGE='{IMAGE}'; HOST_SCALEMARK='{self.folder}/scalemark'; SCALEMARK=/opt/inside"
        for words, place in ((["link_rate"], "link_rate/full/here"), (["link_rate", "--site", "vm", "--profile=laptop"], "link_rate/laptop/vm"),
                             (["my/own.json", "--json"], "own/full/here")):
            [_, started], _ = self.started("study.sbatch", conf, *words)
            profile, site = place.split("/")[1:]
            self.assertEqual(started, ["scalemark", "study", *[word for word in words if word.endswith(("rate", "json"))], "--profile", profile,
                                       "--site", site, "--output", f"{self.folder}/my results/studies/{place}", "mpirun", IMAGE])
        _, err = self.started("study.sbatch", conf, expect=1)
        self.assertIn("no study", err)

    def test_a_sweep_refuses_flags_that_it_would_part(self):
        commands, err = self.started("sweep.sbatch", "CONTAINER_IMAGE=image.sif; CONTAINER_FLAGS=(--bind '/a b')", "plan.json", expect=2)
        self.assertEqual(commands, [])
        self.assertIn("/a b", err)

    def test_preflight_is_a_switch(self):
        for conf, code, expect, commands in (("PREFLIGHT=yes", 4, 4, ["preflight"]), ("PREFLIGHT=yes", 0, 0, ["preflight", "run"]),
                                             ("PREFLIGHT=warn", 4, 0, ["preflight", "run"]), ("PREFLIGHT=no", 4, 0, ["run"])):
            with self.subTest(conf=conf, code=code):
                started, _ = self.started("run.sbatch", conf, code=code, expect=expect)
                self.assertEqual([words[words.index(f"{self.folder}/scalemark") + 1] for words in started], commands)

    def test_a_dry_run_prints_what_would_be_submitted(self):
        (self.folder / "sbatch").write_text(STAND_IN.replace("*sys.argv[1:]", 'os.environ["SITE_CONF"], *sys.argv[1:]'))
        (self.folder / "sbatch").chmod(0o755)
        words = ["run.sbatch", "--nodes=4", "--gpus-per-node=8", "--comment=two words", "--", "--model", "resnet50", "--label", "it's"]
        for flag in ("--dry_run", "--dry-run"):
            with self.subTest(flag=flag):
                taken_down = self.folder / "taken_down"
                environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "TAKEN_DOWN": str(taken_down)}
                printed = subprocess.run([self.scripts / "submit", flag, *words], env=environment, capture_output=True, text=True, check=True)
                self.assertFalse(taken_down.exists())
                for command in (["bash", "-c", printed.stdout], [self.scripts / "submit", "--no_check", *words]):
                    subprocess.run(command, env=environment, check=True)
                would, did = taken_down.read_text().splitlines()
                taken_down.unlink()
                self.assertEqual(would, did)
                self.assertEqual(json.loads(did), ["sbatch", str(self.scripts / "site.conf"), "--exclusive", *words[1:4],
                                                   str(self.scripts / "run.sbatch"), *words[5:]])

    def test_a_dry_run_names_the_container(self):
        with open(self.scripts / "site.conf", "a", encoding="utf-8") as file:
            file.write(f"CONTAINER_IMAGE='{IMAGE}'; CONTAINER_FLAGS=(--nv)\n")
        printed = subprocess.run([self.scripts / "submit", "--dry_run", "run.sbatch"], capture_output=True, text=True, check=True).stdout
        comment = printed.splitlines()[-1]
        self.assertTrue(comment.startswith("# srun starts each rank in "), comment)
        self.assertEqual(shlex.split(comment.split(" in ", 1)[1]), [IMAGE, "--nv"])

    def test_submit_says_how_it_is_called(self):
        for words, code in (([], 2), (["--help"], 0), (["-h"], 0)):
            with self.subTest(words=words):
                done = subprocess.run([self.scripts / "submit", *words], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, code)
                self.assertIn("usage: submit [--dry_run] [--no_check] SCRIPT", done.stderr if code else done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
