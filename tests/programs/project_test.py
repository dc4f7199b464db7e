"""scalemark project on real records, on published curves and on a curve that is measured here."""

import json

from support import SCALEMARK, SOURCE, ProgramTest, main, mpirun

PUBLISHED = SOURCE / "configs/published"
FOUR_HOSTS = SOURCE / "results/baselines/resnet50-1gbit-4hosts.json"
SHARDED = {shard: SOURCE / f"results/baselines/llama_tiny-400mbit-4hosts-{shard}.json" for shard in ("none", "optimizer", "parameters")}


class ProjectTest(ProgramTest):
    def project(self, *words, expect=0):
        return self.run_program(SCALEMARK, "project", *words, expect=expect)

    def record(self, *words):
        return self.record_of("project", *words)

    def parameters(self, record):
        return {parameter["name"]: parameter for parameter in record["fit"]["parameters"]}


class Curves(ProjectTest):
    def test_four_hosts_from_two(self):
        record = self.record(FOUR_HOSTS, "--fit_ranks", "1,2", "--ranks", "1,2,4,100000")
        errors = record["errors"]
        self.assertEqual(errors["points"], 1)
        self.assertLess(errors["model_percent"], errors["constant_efficiency_percent"])
        link = self.parameters(record)["link_rate"]
        self.assertTrue(link["fitted"])
        self.assertTrue(0.3 < link["value"] < 3, link)  # the lab's links had 1 Gbit/s
        steps = [point["step_seconds"] for point in record["points"]]
        self.assertEqual(steps, sorted(steps))
        self.assertEqual([point["held_out"] for point in record["points"]], [False, False, True, False])
        self.assertIn("rounds of one launch", " ".join(record["warnings"]))

    def test_a_fourth_host_of_shards(self):
        for shard in ("optimizer", "parameters"):
            record = self.record(SHARDED[shard], "--fit_ranks", "1,2,3", "--ranks", "1,2,3,4")
            self.assertEqual((record["errors"]["points"], record["errors"]["in_band"]), (1, 1))
            self.assertEqual(record["curve"]["shard"], shard)
            for point in record["points"]:
                kinds = {one["collective"]: one for one in point["collectives"]}
                self.assertEqual(set(kinds), {"reduce_scatter", "allgather"})
                self.assertAlmostEqual(sum(one["seconds"] for one in kinds.values()), point["communication_seconds"])
                self.assertAlmostEqual(sum(one["exposed_seconds"] for one in kinds.values()), point["exposed_seconds"])
            out, _ = self.project(SHARDED[shard], "--algorithm", "ring")
            self.assertIn(f", shard {shard}, weak scaling", out)
            self.assertRegex(out, "of reduce-scatter +of all-gather +algorithm")

    def test_another_link(self):
        def exposed(*words):
            point, = self.record(FOUR_HOSTS, "--measured_link_gbit", "1", "--ranks", "4", *words)["points"]
            return point["exposed_seconds"]

        self.assertLess(exposed("--link_gbit", "10"), 0.3 * exposed())

    def test_the_bands_of_another_link_hold_what_was_measured_on_it(self):
        def curve(rate, shard):
            return SOURCE / f"results/baselines/llama_tiny_256-{rate:g}{'gbit' if rate == 1 else 'mbit'}-2hosts-{shard}.json"

        inside = 0
        for shard in ("none", "optimizer", "parameters"):
            for fitted, asked in ((400, 200), (200, 400), (400, 1), (200, 1)):
                point, = self.record(curve(fitted, shard), "--ranks", "2", "--measured_link_gbit", str(fitted / 1000),
                                     "--link_gbit", str(asked if asked == 1 else asked / 1000))["points"]
                measured = json.loads(curve(asked, shard).read_text())["points"][-1]["throughput"]
                self.assertLess(abs(point["throughput"] / measured - 1), 0.2)
                inside += point["throughput_band"][0] <= measured <= point["throughput_band"][1]
        self.assertGreaterEqual(inside, 10)  # of 12: nine tenths

    def test_published_curves(self):
        curve = PUBLISHED / "ebug-p28xlarge-inception3.json"
        record = self.record(curve, "--fit_ranks", "1,2,4,8", "--budget", "90epochs", "--samples_per_epoch", "1281167")
        self.assertEqual(record["errors"]["points"], 4)
        self.assertLess(record["errors"]["model_percent"], record["errors"]["constant_efficiency_percent"])
        self.assertIn("e-bug/distributed-tensorflow-benchmarks", record["curve"]["source"])
        one = record["points"][0]
        self.assertAlmostEqual(one["solution_steps"], 90 * 1281167 / 64)
        self.assertAlmostEqual(one["time_to_solution_seconds"], one["solution_steps"] * one["step_seconds"])
        out, err = self.project(curve, "--budget", "90epochs", "--samples_per_epoch", "1281167")
        self.assertEqual(err, "")
        self.assertRegex(out, r"\n +128 +64 .* fitted [+-]\d\.\d % +\d+(\.\d+)? h \[")
        markdown, _ = self.project(curve, "--markdown")
        self.assertIn("| ranks | batch |", markdown)
        self.assertIn("constant efficiency |", markdown)
        self.assertIn("measured steps against the cost model, by ranks: 1: ", out)

    def test_a_curve_that_warns(self):
        curve = json.loads((PUBLISHED / "tf-ec2-resnet50-b64.json").read_text())
        curve["points"][1]["batch_size_per_rank"] = 32
        curve["source"] = "a \x1b[31mpaper\n::error::x"
        (self.folder / "unlike.json").write_text(json.dumps(curve))
        out, _ = self.project("unlike.json", "--budget", "1000steps")
        self.assertIn("warning: a weak curve of unlike batches (32, 64 samples a rank)", out)
        self.assertIn("warning: --budget in steps: a step of 4096 ranks has 262144 samples", out)
        self.assertNotIn("\x1b", out)
        self.assertNotIn("\n::error::", out)
        record = self.record("unlike.json", "--ranks", "512")
        self.assertGreater(record["points"][0]["constant_efficiency_throughput"], 0)
        self.assertEqual(record["fit"]["trend"]["share"], 0)
        self.assertTrue(all("residual_percent" in point for point in record["fit"]["points"]))

    def test_a_curve_measured_here(self):
        self.run_program(*mpirun(2, SCALEMARK, "scale", "--model", "trivial", "--batch_size", "4", "--num_batches", "30", "--ranks",
                                 "1,2", "--repeats", "2", "--output", "c.json"))
        record = self.record("c.json", "--ranks", "2,64")
        self.assertEqual(record["assumptions"]["ranks_per_node"], 2)  # told by the runs beside the curve
        self.assertEqual([point["nodes"] for point in record["points"]], [1, 32])
        self.assertEqual(self.record("c.json", "--ranks", "64", "--ranks_per_node", "1")["points"][0]["nodes"], 64)
        self.assertEqual(record["curve"]["kind"], "rounds")
        _, err = self.project("c.json", "--fit_ranks", "1", expect=2)
        self.assertIn("says nothing of scaling", err)
        _, err = self.project("c.json", "--fit_ranks", "1,3", expect=2)
        self.assertIn("no point of 3 ranks; it has 1, 2", err)
        _, err = self.project("c.json", "--budget", "1e9tokens", expect=2)
        self.assertIn("images/sec", err)


