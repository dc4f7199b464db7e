"""lab/gate_study: its rules on launches made by hand, its statistics on published values, its table."""

import importlib.machinery
import importlib.util
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = SOURCE / "lab/gate_study"
loader = importlib.machinery.SourceFileLoader("gate_study", str(SCRIPT))
sys.dont_write_bytecode = True
gate_study = importlib.util.module_from_spec(importlib.util.spec_from_loader("gate_study", loader))
loader.exec_module(gate_study)


def session(new_over_base, n=10, verdict="pass"):
    base = [100 + k for k in range(n)]
    return {"case": "none", "verdict": verdict, "pairs": n, "slowdown_percent": 100 * (1 - new_over_base), "base": base,
            "new": [rate * new_over_base for rate in base]}


class Statistics(unittest.TestCase):
    def test_mann_whitney_counts_orders(self):
        for n, m in ((3, 4), (5, 5)):
            x = [2.5 * k for k in range(n)]
            y = [0.3 + 1.7 * k for k in range(m)]
            values = sorted(x + y)
            u = sum(a > b for a in x for b in y)
            low = min(u, n * m - u)
            extreme = total = 0
            for chosen in itertools.combinations(range(n + m), n):
                rest = [i for i in range(n + m) if i not in chosen]
                v = sum(values[i] > values[k] for i in chosen for k in rest)
                extreme += v <= low
                total += 1
            self.assertAlmostEqual(gate_study.mann_whitney_p(x, y), min(1, 2 * extreme / total))

    def test_clopper_pearson(self):  # Clopper and Pearson 1934; R's binom.test
        for successes, trials, low, high in ((0, 150, 0, 0.02429), (3, 20, 0.03207, 0.37893), (20, 20, 0.83157, 1)):
            found = gate_study.clopper_pearson(successes, trials)
            self.assertAlmostEqual(found[0], low, 4)
            self.assertAlmostEqual(found[1], high, 4)


class Rules(unittest.TestCase):
    def alarms(self, *arguments, **options):
        made = session(*arguments, **options)
        return {name for name, rule in gate_study.RULES.items() if rule(made)}

    def test_each_rule_at_its_limit(self):
        self.assertEqual(self.alarms(1.0), set())
        self.assertEqual(self.alarms(0.99), set())
        self.assertEqual(self.alarms(0.945), {"first pair, 5 %", "means, 5 %", "compare.py", "asv, 1.05"})
        self.assertEqual(self.alarms(0.90), {"first pair, 5 %", "means, 5 %", "compare.py", "asv, 1.1", "asv, 1.05"})
        self.assertEqual(self.alarms(1.2), set())
        self.assertEqual(self.alarms(1.0, n=14, verdict="regressed"), {"scalemark gate"})
        self.assertEqual(self.alarms(1.0, verdict="regressed"), {"scalemark gate"})

    def test_outcomes(self):
        def outcomes(**options):
            made = session(1.0, **options)
            return {name for name, outcome in gate_study.OUTCOMES.items() if outcome(made)}

        self.assertEqual(outcomes(n=14, verdict="regressed"), {"regressed"})
        self.assertEqual(outcomes(n=10, verdict="regressed"), {"regressed by 10 pairs", "regressed"})
        self.assertEqual(outcomes(), {"pass"})
        self.assertEqual(outcomes(n=20, verdict="inconclusive"), {"inconclusive"})

    def test_cases_in_the_order_of_the_table(self):
        cases = ["all:10", "none/launches", "one:5", "all:2", "all:5/launches", "none", "one:2"]
        self.assertEqual(sorted(cases, key=gate_study.order_of),
                         ["none", "all:2", "all:10", "one:2", "one:5", "none/launches", "all:5/launches"])

    def test_slowdowns_are_shares_of_the_slower_step(self):
        self.assertIsNone(gate_study.work_of("none", 0.019, None))
        self.assertEqual(gate_study.work_of("all:5", 0.019, 1), "inject=busy:milliseconds=1.0000")
        self.assertEqual(gate_study.work_of("one:5", 0.019, 0.8), "inject=busy:rank=1:milliseconds=1.2500")


class Program(unittest.TestCase):
    def run_script(self, *words, expect=0):
        done = subprocess.run([sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stdout + done.stderr

    def test_the_table_and_what_is_refused(self):
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "study.json"
            study = gate_study.read(path)
            study["sessions"] = [session(1.0) for _ in range(9)] + [session(0.9, verdict="regressed")]
            path.write_text(json.dumps(study))
            self.assertIn("| none | 10 | 1.00 % | 0.00 % | 10.0 | 10.0 [0.3, 44.5] | 10.0 [0.3, 44.5] |", self.run_script("table", path))
            self.assertIn("neither none", self.run_script("measure", path, "--case", "some:5", expect=2))
            self.assertIn("no such file", self.run_script("table", path.with_name("absent"), expect=2))
            path.write_text("{}")
            self.assertIn("no file of this script", self.run_script("table", path, expect=6))

    def test_a_file_goes_on_with_its_plan_whatever_is_said_of_it(self):
        with tempfile.TemporaryDirectory() as name:
            path, plan = pathlib.Path(name) / "study.json", pathlib.Path(name) / "plan.json"
            path.write_text(json.dumps(gate_study.read(path)))
            changed = json.loads(gate_study.PLAN.read_text()) | {"description": "In other words."}
            plan.write_text(json.dumps(changed))
            self.assertEqual(gate_study.read(path, plan)["sessions"], [])
            plan.write_text(json.dumps(changed | {"repeats": 99}))
            self.assertIn("measured with another plan.json", self.run_script("measure", path, "--plan", plan, expect=6))

    def test_the_published_tables_are_those_of_the_files(self):
        tables = self.run_script("table", *sorted((SOURCE / "results/baselines").glob("gate-study*.json")))
        published = (SOURCE / "docs/gate.md").read_text()
        for part in tables.split("\n\n"):
            self.assertIn(part.strip(), published)


if __name__ == "__main__":
    unittest.main()
