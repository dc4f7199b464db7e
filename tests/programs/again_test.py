"""A repeated command loses no finished measurement, and --again repeats the command of a record and compares then and now."""

import json
import os
import signal

from support import SCALEMARK, SMALL, SOURCE, STEADY, ProgramTest, main

RUN = ["run", *SMALL, "--num_batches", "3"]
SCALE = ["scale", *SMALL, "--num_batches", "3", "--ranks", "1,2", "--repeats", "1", "--nobaseline"]
MEASURING = {"run": RUN, "infer": ["infer", *SMALL, "--num_batches", "3"], "preflight": ["preflight", "--pinning"],
             "instances": ["instances", *SMALL, "--num_batches", "3", "--instances", "1", "--repeats", "1"], "scale": SCALE}
CURVE = SOURCE / "results/baselines/resnet50-1gbit-4hosts.json"


class Kept(ProgramTest):
    def files(self, folder="."):
        return sorted(path.name for path in (self.folder / folder).iterdir())

    def id(self, name):
        return json.loads((self.folder / name).read_text())["id"]

    def test_every_measurement_that_is_repeated(self):
        for name, words in MEASURING.items():
            with self.subTest(command=name):
                self.run_program(SCALEMARK, *words, "--output", f"{name}/r.json")
                first = (self.folder / name / "r.json").read_bytes()
                _, err = self.run_program(SCALEMARK, *words, "--output", f"{name}/r.json")
                self.assertIn(f"the measurement that was in {name}/r.json is kept as {name}/r.json.~1~", err)
                self.assertEqual((self.folder / name / "r.json.~1~").read_bytes(), first)
                self.assertNotEqual(self.id(f"{name}/r.json"), self.id(f"{name}/r.json.~1~"))
                _, err = self.run_program(SCALEMARK, *words, "--output", f"{name}/r.json")
                self.assertIn("r.json.~2~", err)
                second = self.id(f"{name}/r.json")
                _, err = self.run_program(SCALEMARK, *words, "--output", f"{name}/r.json", "--overwrite")
                self.assertNotIn("~", err)
                self.assertNotEqual(self.id(f"{name}/r.json"), second)
                self.assertEqual([file for file in self.files(name) if file.startswith("r.json")], ["r.json", "r.json.~1~", "r.json.~2~"])

    def test_the_runs_of_a_kept_curve_go_with_it(self):
        for _ in range(2):
            self.run_program(SCALEMARK, *SCALE, "--output", "s.json")
        older, newer = (json.loads((self.folder / name).read_text()) for name in ("s.json.~1~", "s.json"))
        for curve, folder in ((older, "s.runs.~1~"), (newer, "s.runs")):
            paths = [repeat["path"] for point in curve["points"] for repeat in point["repeats"]]
            self.assertEqual(sorted(path.removeprefix("s.runs/") for path in paths), self.files(folder))
        # Who reads the folder finds the new curve alone.
        out, _ = self.run_program(SCALEMARK, "export", ".", "--format", "jsonl")
        self.assertEqual({json.loads(line)["id"] for line in out.splitlines()}.isdisjoint(
            {repeat["run"] for point in older["points"] for repeat in point["repeats"]}), True)

    def test_a_measurement_is_no_place_for_what_is_computed(self):
        self.run_program(SCALEMARK, *RUN, "--output", "a.json")
        self.run_program(SCALEMARK, *RUN, "--output", "b.json")
        first = self.id("a.json")
        _, err = self.run_program(SCALEMARK, "compare", "a.json", "b.json", "--output", "a.json")
        self.assertIn("is kept as a.json.~1~", err)
        self.assertEqual(self.id("a.json.~1~"), first)
        for _ in range(2):  # computed again at will
            self.run_program(SCALEMARK, "compare", "a.json.~1~", "b.json", "--output", "a.json")
        self.assertEqual(self.files(), ["a.json", "a.json.~1~", "b.json"])

    def test_what_has_failed_displaces_nothing_that_has_not(self):
        self.run_program(SCALEMARK, *RUN, "--output", "r.json")
        first = self.id("r.json")
        self.run_program(SCALEMARK, *RUN, "--batch_size", "0", "--output", "r.json", expect=2)
        self.assertEqual((self.files(), self.id("r.json")), (["r.json"], first))
        for _ in range(3):  # the second and third find a failed one, which is replaced
            self.run_program(SCALEMARK, *RUN, "--inject", "nan_loss:step=2", "--output", "r.json", expect=4)
        self.assertEqual((self.files(), self.id("r.json.~1~")), (["r.json", "r.json.~1~"], first))

    def test_killed_at_once_it_is_there_by_its_name(self):
        self.run_program(SCALEMARK, *RUN, "--output", "r.json")
        first = self.id("r.json")
        for _ in range(2):  # a second name is no second copy
            process = self.start(SCALEMARK, *RUN, *STEADY, "--num_batches", "100000", "--output", "r.json")
            self.wait_until(lambda: (self.folder / "r.json.~1~").exists() and (self.folder / ".r.json.tmp").exists())
            for pid in self.processes_left():
                os.kill(pid, signal.SIGKILL)
            process.communicate()
        self.assertEqual((self.id("r.json"), self.id("r.json.~1~")), (first, first))
        self.run_program(SCALEMARK, *RUN, "--output", "r.json")
        self.assertEqual(self.files(), ["r.json", "r.json.~1~"])

    def test_a_curve_that_goes_on_is_not_kept(self):
        words = [*SCALE, "--repeats", "2", *STEADY]
        process = self.start(SCALEMARK, *words, "--num_batches", "100", "--output", "s.json")
        self.wait_until(lambda: len(list((self.folder / "s.runs").glob("*-round1-*.json"))) == 2
                        if (self.folder / "s.runs").exists() else False)
        process.send_signal(signal.SIGINT)
        process.communicate()
        self.assertEqual(self.read("s.json")["status"], "interrupted")
        _, err = self.run_program(SCALEMARK, *words, "--num_batches", "100", "--output", "s.json")
        self.assertIn("going on after 1 of 2 rounds", err)
        self.assertEqual(self.files(), ["s.json", "s.runs"])

    def test_where_it_cannot_be_kept_nothing_is_measured(self):
        if os.geteuid() == 0:
            name = "r" * 244 + ".json"  # of 255 letters with .~999~
            self.run_program(SCALEMARK, *RUN, "--output", name)
            (self.folder / (name + ".~999~")).write_text("")
            _, err = self.run_program(SCALEMARK, *RUN, "--output", name, expect=6)
            self.assertIn("the measurement that is there cannot be kept as", err)
            self.assertNotIn("step", err)
            return
        self.run_program(SCALEMARK, *RUN, "--output", "r/r.json")
        (self.folder / "r").chmod(0o500)
        _, err = self.run_program(SCALEMARK, *RUN, "--output", "r/r.json", expect=6)
        (self.folder / "r").chmod(0o700)
        self.assertEqual(self.files("r"), ["r.json"])


