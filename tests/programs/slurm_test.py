"""scalemark under a real Slurm of two nodes (slurm_lab.py): the templates of scripts/slurm, srun, mpirun inside sbatch,
the time limit, requeue, scancel and a failing rank. Where such a lab can't be made everything here is skipped.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import container_test
import slurm_lab
from fault_table import FaultTable
from support import SCALEMARK, SOURCE, ProgramTest, run_suite

TEMPLATES = SOURCE / "scripts" / "slurm"
SMALL = ["--model", "smallnet", "--batch_size", "4", "--num_warmup_batches", "1", "--num_intra_threads", "1"]
SHORT = [*SMALL, "--num_batches", "5"]
LONG = [*SMALL, "--num_batches", "1000000", "--display_every", "100"]
SRUN = ["env", "SLURM_PMIX_FENCE=ring", "srun"]  # as docs/slurm.md says; templates and front door do so themselves
ONE_CORE = ["--cpus-per-task=1", "--cpu-bind=cores"]
CORES = len(os.sched_getaffinity(0))
lab = None


def setUpModule():
    global lab
    if reason := slurm_lab.missing():
        raise unittest.SkipTest(f"no Slurm here: {reason}")
    lab = slurm_lab.SlurmLab()
    unittest.addModuleCleanup(lab.__exit__)
    lab.__enter__()
    if not lab.has_pmix():
        raise unittest.SkipTest("no Slurm here: srun has no PMIx (srun --mpi=list)")
    tempfile.tempdir = str(slurm_lab.FOLDER / "work")  # both nodes see it; /tmp is each node's own


class SlurmTest(ProgramTest):
    """Jobs of one test after another: they all use the same two cores."""

    def setUp(self):
        super().setUp()
        self.scripts = self.folder / "my scripts"
        shutil.copytree(TEMPLATES, self.scripts)
        with open(self.scripts / "site.conf", "a", encoding="utf-8") as conf:
            conf.write(f"SCALEMARK={SCALEMARK}\nRESULTS='{self.folder}/my results'\nSBATCH_OPTIONS=()\n"
                       "LAUNCHER=${TEST_LAUNCHER:-srun}\nPREFLIGHT=${TEST_PREFLIGHT:-no}\n"
                       "PREFLIGHT_FLAGS=(--seconds 0.05 --sizes 8,4096 --scratch_mb 1 ${TEST_RULES:+--rules rules.json})\n")
        self.results = self.folder / "my results"
        self.job = ""
        self.addCleanup(self.cancel)

    def cancel(self):
        jobs = self.slurm("squeue", "-h", "-o", "%A").split()
        if jobs:
            subprocess.run(["scancel", *jobs], check=False)
            self.wait_until(lambda: not self.slurm("squeue", "-h"), "jobs stay in the queue")

    def slurm(self, *words):
        return subprocess.run(words, check=True, capture_output=True, text=True, cwd=self.folder).stdout

    def submit(self, script, *words, **environment):
        out, _ = self.run_program(self.scripts / "submit", script, *words, env=self.environment(**environment))
        self.job = out.split()[-1]

    def field(self, name):
        return dict(word.split("=", 1) for word in self.slurm("scontrol", "show", "job", self.job).split() if "=" in word)[name]

    def wait_until(self, condition, complaint, seconds=30):
        super().wait_until(condition, seconds, lambda: f"{complaint}\n{self.said()}\n{lab.logs()}")

    def said(self):
        """What the job and its tasks printed."""
        return "".join(path.read_text(errors="replace") for path in self.folder.glob(f"*{self.job}*.out"))

    def wait_until_it_measures(self):
        self.wait_until(lambda: "images/sec:" in self.said(), "nothing is measured")

    def end(self, state="COMPLETED", seconds=30):
        """Waits for the job's end, which must be `state`; its exit code."""
        final = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE")
        self.wait_until(lambda: self.field("JobState") in final, "the job does not end", seconds)
        self.assertEqual(self.field("JobState"), state, self.said())
        return int(self.field("ExitCode").split(":")[0])

    def record(self, pattern="my results/*.json"):
        [path] = self.folder.glob(pattern)
        return self.read(path)


def places(record):
    return [(rank["host"], rank["cpus"]) for rank in record["ranks"]]


