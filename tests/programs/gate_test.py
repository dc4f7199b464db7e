"""scalemark gate with real launches of builds, and on copies of their records whose difference is known."""

import json
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree as xml

from support import BINARY, SCALEMARK, SOURCE, ProgramTest, mpirun, scaled

SETTINGS = {"model": "trivial", "batch_size": 4, "num_warmup_batches": 1, "num_batches": 20, "num_intra_threads": 1}
MEASURED = pathlib.Path(tempfile.mkdtemp(prefix="scalemark-gate-"))


def setUpModule():
    unittest.addModuleCleanup(shutil.rmtree, MEASURED, ignore_errors=True)
    plan = {"settings": SETTINGS, "axes": {"precision": ["fp32", "bf16"]}, "repeats": 5, "launcher": "mpirun"}
    (MEASURED / "plan.json").write_text(json.dumps(plan))
    subprocess.run([SCALEMARK, "sweep", "plan.json", "--output", "sweep"], cwd=MEASURED, check=True, capture_output=True, timeout=120)


class GateTest(ProgramTest):
    def gate(self, *words, expect=0, **options):
        return self.run_program(SCALEMARK, "gate", *words, expect=expect, **options)

    def copy(self, name, factor=1.0, change=lambda record: None):
        """The sweep, `factor` times as fast."""
        shutil.copytree(MEASURED / "sweep", self.folder / name)
        for path in (self.folder / name / "runs").iterdir():
            record = scaled(json.loads(path.read_text()), factor)
            change(record)
            path.write_text(json.dumps(record))
        return name


