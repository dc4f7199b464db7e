"""scripts/gpu_check --bundle without a GPU: limits, killed process groups, files of a visit that is cut off, with stand-ins
for the programs; and what it reads of their output. The real folder is in gpu_bundle_test.py.
"""

import json
import os
import pathlib
import signal
import sys
import tempfile
import unittest
import unittest.mock
import zipfile

from support import SOURCE, ProgramTest, main

GPU = SOURCE / "scripts" / "gpu"
sys.path.insert(0, str(GPU))
import comparisons  # noqa: E402
import facts  # noqa: E402
import kernels  # noqa: E402
import readers  # noqa: E402
import results  # noqa: E402
from visit import table_of  # noqa: E402

# rows.json: [[row, limit, [[step, limit, words, expected codes], ...]], ...]
DRIVER = f"""
import json, sys
sys.path.insert(0, {str(GPU)!r})
import visit
from results import Results
from steps import Row, Step, adopt_orphans
rows = [Row(name, limit, "", tuple(Step(step, most, tuple(words), expect=tuple(expect)) for step, most, words, expect in steps))
        for name, limit, steps in json.load(open("rows.json"))]
adopt_orphans()
visit.stop_at_signals()
summary = visit.Visit(rows, Results("out"), "work", float(sys.argv[1]), lambda text: print(text, flush=True), visit=1,
                      device="cpu", build={{}}).run()
print("state:", summary["state"], flush=True)
"""
SLEEP = "while :; do sleep 0.1; done"


