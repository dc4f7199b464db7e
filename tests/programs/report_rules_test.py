"""Each rule of the report's verdict: data that triggers it and data that does not; and docs/report.md lists them all.
Needs Python with matplotlib alone."""
import re
import unittest

from report_records import SOURCE, collected, curve, point, record, run, with_runs
from reporting.finding import BAD, GOOD, HINT, LIKELY, NOTE, SURE
from reporting.rules import verdict

BASE = point(1, 100.0)


def findings(*records):
    return {finding.rule: finding for finding in verdict(collected(*records))}


def sentence(parts):
    return "".join(part if isinstance(part, str) else part.text for part in parts)


class OfACurve(unittest.TestCase):
    def test_scales(self):
        found = findings(curve(BASE, point(4, 388.0)))["scales"]
        self.assertEqual((found.weight, found.sure), (GOOD, SURE))
        self.assertEqual(sentence(found.says), "Scales to 4 ranks.")
        self.assertIn("97.0 %", sentence(found.why))
        number = next(part for part in found.why if getattr(part, "text", "") == "97.0 %")
        self.assertEqual((number.href, number.pointer), ("0-scaling.json", "/points/1/efficiency"))
        self.assertEqual(findings(curve(BASE, point(4, 388.0), repeat_unit="in_process"))["scales"].sure, LIKELY)
        found = findings(curve(BASE, point(4, 240.0)))["scales"]
        self.assertEqual((found.weight, sentence(found.says)), (BAD, "Does not scale well to 4 ranks: 40.0 % of the ideal is lost."))

    def test_scales_is_not_said_where_no_interval_shows_it(self):
        for last in (point(4, 388.0, half=0.2), point(4, 340.0, half=0.2), point(4, 388.0, efficiency_ci95=None)):
            found = findings(curve(BASE, last))["scales"]
            self.assertEqual((found.weight, found.sure), (NOTE, HINT))
            self.assertIn("neither shown nor excluded", sentence(found.says))
        self.assertNotIn("scales", findings(curve(BASE)))  # one point is no curve

    def test_link(self):
        exposed = {"baseline_throughput": 380.0, "exposed_seconds": 0.037, "exposed_ci95": [0.03, 0.04]}
        found = findings(curve(BASE, point(4, 240.0, **exposed)))["link"]
        self.assertEqual((found.weight, found.sure), (BAD, SURE))
        self.assertIn("36.8 %", sentence(found.why))
        self.assertIn("--wire_dtype bf16", found.try_next[0])
        tries = " ".join(findings(curve(BASE, point(4, 240.0, **exposed), wire_dtype="bf16", overlap="none"))["link"].try_next)
        self.assertNotIn("--wire_dtype", tries)
        self.assertIn("--overlap backward", tries)
        exposed["exposed_ci95"] = [-0.01, 0.08]
        self.assertEqual(findings(curve(BASE, point(4, 240.0, **exposed)))["link"].sure, HINT)
        self.assertNotIn("link", findings(curve(BASE, point(4, 375.0, **exposed))))
        self.assertNotIn("link", findings(curve(BASE, point(4, 240.0))))  # nobody measured it

    def test_link_without_a_baseline_by_the_waiting_of_a_run(self):
        made = curve(BASE, point(2, 150.0, exposed_seconds=0.02, exposed_ci95=[0.019, 0.021]))
        self.assertIn("link", findings(*with_runs(made, run())))
        made["points"][-1]["exposed_seconds"] = 0.002
        self.assertNotIn("link", findings(*with_runs(made, run())))

    def test_small_batch(self):
        made = curve(BASE, point(2, 100.0, baseline_throughput=190.0))
        longer = run(communication={"total_seconds": 0.08, "exposed_seconds": 0.05})
        shorter = run(communication={"total_seconds": 0.03, "exposed_seconds": 0.02})
        found = findings(*with_runs(made, longer))["small_batch"]
        self.assertIn("80.00 ms of a step of 100.0 ms, with 8 samples per rank", sentence(found.why))
        self.assertNotIn("small_batch", findings(*with_runs(made, shorter)))

    def test_host(self):
        found = findings(curve(BASE, point(4, 240.0, baseline_throughput=250.0)))["host"]
        self.assertIn("62.5 %", sentence(found.why))
        self.assertEqual(found.sure, LIKELY)
        self.assertNotIn("host", findings(curve(BASE, point(4, 240.0, baseline_throughput=392.0))))

    def test_small_share_in_strong_scaling(self):
        points = BASE, point(4, 240.0, baseline_throughput=250.0)
        found = findings(curve(*points, scaling="strong"))
        self.assertIn("small_share", found)
        self.assertNotIn("host", found)
        self.assertNotIn("small_share", findings(curve(*points)))

    def test_dip(self):
        low = point(2, 120.0, trend={"dip": True, "expected_efficiency": 0.95})
        self.assertEqual(sentence(findings(curve(BASE, low, point(4, 380.0)))["dip"].says),
                         "A dip at 2 ranks: worse than both neighbours suggest.")
        low["trend"]["dip"] = False
        self.assertNotIn("dip", findings(curve(BASE, low, point(4, 380.0))))

    def test_better_than_ideal(self):
        self.assertIn("better_than_ideal", findings(curve(BASE, point(2, 230.0))))
        self.assertNotIn("better_than_ideal", findings(curve(BASE, point(2, 202.0))))
        self.assertNotIn("better_than_ideal", findings(curve(BASE, point(2, 230.0, half=0.3))))

    def test_noise(self):
        self.assertIn("At 2 ranks", sentence(findings(curve(BASE, point(2, 190.0, half=0.2)))["noise"].why))
        self.assertNotIn("noise", findings(curve(BASE, point(2, 190.0, half=0.05))))

    def test_a_straggler_among_the_runs_of_the_largest_point(self):
        slow = run()
        slow["ranks"][1].update(straggler=True, step_seconds_mean=0.13)
        made = with_runs(curve(BASE, point(2, 150.0)), slow)
        self.assertEqual(findings(*made)["straggler"].about, "resnet50 fp32 weak")
        made = with_runs(curve(BASE, point(2, 150.0), kernels="torch"), slow)
        self.assertEqual(findings(*made)["straggler"].about, "resnet50 fp32 weak, torch kernels")
        self.assertNotIn("straggler", findings(*with_runs(curve(BASE, point(2, 150.0)), run())))


