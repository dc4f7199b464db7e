"""scalemark compare on real records, and on copies of them whose difference is known."""

import json
import math
import os
import shutil
import statistics
import unittest
import uuid

from made_records import times
from measured_sweep import MeasuredSweepTest
from support import SCALEMARK, SOURCE, main, mpirun, scaled

CPUS = sorted(os.sched_getaffinity(0))
BASELINES = SOURCE / "results/baselines"


class CompareTest(MeasuredSweepTest):
    def compare(self, *words, expect=0):
        return self.run_program(SCALEMARK, "compare", *words, expect=expect)

    def record(self, *words):
        return self.record_of("compare", *words)


class Launches(CompareTest):
    def test_a_known_factor_is_found(self):
        record = self.record(f"old={self.sweep}", f"new={self.copy('ten', 10)}")
        self.assertEqual([point["settings"] for point in record["points"]], [{"precision": "bf16"}, {"precision": "fp32"}])
        for point in record["points"]:
            self.assertAlmostEqual(point["difference_percent"], 900, 2)
            self.assertEqual((point["design"], point["repeat_unit"], point["base_repeats"], point["repeats"]),
                             ("two_sample", "launch", 6, 6))
            self.assertAlmostEqual(point["p"], 2 / 924)
            self.assertAlmostEqual(point["p_adjusted"], 4 / 924)
            self.assertEqual(point["verdict"], "faster")
            low, high = point["interval_percent"]
            self.assertTrue(0 < low < 900 < high, point)
        self.assertEqual((record["base"], record["unmatched"]), ("old", []))
        # What the machine did while the sweep was measured may be told, and nothing else is.
        self.assertEqual([warning for warning in record["warnings"] if "has a trend" not in warning], [])

    def test_the_same_twice_is_no_difference(self):
        record = self.record(self.sweep, self.copy("again", 1))
        for point in record["points"]:
            self.assertAlmostEqual(point["difference_percent"], 0, 4)
            self.assertGreater(point["p"], 0.9)
            self.assertEqual(point["verdict"], "no difference shown")
            self.assertGreater(point["minimum_detectable_percent"], 0)

    def test_three_sets_in_one_table(self):
        out, err = self.compare(f"base={self.sweep}", f"half={self.copy('half', 0.1)}", f"same={self.copy('same', 1)}")
        self.assertEqual(err, "")
        self.assertIn("half against base: images/sec, n launches\n", out)
        self.assertRegex(out, r"1 precision=fp32 +6 +[\d.]+ +[\d.]+ +-90\.0 % +\[-9\d\.\d, -\d\d\.\d\] % +0\.0087 +[\d.]+ % +slower\n")
        self.assertRegex(out, r"1 precision=fp32 .* [+-]0\.0 % .* no difference shown\n")
        markdown, _ = self.compare(f"base={self.sweep}", self.folder / "half", "--markdown")
        self.assertRegex(markdown, r"\| 1 precision=fp32 \| 6 \| .* \| slower \|\n")

    def test_one_sweep_is_divided_into_pairs(self):
        record = self.record(self.sweep, "--by", "precision=fp32,bf16")
        point, = record["points"]
        self.assertEqual((record["base"], point["set"], point["design"], point["repeats"]),
                         ("precision=fp32", "precision=bf16", "paired", 6))
        self.assertEqual(record["varied"], ["precision"])
        self.assertAlmostEqual(point["interval_confidence"], 1 - 2 / 64)
        self.compare(self.sweep, "--by", "precision=fp32,fp64", expect=2)

    def test_few_launches_give_no_interval(self):
        paths = sorted((self.sweep / "runs").iterdir())
        fast = [path for path in paths if json.loads(path.read_text())["precision"] == "fp32"][:3]
        for name, factor in (("a", 1), ("b", 10)):
            (self.folder / name).mkdir()
            for path in fast:
                (self.folder / name / path.name).write_text(json.dumps(scaled(json.loads(path.read_text()), factor)))
        point, = self.record("a", "b")["points"]
        self.assertAlmostEqual(point["p"], 2 / 20)
        self.assertIsNone(point["interval_percent"])
        out, _ = self.compare("a", "b")
        self.assertIn("too few launches (n=3; 5 needed)", out)

    def test_latency_of_inference(self):
        self.run_program(SCALEMARK, "infer", "--model", "trivial", "--batch_size", "4", "--num_batches", "200", "--output", "i.json")
        record = json.loads((self.folder / "i.json").read_text())
        for name, factor in (("a", 1), ("b", 1.25)):
            (self.folder / name).mkdir()
            for k in range(5):
                (self.folder / name / f"{k}.json").write_text(json.dumps(scaled(record, factor * (1 + 0.001 * k))))
        point, = self.record("a", "b", "--metric", "latency_p50")["points"]
        self.assertAlmostEqual(point["difference_percent"], -20)
        self.assertEqual((point["unit"], point["verdict"]), ("seconds", "faster"))
        _, err = self.compare("a", "b", "--metric", "joules_per_sample", expect=2)
        self.assertIn("a: no record of kind run with status ok; 5 records of kind inference", err)