class Visit(ProgramTest):
    def visit(self, *rows, minutes=9):
        (self.folder / "rows.json").write_text(json.dumps(rows))
        return self.start(sys.executable, "-c", DRIVER, str(minutes))

    def finished(self, *rows, **more):
        """{step: result} of a visit to its end."""
        process = self.visit(*rows, **more)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + err)
        return self.steps()

    def summary(self):
        return json.loads((self.folder / "out/summary.json").read_text())

    def steps(self):
        return {step["step"]: step for step in self.summary()["steps"]}

    def logs(self):
        with zipfile.ZipFile(self.folder / "out/logs.zip") as archive:
            self.assertIsNone(archive.testzip())
            return {name: archive.read(name).decode() for name in archive.namelist()}

    def test_a_step_that_fails_stops_none_after_it(self):
        steps = self.finished(["row", 60, [
            ["fails", 20, ["sh", "-c", "echo said; echo why >&2; exit 3"], [0]], ["is_missing", 20, ["/nowhere/program"], [0]],
            ["should_fail", 20, ["sh", "-c", "exit 5"], [4, 5]], ["crashes", 20, ["sh", "-c", "kill -SEGV $$"], [0]],
            ["passes", 20, ["true"], [0]]]])
        self.assertEqual([(step["verdict"], step["exit"]) for step in steps.values()], [
            ("not as expected", 3), ("not as expected", None), ("as expected", 5), ("not as expected", 139), ("as expected", 0)])
        self.assertEqual(steps["fails"]["why"], "exit code 3: why")
        self.assertIn("/nowhere/program", steps["is_missing"]["why"])
        self.assertEqual((self.logs()["fails/out.txt"], self.logs()["fails/err.txt"]), ("said\n", "why\n"))
        table = (self.folder / "out/table.txt").read_text()
        self.assertRegex(table, r"(?m)^fails +not as expected .* 3 +0  exit code 3: why$")
        self.assertIn("2 as expected, 3 not as expected, 0 skipped", table)

    def test_a_step_ends_at_its_limit_with_all_that_it_started(self):
        """Also what ignores TERM, has a process group or a session of its own, or is stopped."""
        program = (f"trap '' TERM; echo begun; (trap '' TERM; {SLEEP}) & setsid sh -c '{SLEEP}' & "
                   f"setsid sh -c \"trap '' TERM; {SLEEP}\" & sh -c 'kill -STOP $$' & {SLEEP}")
        steps = self.finished(["row", 60, [["hangs", 3, ["sh", "-c", program], [0]], ["next", 20, ["true"], [0]]]])
        self.assertEqual(self.processes_left(), [])
        self.assertEqual((steps["hangs"]["verdict"], steps["hangs"]["why"]), ("not as expected", "killed at its limit of 3 s"))
        self.assertEqual(self.logs()["hangs/out.txt"], "begun\n")
        self.assertEqual(steps["next"]["verdict"], "as expected")

    def test_one_that_ends_at_term_is_not_killed(self):
        program = f"trap 'echo told; exit 4' TERM; {SLEEP}"
        steps = self.finished(["row", 60, [["told", 3, ["sh", "-c", program], [0]]]])
        self.assertEqual((steps["told"]["exit"], self.logs()["told/out.txt"]), (4, "told\n"))

    def test_what_a_step_leaves_behind_is_ended_and_said(self):
        steps = self.finished(["row", 60, [["leaves", 20, ["sh", "-c", f"setsid sh -c '{SLEEP}' & exit 0"], [0]]]])
        self.assertEqual(self.processes_left(), [])
        self.assertEqual((steps["leaves"]["exit"], steps["leaves"]["verdict"]), (0, "not as expected"))
        self.assertRegex(steps["leaves"]["why"], r"left \d processes behind")

    def test_what_does_not_fit_is_skipped_and_said(self):
        """30 s of the visit, of which 5 are kept for packing; and a row whose time one step has used up."""
        steps = self.finished(["first", 60, [["long", 30, ["true"], [0]], ["short", 15, ["true"], [0]]]], minutes=0.5)
        self.assertEqual([step["verdict"] for step in steps.values()], ["skipped", "as expected"])
        self.assertRegex(steps["long"]["why"], "of the visit are left, and it may take 30 s")
        steps = self.finished(["row", 4, [["hangs", 2, ["sleep", "60"], [0]], ["late", 2, ["true"], [0]]]],
                              ["other", 60, [["next", 20, ["true"], [0]]]])
        self.assertEqual((steps["late"]["verdict"], steps["late"]["why"]), ("skipped", "no time of its row is left"))
        self.assertEqual(steps["next"]["verdict"], "as expected")

    def test_files_that_cannot_be_kept_stop_no_step(self):
        (self.folder / "out/logs.zip.new/in the way").mkdir(parents=True)
        steps = self.finished(["row", 60, [["one", 20, ["true"], [0]], ["two", 20, ["true"], [0]]]])
        self.assertEqual([step["verdict"] for step in steps.values()], ["as expected", "as expected"])
        self.assertRegex(steps["two"]["left_out"][0], "logs.zip.new")

    def cut_off(self, number):
        """A visit of three steps that gets the signal in its second."""
        process = self.visit(["row", 60, [["first", 20, ["echo", "one"], [0]],
                                          ["second", 50, ["sh", "-c", f"echo two; touch ../../begun; {SLEEP}"], [0]],
                                          ["third", 20, ["true"], [0]]]])
        self.wait_until((self.folder / "begun").exists)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        return process.returncode, out + err

    def test_stopped_in_the_middle(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            (self.folder / "begun").unlink(missing_ok=True)
            code, said = self.cut_off(number)
            self.assertEqual(code, 0, said)
            self.assertEqual(self.processes_left(), [])
            self.assertEqual(self.summary()["state"], f"stopped by {number.name}")
            steps = self.steps()
            self.assertEqual({name: (step["verdict"], step["why"]) for name, step in steps.items()}, {
                "first": ("as expected", ""), "second": ("not as expected", "cut off")})
            self.assertEqual(self.logs()["second/out.txt"], "two\n")
            self.assertIn("cut off", (self.folder / "out/table.txt").read_text())
            self.assertLessEqual({path.name for path in (self.folder / "out").iterdir()},
                                 {"summary.json", "table.txt", "logs.zip"})

    def test_killed_in_the_middle(self):
        """All up to the step before is there."""
        self.cut_off(signal.SIGKILL)
        for pid in self.processes_left():
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(self.summary()["state"], "under way")
        self.assertEqual(self.steps()["first"]["verdict"], "as expected")
        self.assertEqual(self.logs()["first/out.txt"], "one\n")

    def test_traces_and_the_card_have_files_of_their_own(self):
        words = ["sh", "-c", "echo '{}' >trace.json; echo '{\"a\": 1}' >device_properties.json; echo '{}' >record.json"]
        self.finished(["row", 60, [["one", 20, words, [0]]]])
        self.assertEqual({path.name for path in (self.folder / "out").iterdir()},
                         {"summary.json", "table.txt", "logs.zip", "traces.zip", "device_properties.json"})
        self.assertEqual(json.loads((self.folder / "out/device_properties.json").read_text()), {"a": 1})
        self.assertIn("one/record.json", self.logs())
        self.assertNotIn("one/trace.json", self.logs())


class Archives(unittest.TestCase):
    def test_what_would_be_too_large_is_left_out_and_named(self):
        with tempfile.TemporaryDirectory() as name, unittest.mock.patch.object(results, "MOST_ARCHIVE_BYTES", 5000):
            folder = pathlib.Path(name)
            (folder / "small").write_text("small")
            (folder / "noise").write_bytes(os.urandom(6000))
            (folder / "zeros").write_bytes(bytes(100000))
            archive = results.Archive(folder / "a.zip")
            left_out = archive.add([folder / "small", folder / "noise"], folder) + archive.add([folder / "zeros"], folder)
            self.assertEqual(left_out, ["noise"])
            with zipfile.ZipFile(folder / "a.zip") as found:
                self.assertEqual(found.namelist(), ["small", "zeros"])


def kernel(name, begin, duration):
    return {"cat": "kernel", "ph": "X", "name": name, "ts": begin, "dur": duration}


class Kernels(unittest.TestCase):
    def test_by_time_launches_and_idle_share(self):
        """0 to 100 us with a gap from 60 to 80; two streams overlap from 20 to 30."""
        found = kernels.summary_of([
            {"cat": "operator", "name": "aten::add", "ts": -500, "dur": 900}, kernel("gemm", 0, 30), kernel("copy", 20, 20),
            kernel("gemm", 40, 20), kernel("copy", 80, 20)])
        self.assertEqual((found["launches"], found["different_kernels"], found["milliseconds"]), (4, 2, 0.1))
        self.assertAlmostEqual(found["idle_share"], 0.2)
        self.assertEqual([(one["name"], one["launches"], one["milliseconds"]) for one in found["kernels"]],
                         [("gemm", 2, 0.05), ("copy", 2, 0.04)])
        self.assertAlmostEqual(found["kernels"][0]["share"], 5 / 9)

    def test_copies_keep_the_gpu_busy(self):
        found = kernels.summary_of([kernel("gemm", 0, 30), {"cat": "copy", "name": "DtoH", "ts": 30, "dur": 10}, kernel("gemm", 60, 40)])
        self.assertEqual((found["launches"], found["milliseconds"]), (2, 0.1))
        self.assertAlmostEqual(found["idle_share"], 0.2)

    def test_without_kernel_rows(self):
        self.assertEqual(kernels.summary_of([{"cat": "operator", "ts": 0, "dur": 1, "name": "a"}]), {"kernels": "no kernel rows"})


class Readers(unittest.TestCase):
    def read(self, reader, **files):
        with tempfile.TemporaryDirectory() as name:
            for file in ("out", "err"):
                (pathlib.Path(name) / f"{file}.txt").write_text(files.get(file, ""))
            if "record" in files:
                (pathlib.Path(name) / "record.json").write_text(json.dumps(files["record"]))
            return reader(pathlib.Path(name))

    def test_google_test(self):
        passed = "[==========] 5 tests from 1 test suite ran.\n[  PASSED  ] 5 tests.\n"
        self.assertEqual(self.read(readers.tests_on_gpu, out=passed), {"passed": 5, "skipped": 0, "failed": []})
        skipped = "[  PASSED  ] 0 tests.\n[  SKIPPED ] 5 tests, listed below:\n[  SKIPPED ] Nccl.A\n"
        self.assertEqual(self.read(readers.tests_on_gpu, out=skipped)["complaint"], "5 skipped")
        self.assertNotIn("complaint", self.read(readers.tests, out=skipped))
        failed = "[  FAILED  ] Nccl.A (3 ms)\n[  PASSED  ] 4 tests.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] Nccl.A\n"
        self.assertEqual(self.read(readers.tests, out=failed)["complaint"], "failed: Nccl.A")
        self.assertEqual(self.read(readers.tests, out="Segmentation fault")["complaint"], "no test ran")

    def test_sanitizer(self):
        self.assertEqual(self.read(readers.sanitizer, out="========= ERROR SUMMARY: 0 errors\n"), {"errors": 0})
        self.assertEqual(self.read(readers.sanitizer, err="========= ERROR SUMMARY: 2 errors\n")["complaint"], "2 errors")
        self.assertEqual(self.read(readers.sanitizer, out="========= RACECHECK SUMMARY: 3 hazards displayed (1 error)")["errors"], 3)
        self.assertIn("complaint", self.read(readers.sanitizer, out="Device not supported"))

    def test_records(self):
        good = {"kind": "run", "status": "ok", "unit": "images/sec", "throughput": {"median": 5.0}, "loss": {"first": 2.0, "last": 1.0},
                "energy": {"joules_per_sample": 3.0, "source": "nvml"}}
        self.assertEqual(self.read(readers.record, record=good)["throughput"], 5.0)
        self.assertNotIn("complaint", self.read(readers.energy, record=good))
        for change in ({"status": "failed"}, {"loss": {"first": 2.0, "last": None}}, {"throughput": None}):
            self.assertIn("complaint", self.read(readers.record, record={**good, **change}), change)
        for energy in (None, {"joules_per_sample": None, "source": None}, {"joules_per_sample": 3.0, "source": "rapl"}):
            self.assertIn("complaint", self.read(readers.energy, record={**good, "energy": energy}), energy)
        self.assertEqual(self.read(readers.record)["complaint"], "no record")
        self.assertEqual(self.read(readers.failed_record, record=good)["complaint"], "status ok after a fault")
        self.assertNotIn("complaint", self.read(readers.failed_record, record={**good, "status": "failed"}))

    def test_a_table_of_any_summary(self):
        summary = {"visit": 1, "device": "cuda", "minutes": 9, "seconds": 1.0, "state": "complete", "begun_at": "now", "build": {},
                   "ratios": [], "losses": [],
                   "steps": [{"step": "one", "row": "r", "row_learns": "l", "verdict": "as expected", "seconds": 1.0, "why": "",
                              "limit_seconds": 2, "exit": None, "expected": [4, 5], "found": {"throughput": 1234.5, "failed": ["a"]}}]}
        self.assertIn("4/5  throughput 1234, failed 1: a", table_of(summary))


def result(name, verdict="as expected", **found):
    return {"step": name, "verdict": verdict, "found": found}


class Comparisons(unittest.TestCase):
    def test_ratios_are_of_medians_over_the_turns(self):
        steps = [result("resnet50_ours_1", throughput=100), result("resnet50_eager_1", throughput=80),
                 result("resnet50_ours_2", throughput=120), result("resnet50_eager_2", throughput=20),
                 result("resnet50_compiled", "not as expected", throughput=1), result("resnet50_bf16", throughput=7),
                 result("bert_ours", throughput=5)]
        self.assertEqual(comparisons.ratios(steps), [
            {"name": "resnet50", "peer": "eager", "ours": 110, "theirs": 50, "ratio": 2.2}])

    def test_losses_of_settings(self):
        steps = [result("bert_ours_1", loss_trace=[4.0, 2.0]), result("bert_plain", loss_trace=[4.0, 1.0]),
                 result("bert_graph", loss_trace=[4.0, 2.0])]
        found = {one["setting"]: one["largest_relative_difference"] for one in comparisons.losses(steps)}
        self.assertEqual(found, {"plain": 0.5, "graph": 0})
        words = comparisons.words_of({"ratios": [], "losses": comparisons.losses(steps)})
        self.assertIn("bert, graph: losses of 2 steps are bit-equal", words)


class Facts(ProgramTest):
    def test_a_field_that_this_driver_does_not_know_is_left_out(self):
        self.write_program("nvidia-smi", """#!/bin/sh
case $1 in *clocks_event_reasons.active*)
  echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2;;
esac
echo "${1#*=}" | tr , '\\n' | sed 's/.*/of &/' | paste -sd, -
""")
        with unittest.mock.patch.dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}"):
            (card,), why = facts.gpus()
        self.assertEqual((card["name"], card["power.limit"], why), ("of name", "of power.limit", ""))
        self.assertEqual(set(facts.QUERY) - set(card), {"clocks_event_reasons.active"})

    def test_a_driver_that_fails(self):
        self.write_program("nvidia-smi", "#!/bin/sh\necho 'No devices were found'; exit 6\n")
        with unittest.mock.patch.dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}"):
            self.assertEqual(facts.gpus(), ([], "nvidia-smi: No devices were found"))