class Srun(SlurmTest):
    def srun(self, *words, **options):
        return self.run_program(*SRUN, *words, **options)

    def test_ranks_on_both_nodes(self):
        self.srun("--mpi=pmix", "-N2", "-n2", *ONE_CORE, SCALEMARK, "run", *SHORT, "--output", "r.json")
        record = self.read("r.json")
        self.assertEqual([host for host, _ in places(record)], ["n0", "n1"])
        self.assertEqual(record["communication"]["transport"], "tcp")
        self.assertEqual(record["environment"]["SLURM_STEP_NUM_TASKS"], "2")

    @unittest.skipIf(CORES < 2, "one core")
    def test_ranks_of_a_node_have_cores_of_their_own(self):
        self.srun("--mpi=pmix", "-N1", "-n2", *ONE_CORE, SCALEMARK, "run", *SHORT, "--output", "r.json")
        first, second = self.read("r.json")["ranks"]
        self.assertEqual((first["host"], second["host"]), ("n0", "n0"))
        self.assertEqual((len(first["cpus"].split(",")), len(second["cpus"].split(","))), (1, 1))
        self.assertNotEqual(first["cpus"], second["cpus"])

    def allocated(self, *words, **options):
        """Within an allocation of both nodes, of which scalemark starts its ranks itself."""
        return self.run_program("salloc", "-Q", "-N2", "--ntasks-per-node", CORES, SCALEMARK, *words, *SHORT, **options)

    @unittest.skipIf(CORES < 2, "one core")
    def test_ranks_per_node_fill_one_node_after_the_other(self):
        for ranks, asked, placed in ((2, 2, [2]), (3, 2, [2, 1]), (2, 1, [1, 1])):
            with self.subTest(ranks=ranks, asked=asked):
                self.allocated("run", "--ranks", ranks, "--ranks_per_node", asked, "--output", f"{ranks}-{asked}.json")
                placement = self.read(f"{ranks}-{asked}.json")["placement"]
                self.assertEqual([node["ranks"] for node in placement], placed)
        _, err = self.allocated("run", "--ranks", 4, "--ranks_per_node", 1, expect=2)
        self.assertIn("need 4 nodes, and here are 2", err)

    def test_srun_is_told_what_has_no_flag(self):
        """How ranks wait for each other in MPI_Init, which a user's own choice decides."""
        self.write_program("srun", f'#!/bin/sh\necho "$SLURM_KILL_BAD_EXIT $SLURM_PMIX_FENCE" >told\nexec {shutil.which("srun")} "$@"\n')
        for chosen, told in (({}, "1 ring\n"), ({"SLURM_PMIX_FENCE": "tree"}, "1 tree\n")):
            self.allocated("run", "--ranks", 1, env=self.environment(PATH=f"{self.folder}:{os.environ['PATH']}", **chosen))
            self.assertEqual((self.folder / "told").read_text(), told)

    @unittest.skipIf(CORES < 2, "one core")
    def test_a_curve_fills_nodes_by_itself(self):
        self.allocated("scale", "--repeats", "1", "--no-baseline", "--output", "s.json")
        points = [self.read(path)["placement"] for path in sorted((self.folder / "s.runs").glob("*.json"))]
        self.assertEqual([[node["ranks"] for node in nodes] for nodes in points], [[1], [2], [2, 2]])

    def test_instances_on_both_nodes(self):
        """By steps of srun, and by mpirun, whose daemons are such steps and need no ssh."""
        env = self.environment(PATH=self.path_without_ssh())
        for launcher in ("srun", "mpirun"):
            with self.subTest(launcher=launcher):
                self.allocated("instances", "--launcher", launcher, "--device", "cpu", "--ranks", "2", "--slots", "n0:0;n1:0",
                               "--repeats", "1", "--output", "i.json", env=env)
                record = self.read("i.json")
                [repeat] = record["points"][1]["repeats"]
                self.assertEqual([places(self.read(instance["path"])) for instance in repeat["instances"]],
                                 [[("n0", "0")] * 2, [("n1", "0")] * 2])

    def test_instances_need_a_folder_that_all_nodes_see(self):
        _, err = self.allocated("instances", "--device", "cpu", "--slots", "n0:0;n1:0", "--repeats", "1", "--output", "/tmp/i.json", expect=7)
        self.assertIn("that all hosts see", err)

    def test_ranks_in_containers(self):
        os.mkdir(self.folder / "image")
        self.allocated("run", "--ranks", "2", "--ranks_per_node", "1", "--launcher", "srun", "--container", "image",
                       "--container_runtime", container_test.RUNTIME, "--container_program", container_test.INSIDE, "--output", "r.json",
                       env=self.environment(**container_test.stand_in()))
        record = self.read("r.json")
        self.assertEqual([host for host, _ in places(record)], ["n0", "n1"])
        self.assertEqual((record["system"]["virtualisation"], record["system"]["container"]["mpi"]), ("container", "outside"))

    def test_another_placement_than_was_asked_for_is_exit_7(self):
        """srun spreads over the whole allocation, and only warns of a --ntasks-per-node that it does not keep."""
        _, err = self.srun("--mpi=pmix", "-N2", "-n2", *ONE_CORE, SCALEMARK, "run", *SHORT, "--ranks_per_node", "2", "--output", "r.json",
                           expect=7)
        self.assertIn("1 rank on n0, 1 on n1", err)
        self.assertIn("srun -N 1 --ntasks-per-node=2", err)
        self.assertFalse((self.folder / "r.json").exists())

    def test_without_pmix_nothing_is_measured(self):
        _, err = self.srun("--mpi=none", "-N2", "-n2", SCALEMARK, "run", *SHORT, "--output", "r.json", expect=7)
        self.assertIn("Remedy: srun --mpi=pmix", err)
        self.assertEqual(err.count("Remedy"), 1)
        self.assertEqual(list(self.folder.glob("*.json*")), [])

    def test_the_start_says_where_srun_would_wait_for_the_others(self):
        words = ["--mpi=pmix", "-N2", "-n2", *ONE_CORE, SCALEMARK, "run", *SHORT]
        _, err = self.srun(*words)
        self.assertEqual(err.count("note: where a rank dies the others wait for --timeout"), 1, err)
        _, err = self.srun(*words, env=self.environment(SLURM_KILL_BAD_EXIT="1"))
        self.assertNotIn("note: where a rank dies", err)

    def test_one_task_without_pmix_is_a_world_of_one(self):
        """As in a shell of srun --pty."""
        self.srun("--mpi=none", "-n1", SCALEMARK, "run", *SHORT, "--output", "r.json")
        self.assertEqual(self.read("r.json")["world_size"], 1)

    def test_a_rank_that_is_killed_ends_the_job(self):
        start = time.monotonic()
        self.srun("--mpi=pmix", "--kill-on-bad-exit=1", "-N2", "-n2", *ONE_CORE, SCALEMARK, "run", *LONG, "--timeout", "60",
                  "--output", "r.json", "--inject", "kill:rank=1:step=2", expect=137)
        self.assertLess(time.monotonic() - start, 30)  # and not --timeout
        self.assertFalse((self.folder / "r.json").exists())


