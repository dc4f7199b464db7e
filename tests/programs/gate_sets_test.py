"""scalemark gate on result sets: a sweep, and copies of it whose difference is known."""

import json
import shutil

from measured_sweep import PLAN, REPEATS, MeasuredSweepTest
from support import BINARY, SCALEMARK, main, mpirun


class Sets(MeasuredSweepTest):
    def gate(self, *words, expect=0):
        return self.run_program(SCALEMARK, "gate", *words, expect=expect)

    def verdict(self, *words, expect):
        return self.record_of("gate", *words, expect=expect)

    def test_a_regression_is_found_and_attributed(self):
        def slow_bf16(record):
            if record["precision"] == "bf16":
                record["throughput"]["mean"] /= 10
                record["wall_seconds"] *= 10

        record = self.verdict(f"old={self.sweep}", f"new={self.copy('slow', 1, slow_bf16)}", expect=1)
        self.assertEqual((record["verdict"], record["design"]["mode"], record["repeats"]), ("regressed", "samples", REPEATS))
        self.assertEqual({point["settings"]["precision"]: point["regressed"] for point in record["points"]},
                         {"bf16": True, "fp32": False})
        self.assertAlmostEqual(record["points"][0]["slowdown_percent"], 90)
        self.assertIn("measured apart", record["warnings"][0])

    def test_the_same_as_pairs_passes(self):
        record = self.verdict(self.sweep, f"new={self.copy('same')}", "--paired", expect=0)
        self.assertEqual((record["verdict"], record["slowdown_percent"], record["p"]), ("pass", 0, 1))
        self.assertEqual(record["points"][0]["p"], None)

    def test_a_point_that_is_missing_or_a_machine_that_differs_is_refused(self):
        def no_bf16(record):
            if record["precision"] == "bf16":
                record["status"], record["reason"] = "failed", "made"

        part = self.folder / "part"
        shutil.copytree(self.copy("swept", 1, no_bf16) / "runs", part)
        _, err = self.gate(self.sweep, part, expect=2)
        self.assertIn("has no launch with ranks 1 precision=bf16", err)

        def other_cpu(record):
            record["system"]["cpu_model"] = "another CPU"

        other = self.copy("other", 1, other_cpu)
        _, err = self.gate(self.sweep, other, "--paired", expect=2)
        self.assertIn("cpu_model (sweep: ", err)
        record = self.verdict(self.sweep, other, "--paired", "--other_machine", expect=0)
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
        self.assertEqual(self.verdict("b.json", self.sweep, "--paired", expect=0)["slowdown_percent"], 0)
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
        self.assertIn(f"| c6 | {2 * REPEATS} | 0.8", (self.folder / "h.md").read_text())
        self.assertRegex(out, rf"c6 +{2 * REPEATS} +0\.8\d+ +-20\.0 % \(p = 0\.0\d+\)")
        self.assertEqual((change["kind"], change["until"]), ("step", None))
        self.assertRegex(out, r"sets of one level differ by 0\.\d\d % \(their launches make \d+\.\d\d %\)")
        self.assertRegex(out, r"Sets that a step needs: 1 % .*, 2 % .*, 5 % .*, 10 % \w")
        out, _ = self.gate("--history", *names[:6], "--json")
        self.assertEqual(json.loads(out)["changes"], [])
        _, err = self.gate("--history", *names[:5], expect=2)
        self.assertIn("give 6 or more", err)

    def test_history_names_dips_and_drifts(self):
        names = [self.copy(f"d{k}", 0.2 if k in (4, 5) else 1 + 0.001 * (k % 3)) for k in range(10)]
        out, _ = self.gate("--history", *names, "--output", "dip.json")
        change, = self.read("dip.json")["changes"]
        self.assertEqual((change["kind"], change["at"], change["until"]), ("dip", "d4", "d5"))
        self.assertAlmostEqual(change["change_percent"], -80, delta=0.2)
        self.assertRegex(out, r"d4 .* -80\.0 % \(p = 0\.0\d+\), dip until d5\n")
        names = [self.copy(f"e{k}", 0.9 ** k + 0.001 * (k % 3)) for k in range(8)]
        out, _ = self.gate("--history", *names, "--output", "drift.json")
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
        _, err = self.run_program(*mpirun(2, SCALEMARK, "gate", sweep, sweep), expect=2)
        self.assertIn("start it once", err)


if __name__ == "__main__":
    main()