def shift_between(a, b):
    """That leaves no difference of means, where values count as no farther from the common median than twice the median distance from
    the median of their own set; of fewer than five nothing is far."""
    away = statistics.median(abs(value - statistics.median(values)) for values in (a, b) for value in values)
    most = math.inf if min(len(a), len(b)) < 5 else 2 * away

    def left(shift):
        values = [*a, *(value - shift for value in b)]
        middle = statistics.median(values)
        near = [min(max(value, middle - most), middle + most) for value in values]
        return statistics.fmean(near[len(a):]) - statistics.fmean(near[:len(a)])

    low, high = min(b) - max(a), max(b) - min(a)
    for _ in range(60):
        half = (low + high) / 2
        low, high = (half, high) if left(half) > 0 else (low, half)
    return half


class Curves(CompareTest):
    def test_rounds_are_compared_with_a_warning(self):
        self.run_program(*mpirun(2, SCALEMARK, "scale", "--model", "trivial", "--batch_size", "4", "--num_batches", "20", "--ranks",
                                 "1,2", "--repeats", "2", "--output", "c.json"))
        curve = json.loads((self.folder / "c.json").read_text())
        (self.folder / "d.json").write_text(json.dumps(scaled(curve, 1.187)))
        record = self.record("c.json", "d.json")
        self.assertEqual([point["ranks"] for point in record["points"]], [1, 2])
        for point in record["points"]:
            self.assertAlmostEqual(point["difference_percent"], 18.7)
            self.assertEqual((point["repeat_unit"], point["verdict"]), ("in_process", "too few launches"))
        self.assertEqual(sum("within one launch" in warning for warning in record["warnings"]), 1)

    def test_published_curves_differ_in_what_they_vary(self):
        paths = [BASELINES / f"resnet50-1gbit-{overlap}.json" for overlap in ("none", "backward")]
        _, err = self.compare(*paths, expect=2)
        self.assertIn("overlap (resnet50-1gbit-none: none; resnet50-1gbit-backward: backward)", err)
        self.assertIn("--varied overlap", err)
        points = self.record(*paths, "--varied", "overlap")["points"]
        curves = [{p["ranks"]: p for p in json.loads(path.read_text())["points"]} for path in paths]
        for point in points:
            base, other = (curve[point["ranks"]] for curve in curves)
            self.assertAlmostEqual(point["base_value"], base["throughput"])
            self.assertAlmostEqual(point["value"], other["throughput"])
            logs = [[math.log(repeat["units"] / repeat["seconds"]) for repeat in p["repeats"] if not repeat["baseline"]]
                    for p in (base, other)]
            self.assertAlmostEqual(point["difference_percent"], 100 * math.expm1(shift_between(*logs)))


