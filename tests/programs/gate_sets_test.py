"""scalemark gate on result sets: a sweep, and copies of it whose difference is known."""

import json
import shutil
import uuid
import xml.etree.ElementTree as xml

from made_records import put_at_level, rescale
from measured_sweep import PLAN, REPEATS, MeasuredSweepTest
from support import BINARY, SCALEMARK, main, mpirun


EXACT = ["--alpha", "0.05"]  # a level that REPEATS pairs can reach


class Sets(MeasuredSweepTest):
    def gate(self, *words, expect=0):
        return self.run_program(SCALEMARK, "gate", *words, expect=expect)

    def verdict(self, *words, expect):
        return self.record_of("gate", *words, expect=expect)

    def test_a_regression_is_found_and_attributed(self):
        def slow_bf16(record):
            if record["precision"] == "bf16":
                rescale(record, 1 / 10)

        record = self.verdict(f"old={self.sweep}", f"new={self.copy('slow', 1, slow_bf16)}", expect=1)
        self.assertEqual((record["verdict"], record["design"]["mode"], record["repeats"]), ("regressed", "samples", REPEATS))
        self.assertEqual({point["settings"]["precision"]: point["regressed"] for point in record["points"]},
                         {"bf16": True, "fp32": False})
        self.assertAlmostEqual(record["points"][0]["slowdown_percent"], 90, 4)
        self.assertEqual([text for text in record["warnings"] if "lie before" in text], [])  # they have the same times

    def test_the_same_as_pairs_passes(self):
        record = self.verdict(self.sweep, f"new={self.copy('same')}", "--paired", *EXACT, expect=0)
        self.assertEqual(record["verdict"], "pass")
        self.assertAlmostEqual(record["slowdown_percent"], 0, 4)
        self.assertGreater(record["p"], 0.2)

    def test_what_can_not_fail_can_not_pass(self):
        record = self.verdict(self.sweep, f"new={self.copy('same')}", "--paired", expect=3)
        self.assertIn("this gate cannot fail: 6 of each", record["warnings"][-1])
        self.assertGreaterEqual(record["repeats_for_pass"], 7)

    def test_failed_launches_are_no_pass(self):
        def failing(count):
            left, of_level = iter(range(count)), self.of_level(1)

            def change(record):
                of_level(record)
                if next(left, None) is not None:
                    record["status"], record["reason"] = "invalid", "a loss that is not finite"
            return change

        # Of a folder without a journal the records say what became of them.
        new, base = (shutil.copytree(self.copy(name, 1, failing(2)) / "runs", self.folder / f"{name}_runs") for name in ("new", "base"))
        whole = shutil.copytree(self.copy("whole", 1, self.of_level(1)) / "runs", self.folder / "whole_runs")
        reports = ["--junit", "j.xml", "--summary", "s.md", "--output", "v.json"]
        _, err = self.gate(whole, new, *EXACT, *reports, expect=4)
        self.assertIn("2 launches of new_runs did not end well (2 records with status invalid)", err)
        self.assertIn('errors="1"', (self.folder / "j.xml").read_text())
        self.assertIn("no verdict", (self.folder / "s.md").read_text())
        self.assertEqual((self.read("v.json")["status"], self.read("v.json")["verdict"]), ("failed", None))
        self.gate(whole, new, *EXACT, "--allow_failed", "1", expect=4)
        record = self.verdict(whole, new, *EXACT, "--allow_failed", "2", expect=0)
        self.assertEqual(record["sets"][1]["left_out"], ["2 records with status invalid"])
        record = self.verdict(base, whole, *EXACT, expect=3)
        self.assertIn("measure the base again", " ".join(record["warnings"]))

    def test_copies_are_no_data(self):
        _, err = self.gate(self.sweep, self.sweep, expect=2)
        self.assertIn("are one record", err)
        copied = self.folder / "copied"
        shutil.copytree(self.sweep, copied)
        _, err = self.gate(self.sweep, copied, expect=2)
        self.assertIn(str(copied), err)
        runs = shutil.copytree(self.copy("fresh") / "runs", self.folder / "runs")
        first = next(runs.iterdir())
        shutil.copy(first, runs / "again.json")
        _, err = self.gate(self.sweep, runs, expect=2)
        self.assertIn("again.json", err)
        _, err = self.run_program(SCALEMARK, "compare", self.sweep, runs, expect=2)
        self.assertIn("again.json", err)
        self.gate("--save_baseline", "b.json", runs, expect=2)

    def test_copies_under_new_ids_are_no_data(self):
        def under_new_ids(name):
            runs = shutil.copytree(self.sweep / "runs", self.folder / name)
            for path in runs.iterdir():
                path.write_text(json.dumps(dict(json.loads(path.read_text()), id=str(uuid.uuid4()))))
            return runs

        copies = under_new_ids("copies")
        self.gate("--save_baseline", "b.json", self.sweep)
        for words in (["gate", self.sweep, copies], ["gate", self.sweep, copies, "--paired"], ["gate", "b.json", copies],
                      ["compare", self.sweep, copies], ["gate", "--history", self.sweep, copies]):
            _, err = self.run_program(SCALEMARK, *words, expect=2)
            self.assertIn("one is a copy of the other", err)
        twice = shutil.copytree(self.copy("new", 1, self.of_level(1)) / "runs", self.folder / "twice")
        for path in list(twice.iterdir()):
            (twice / f"again-{path.name}").write_text(json.dumps(dict(json.loads(path.read_text()), id=str(uuid.uuid4()))))
        record = self.verdict(self.copy("base", 1, self.of_level(1)), twice, *EXACT, expect=0)
        self.assertEqual(record["repeats"], REPEATS)
        self.assertIn(f"{2 * REPEATS} of {4 * REPEATS} launches of twice equal another one", record["warnings"][0])
        self.assertIn(f"{2 * REPEATS} launches that tell what another one tells", " ".join(record["sets"][1]["left_out"]))

    def test_unlike_builds_are_refused_at_every_entrance(self):
        def debug(record):
            record["build"]["build_type"] = "Debug"

        def tokens(record):
            record["unit"] = "tokens/sec"

        self.gate("--save_baseline", "b.json", self.sweep)
        row = [self.copy(f"set{k}") for k in range(4)]
        for name, change, complaint in (("debug", debug, "build_type (sweep: Release; debug: Debug)"), ("tokens", tokens, "images/sec")):
            other = self.copy(name, 1, change)
            for words in (["gate", self.sweep, other], ["gate", self.sweep, other, "--paired"], ["gate", "sweep=b.json", other],
                          ["compare", self.sweep, other], ["gate", "--history", self.sweep, *row, other]):
                with self.subTest(words=words, what=name):
                    _, err = self.run_program(SCALEMARK, *words, expect=2)
                    self.assertIn(complaint, err)

    def test_an_order_that_goes_with_the_build_is_no_verdict(self):
        def every_minutes(first):
            numbers = iter(range(first, 10_000, 2))

            def change(record):
                self.of_level(0.9 if first else 1)(record)
                record["created_at"] = f"2999-01-01T{(n := next(numbers)) // 60:02}:{n % 60:02}:00.000Z"
                record["started_at"] = record["created_at"]
            return change

        base, new = (self.copy(name, 1, every_minutes(first)) / "runs" for name, first in (("base", 0), ("new", 1)))
        for words in ([f"base={base}", f"new={new}"], [f"base={base}", f"new={new}", "--paired"]):
            record = self.verdict(*words, *EXACT, expect=3)
            text = " ".join(record["warnings"])
            self.assertIn(f"base came first in {REPEATS} of {REPEATS} pairs", text)
            self.assertIn("let either build come first in half of the pairs", text)
            self.assertNotIn("apart", text)

    def test_other_hosts_are_named(self):
        def host(record):
            of_level(record)
            record["system"]["host"] = "another"

        base, of_level = self.copy("base", 1, self.of_level(1)), self.of_level(1)
        other = self.copy("other", 1, host)
        for words in (["gate", base, other, *EXACT, "--json"], ["compare", base, other, "--json"]):
            record = json.loads(self.run_program(SCALEMARK, *words)[0])
            self.assertIn("different hosts (base: ", " ".join(record["warnings"]))

    def test_every_exit_is_reported(self):
        reports = ["--junit", "j.xml", "--summary", "s.md", "--annotations", "--output", "v.json"]
        same = self.copy("same")
        self.gate(self.sweep, same, "--paired", *EXACT, *reports)
        self.assertIn('failures="0" errors="0"', (self.folder / "j.xml").read_text())
        damaged = self.copy("damaged")
        next((damaged / "runs").iterdir()).write_text("{")
        for words, code, text in (([self.sweep, same, "--alpah", "1"], 2, "alpah"), ([self.sweep, "nowhere"], 2, "no such file"),
                                  ([self.sweep, damaged], 6, "damaged")):
            _, err = self.gate(*words, *reports, expect=code)
            junit = xml.parse(self.folder / "j.xml").getroot()[0]
            self.assertEqual((junit.get("errors"), junit.get("failures")), ("1", "0"))
            self.assertIn(text, junit[0][0].get("message"))
            self.assertIn("::error title=scalemark gate::no verdict (failed)", err)
            self.assertIn(text, (self.folder / "s.md").read_text().split("**scalemark gate: ")[-1])
            self.assertIsNone(self.read("v.json")["verdict"])
        (self.folder / "j.xml").unlink()
        self.gate("--help", "--junit", "j.xml")
        self.assertFalse((self.folder / "j.xml").exists())

    def test_a_point_that_is_missing_or_a_machine_that_differs_is_refused(self):
        part = shutil.copytree(self.copy("swept") / "runs", self.folder / "part")
        for path in part.iterdir():
            if json.loads(path.read_text())["precision"] == "bf16":
                path.unlink()
        _, err = self.gate(self.sweep, part, expect=2)
        self.assertIn("has no launch with ranks 1 precision=bf16", err)

        def other_cpu(record):
            record["system"]["cpu_model"] = "another CPU"

        other = self.copy("other", 1, other_cpu)
        _, err = self.gate(self.sweep, other, "--paired", expect=2)
        self.assertIn("cpu_model (sweep: ", err)
        record = self.verdict(self.sweep, other, "--paired", "--other_machine", *EXACT, expect=0)
        self.assertIn("unlike machines: cpu_model", record["warnings"][0])

        def other_build(record):
            if record["precision"] == "bf16":
                record["build"]["revision"] = "abc"

        _, err = self.gate(self.sweep, self.copy("mixed", 1, other_build), expect=2)
        self.assertIn("several builds", err)

    def test_a_baseline_is_kept_checked_and_never_moved_silently(self):
        save = ["--save_baseline", "b.json", self.sweep]
        self.gate(*save)
        first = self.read("b.json")
        self.assertEqual(len(first["launches"]), 2 * REPEATS)
        record = self.verdict("b.json", f"new={self.copy('slow', 0.1)}", expect=1)
        self.assertEqual(record["baseline"]["checksum"], first["checksum"])
        same = self.verdict("b.json", self.copy("same"), "--paired", *EXACT, expect=0)
        self.assertAlmostEqual(same["slowdown_percent"], 0, 4)
        self.gate("b.json", self.sweep, expect=2)  # what the baseline was made of
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

    @staticmethod
    def of_level(level):
        """Launches of both points at one rate, the same for all sets."""
        launches = iter(range(2 * REPEATS))
        return lambda record: put_at_level(record, 1000 * level, next(launches))

    def test_history_names_the_change(self):
        names = [self.copy(f"c{k}", 1, self.of_level((1 if k < 6 else 0.8) + 0.001 * (k % 3))) for k in range(12)]
        out, _ = self.gate("--history", *names, "--output", "h.json", "--summary", "h.md")
        change, = self.read("h.json")["changes"]
        self.assertEqual((change["after"], change["at"]), ("c5", "c6"))
        self.assertAlmostEqual(change["change_percent"], -20, delta=0.2)
        self.assertIn(f"| c6 | {2 * REPEATS} | 0.8", (self.folder / "h.md").read_text())
        self.assertRegex(out, rf"c6 +{2 * REPEATS} +0\.8\d+ +-20\.0 % \(p = 0\.0\d+\)")
        self.assertEqual((change["kind"], change["until"]), ("step", None))
        self.assertRegex(out, r"sets of one level differ by 0\.\d\d % \(their launches make \d+\.\d\d %\)")
        self.assertRegex(out, r"Sets that a step needs: 1 % .*, 2 % .*, 5 % .*, 10 % \w")
        newest = self.read("h.json")["newest"]
        self.assertEqual((newest["verdict"], newest["set"], newest["since"], newest["sets"]), ("pass", "c11", "c6", 5))
        self.assertRegex(out, r"newest set c11: pass, [+-]\d\.\d % against the level since c6 \(5 sets\)")
        out, _ = self.gate("--history", *names[:6], "--json")
        self.assertEqual(json.loads(out)["changes"], [])
        _, err = self.gate("--history", *names[:5], expect=2)
        self.assertIn("give 6 or more", err)

    def test_history_judges_its_newest_set(self):
        names = [self.copy(f"c{k}", 1, self.of_level(1 + 0.001 * (k % 3))) for k in range(8)]
        _, said = self.gate("--history", *names, "--annotations")
        self.assertRegex(said, r"(?m)^::notice title=scalemark gate::newest set c7: pass, ")
        out, said = self.gate("--history", *names, self.copy("half", 1, self.of_level(0.5)), "--json", "--annotations", expect=1)
        self.assertRegex(said, r"(?m)^::error title=scalemark gate::newest set half: regressed, -50\.\d %25 against the level since c0")
        newest = json.loads(out)["newest"]
        self.assertEqual((newest["set"], newest["verdict"], newest["since"]), ("half", "regressed", "c0"))
        self.assertAlmostEqual(newest["slowdown_percent"], 50, delta=0.2)
        self.assertEqual([point["regressed"] for point in newest["points"]], [True, True])
        # One point is slower, the other one faster by as much: the mean alone shows nothing.
        of_level = self.of_level(1)

        def opposite(record):
            of_level(record)
            rescale(record, 0.9 if record["precision"] == "bf16" else 1 / 0.9)

        out, _ = self.gate("--history", *names, self.copy("opposite", 1, opposite), "--json", expect=1)
        newest = json.loads(out)["newest"]
        self.assertEqual({point["settings"]["precision"]: point["regressed"] for point in newest["points"]}, {"bf16": True, "fp32": False})
        self.assertAlmostEqual(newest["slowdown_percent"], 0, delta=0.2)

    def test_history_names_what_else_changes(self):
        def at(number):
            of_level = self.of_level(1 + 0.001 * (number % 3))

            def change(record):
                of_level(record)
                record["system"]["kernel"] = "6.1.0" if number < 4 else "6.12.0"
                record["id"] = f"{number}-{record['id']}"
            return change

        names = [shutil.copytree(self.copy(f"swept{k}", 1, at(k)) / "runs", self.folder / f"c{k}") for k in range(8)]
        out, _ = self.gate("--history", *names, "--json")
        self.assertIn("at c4: unlike systems: kernel (c3: 6.1.0; c4: 6.12.0)", json.loads(out)["warnings"])
        for path in list(names[-1].iterdir()):
            record = json.loads(path.read_text())
            if record["precision"] == "bf16":
                path.unlink()
        out, _ = self.gate("--history", *names, "--json", expect=3)
        self.assertIn("it lacks ranks 1 precision=bf16", " ".join(json.loads(out)["warnings"]))

    def test_history_of_a_folder_is_in_the_order_of_commits(self):
        def of_commit(number):
            def change(record):
                record["build"].update(revision=f"{number:040x}", committed_at=f"2026-01-{number + 1:02}T00:00:00Z")
                record["id"] = f"{number}-{record['id']}"
                record["started_at"] = record["created_at"] = f"2026-02-{8 - number:02}T00:00:00Z"  # the newest was measured first
                of_level(record)
            of_level = self.of_level(2 if number < 4 else 1)
            return change

        (self.folder / "all").mkdir()
        for number in range(8):
            for record in (self.copy(f"b{number}", 1, of_commit(number)) / "runs").glob("*.json"):
                record.rename(self.folder / "all" / f"{7 - number}-{record.name}")
        out, _ = self.gate("--history", "all", "--json")
        history = json.loads(out)
        self.assertEqual([word["label"][-1] for word in history["sets"]], list("01234567"))
        self.assertEqual(history["changes"][0]["at"], history["sets"][4]["label"])
        # A commit without a time stands where it was measured, and reorders no others.
        records = {path: json.loads(path.read_text()) for path in sorted((self.folder / "all").iterdir())}

        def rewrite(number, change):
            for path, record in records.items():
                if record["build"]["revision"] == f"{number:040x}":
                    change(record)
                    path.write_text(json.dumps(record))

        rewrite(2, lambda record: record["build"].update(committed_at=None))
        out, _ = self.gate("--history", "all", "--json")
        self.assertEqual([word["label"] for word in json.loads(out)["sets"]], [word["label"] for word in history["sets"]])
        self.assertRegex(json.loads(out)["warnings"][0], r"without the time of their commits, .*: revision=0+2$")
        # Failed launches of one folder are those of their build.
        failing = [path for path, record in records.items() if record["build"]["revision"] == f"{7:040x}"]

        def fail(path):
            record = json.loads(path.read_text())
            record["status"], record["reason"] = "invalid", "a loss that is not finite"
            path.write_text(json.dumps(record))

        fail(failing[0])
        out, _ = self.gate("--history", "all", "--json", expect=3)
        self.assertIn("launches that did not end well: 1 of revision=" + f"{7:040x} (invalid)", json.loads(out)["warnings"])
        self.gate("--history", "all", "--json", "--allow_failed", "1")
        for path in failing[1:]:
            fail(path)
        _, err = self.gate("--history", "all", expect=4)
        self.assertIn("nothing to judge of the newest build", err)

    def test_history_names_dips_and_drifts(self):
        names = [self.copy(f"d{k}", 1, self.of_level(0.2 if k in (4, 5) else 1 + 0.001 * (k % 3))) for k in range(10)]
        out, _ = self.gate("--history", *names, "--output", "dip.json")
        self.assertEqual(self.read("dip.json")["newest"]["since"], "d6")
        change, = self.read("dip.json")["changes"]
        self.assertEqual((change["kind"], change["at"], change["until"]), ("dip", "d4", "d5"))
        self.assertAlmostEqual(change["change_percent"], -80, delta=0.2)
        self.assertRegex(out, r"d4 .* -80\.0 % \(p = 0\.0\d+\), dip until d5\n")
        names = [self.copy(f"e{k}", 1, self.of_level(0.9 ** k + 0.001 * (k % 3))) for k in range(8)]
        out, _ = self.gate("--history", *names, "--output", "drift.json", expect=3)
        record = self.read("drift.json")
        self.assertEqual(record["changes"], [])
        self.assertAlmostEqual(record["drift"]["change_percent"], 100 * (0.9 ** 7 - 1), delta=2)
        self.assertIn("from the first set to the last", out)

    def test_words_that_are_wrong(self):
        sweep = self.sweep
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
        (self.folder / "plan.json").write_text(json.dumps({"settings": PLAN["settings"]}))
        _, err = self.gate(*plan, "--base", BINARY, "--new", BINARY, "--pairs", "6", expect=2)
        self.assertIn("at least 7 can", err)
        _, err = self.gate(*plan, "--base", BINARY, "--new_set", "sed=3", expect=2)
        self.assertIn("scalemark: --new_set sed: unknown key; did you mean seed?", err)
        _, err = self.run_program(*mpirun(2, SCALEMARK, "gate", sweep, sweep), expect=2)
        self.assertIn("start it once", err)


if __name__ == "__main__":
    main()