def cudnn_libraries():
    """Folders of cuDNN and the CUDA runtime beside this Python's torch."""
    return sorted(pathlib.Path(sys.prefix).glob("lib/python3*/site-packages/nvidia/*/lib"))


@unittest.skipUnless(any("cudnn" in str(path) for path in cudnn_libraries()), "this Python has no cuDNN")
class CudnnProperties(ProgramTest):
    def check(self, properties, expect):
        (self.folder / "card.json").write_text(json.dumps({"properties": properties}))
        path = ":".join(map(str, cudnn_libraries()))
        return self.run_program(sys.executable, GPU / "cudnn_properties.py", "--check", "card.json", expect=expect,
                                env=self.environment(LD_LIBRARY_PATH=path))

    def test_cudnn_takes_a_card_that_is_not_here(self):
        card = json.loads((SOURCE / "tests/programs/cudnn_devices/written_h100.json").read_text())["properties"]
        self.check(card, expect=0)
        del card["deviceVer"]
        _, err = self.check(card, expect=4)
        self.assertIn("cudnnBackendFinalize", err)


class WithoutAGpu(ProgramTest):
    @unittest.skipIf(pathlib.Path("/dev/nvidiactl").exists(), "there is a GPU")
    def test_a_build_folder(self):
        _, err = self.run_program(SOURCE / "scripts/gpu_check", "--build", "nowhere", expect=7)
        self.assertIn("no GPU", err)

    def test_a_folder_that_is_no_bundle(self):
        _, err = self.run_program(SOURCE / "scripts/gpu_check", "--bundle", self.folder, expect=7)
        self.assertIn("holds no manifest.json", err)


if __name__ == "__main__":
    main()