class Again(ProgramTest):
    def again(self, command, record, *words, **options):
        return self.run_program(SCALEMARK, command, "--again", record, *words, **options)

    def refused(self, command, *words, code=2, **options):
        return self.again(command, *words, expect=code, **options)[1]

    def test_a_run_with_the_settings_of_its_record(self):
        self.run_program(SCALEMARK, *RUN, "--seed", "7", "--output", "then.json", "--mllog", "log")
        out, err = self.again("run", "then.json", "--output", "now.json")
        then, now = self.read("then.json"), self.read("now.json")
        self.assertEqual(then["config_hash"], now["config_hash"])
        self.assertEqual(now["config"]["seed"]["value"], 7)
        self.assertIsNone(now["config"]["mllog"]["value"])
        for words in ("now against then: images/sec", "too few launches (n=1; 5 needed)", "both are of one build", "the settings are the same",
                      "the machines read alike", "These are two launches, and no verdict: scalemark gate decides"):
            self.assertIn(words, out)
        self.assertIn("record: now.json", err)

    def test_flags_replace_settings_and_are_named(self):
        self.run_program(SCALEMARK, *RUN, "--output", "then.json")
        out, _ = self.again("run", "then.json", "--batch_size=8", "--precision", "bf16", "--output", "then.json")
        self.assertEqual((self.read("then.json")["batch_size_per_rank"], self.read("then.json")["precision"]), (8, "bf16"))
        self.assertEqual(json.loads((self.folder / "then.json.~1~").read_text())["batch_size_per_rank"], 4)
        self.assertIn("batch_size (then: 4; now: 8)", out)
        self.assertIn("precision (then: fp32; now: bf16)", out)

    def test_without_a_file_and_with_json(self):
        self.run_program(SCALEMARK, *RUN, "--output", "then.json")
        out, _ = self.again("run", "then.json")
        self.assertIn("now against then", out)
        out, err = self.again("run", "then.json", "--json")
        self.assertEqual(json.loads(out)["kind"], "run")
        self.assertIn("now against then", err)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["then.json"])

    def test_two_ranks_curves_and_inference(self):
        for words, started in ((["--ranks", "1"], True), ([], False)):  # as it was started then
            self.run_program(SCALEMARK, *RUN, *words, "--output", "then.json", "--overwrite")
            self.assertEqual("starts 1 rank" in self.again("run", "then.json")[1], started)
        self.run_program(SCALEMARK, *RUN, "--ranks", "2", "--output", "then.json", "--overwrite")
        self.again("run", "then.json", "--output", "now.json")
        self.assertEqual(self.read("now.json")["world_size"], 2)
        self.run_program(SCALEMARK, *MEASURING["infer"], "--output", "infer.json")
        self.assertIn("now against then", self.again("infer", "infer.json")[0])
        self.run_program(SCALEMARK, *SCALE, "--output", "curve.json")
        out, _ = self.again("scale", "curve.json", "--output", "curve.json")
        self.assertEqual([point["ranks"] for point in self.read("curve.json")["points"]], [1, 2])
        self.assertIn("efficiency", out)
        self.assertIn("the settings are the same", out)

    def test_variables_are_those_of_the_record(self):
        self.run_program(SCALEMARK, *RUN, "--output", "then.json", env=self.environment(SCALEMARK_SEED="5"))
        _, err = self.again("run", "then.json", "--output", "now.json", env=self.environment(SCALEMARK_SEED="6", SCALEMARK_REDUCER="c10d"))
        now = self.read("now.json")["config"]
        self.assertEqual((now["seed"]["value"], now["reducer"]["value"]), (5, "scalemark"))
        self.assertIn("SCALEMARK_REDUCER is ignored: --again has the settings of the record", err)

    def test_the_end_is_that_of_the_new_run(self):
        self.run_program(SCALEMARK, *RUN, "--output", "then.json")
        _, err = self.again("run", "then.json", "--inject", "nan_loss:step=2", expect=4)
        self.assertIn("then and now are not compared: no new measurement has ended well", err)

    def test_a_dry_run_starts_nothing(self):
        self.run_program(SCALEMARK, *RUN, "--output", "then.json")
        _, err = self.again("run", "then.json", "--dry_run")
        self.assertIn("would start: ", err)
        self.assertIn("--num_batches=3", err)

    def test_what_is_no_finished_record_of_its_kind(self):
        self.run_program(SCALEMARK, *RUN, "--output", "then.json")
        self.assertIn("gone.json", self.refused("run", "gone.json"))
        self.assertIn("then.json is a record of scalemark run: scalemark run --again then.json", self.refused("infer", "then.json"))
        self.run_program(SCALEMARK, "compare", "a=then.json", "b=then.json", "--output", "c.json", expect=2)
        self.run_program(SCALEMARK, *RUN, "--output", "other.json")
        self.run_program(SCALEMARK, "compare", "then.json", "other.json", "--output", "c.json")
        self.assertIn("c.json is a record of kind comparison", self.refused("run", "c.json"))
        (self.folder / "half.json").write_text((self.folder / "then.json").read_text()[:500])
        self.assertIn("half.json", self.refused("run", "half.json", code=6))
        self.run_program(SCALEMARK, *RUN, "--inject", "nan_loss:step=2", "--output", "bad.json", expect=4)
        self.assertIn("bad.json has the status invalid", self.refused("run", "bad.json"))
        self.assertIn("--again", self.refused("preflight", "then.json"))
        self.assertIn("--again", self.refused("instances", "then.json"))
        self.assertIn("leave --config out", self.refused("run", "then.json", "--config", "x.json"))
        self.assertIn("more than once", self.refused("run", "then.json", "--again", "then.json"))
        _, err = self.run_program(SCALEMARK, "run", "--again", expect=2)
        self.assertIn("--again: the value is missing", err)

    def test_a_key_that_is_called_otherwise_now_and_one_that_is_gone(self):
        self.run_program(SCALEMARK, *RUN, "--kernels", "torch", "--output", "then.json")
        record = self.read("then.json")
        settings = record["config"]
        settings["fused"] = {"value": "off", "origin": settings.pop("kernels")["origin"]}
        settings["of_old"] = {"value": 3, "origin": "default"}
        (self.folder / "older.json").write_text(json.dumps(record))
        out, _ = self.again("run", "older.json", "--output", "now.json")
        self.assertEqual(self.read("now.json")["config"]["kernels"]["value"], "torch")
        self.assertIn("the settings are the same", out)
        settings["of_old"]["origin"] = "command_line"
        (self.folder / "older.json").write_text(json.dumps(record))
        err = self.refused("run", "older.json")
        self.assertIn("older.json: /config/of_old: this version has no such key, which was set to 3", err)
        settings["of_old"]["origin"] = "default"
        settings["seed"] = {"value": "seven", "origin": "file"}
        (self.folder / "older.json").write_text(json.dumps(record))
        self.assertIn("/config/seed", self.refused("run", "older.json"))


if __name__ == "__main__":
    main()