class OfRuns(unittest.TestCase):
    def test_straggler(self):
        slow = run(3)
        slow["ranks"][2].update(straggler=True, step_seconds_mean=0.205, host="n7")
        found = findings(slow, run(3))["straggler"]
        self.assertEqual(sentence(found.says), "A straggler: rank 2 on n7 holds the others up.")
        self.assertEqual(sentence(found.why), "It computes 200.0 ms a step, the fastest rank 95.00 ms; in 1 of 2 runs with several ranks.")
        self.assertEqual(found.sure, HINT)
        self.assertNotIn("straggler", findings(run(3)))
        replicas = record("inference", model="m", world_size=2, ranks=[{"rank": 1, "host": "n7", "straggler": True}])
        self.assertEqual(sentence(findings(replicas)["straggler"].why), "In 1 of 1 runs with several ranks.")

    def test_input_and_checkpoint(self):
        for rule in "input", "checkpoint":
            slow = run()
            slow["phases"]["fractions"][rule] = 0.3
            self.assertIn("30.0 %", sentence(findings(slow, run())[rule].why))
            self.assertNotIn(rule, findings(run()))

    def test_drift(self):
        drift = {"verdict": "slower", "change": -0.12, "ci95": [-0.2, -0.05], "p": 0.001}
        self.assertIn("became slower", sentence(findings(run(windows={"drift": drift}))["drift"].says))
        self.assertNotIn("drift", findings(run(windows={"drift": {**drift, "verdict": "steady"}})))

    def test_diverged(self):
        self.assertIn("diverged", findings(run(loss={"first": 7.0, "last": 60.0, "diverged": True})))
        self.assertNotIn("diverged", findings(run()))