class Builds(GateTest):
    def plan(self, **members):
        (self.folder / "plan.json").write_text(json.dumps({"settings": SETTINGS, "launcher": "mpirun", **members}))
        return ["plan.json", "--base", BINARY, "--output", "out"]

    def entries(self, side):
        return [json.loads(line) for line in (self.folder / "out" / side / "journal.jsonl").read_text().splitlines()]

    def test_pairs_lie_side_by_side_in_random_order(self):
        words = [*self.plan(axes={"precision": ["fp32", "bf16"]}), "--new", SCALEMARK, "--pairs", "4", "--alpha", "0.1"]
        process = self.start(SCALEMARK, "gate", *words, "--alternate", "launches")
        out, err = process.communicate(timeout=120)
        verdict = self.read("out/verdict.json")
        self.assertEqual(process.returncode, verdict["exit_code"])
        self.assertEqual({"regressed": 1, "pass": 0, "inconclusive": 3}[verdict["verdict"]], process.returncode)
        self.assertEqual((verdict["repeats"], verdict["design"]["mode"], verdict["launches"]["launched"]), (4, "sequential pairs", 16))
        self.assertTrue(out.startswith(verdict["verdict"]), out)
        order = sorted((entry["started_at"], side, entry["repeat"], entry["settings"]["precision"])
                       for side in ("base", "new") for entry in self.entries(side))
        self.assertEqual([pair for _, _, pair, _ in order], sorted(pair for _, _, pair, _ in order))
        firsts = [[side for _, side, pair, point in order if (pair, point) == (k, precision)]
                  for k in range(1, 5) for precision in ("fp32", "bf16")]
        self.assertEqual({tuple(sorted(sides)) for sides in firsts}, {("base", "new")})
        self.assertEqual({sides[0] for sides in firsts}, {"base", "new"})
        again, _ = self.run_program(SCALEMARK, "compare", "out/base", "out/new", "--paired", "--json")
        self.assertEqual([point["repeats"] for point in json.loads(again)["points"]], [4, 4])

    def wrapper(self, name, script):
        """A program that runs `script` and then scalemark."""
        program = self.folder / name / "scalemark"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\n{script}\nexec {SCALEMARK} "$@"\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return name

    def test_the_launches_of_a_pair_take_turns(self):
        settings = {**SETTINGS, "model": "smallnet", "num_batches": 200, "ranks": 2, "inject": "delay:milliseconds=1"}  # 0.2 s
        out, err = self.gate(*self.plan(settings=settings), "--new", SCALEMARK, "--pairs", "2", "--alpha", "0.3", "--threshold", "50",
                             "--delta", "50", expect=3)  # two pairs pass nothing
        self.assertIn("live at the same time and measure in turns", err)
        self.assertEqual(self.read("out/verdict.json")["launches"]["alternate"], "steps")
        words = [f"--{key}={value}" for key, value in settings.items() if key not in ("ranks", "inject")]
        self.run_program(*mpirun(2, SCALEMARK, "run", *words, "--output", "alone.json"))
        alone = self.read("alone.json")
        self.assertNotIn("turns", alone)
        for side in ("base", "new"):
            for entry in self.entries(side):
                record = self.read(f"out/{side}/{entry['record']}")
                self.assertGreaterEqual(record["turns"]["count"], 3)
                self.assertGreater(record["turns"]["paused_seconds"], 0)
                self.assertEqual(len(record["step_seconds"]["samples"]), 200)
                self.assertGreater(record["wall_seconds"], 0.2)
                self.assertLess(record["wall_seconds"] + record["turns"]["paused_seconds"], entry["seconds"])
                self.assertEqual(record["loss"], alone["loss"])  # the same training

    def test_builds_that_can_not_take_turns_follow_each_other(self):
        old = self.wrapper("old", f'[ "$1" = --version ] && {SCALEMARK} --version | grep -v gate && exit')
        few = ["--new", BINARY, "--max_seconds", "1"]
        words = ["plan.json", "--base", old, "--output", "out", *few]
        self.plan()
        _, err = self.gate(*words, "--alternate", "steps", expect=2)
        self.assertIn("too old for turns", err)
        _, err = self.gate(*words, expect=3)
        self.assertRegex(err, "follow each other, since build .* is too old for turns")
        self.assertEqual(self.read("out/verdict.json")["launches"]["alternate"], "launches")

    def test_ranks_that_lose_their_turns_give_no_verdict(self):
        deaf = self.wrapper("deaf", "unset SMK_INTERNAL_TURNS")
        self.plan()
        _, err = self.gate("plan.json", "--base", deaf, "--new", deaf, "--output", "out", expect=7)
        self.assertIn("--alternate launches", self.read("out/verdict.json")["reason"])
        self.assertEqual([entry["record"] for entry in self.entries("base")], [""])

    def test_a_rank_that_is_killed_in_its_turn(self):
        plan = self.plan(settings={**SETTINGS, "ranks": 2, "num_batches": 400, "inject": "delay:milliseconds=1"})
        self.gate(*plan, "--new_set", "inject=kill:rank=1:step=100", expect=4)
        verdict = self.read("out/verdict.json")
        self.assertEqual((verdict["status"], verdict["verdict"]), ("failed", None))
        self.assertIn("new, the only point, pair 1", verdict["reason"])

    def test_a_slowdown_is_found_and_reported_everywhere(self):
        words = [*self.plan(), "--new_set", "inject=delay:milliseconds=30", "--pairs", "7"]
        _, err = self.gate(*words, "--junit", "j.xml", "--summary", "s.md", "--annotations", expect=1)
        verdict = self.read("out/verdict.json")
        self.assertEqual((verdict["verdict"], verdict["repeats"], verdict["varied"]), ("regressed", 7, ["inject"]))
        self.assertAlmostEqual(verdict["p"], 2**-7)
        self.assertGreater(verdict["slowdown_percent"], 50)
        self.assertEqual([point["regressed"] for point in verdict["points"]], [True])
        suite = xml.parse(self.folder / "j.xml").getroot().find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("2", "2"))
        self.assertIn("slower than base", suite.find("testcase/failure").get("message"))
        self.assertIn("scalemark gate: regressed", (self.folder / "s.md").read_text())
        self.assertRegex(err, r"(?m)^::error title=scalemark gate::regressed: new is .*%0Aranks=1")
        # The same records once more, as two sets.
        _, err = self.gate("out/base", "out/new", "--paired", expect=2)
        self.assertIn("--varied inject", err)
        out, _ = self.gate("out/base", "out/new", "--paired", "--varied", "inject", "--json", expect=1)
        self.assertAlmostEqual(json.loads(out)["slowdown_percent"], verdict["slowdown_percent"])

    def test_an_interrupted_gate_goes_on(self):
        words = [*self.plan(settings={**SETTINGS, "inject": "delay:milliseconds=20"}), "--new", BINARY, "--pairs", "3", "--alpha", "0.2"]
        process = self.start(SCALEMARK, "gate", *words)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (self.folder / "out/new/journal.jsonl").exists():
            time.sleep(0.05)
        while time.monotonic() < deadline and not (self.entries("base") and self.entries("new")):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4, out + err)
        verdict = self.read("out/verdict.json")
        self.assertEqual((verdict["status"], verdict["verdict"]), ("interrupted", None))
        self.assertIn("goes on", err)
        process = self.start(SCALEMARK, "gate", *words)
        process.communicate(timeout=90)
        self.assertEqual(self.read("out/verdict.json")["repeats"], 3)
        for side in ("base", "new"):
            done = [entry["repeat"] for entry in self.entries(side) if entry["status"] == "ok"]
            self.assertEqual(sorted(done), [1, 2, 3])

    def test_a_build_that_fails_ends_it_with_its_code(self):
        broken = self.wrapper("broken", '[ "$1" = run ] && set -- "$@" --inject nan_loss:step=1')
        out, err = self.gate(*self.plan(), "--new", broken, "--junit", "j.xml", "--annotations", expect=4)
        verdict = self.read("out/verdict.json")
        self.assertEqual((verdict["status"], verdict["verdict"]), ("failed", None))
        self.assertIn("new, the only point, pair 1", verdict["reason"])
        self.assertIn("no verdict (failed)", out)
        self.assertIn("::error", err)
        self.assertEqual(xml.parse(self.folder / "j.xml").getroot().find("testsuite").get("errors"), "1")

    def test_time_that_runs_out_is_inconclusive(self):
        self.gate(*self.plan(), "--new", BINARY, "--max_seconds", "1", expect=3)
        verdict = self.read("out/verdict.json")
        self.assertEqual((verdict["verdict"], verdict["repeats"], verdict["launches"]["stopped"]), ("inconclusive", 1, "max_seconds"))

    def test_a_folder_of_another_plan_is_not_gone_on_with(self):
        self.gate(*self.plan(), "--new", BINARY, "--max_seconds", "1", expect=3)
        _, err = self.gate(*self.plan(settings={**SETTINGS, "seed": 5}), "--new", BINARY, expect=2)
        self.assertIn("of another plan", err)

    def test_a_dry_run_prints_pairs(self):
        out, err = self.gate(*self.plan(), "--new_set", "seed=3", "--pairs", "7", "--dry_run")
        self.assertEqual(len(out.splitlines()), 14)
        self.assertEqual(sum("--seed=3" in line for line in out.splitlines()), 7)
        self.assertFalse((self.folder / "out").exists())

    def test_what_is_no_build(self):
        for build, text in (("no-such-commit", "no commit"), (self.folder, "holds no scalemark")):
            _, err = self.gate(*self.plan(), "--new", build, expect=2)
            self.assertIn(text, err)


