"""scalemark preflight as users call it: healthy ranks pass; a slowed rank, a slowed link and wrong data fail and are named."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import time
import unittest
import uuid

from support import ROOT, SCALEMARK, SMALL, SOURCE, ProgramTest, mpirun

NETLAB = SOURCE / "scripts" / "netlab"
QUICK = ["--seconds", "0.2", "--sizes", "8,65536", "--scratch_mb", "1"]
PREFLIGHT = [SCALEMARK, "preflight", *QUICK]
CORES = len(os.sched_getaffinity(0))
# What any machine keeps, however busy it is.
GENEROUS = {"rules": [
    {"check": "gemm.*", "statistic": "flops", "relative_to_median": 0.01, "level": "fail"},
    {"check": "noise_quantum", "statistic": "mean_seconds", "max": 10, "level": "fail"},
    {"check": "memory_bandwidth", "statistic": "bytes_per_second", "min": 1e6, "level": "fail"},
    {"check": "collective.*", "statistic": "wrong_elements", "max": 0, "level": "fail"},
    {"check": "collective.*", "statistic": "busbw", "min": 1, "level": "fail"}]}


def checks(record, status):
    return [check for check in record["checks"] if check["status"] == status]


@contextlib.contextmanager
def half_a_cpu():
    """The file that a process writes its number into to get half of the time of one CPU."""
    root = pathlib.Path("/sys/fs/cgroup")
    v2 = (root / "cgroup.controllers").exists()
    group = (root if v2 else root / "cpu") / f"scalemark-test-{uuid.uuid4()}"
    try:
        group.mkdir()
        if v2:
            (group / "cpu.max").write_text("50000 100000")
        else:
            (group / "cpu.cfs_period_us").write_text("100000")
            (group / "cpu.cfs_quota_us").write_text("50000")
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        raise unittest.SkipTest(f"no CPU quota can be made here: {error}") from error
    try:
        yield group / ("cgroup.procs" if v2 else "tasks")
    finally:
        group.rmdir()


class PreflightTest(ProgramTest):
    def rules(self, content, name="rules.json"):
        (self.folder / name).write_text(json.dumps(content))
        return ["--rules", name]

    def wait_until_measuring(self, process):
        """The place of the result is taken after the signal handlers are, and before anything is measured."""
        deadline = time.monotonic() + 30
        while not (self.folder / ".r.json.lock").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)


class Healthy(PreflightTest):
    def test_two_ranks_pass_and_the_numbers_follow_the_formulas(self):
        out, _ = self.run_program(*mpirun(2, *PREFLIGHT, *self.rules(GENEROUS), "--output", "r.json"))
        record = self.read("r.json")
        self.assertEqual((record["status"], record["verdict"]), ("ok", "pass"))
        self.assertEqual({(row["collective"], row["carrier"], row["bytes"]) for row in record["collectives"]["rows"]},
                         {(name, "mpi", size) for name in ("allreduce", "allgather", "alltoall", "broadcast") for size in (8, 65536)}
                         | {("allreduce", "scalemark", size) for size in (8, 65536)})
        for row in record["collectives"]["rows"]:
            factor = {"allreduce": 1, "broadcast": 1}.get(row["collective"], 0.5)  # of two ranks
            self.assertAlmostEqual(row["algbw"], row["bytes"] / row["seconds"], delta=1e-6 * row["algbw"])
            self.assertAlmostEqual(row["busbw"], factor * row["algbw"], delta=1e-6 * row["algbw"])
        for rank in record["ranks"]:
            self.assertEqual(list(rank["gemm"]), ["fp64", "fp32", "bf16", "fp16"])
            self.assertGreater(rank["noise_quantum"]["samples"], 9)
        self.assertEqual(len(record["hosts"]), 1)
        self.assertIn("verdict: pass", out)
        self.assertEqual([check["name"] for check in checks(record, "skip")], ["gpu"])

    def test_more_ranks_than_cores_come_to_an_end(self):
        self.run_program(*mpirun(2 * CORES, *PREFLIGHT, *self.rules(GENEROUS), "--output", "r.json"), timeout=240)
        record = self.read("r.json")
        self.assertEqual((record["verdict"], len(record["ranks"])), ("pass", 2 * CORES))
        self.assertEqual([len(rank["binding"]["overlaps_with"]) for rank in record["ranks"]], [2 * CORES - 1] * (2 * CORES))

    def test_settings_are_those_in_effect_and_those_that_differ_are_named(self):
        self.rules({"rules": [{"check": "settings", "statistic": "differing", "max": 0, "level": "warn"}]})
        words = [*PREFLIGHT, "--rules", "rules.json", "--output", "r.json"]
        self.run_program(*mpirun(2, *words), env=self.environment(OMPI_MCA_btl="vader,self", UCX_IB_PCI_RELAXED_ORDERING="on"))
        settings = self.read("r.json")["settings"]
        self.assertEqual((settings["open_mpi"]["btl"], settings["ucx_relaxed_ordering"], settings["differing"]), ("vader,self", "on", []))
        out, _ = self.run_program(*mpirun(1, "env", "NCCL_ALGO=Ring", *words), ":", "-n", "1", "env", "NCCL_ALGO=Tree", *words)
        [difference] = self.read("r.json")["settings"]["differing"]
        self.assertEqual(difference, {"name": "NCCL_ALGO", "values": [{"value": "Ring", "ranks": [0]}, {"value": "Tree", "ranks": [1]}]})
        self.assertIn('warn: settings differing: NCCL_ALGO is "Ring" on rank 0, "Tree" on rank 1', out)

    def test_one_rank_needs_no_launcher_and_leaves_no_scratch_file(self):
        (self.folder / "scratch").mkdir()
        out, _ = self.run_program(*PREFLIGHT, "--scratch", "scratch", "--output", "r.json", "--json")
        record = json.loads(out)
        self.assertEqual(record["id"], self.read("r.json")["id"])
        self.assertIn(record["verdict"], ("pass", "warn"))
        self.assertIsNone(record["collectives"])
        self.assertEqual(record["hosts"][0]["scratch"]["bytes"], 1 << 20)
        self.assertEqual(os.listdir(self.folder / "scratch"), [])
        self.assertIn("one rank", " ".join(check["message"] for check in checks(record, "skip")))


class Unhealthy(PreflightTest):
    def test_a_rank_with_half_a_cpu_is_named(self):
        if CORES < 2:
            self.skipTest("two ranks need a core each to be compared")
        words = [*PREFLIGHT, "--seconds", "2", "--output", "r.json"]  # blocks of several periods of the quota
        with half_a_cpu() as tasks:
            slowed = ["bash", "-c", f"echo $$ >{tasks} && exec {shlex.join(map(str, words))}"]
            out, _ = self.run_program(*mpirun(1, *words), ":", "-n", "1", *slowed, expect=4)
        record = self.read("r.json")
        self.assertEqual(record["verdict"], "fail")
        [quantum] = [check for check in checks(record, "fail") if check["name"] == "noise_quantum"]
        self.assertEqual(quantum["rank"], 1)
        self.assertLess(quantum["value"], 0.75)
        self.assertRegex(out, r"fail: gemm\.\w+ flops: rank 1 on \S+: .*of the better rank")

    def test_wrong_data_is_named_and_makes_no_rules(self):
        out, err = self.run_program(*mpirun(2, *PREFLIGHT, *self.rules(GENEROUS), "--inject", "corrupt_allreduce:rank=1",
                                            "--make_rules", "made.json", "--output", "r.json"), expect=4)
        failed = checks(self.read("r.json"), "fail")
        self.assertEqual({check["statistic"] for check in failed}, {"wrong_elements"})
        self.assertEqual(len(failed), 10)  # five columns, two sizes
        self.assertIn("rank 1: element", out)
        self.assertIn("no rules", err)
        self.assertFalse((self.folder / "made.json").exists())

    def test_a_slower_link_fails_the_rules_of_the_faster(self):
        tried = subprocess.run([NETLAB, "--", "true"], capture_output=True, text=True, check=False)
        if tried.returncode == 7:
            self.skipTest(f"no lab here: {tried.stderr}")

        def preflight(rate, *words, **options):
            return self.run_program(NETLAB, "--hosts", "2", "--rate", rate, "--", "mpirun", "-n", "2", "-x", "SCALEMARK_LABEL",
                                    SCALEMARK, "preflight", "--seconds", "0.2", "--scratch_mb", "1", "--sizes", "4096,2097152", *words,
                                    **options)

        preflight("1gbit", *self.rules(GENEROUS), "--make_rules", "made.json", "--rules_margin", "0.5")
        made = json.loads((self.folder / "made.json").read_text())
        links = self.rules({"rules": [rule for rule in made["rules"] if re.match(r"collective\..*\.2097152$", rule["check"])]})
        preflight("1gbit", *links)
        out, _ = preflight("100mbit", *links, "--output", "r.json", expect=4)
        record = self.read("r.json")
        self.assertEqual(record["collectives"]["transport"], "tcp")
        self.assertEqual(len(checks(record, "fail")), 5, out)  # each collective, and both allreduces
        self.assertIn("fail: collective.allreduce.scalemark.2097152 busbw:", out)


    def test_sigterm_ends_between_two_measurements(self):
        process = self.start(*PREFLIGHT, "--seconds", "2", "--output", "r.json")
        self.wait_until_measuring(process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 4, err)
        self.assertIn("signal", err)
        self.assertFalse((self.folder / "r.json").exists())


class Pinning(PreflightTest):
    def test_shared_cores_are_flagged(self):
        out, _ = self.run_program(*mpirun(2, SCALEMARK, "preflight", "--pinning", "--output", "r.json"))
        record = self.read("r.json")
        self.assertEqual([rank["binding"]["overlaps_with"] for rank in record["ranks"]], [[1], [0]])
        self.assertEqual(record["verdict"], "warn")
        self.assertIsNone(record["ranks"][0]["gemm"])
        self.assertIn("shares cores with rank 0", out)

    def test_bound_ranks_are_as_asked(self):
        if CORES < 2:
            self.skipTest("two ranks need a core each")
        out, _ = self.run_program("mpirun", *ROOT, "--bind-to", "core", "-n", "2", SCALEMARK, "preflight", "--pinning",
                                  "--output", "r.json")
        record = self.read("r.json")
        self.assertEqual(record["verdict"], "pass")
        self.assertEqual({rank["affinity_requested"] for rank in record["ranks"]}, {"core"})
        self.assertEqual(out.count("as asked"), 2)


class LaterRecords(PreflightTest):
    """--preflight FILE of what follows."""
    RUN = [*SMALL, "--num_batches", "3", "--num_intra_threads", "1"]

    def preflight(self, **members):
        """The record of a quick preflight, with some members changed; (its id, words that name it)."""
        self.run_program(*PREFLIGHT, *self.rules(GENEROUS), "--output", "p.json")
        record = {**self.read("p.json"), **members}
        (self.folder / "p.json").write_text(json.dumps(record))
        return record["id"], ["--preflight", "p.json"]

    def test_it_is_named_by_run_curve_and_inference_and_decides_nothing(self):
        named, words = self.preflight()
        self.run_program(SCALEMARK, "run", *self.RUN, "--output", "without.json")
        without = self.read("without.json")
        self.assertIsNone(without["preflight"])
        self.assertIn("--preflight", without["unavailable"]["preflight"])
        _, err = self.run_program(SCALEMARK, "run", *self.RUN, *words, "--output", "run.json")
        self.assertNotIn("preflight", err)
        self.run_program(SCALEMARK, "infer", *self.RUN, *words, "--output", "infer.json")
        self.run_program(SCALEMARK, "scale", *self.RUN, "--ranks", "1", "--repeats", "1", "--output", "curve.json",
                         env=self.environment(SCALEMARK_PREFLIGHT="p.json"))
        [path] = (self.folder / "curve.runs").iterdir()
        for name in ("run.json", "infer.json", "curve.json", path):
            with self.subTest(record=str(name)):
                reference = self.read(name)["preflight"]
                self.assertEqual((reference["id"], reference["verdict"], reference["hosts_not_covered"]), (named, "pass", []))
        self.assertEqual(self.read("run.json")["config_hash"], without["config_hash"])

    def test_a_failed_one_of_other_hosts_is_said(self):
        _, words = self.preflight(verdict="fail", hosts=[{"host": "elsewhere"}])
        _, err = self.run_program(*mpirun(2, SCALEMARK, "run", *self.RUN, *words, "--output", "r.json"))
        self.assertRegex(err, r"warning: preflight \w{8} has the verdict fail and did not run on \S+\n")
        self.assertEqual(err.count("has the verdict"), 1)
        self.assertEqual(len(self.read("r.json")["preflight"]["hosts_not_covered"]), 1)  # of both ranks' one host

    def test_what_is_none_is_refused_before_anything_starts(self):
        self.preflight(kind="run")
        (self.folder / "torn.json").write_text('{"schema')
        for launch in ([SCALEMARK, "run"], mpirun(2, SCALEMARK, "run"), [SCALEMARK, "scale", "--ranks", "1", "--launcher", "srun"]):
            for name, code, text in (("none.json", 2, "no such file"), ("p.json", 6, "its kind is run"), ("torn.json", 6, "not JSON")):
                with self.subTest(launch=launch, name=name):
                    _, err = self.run_program(*launch, *self.RUN, "--preflight", name, "--output", "r.json", expect=code)
                    self.assertIn(text, err)
                    self.assertFalse((self.folder / "r.json").exists())


class WrongInput(PreflightTest):
    def test_it_is_refused_before_anything_is_measured(self):
        (self.folder / "bad.json").write_text('{"rules": [{"check": "gemm.fp32", "statistic": "flops", "level": "fail"}]}')
        for words, code, text in ((["--rules", "none.json"], 2, "no such file"), (["--rules", "bad.json"], 2, "/rules/0"),
                                  (["--sizes", "8,8"], 2, "ascend"), (["--model", "resnet50"], 2, "scalemark run"),
                                  (["--scratch", "no/folder"], 7, "--scratch"), (["--output", "/proc/none/r.json"], 6, "/proc")):
            with self.subTest(words=words):
                _, err = self.run_program(*PREFLIGHT, *words, expect=code)
                self.assertIn(text, err)


if __name__ == "__main__":
    unittest.main(verbosity=2)  # so that the reason of a skip is seen