class OfOthers(unittest.TestCase):
    def server(self, **keys):
        return record("inference", model="resnet50", precision="fp32", latency_seconds={"p50": 0.01, "p99": 0.02}, server={
            "arrival_rate": 100.0, "latency_quantile": 0.99, "latency_at_quantile_seconds": 0.02, "latency_bound_seconds": 0.03,
            "ended_by": "all_served", "holds": True, **keys})

    def test_server(self):
        self.assertEqual(findings(self.server())["server"].weight, GOOD)
        found = findings(self.server(holds=False, ended_by="overload"))["server"]
        self.assertEqual(found.weight, BAD)
        self.assertIn("grew without end", sentence(found.why))
        self.assertNotIn("server", findings(self.server(holds=None)))

    def test_tail(self):
        self.assertIn("tail", findings(record("inference", latency_seconds={"p50": 0.01, "p99": 0.05})))
        self.assertNotIn("tail", findings(record("inference", latency_seconds={"p50": 0.01, "p99": 0.02})))

    def test_neighbours(self):
        def jobs(efficiency):
            return record("instances", job="run", model="resnet50", unit="images/sec", points=[
                {"instances": 1, "efficiency": 1.0, "cumulative": {"mean": 10.0}},
                {"instances": 2, "efficiency": efficiency, "cumulative": {"mean": 20 * efficiency}}])
        self.assertEqual(findings(jobs(0.8))["neighbours"].weight, BAD)
        self.assertEqual(findings(jobs(0.99))["neighbours"].weight, GOOD)

    def test_compared(self):
        def comparison(verdict):
            return record("comparison", metric="throughput", base="a", points=[
                {"set": "b", "ranks": 2, "difference_percent": -12.0, "interval_percent": [-13, -11], "p_adjusted": 0.01,
                 "repeats": 3, "repeats_needed": 5, "verdict": verdict}])
        self.assertEqual(sentence(findings(comparison("slower"))["compared"].says), "b is slower at 1 of 1 points.")
        self.assertEqual(findings(comparison("faster"))["compared"].weight, GOOD)
        self.assertIn("5 are needed", sentence(findings(comparison("too few launches"))["compared"].why))
        self.assertNotIn("compared", findings(comparison("no difference shown")))

    def test_gate(self):
        for word, weight in (("regressed", BAD), ("pass", GOOD), ("inconclusive", NOTE)):
            self.assertEqual(findings(record("verdict", verdict=word, slowdown_percent=1.0))["gate"].weight, weight)
        self.assertNotIn("gate", findings(record("verdict", verdict=None)))

    def test_history(self):
        change = {"kind": "step", "at": "c6", "change_percent": -15.0, "p": 0.001}
        self.assertIn("a step at c6", sentence(findings(record("history", changes=[change]))["history"].says))
        self.assertNotIn("history", findings(record("history", changes=[])))

    def test_projected(self):
        def errors(points, inside):
            return record("projection", curve={"model": "resnet50"}, errors={"points": points, "in_band": inside, "model_percent": 4.0})
        self.assertEqual(findings(errors(2, 2))["projected"].weight, NOTE)
        self.assertEqual(findings(errors(2, 1))["projected"].weight, BAD)
        self.assertNotIn("projected", findings(errors(0, 0)))

    def test_study(self):
        def study(*verdicts):
            figures = [{"name": f"gain {i}", "unit": "percent", "verdict": verdict} for i, verdict in enumerate(verdicts)]
            return record("study", study="links", title="Links", evidence="stand_in", figures=figures)
        found = findings(study("shown", "shown", None))["study"]
        self.assertEqual((found.weight, found.sure), (GOOD, SURE))
        self.assertIn("2 of 2 figures", sentence(found.why))
        self.assertIn("a stand-in", found.because)
        found = findings(study("shown", "not shown"))["study"]
        self.assertEqual((found.weight, found.sure), (NOTE, HINT))
        self.assertIn("gain 1: not shown", sentence(found.why))
        self.assertEqual(findings(study("opposite"))["study"].weight, BAD)
        self.assertNotIn("study", findings(study(None)))

    def test_preflight(self):
        def checks(status):
            return record("preflight", verdict=status, checks=[{"name": "gemm.fp32", "status": status, "host": "n3", "message": "slow"}])
        self.assertEqual(sentence(findings(checks("fail"))["preflight"].says), "Preflight failed: 1 check on n3.")
        self.assertNotIn("preflight", findings(checks("warn")))


class Sections(unittest.TestCase):
    def test_one_that_cannot_be_drawn_says_so(self):
        from reporting.sections import all_curves, sections

        def broken(*_):
            return {}["<key>"]
        made = sections(None, collected(run()), (broken, all_curves))
        self.assertEqual([section.id for section in made], ["broken", "records"])
        self.assertIn("KeyError: '<key>'", made[0].note)


class Documentation(unittest.TestCase):
    def test_every_rule_is_in_the_table_and_has_a_test(self):
        text = (SOURCE / "scripts/reporting/rules.py").read_text()
        rules = set(re.findall(r'Finding\(\s*"(\w+)"', text)) | set(re.findall(r'(?:of_computing|phase_share)\(\w+, (?:"\w+", )?"(\w+)"', text))
        self.assertGreater(len(rules), 18)
        page = (SOURCE / "docs/report.md").read_text()
        self.assertEqual(set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)), rules)
        tests = (SOURCE / "tests/programs/report_rules_test.py").read_text()
        for rule in rules:
            self.assertIn(f'"{rule}"', tests)


if __name__ == "__main__":
    unittest.main()