class Sets(GateTest):
    def verdict(self, *words, expect):
        return self.record_of("gate", *words, expect=expect)

    def test_a_regression_is_found_and_attributed(self):
        def slow_bf16(record):
            if record["precision"] == "bf16":
                record["throughput"]["mean"] /= 10
                record["wall_seconds"] *= 10

        record = self.verdict(f"old={MEASURED / 'sweep'}", f"new={self.copy('slow', 1, slow_bf16)}", expect=1)
        self.assertEqual((record["verdict"], record["design"]["mode"], record["repeats"]), ("regressed", "samples", 5))
        self.assertEqual({point["settings"]["precision"]: point["regressed"] for point in record["points"]},
                         {"bf16": True, "fp32": False})
        self.assertAlmostEqual(record["points"][0]["slowdown_percent"], 90)
        self.assertIn("measured apart", record["warnings"][0])

    def test_the_same_as_pairs_passes(self):
        record = self.verdict(MEASURED / "sweep", f"new={self.copy('same')}", "--paired", expect=0)
        self.assertEqual((record["verdict"], record["slowdown_percent"], record["p"]), ("pass", 0, 1))
        self.assertEqual(record["points"][0]["p"], None)

    def test_a_point_that_is_missing_or_a_machine_that_differs_is_refused(self):
        def no_bf16(record):
            if record["precision"] == "bf16":
                record["status"], record["reason"] = "failed", "made"

        part = self.folder / "part"
        shutil.copytree(self.folder / self.copy("swept", 1, no_bf16) / "runs", part)
        _, err = self.gate(MEASURED / "sweep", part, expect=2)
        self.assertIn("has no launch with ranks 1 precision=bf16", err)

        def other_cpu(record):
            record["system"]["cpu_model"] = "another CPU"

        other = self.copy("other", 1, other_cpu)
        _, err = self.gate(MEASURED / "sweep", other, "--paired", expect=2)
        self.assertIn("cpu_model (sweep: ", err)
        record = self.verdict(MEASURED / "sweep", other, "--paired", "--other_machine", expect=0)
        self.assertIn("unlike machines: cpu_model", record["warnings"][0])

        def other_build(record):
            if record["precision"] == "bf16":
                record["build"]["revision"] = "abc"

        _, err = self.gate(MEASURED / "sweep", self.copy("mixed", 1, other_build), expect=2)
        self.assertIn("several builds", err)

    def test_a_baseline_is_kept_checked_and_never_moved_silently(self):
        save = ["--save_baseline", "b.json", MEASURED / "sweep"]
        self.gate(*save)
        first = self.read("b.json")
        self.assertEqual(len(first["launches"]), 10)
        record = self.verdict("b.json", f"new={self.copy('slow', 0.1)}", expect=1)
        self.assertEqual(record["baseline"]["checksum"], first["checksum"])
        self.assertEqual(self.verdict("b.json", MEASURED / "sweep", "--paired", expect=0)["slowdown_percent"], 0)
        self.run_program(SCALEMARK, "compare", "b.json", "slow")
        _, err = self.gate(*save, expect=2)
        self.assertIn("--because", err)
        self.assertEqual(self.read("b.json"), first)
        self.gate(*save, "--because", "a slower but right kernel")
        second = self.read("b.json")
        self.assertEqual((second["previous"]["checksum"], second["previous"]["because"]), (first["checksum"], "a slower but right kernel"))
        second["launches"][0]["repeats"][0]["seconds"] *= 2
        (self.folder / "b.json").write_text(json.dumps(second, indent=1))
        for words in (["b.json", "slow"], [*save, "--because", "x"]):
            _, err = self.gate(*words, expect=6)
            self.assertIn("does not fit its checksum", err)

    def test_history_names_the_change(self):
        names = [self.copy(f"c{k}", 1 + 0.001 * (k % 3) if k < 6 else 0.8 + 0.001 * (k % 3)) for k in range(12)]
        out, _ = self.gate("--history", *names, "--output", "h.json", "--summary", "h.md")
        change, = self.read("h.json")["changes"]
        self.assertEqual((change["after"], change["at"]), ("c5", "c6"))
        self.assertAlmostEqual(change["change_percent"], -20, delta=0.2)
        self.assertIn("| c6 | 10 | 0.8", (self.folder / "h.md").read_text())
        self.assertRegex(out, r"c6 +10 +0\.8\d+ +-20\.0 % \(p = 0\.0\d+\)")
        out, _ = self.gate("--history", *names[:6], "--json")
        self.assertEqual(json.loads(out)["changes"], [])

    def test_words_that_are_wrong(self):
        sweep = MEASURED / "sweep"
        plan = ["plan.json", "--output", "o"]
        for words, text in (([], "two result sets"), ([sweep], "two result sets"), ([sweep, sweep, "--pairs", "9"], "two builds"),
                            ([sweep, sweep, "--alpha", "2"], "--alpha"), ([sweep, sweep, "--threshold", "3"], "--delta"),
                            ([*plan, "--base", BINARY], "both builds"), ([*plan[:1], "--base", "x", "--new", "x"], "--output DIR"),
                            ([*plan, "--base", "x", "--new", "x"], "no such file"), ([sweep, sweep, "--alternate", "steps"], "two builds"),
                            ([*plan, "--base", "x", "--new", "x", "--alternate", "both"], "legal: auto"), (["--save_baseline", "b.json"], "one result set"),
                            (["--save_baseline", "b.json", sweep, "--json"], "judges nothing"), (["--history", sweep], "of one build"),
                            ([sweep, sweep, "--verbose"], "--help")):
            _, err = self.gate(*words, expect=2)
            self.assertIn(text, err)
        (self.folder / "plan.json").write_text(json.dumps({"settings": SETTINGS}))
        _, err = self.gate(*plan, "--base", BINARY, "--new", BINARY, "--pairs", "6", expect=2)
        self.assertIn("at least 7 can", err)
        _, err = self.run_program(*mpirun(2, SCALEMARK, "gate", sweep, sweep), expect=2)
        self.assertIn("start it once", err)


class Examples(GateTest):
    def test_the_jobs_of_docs_ci_call_what_is_there(self):
        help_text, _ = self.gate("--help")
        for path in sorted((SOURCE / "docs/ci").iterdir()):
            command, = re.findall(r"./scalemark gate (.*(?:\n  .*)*?--summary \S+)", path.read_text())
            with self.subTest(path=path.name):
                self.assertTrue((SOURCE / command.split()[0]).exists())
                for flag in re.findall(r"--[a-z_]+", command):
                    self.assertRegex(help_text, rf"{flag}\b")


if __name__ == "__main__":
    unittest.main()