class Questions(CompareTest):
    def of_ranks(self, name, efficiency):
        """Copies of a run as launches on 1 and 2 ranks, one of each alone after the other."""
        run = json.loads(next((self.sweep / "runs").iterdir()).read_text())
        (self.folder / name).mkdir()
        for k in range(6):
            for ranks in (1, 2):
                # No two sets tell the same to the last digit: that would be a copy.
                record = scaled(run, (1 + 0.001 * k + 1e-8 * ord(name[-1])) * (1 if ranks == 1 else 2 * efficiency))
                record["world_size"] = ranks
                record["global_batch_size"] = ranks * record["batch_size_per_rank"]
                record["ranks"] = [{**record["ranks"][0], "rank": rank} for rank in range(ranks)]
                record["placement"][0]["ranks"] = ranks
                (self.folder / name / f"{k}-{ranks}.json").write_text(json.dumps(record))
        return name

    def test_efficiency_stands_beside_throughput(self):
        record = self.record(self.of_ranks("a", 0.9), self.of_ranks("b", 0.8))
        self.assertEqual([(point["ranks"], point["unit"]) for point in record["points"]], [(1, "images/sec"), (2, "images/sec")])
        further, = record["further"]
        point, = further["points"]
        self.assertEqual((further["metric"], further["better"], point["ranks"], point["verdict"]),
                         ("efficiency", "higher", 2, "lower"))
        self.assertAlmostEqual(point["difference_percent"], 100 * (0.8 / 0.9 - 1))
        self.assertAlmostEqual(point["value"], 0.8)
        self.assertEqual(self.record("a", "b", "--metric", "throughput")["further"], [])
        chosen = self.record("a", "b", "--metric", "efficiency,throughput_per_rank")
        self.assertEqual((chosen["metric"], chosen["further"][0]["metric"]), ("efficiency", "throughput_per_rank"))

    def test_equivalence_is_a_verdict(self):
        quiet = [self.of_ranks(name, 1) for name in "ab"]
        for words in ("2", "2%"):
            record = self.record(*quiet, "--equivalent", words)
            self.assertEqual(record["equivalent_percent"], 2)
            for point in record["points"]:
                self.assertLess(point["p_equivalent"], 0.05)
                self.assertEqual((point["verdict"], point["repeats_for_equivalence"]), ("equivalent within 2 %", None))
        point = self.record(*quiet, "--equivalent", "0.1")["points"][0]
        self.assertEqual(point["verdict"], "no difference shown")
        self.assertGreater(point["repeats_for_equivalence"], 6)
        for words in ("0", "100", "x", "2%%", "-1"):
            _, err = self.compare(*quiet, "--equivalent", words, expect=2)
            self.assertIn("--equivalent", err)

    def test_pairs_are_of_one_repeat(self):
        other = self.copy("other", 2)
        journal = (other / "journal.jsonl").read_text().splitlines(keepends=True)
        entries = [json.loads(line) for line in journal]
        kept = [line for line, entry in zip(journal, entries) if entry.get("repeat") != 3]
        self.assertLess(len(kept), len(journal))
        (other / "journal.jsonl").write_text("".join(kept))
        record = self.record(f"a={self.sweep}", f"b={other}", "--paired")
        for point in record["points"]:
            self.assertEqual((point["design"], point["repeats"]), ("paired", 5))
            self.assertAlmostEqual(point["difference_percent"], 100, 3)
        self.assertIn("without a partner in b, and left out: repeat 3", " ".join(record["warnings"]))

    def test_sets_apart_in_time_are_named(self):
        def later(record):
            record["created_at"] = "2999" + record["created_at"][4:]

        record = self.record(f"a={self.sweep}", f"b={self.copy('later', 1, later)}")
        self.assertTrue(any(warning.startswith("all launches of a ") for warning in record["warnings"]), record["warnings"])

    def test_one_set_is_divided_by_several_keys(self):
        def reducer(record):
            record["config"]["reducer"] = {"value": "c10d", "origin": "command_line"}

        both = self.folder / "both"
        shutil.copytree(self.sweep / "runs", both)
        for path in (self.copy("other", 1, reducer) / "runs").iterdir():
            shutil.copy(path, both / f"other-{path.name}")
        record = self.record(both, "--by", "precision,reducer")
        self.assertEqual([one["label"] for one in record["sets"]],
                         [f"precision={precision} reducer={reducer}" for precision in ("bf16", "fp32") for reducer in ("c10d", "scalemark")])
        self.assertEqual(record["varied"], ["precision", "reducer"])
        self.compare(both, "--by", "precision,reducer=x", expect=2)

    def test_builds_are_in_the_order_of_their_commits(self):
        def built(revision, committed_at):
            def change(record):
                record["build"].update(revision=revision, committed_at=committed_at)
                record["schema_revision"] = 3
            return change

        both = self.folder / "both"
        both.mkdir()
        for name, change in (("new", built("aaa", "2026-02-01T00:00:00Z")), ("old", built("bbb", "2026-01-01T00:00:00Z"))):
            for path in (self.copy(name, 1, change) / "runs").iterdir():
                shutil.copy(path, both / f"{name}-{path.name}")
        self.assertEqual(self.record(both, "--by", "revision")["base"], "revision=bbb")