class UnderSrun(FaultTable, SlurmTest):
    LAUNCHER = "srun"

    def ranks(self, number, *words):
        return [*SRUN, "--mpi=pmix", "--kill-on-bad-exit=1", "-N2", f"-n{number}", *ONE_CORE, *words]


class Templates(SlurmTest):
    def test_a_run(self):
        self.submit("run.sbatch", "--nodes=2", "--", *SHORT, "--label", "two words; $(false)")
        self.assertEqual(self.end(), 0)
        record = self.record()
        self.assertEqual((record["status"], record["config"]["label"]["value"]), ("ok", "two words; $(false)"))
        self.assertEqual([host for host, _ in places(record)], ["n0", "n1"])
        self.assertEqual([cpus.isdecimal() for _, cpus in places(record)], [True, True])  # bound to a core each

    def test_a_run_by_mpirun(self):
        self.submit("run.sbatch", "--", *SHORT, TEST_LAUNCHER="mpirun", OMPI_ALLOW_RUN_AS_ROOT="1",
                    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.assertEqual(self.end(), 0)
        record = self.record()
        self.assertEqual([host for host, _ in places(record)], ["n0", "n1"])
        self.assertEqual([cpus.isdecimal() for _, cpus in places(record)], [True, True])

    def test_a_curve(self):
        for launcher in ("srun", "mpirun"):
            self.submit("curve.sbatch", "--", *SHORT, "--ranks", "1,2", "--repeats", "1", TEST_LAUNCHER=launcher)
            self.assertEqual(self.end(), 0)
            self.assertIn(f"{launcher} starts 2 ranks with 1 core each", self.said())
            record = self.record(f"my results/*{self.job}.json")
            self.assertEqual([point["ranks"] for point in record["points"]], [1, 2])
            [path] = (path for path in self.results.glob(f"*{self.job}.runs/ranks2-*") if "none" not in path.name)
            self.assertEqual([host for host, _ in places(self.read(path))], ["n0", "n1"])

    def rules(self, least_flops):
        """Of nothing that depends on what else the machine does."""
        (self.folder / "rules.json").write_text(json.dumps(
            {"rules": [{"check": "gemm.fp32", "statistic": "flops", "min": least_flops, "level": "fail"}]}))

    def test_preflight_comes_first_and_its_record_is_named(self):
        self.rules(1)
        for launcher in ("srun", "mpirun"):
            for script, words in (("run.sbatch", SHORT), ("curve.sbatch", [*SHORT, "--ranks", "2", "--repeats", "1"])):
                with self.subTest(launcher=launcher, script=script):
                    self.submit(script, "--", *words, TEST_LAUNCHER=launcher, TEST_PREFLIGHT="yes", TEST_RULES="1",
                                OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
                    self.assertEqual(self.end(), 0)
                    preflight = self.record(f"my results/*{self.job}.preflight.json")
                    self.assertEqual(sorted(host["host"] for host in preflight["hosts"]), ["n0", "n1"])
                    reference = self.record(f"my results/*{self.job}.json")["preflight"]
                    self.assertEqual((reference["id"], reference["hosts_not_covered"]), (preflight["id"], []))

    def test_a_preflight_that_fails_ends_the_job_unless_the_site_goes_on(self):
        self.rules(1e18)
        self.submit("run.sbatch", "--", *SHORT, TEST_PREFLIGHT="yes", TEST_RULES="1")
        self.assertEqual(self.end("FAILED"), 4)
        self.assertIn("so nothing is measured", self.said())
        [path] = self.results.glob(f"*{self.job}*.json")
        self.assertEqual(self.read(path)["verdict"], "fail")
        self.submit("run.sbatch", "--", *SHORT, TEST_PREFLIGHT="warn", TEST_RULES="1")
        self.assertEqual(self.end(), 0)
        self.assertEqual(self.record(f"my results/*{self.job}.json")["preflight"]["verdict"], "fail")
        self.assertRegex(self.said(), r"warning: preflight \w{8} has the verdict fail")

    def test_the_time_limit_leaves_what_was_measured(self):
        """Slurm looks at time limits every 30 s; this one comes into force while the job measures."""
        self.submit("run.sbatch", "--signal=B:USR1@58", "--", *LONG)
        self.wait_until_it_measures()
        self.slurm("scontrol", "update", f"JobId={self.job}", "TimeLimit=1")
        self.assertEqual(self.end("FAILED", seconds=50), 4)
        record = self.record()
        self.assertEqual((record["status"], record["throughput"]), ("interrupted", None))
        self.assertGreater(record["partial_throughput"], 0)

    def test_the_signal_of_the_time_limit_ends_a_curve(self):
        for launcher in ("srun", "mpirun"):
            self.submit("curve.sbatch", "--", *LONG, "--ranks", "2", "--baseline=false", TEST_LAUNCHER=launcher)
            self.wait_until_it_measures()
            self.slurm("scancel", "--batch", "--signal=USR1", self.job)
            self.assertEqual(self.end("FAILED"), 4)
            self.assertEqual(self.record(f"my results/*{self.job}.json")["status"], "interrupted")

    def test_scancel_leaves_a_whole_record_or_none(self):
        for script, words in (("run.sbatch", LONG), ("curve.sbatch", [*LONG, "--ranks", "2", "--baseline=false"])):
            self.submit(script, "--", *words)
            self.wait_until_it_measures()
            self.slurm("scancel", self.job)
            self.end("CANCELLED")
            self.assert_nothing_left()
            for path in self.results.glob(f"*{self.job}.json*"):
                self.assertEqual(self.read(path)["status"], "interrupted")

    def test_a_failing_rank_ends_the_job(self):
        self.submit("curve.sbatch", "--", *SHORT, "--ranks", "1,2", "--repeats", "2", "--inject", "kill:rank=1:step=4")
        self.assertEqual(self.end("FAILED"), 4)
        self.assert_nothing_left()
        self.assertEqual(self.record()["status"], "failed")


class WorkedExample(SlurmTest):
    def test_slurm_takes_the_lines_of_the_documents_for_4_nodes_of_8_gpus(self):
        """The nodes are there by name only: the jobs wait for them."""
        text = (SOURCE / "docs/slurm.md").read_text().split("## Worked example")[1]
        lines = [shlex.split(line)[1:] for line in text.split("```")[1].splitlines()[1:]]
        for words in lines:
            words.insert(words.index("--"), "--partition=gpus")
            if words[0] == "--dry_run":
                self.run_program(self.scripts / "submit", *words)
                self.assertEqual(self.slurm("squeue", "-h"), "")
                continue
            self.submit(*words)
            self.assertEqual((self.field("NumNodes").split("-")[0], self.field("NumTasks"), self.field("NumCPUs"), self.field("TresPerNode")),
                             ("4", "32", "384", "gres:gpu:8"))
            self.assertEqual(self.field("JobState"), "PENDING")
            # Which reason the scheduler has given so far is a matter of its passes; those of a request that can't be met all say so.
            self.assertNotRegex(self.field("Reason"), "Bad|Invalid|Limit|Configuration|Partition|Assoc|QOS")


class Sweeps(SlurmTest):
    SETTINGS = {"model": "smallnet", "batch_size": 4, "num_warmup_batches": 1, "num_batches": 4, "num_intra_threads": 1}

    def plan(self, name="plan", **members):
        settings = {**self.SETTINGS, **members.pop("settings", {})}
        (self.folder / f"{name}.json").write_text(json.dumps({"settings": settings, **members}))
        return f"{name}.json"

    def journal(self, name="plan"):
        path = self.results / name / "journal.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def release(self):
        """Slurm lets a requeued job wait for two minutes. In the second of its end it would find its credential revoked, and
        the SIGKILL of the step that was interrupted, which srun repeats while the job ends, would reach
        the step of the same number: tests requeue where the job's second life has fewer steps than the first."""
        self.wait_until(lambda: self.field("JobState") == "PENDING", "the job is not back in the queue")
        self.slurm("scontrol", "update", f"JobId={self.job}", f"StartTime=now+{slurm_lab.KILL_WAIT_SECONDS + 2}")

    def assert_each_launch_once(self, count):
        done = [(entry["point"], entry["repeat"]) for entry in self.journal() if entry["status"] == "ok"]
        self.assertEqual((len(done), len(set(done))), (count, count))

    def test_a_requeued_sweep_goes_on(self):
        """By an operator or after a node's failure: Slurm kills what is at work."""
        self.submit("sweep.sbatch", "--", self.plan(axes={"seed": [1, 2], "ranks": [1, 2]}))
        self.wait_until(lambda: len(self.journal()) >= 2, "no launch ends")
        self.slurm("scontrol", "requeue", self.job)
        self.release()
        self.assertEqual(self.end(), 0)
        self.assertEqual(self.field("Restarts"), "1")
        self.assert_each_launch_once(4)
        self.assertIn("launches are done", self.said())

    def test_a_requeued_study_goes_on(self):
        steps = [{"name": name, "about": "seeds", "plan": {"settings": {**self.SETTINGS, "ranks": 2}, "axes": {"seed": [1, 2]}},
                  "full": {"run": "sweep", "minutes": 1}} for name in ("one", "two")]
        profile = {"evidence": "effect", "shows": "it", "differs": "all", "ranks": 2}
        (self.folder / "small.json").write_text(json.dumps({
            "$schema": "study_plan.schema.json", "title": "Small", "publication": "Nobody.", "published_on": "nothing.", "not_stated": [],
            "profiles": {"laptop": profile, "full": profile}, "steps": steps, "figures": [
                {"name": "rate", "published": {"unit": "images/sec"}, "full": {"step": "two", "of": "throughput", "where": {"seed": 2}}}]}))
        self.submit("study.sbatch", "--", str(self.folder / "small.json"), "--site", "lab")
        folder = "studies/small/full/lab"
        self.wait_until(lambda: self.journal(f"{folder}/two"), "no launch ends")
        self.slurm("scontrol", "requeue", self.job)
        self.release()
        self.assertEqual(self.end(), 0, self.said())
        record = self.read(self.results / folder / "study.json")
        self.assertEqual([step["status"] for step in record["steps"]], ["ok", "ok"])
        self.assertGreater(record["figures"][0]["measured"]["value"], 0)
        for name in ("one", "two"):
            done = [(entry["point"], entry["repeat"]) for entry in self.journal(f"{folder}/{name}") if entry["status"] == "ok"]
            self.assertEqual((len(done), len(set(done))), (2, 2), name)

    def test_every_binding_is_asked_of_srun(self):
        policies = {"core": "cpus:1", "socket": "socket", "numa": "numa", "none": "none"}
        self.submit("sweep.sbatch", "--", self.plan(axes={"binding": list(policies)}, settings={"ranks": 2, "cpus_per_rank": 1}))
        self.assertEqual(self.end(), 0, self.said())
        for entry in self.journal():
            for rank in self.read(self.results / "plan" / entry["record"])["ranks"]:
                self.assertEqual(rank["affinity_requested"], policies[entry["settings"]["binding"]])
                self.assertIsNot(rank["binding"]["as_asked"], False, rank)

    def test_a_command_on_each_host_of_a_launch(self):
        commands = [{"each_host": ["sh", "-c", "echo {ranks} >>$(uname -n).txt"]}]
        for launcher in ("srun", "mpirun"):
            with self.subTest(launcher=launcher):
                name = self.plan(launcher, axes={"ranks": [1, 2]}, settings={"ranks_per_node": 1}, before=commands)
                self.submit("sweep.sbatch", "--nodes=2", "--", name, TEST_LAUNCHER=launcher)
                self.assertEqual(self.end(), 0, self.said())
                self.assertEqual([entry["status"] for entry in self.journal(launcher)], ["ok", "ok"])
                for host, ranks in (("n0", ["1", "2"]), ("n1", ["2"])):
                    self.assertEqual(sorted((self.folder / f"{host}.txt").read_text().split()), ranks)
                    (self.folder / f"{host}.txt").unlink()
        self.submit("sweep.sbatch", "--nodes=2", "--", self.plan(settings={"ranks": 2, "ranks_per_node": 1}, before=[
            {"each_host": ["sh", "-c", "test $(uname -n) = n0 && sleep 1 && touch done"]}]))
        self.assertEqual(self.end("FAILED"), 7, self.said())
        self.assertIn("touch done' on n1 ended with status 1", self.journal()[0]["reason"])
        self.assertTrue((self.folder / "done").exists())

    def test_at_the_time_limit_it_requeues_itself(self):
        self.submit("sweep.sbatch", "--", self.plan(axes={"seed": [1, 2, 3]}, settings={"ranks": 2, "inject": "delay:milliseconds=200"}))
        self.wait_until(lambda: self.journal(), "no launch ends")
        self.slurm("scancel", "--batch", "--signal=USR1", self.job)
        self.release()
        self.assertEqual(self.end(), 0)
        self.assertEqual(self.field("Restarts"), "1")
        self.assert_each_launch_once(3)

    def test_tasks_of_an_array_take_a_plan_each(self):
        for name in ("one", "two"):
            self.plan(name, axes={"ranks": [1, 2]})
        self.submit("sweep.sbatch", "--array=0-1", "--nodes=2", "--", "one.json", "two.json", TEST_PREFLIGHT="warn")
        self.wait_until(lambda: not self.slurm("squeue", "-h"), "the array does not end", 60)
        for name in ("one", "two"):
            self.assertEqual([entry["status"] for entry in self.journal(name)], ["ok", "ok"], self.said())
            [preflight] = (self.results / name).glob("preflight-*.json")
            for entry in self.journal(name):
                self.assertEqual(self.read(self.results / name / entry["record"])["preflight"]["id"], self.read(preflight)["id"])


if __name__ == "__main__":
    sys.exit(run_suite() if slurm_lab.missing() else slurm_lab.in_namespaces(run_suite))
