"""scalemark compare on real records, and on copies of them whose difference is known."""

import json
import shutil

from measured_sweep import MeasuredSweepTest
from support import SCALEMARK, SOURCE, main, mpirun, scaled

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
            self.assertAlmostEqual(point["difference_percent"], 900)
            self.assertEqual((point["design"], point["repeat_unit"], point["base_repeats"], point["repeats"]),
                             ("two_sample", "launch", 6, 6))
            self.assertAlmostEqual(point["p"], 2 / 924)
            self.assertAlmostEqual(point["p_adjusted"], 4 / 924)
            self.assertEqual(point["verdict"], "faster")
            low, high = point["interval_percent"]
            self.assertTrue(0 < low < 900 < high, point)
        self.assertEqual((record["base"], record["unmatched"], record["warnings"]), ("old", [], []))

    def test_the_same_twice_is_no_difference(self):
        record = self.record(self.sweep, self.copy("again", 1))
        for point in record["points"]:
            self.assertAlmostEqual(point["difference_percent"], 0)
            self.assertEqual((point["p"], point["verdict"]), (1, "no difference shown"))
            self.assertGreater(point["minimum_detectable_percent"], 0)

    def test_three_sets_in_one_table(self):
        out, err = self.compare(f"base={self.sweep}", f"half={self.copy('half', 0.1)}", f"same={self.copy('same', 1)}")
        self.assertEqual(err, "")
        self.assertIn("half against base: images/sec, n launches\n", out)
        self.assertRegex(out, r"1 precision=fp32 +6 +[\d.]+ +[\d.]+ +-90\.0 % +\[-9\d\.\d, -\d\d\.\d\] % +0\.0087 +[\d.]+ % +slower\n")
        self.assertRegex(out, r"1 precision=fp32 .* \+0\.0 % .* no difference shown\n")
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
        self.assertIn("it has throughput, latency_", err)


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
        self.assertIn("within one launch", record["warnings"][0])

    def test_published_curves_differ_in_what_they_vary(self):
        paths = [BASELINES / f"resnet50-1gbit-{overlap}.json" for overlap in ("none", "backward")]
        _, err = self.compare(*paths, expect=2)
        self.assertIn("overlap (resnet50-1gbit-none: none; resnet50-1gbit-backward: backward)", err)
        self.assertIn("--varied overlap", err)
        points = self.record(*paths, "--varied", "overlap")["points"]
        throughput = [{p["ranks"]: p["throughput"] for p in json.loads(path.read_text())["points"]} for path in paths]
        for point in points:
            ratio = throughput[1][point["ranks"]] / throughput[0][point["ranks"]]
            self.assertAlmostEqual(point["difference_percent"], 100 * (ratio - 1))


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