class Kinds(CompareTest):
    def test_units_that_differ_are_refused(self):
        def tokens(record):
            record["unit"] = "tokens/sec"

        other = self.copy("other", 1, tokens)
        _, err = self.compare(self.sweep, other, expect=2)
        for text in ("images/sec", "tokens/sec", str(self.sweep / "runs"), str(other / "runs")):
            self.assertIn(text, err)

    def test_machines_that_differ_are_listed(self):
        def machine(record):
            record["system"]["cpu_model"] = "another"

        notes = self.record(f"a={self.sweep}", f"b={self.copy('other', 1, machine)}")["notes"]
        self.assertTrue(any("machines of a and b differ in cpu_model" in note and "b: another" in note for note in notes), notes)

    def test_nodes_by_their_preflight(self):
        self.run_program(SCALEMARK, "preflight", "--seconds", "0.1", "--sizes", "8", "--scratch_mb", "1", "--output", "p.json")
        text = (self.folder / "p.json").read_text()
        host = json.loads(text)["system"]["host"]
        (self.folder / "all").mkdir()
        for k in range(5):
            for name, factor in ((host, 1), ("slow", 0.5)):
                record = json.loads(text.replace(json.dumps(host), json.dumps(name)))
                record["id"] = str(uuid.uuid4())
                for rank in record["ranks"]:
                    rank["gemm"]["fp32"]["flops"] *= factor * (1 + 0.001 * k)
                (self.folder / "all" / f"{name}{k}.json").write_text(json.dumps(record))
        record = self.record("all", "--by", f"host={host},slow", "--metric", "gemm.fp32.flops")
        point, = record["points"]
        self.assertAlmostEqual(point["difference_percent"], -50)
        self.assertEqual((point["unit"], point["verdict"], record["better"]), ("FLOP/s", "lower", "higher"))
        _, err = self.compare("all", "--by", "host", "--metric", "gemm.fp8.flops", expect=2)
        self.assertIn("gemm.fp32.flops", err)
        _, err = self.compare("all", "--by", "host", expect=2)
        self.assertIn("10 records of kind preflight", err)

    @unittest.skipIf(len(CPUS) < 2, "needs two CPUs")
    def test_jobs_side_by_side_by_their_cumulative_rate(self):
        self.run_program(SCALEMARK, "instances", "--device", "cpu", "--slots", f"{CPUS[0]};{CPUS[-1]}", "--repeats", "2", "--model", "trivial",
                         "--batch_size", "4", "--num_warmup_batches", "1", "--num_batches", "20", "--output", "jobs/i.json")
        record = self.read("jobs/i.json")
        other = json.loads(json.dumps(record))
        other["id"] = str(uuid.uuid4())
        for point in other["points"]:
            for repeat in point["repeats"]:
                repeat["throughput"] *= 1.5
                repeat["sum_of_rates"] *= 3
                for instance in repeat["instances"]:
                    instance["throughput"] *= 3
            point["cumulative"] = {name: times(value, 3 if name == "sum_of_rates" else 1.5) for name, value in point["cumulative"].items()}
        (self.folder / "j.json").write_text(json.dumps(other))
        compared = self.record("jobs/i.json", "j.json", "--metric", "throughput,sum_of_rates")
        self.assertEqual([point["settings"] for point in compared["points"]], [{"instances": 1}, {"instances": 2}])
        for point, measured in zip(compared["points"], record["points"]):
            self.assertAlmostEqual(point["difference_percent"], 50)
            self.assertEqual(point["unit"], "images/sec")
            rates = [repeat["throughput"] for repeat in measured["repeats"]]
            self.assertTrue(min(rates) * 0.999 <= point["base_value"] <= max(rates) * 1.001, (point, rates))
        for point in compared["further"][0]["points"]:
            self.assertAlmostEqual(point["difference_percent"], 200)
        # The jobs' own records lie below the folder, and belong to it.
        self.assertGreater(len(list((self.folder / "jobs").rglob("*.json"))), 4)
        whole = self.record("a=jobs", "b=j.json")
        self.assertEqual((whole["sets"][0]["records"], whole["sets"][0]["left_out"]), ([record["id"]], []))


