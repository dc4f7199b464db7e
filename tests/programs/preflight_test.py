"""scalemark preflight as users call it: healthy ranks pass, wrong data fails and is named. Slow ranks and links: preflight_timing."""

import json
import os
import signal

from support import ROOT, SCALEMARK, SMALL, ProgramTest, main, mpirun

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


class PreflightTest(ProgramTest):
    def rules(self, content, name="rules.json"):
        (self.folder / name).write_text(json.dumps(content))
        return ["--rules", name]

    def wait_until_measuring(self):
        """The place of the result is taken after the signal handlers are, and before anything is measured."""
        self.wait_until((self.folder / ".r.json.lock").exists)


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
        self.run_program(*mpirun(2 * CORES, *PREFLIGHT, *self.rules(GENEROUS), "--output", "r.json"))
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
    def test_wrong_data_is_named_and_makes_no_rules(self):
        out, err = self.run_program(*mpirun(2, *PREFLIGHT, *self.rules(GENEROUS), "--inject", "corrupt_allreduce:rank=1",
                                            "--make_rules", "made.json", "--output", "r.json"), expect=4)
        failed = checks(self.read("r.json"), "fail")
        self.assertEqual({check["statistic"] for check in failed}, {"wrong_elements"})
        self.assertEqual(len(failed), 10)  # five columns, two sizes
        self.assertIn("rank 1: element", out)
        self.assertIn("no rules", err)
        self.assertFalse((self.folder / "made.json").exists())

    def test_sigterm_ends_between_two_measurements(self):
        process = self.start(*PREFLIGHT, "--seconds", "2", "--output", "r.json")
        self.wait_until_measuring()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 4, err)
        self.assertIn("signal", err)
        self.assertEqual(self.read("r.json")["status"], "interrupted")


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


class Masks(PreflightTest):
    """--cpu_masks on a machine of 4 NUMA nodes with 24 cores each."""
    EIGHT = ["ffffff000000", "ffffff000000", "ffffff", "ffffff", *2 * ["ffffff" + 18 * "0"], "ffffff" + 12 * "0"]

    def masks(self, *masks, words=(), **more):
        return self.run_program(SCALEMARK, "preflight", "--pinning", "--cpu_masks", ",".join(masks), *words,
                                env=self.environment(HWLOC_SYNTHETIC="NUMANode:4 Core:24 PU:1"), **more)

    def test_a_rank_on_parts_of_two_nodes_is_found_and_no_other(self):
        out, err = self.masks(*("0x" + mask for mask in self.EIGHT), "0xffffff" + 11 * "0", words=["--output", "r.json"])
        record = self.read("r.json")
        self.assertEqual([rank["binding"]["crosses_numa"] for rank in record["ranks"]], 7 * [False] + [True])
        self.assertEqual((record["verdict"], record["ranks"][7]["cpus"], record["ranks"][7]["numa"]), ("warn", "44-67", [1, 2]))
        self.assertIsNone(record["ranks"][7]["binding"]["as_asked"])
        self.assertIn("crosses NUMA 1, 2", out)
        self.assertIn("HWLOC_SYNTHETIC", err)
        out, _ = self.masks(*self.EIGHT, "ffffff" + 12 * "0")
        self.assertNotIn("crosses", out)

    def test_json_and_rules_are_those_of_other_preflights(self):
        rule = {"check": "binding", "statistic": "crosses_numa", "equals": False, "level": "fail"}
        words = [*self.rules({"rules": [rule]}), "--json"]
        out, _ = self.masks("ffffff*2", words=words)
        self.assertEqual(json.loads(out)["verdict"], "pass")
        out, _ = self.masks("ffffff", "3" + 6 * "0", "1800000", words=words, expect=4)
        self.assertEqual([check["rank"] for check in checks(json.loads(out), "fail")], [2])

    def test_wrong_masks_are_refused(self):
        for masks, text in ((["1", ""], 'mask 2 ("") is empty'), (["1", "xyz"], 'mask 2 ("xyz")'), (["1" + 256 * "0"], "1024 bits"),
                            (["1", "1" + 24 * "0"], "the mask of rank 1 has CPU 96, but the machine has 96 CPUs: 0-95")):
            with self.subTest(masks=masks):
                _, err = self.masks(*masks, words=["--output", "r.json"], expect=2)
                self.assertIn(text, err)
                self.assertEqual(os.listdir(self.folder), [])
        _, err = self.run_program(SCALEMARK, "preflight", "--cpu_masks", "1", expect=2)
        self.assertIn("--pinning", err)
        _, err = self.run_program(*mpirun(2, SCALEMARK, "preflight", "--pinning", "--cpu_masks", "1"), expect=2)
        self.assertIn("start it alone", err)


class LaterRecords(PreflightTest):
    """--preflight FILE of what follows."""
    RUN = [*SMALL, "--num_batches", "3", "--num_intra_threads", "1"]

    measured = None

    def preflight(self, **members):
        """The record of a quick preflight, with some members changed; (its id, words that name it)."""
        if not self.measured:
            self.run_program(*PREFLIGHT, *self.rules(GENEROUS), "--output", "p.json")
            LaterRecords.measured = self.read("p.json")
        record = {**self.measured, **members}
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
        self.preflight()
        _, words = self.preflight(verdict="fail", checks=[{**self.measured["checks"][0], "status": "fail"}], hosts=[{**self.measured["hosts"][0], "host": "elsewhere"}])
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
    main()