class Refusals(ProjectTest):
    def test_curves_that_tell_nothing(self):
        run = SOURCE / "results/baselines/smallnet-converges.json"
        _, err = self.project(run, expect=2)
        self.assertIn("says nothing of scaling", err)
        baselines = self.folder / "mixed"
        baselines.mkdir()
        for name in ("transformer_big-weak-2cores", "transformer_big-strong-2cores"):
            (baselines / f"{name}.json").write_text((SOURCE / f"results/baselines/{name}.json").read_text())
        _, err = self.project(baselines, expect=2)
        self.assertIn("launches differ in scaling", err)

    def test_shards_are_one_setting_and_no_trees(self):
        mixed = self.folder / "shards"
        mixed.mkdir()
        for shard in ("none", "parameters"):
            (mixed / f"{shard}.json").write_text(SHARDED[shard].read_text())
        _, err = self.project(mixed, expect=2)
        self.assertRegex(err, r"launches differ in shard \((none; parameters|parameters; none)\)")
        for algorithm in ("tree", "doubling"):
            _, err = self.project(SHARDED["optimizer"], "--algorithm", algorithm, expect=2)
            self.assertIn(f"--algorithm {algorithm}: ", err)
            self.assertIn("take auto, ring or hierarchical", err)
        _, err = self.project(SHARDED["optimizer"], "--algorithm", "pairs", expect=2)
        self.assertIn("hierarchical", err)

    def test_files_that_are_no_curves(self):
        curve = json.loads((PUBLISHED / "tf-ec2-resnet50-b64.json").read_text())
        contents = {"corrupt": "{", "foreign": '{"a": 1}', "hollow": json.dumps({**curve, "points": [{"ranks": 1}]}),
                    "old": json.dumps({**json.loads(FOUR_HOSTS.read_text()), "schema_version": 0})}
        for name, text in contents.items():
            (self.folder / f"{name}.json").write_text(text)
            _, err = self.project(f"{name}.json", expect=6)
            self.assertIn(f"{name}.json", err)

    def test_published_curves_that_say_what_nobody_reads(self):
        curve = json.loads((PUBLISHED / "tf-ec2-resnet50-b64.json").read_text())
        first = {**curve["points"][0], "batch": 3}
        for changed, text in (({"link_gbits": 25}, "/link_gbits is no key of it"), ({"unit": "samples/sec"}, "/unit is samples/sec"),
                              ({"points": [first, *curve["points"][1:]]}, "/points/0/batch is no key")):
            (self.folder / "odd.json").write_text(json.dumps({**curve, **changed}))
            _, err = self.project("odd.json", expect=2)
            self.assertIn(text, err)

    def test_words_that_are_wrong(self):
        for words, text in (([], "takes one curve"), (["absent.json"], "absent.json: no such file"),
                            ([FOUR_HOSTS, "--budget", "3 weeks"], "such as 300000steps"),
                            ([FOUR_HOSTS, "--budget", "90epochs"], "--samples_per_epoch"),
                            ([FOUR_HOSTS, "--ranks", "0"], "whole number"), ([FOUR_HOSTS, "--verbose"], "--help")):
            _, err = self.project(*words, expect=2)
            self.assertIn(text, err)


if __name__ == "__main__":
    main()