class Refusals(CompareTest):
    def test_unlike_configurations_are_named(self):
        def other_seed(record):
            record["config"]["seed"] = {"value": 7, "origin": "command_line"}

        other = self.copy("other", 1, other_seed)
        _, err = self.compare(f"a={self.sweep}", f"b={other}", expect=2)
        self.assertIn("seed (a: 1234; b: 7)", err)
        self.assertEqual(self.record(f"a={self.sweep}", f"b={other}", "--varied", "seed")["varied"], ["seed"])
        _, err = self.compare(f"a={self.sweep}", f"b={other}", "--varied", "sead", expect=2)
        self.assertIn("did you mean seed?", err)

    def test_points_of_one_set_are_listed(self):
        def no_bf16(record):
            if record["precision"] == "bf16":
                record["status"], record["reason"] = "failed", "made"

        part = self.folder / "part"
        shutil.copytree(self.copy("swept", 1, no_bf16) / "runs", part)  # without its journal
        record = self.record(f"a={self.sweep}", f"b={part}")
        self.assertEqual([point["settings"] for point in record["points"]], [{"precision": "fp32"}])
        self.assertEqual(record["unmatched"], [{"ranks": 1, "settings": {"precision": "bf16"}, "missing_in": "b", "measured_in": ["a"]}])
        self.assertEqual(record["sets"][1]["left_out"], ["6 records with status failed"])
        out, _ = self.compare(f"a={self.sweep}", f"b={part}")
        self.assertIn("not compared: ranks 1 precision=bf16, in a but not in b\n", out)
        self.assertIn("left out of b: 6 records with status failed\n", out)

    def test_files_that_are_no_records(self):
        run = json.loads(next((self.sweep / "runs").iterdir()).read_text())
        contents = {"corrupt": "{", "foreign": '{"a": 1}', "old": json.dumps({**run, "schema_version": 0}),
                    "hollow": json.dumps({**run, "throughput": None})}
        for name, text in contents.items():
            (self.folder / name).mkdir()
            (self.folder / name / "r.json").write_text(text)
            for path in (f"{name}/r.json", name):
                _, err = self.compare(self.sweep, path, expect=6)
                self.assertIn(f"{name}/r.json", err)

    def test_words_that_are_wrong(self):
        for words, text in (([self.sweep], "two result sets"), ([self.sweep, "absent"], "absent: no such file"), ([], "two result sets"),
                            ([self.sweep, self.sweep], "same name"), ([self.sweep, self.sweep, "--by", "seed"], "one path"),
                            ([self.sweep, "--by", "seed"], "one value"), ([self.sweep, "b", "--json", "--markdown"], "leave one out"),
                            ([self.sweep, "b", "--metric", "speed"], "legal: throughput"), ([self.sweep, "--verbose"], "--help")):
            _, err = self.compare(*words, expect=2)
            self.assertIn(text, err)


if __name__ == "__main__":
    main()
