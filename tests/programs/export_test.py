"""scalemark export and run --mllog: real records, read by Python's own csv and by pandas as docs/export.md does; damaged,
foreign and missing files."""

import contextlib
import csv
import io
import json
import math
import re
import shutil
import unittest

from support import SCALEMARK, SOURCE, ProgramTest, main

TRIVIAL = ["--model", "trivial", "--num_batches", "30", "--num_warmup_batches", "1"]


class Export(ProgramTest):
    def rows(self, *words, expect=0):
        out, err = self.run_program(SCALEMARK, "export", *words, expect=expect)
        return list(csv.DictReader(io.StringIO(out, newline=""))), err

    def test_a_folder_of_all_kinds(self):
        self.run_program(SCALEMARK, "run", *TRIVIAL, "--trace", "r/trace.json", "--output", "r/run.json")
        self.run_program(SCALEMARK, "infer", *TRIVIAL, "--output", "r/infer.json")
        self.run_program(SCALEMARK, "scale", *TRIVIAL, "--ranks", "1,2", "--repeats", "2", "--output", "r/curve.json")
        shutil.copy(SOURCE / "results/baselines/ci-gate.json", self.folder / "r")
        rows, err = self.rows("r")
        self.assertIn("left out: 1 record of kind verdict", err)
        self.assertEqual(len(rows), 2 + 2 + 6)
        run = self.read("r/run.json")
        of_run = next(row for row in rows if row["file"] == "run.json")
        self.assertEqual(float(of_run["throughput"]), run["throughput"]["mean"])
        self.assertEqual(of_run["hosts"], f"{run['system']['host']}:1")
        points = [row for row in rows if row["row"] == "point"]
        self.assertEqual([float(row["speedup"]) for row in points],
                         [point["speedup"] for point in self.read("r/curve.json")["points"]])
        lines = self.run_program(SCALEMARK, "export", "r", "--format", "jsonl")[0].splitlines()
        self.assertEqual([json.loads(line)["id"] for line in lines], [row["id"] for row in rows])
        self.assertEqual(list(json.loads(lines[0])), list(rows[0]))

    def test_a_sweep_has_its_settings_and_what_left_no_record(self):
        plan = {"axes": {"batch_size": [1, 2]}, "settings": {"model": "trivial", "num_batches": 30}, "repeats": 1}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        self.run_program(SCALEMARK, "sweep", "plan.json", "--output", "results/sweep")
        journal = self.folder / "results/sweep/journal.jsonl"
        entry = json.loads(journal.read_text().splitlines()[0])
        lost = dict(entry, repeat=2, status="timeout", exit_code=5, reason="hung, \"quietly\"", record="")
        journal.write_text(journal.read_text() + json.dumps(lost) + "\n")
        rows, _ = self.rows("results")
        self.assertEqual(sorted(json.loads(row["settings"])["batch_size"] for row in rows if row["status"] == "ok"), [1, 2])
        self.assertEqual([(row["repeat"], row["reason"]) for row in rows if row["status"] == "timeout"],
                         [("2", "hung, \"quietly\"")])

    def tables_of_the_page(self, *words):
        """What the Python of docs/export.md makes of the export of these paths, and what it prints."""
        _, err = self.run_program(SCALEMARK, "export", *words, "--output", "table.csv")
        script, = re.findall(r"^```python\n(.*?)^```", (SOURCE / "docs/export.md").read_text(), re.MULTILINE | re.DOTALL)
        self.assertIn("results/example.csv", script)
        names, printed = {}, io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(script.replace("results/example.csv", str(self.folder / "table.csv")), names)
        return names, printed.getvalue(), err

    def test_the_page_reads_every_kind_with_pandas(self):
        self.run_program(SCALEMARK, "run", *TRIVIAL, "--output", "r/run.json")
        self.run_program(SCALEMARK, "infer", *TRIVIAL, "--output", "r/infer.json")
        self.run_program(SCALEMARK, "scale", *TRIVIAL, "--ranks", "1,2", "--repeats", "2", "--output", "r/curve.json")
        plan = {"axes": {"batch_size": [1, 2]}, "settings": {"model": "trivial", "num_batches": 30}, "repeats": 2}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        self.run_program(SCALEMARK, "sweep", "plan.json", "--output", "r/sweep")
        journal = self.folder / "r/sweep/journal.jsonl"
        entries = [json.loads(line) for line in journal.read_text().splitlines()]
        lost = next(entry for entry in entries if entry["settings"]["batch_size"] == 2)
        journal.write_text(journal.read_text() + json.dumps(dict(lost, repeat=3, status="timeout", exit_code=5, record="")) + "\n")
        for name in ("instances", "instances_failed", "baseline_of_sweep", "comparison", "history", "preflight_timeout", "projection",
                     "verdict"):
            shutil.copy(SOURCE / f"tests/record/files/{name}.json", self.folder / "r")
        shutil.copy(SOURCE / "results/baselines/studies/bert_sriov.json", self.folder / "r/study.json")

        names, printed, err = self.tables_of_the_page("r")
        curve = self.read("r/curve.json")["points"]
        self.assertEqual(names["curves"].to_dict(),
                         {("trivial", "curve.json"): {point["ranks"]: point["efficiency"] for point in curve}})
        jobs = names["jobs"]
        self.assertEqual(list(jobs), [("resnet50", "instances.json"), ("resnet50", "instances_failed.json")])
        self.assertEqual(jobs["resnet50", "instances.json"].to_dict(), {1: 1.0, 2: 0.5})
        self.assertTrue(math.isnan(jobs["resnet50", "instances_failed.json"][2]))

        rates = names["rates"].reset_index().astype(object)
        rates = rates.where(rates.notna(), None).to_dict("records")
        of_sweep = [row for row in rates if row["settings"]]
        measured = {size: [self.read(f"r/sweep/{entry['record']}")["throughput"]["mean"] for entry in entries
                           if entry["settings"]["batch_size"] == size] for size in (1, 2)}
        self.assertEqual(sorted((row["settings"], row["count"], row["model"] or "") for row in of_sweep),
                         [('{"batch_size":1}', 2, "trivial"), ('{"batch_size":2}', 0, ""), ('{"batch_size":2}', 2, "trivial")])
        for row in of_sweep:
            if row["count"]:
                self.assertAlmostEqual(row["mean"], sum(measured[json.loads(row["settings"])["batch_size"]]) / 2)
        alone = [(row["kind"], row["model"], row["ranks"], row["communicator"] == "none", row["count"])
                 for row in rates if not row["settings"]]
        self.assertCountEqual(alone, [("inference", "trivial", 1, False, 1), ("run", "trivial", 1, True, 3),
                                      ("run", "trivial", 2, False, 2), ("run", "trivial", 2, True, 2)])
        for text in ("trivial", "resnet50", "curve.json", "inference", '{"batch_size":2}'):
            self.assertIn(text, printed)
        for kind in ("baseline", "comparison", "history", "preflight", "projection", "study", "verdict"):
            self.assertIn(f"left out: 1 record of kind {kind}, which has no rows", err)

    def test_the_page_reads_each_kind_alone_with_pandas(self):
        files = {path.stem: json.loads(path.read_text()) for path in sorted((SOURCE / "tests/record/files").glob("*.json"))}
        seen = set()
        for name, record in files.items():
            if record["kind"] not in ("run", "inference", "scaling", "instances"):
                self.run_program(SCALEMARK, "export", SOURCE / f"tests/record/files/{name}.json", expect=2)
                continue
            with self.subTest(name):
                names, _, err = self.tables_of_the_page(SOURCE / f"tests/record/files/{name}.json")
                seen.add(record["kind"])
                self.assertEqual(err, "")
                self.assertTrue(names["table"]["model"].notna().all())
                sizes = [len(names[table]) for table in ("curves", "jobs", "rates")]
                rows = len(record.get("points", [record]))
                self.assertEqual(sizes, [rows if kind == record["kind"] else 0 for kind in ("scaling", "instances")]
                                 + [rows if record["kind"] in ("run", "inference") else 0])
        self.assertEqual(len(seen), 4)

    def test_a_copy_is_written_once(self):
        files = SOURCE / "tests/record/files"
        for name in ("r/first.json", "r/later/again.json"):
            (self.folder / name).parent.mkdir(exist_ok=True, parents=True)
            shutil.copy(files / "run_one_rank.json", self.folder / name)
        shutil.copy(files / "run_two_ranks.json", self.folder / "r")
        rows, err = self.rows("r", "r/first.json")
        self.assertEqual(sorted(row["file"] for row in rows), ["first.json", "run_two_ranks.json"])
        self.assertIn("left out as 2 records with an id that the table has already: later/again.json, first.json", err)

    def test_a_damaged_file_costs_no_other_row(self):
        self.run_program(SCALEMARK, "run", *TRIVIAL, "--output", "r/run.json")
        (self.folder / "r/torn.json").write_text((self.folder / "r/run.json").read_text()[:1000])
        (self.folder / "r/other.json").write_text("{}")
        rows, err = self.rows("r", expect=6)
        self.assertEqual([row["file"] for row in rows], ["run.json"])
        self.assertIn("torn.json", err)
        self.assertIn("other.json", err)
        self.rows("r/torn.json", expect=6)

    def test_wrong_words(self):
        self.assertIn("give a record", self.rows(expect=2)[1])
        self.assertIn("no such file", self.rows("nothing", expect=2)[1])
        (self.folder / "empty").mkdir()
        self.assertIn("no record", self.rows("empty", expect=2)[1])
        self.assertIn("csv, jsonl", self.rows("empty", "--format", "xml", expect=2)[1])
        self.run_program(SCALEMARK, "run", *TRIVIAL, "--output", "run.json")
        self.assertIn("cannot", self.rows("run.json", "--output", "/proc/table.csv", expect=6)[1])


class Mllog(ProgramTest):
    def test_a_run_of_two_ranks(self):
        self.run_program(SCALEMARK, "run", *TRIVIAL, "--ranks", "2", "--mllog", "run.log", "--output", "run.json")
        lines = (self.folder / "run.log").read_text().splitlines()
        self.assertTrue(all(line.startswith(":::MLLOG {") for line in lines))
        events = [json.loads(line[len(":::MLLOG "):]) for line in lines]
        self.assertEqual([e["key"] for e in events].count("tracked_stats"), 3)
        self.assertEqual(events[-1]["metadata"]["status"], "success")
        batch = self.read("run.json")["global_batch_size"]
        self.assertEqual(next(e["value"] for e in events if e["key"] == "global_batch_size"), batch)

    def test_a_run_that_fails_is_aborted_and_its_log_is_there(self):
        self.run_program(SCALEMARK, "run", *TRIVIAL, "--ranks", "2", "--mllog", "run.log", "--inject", "nan_loss:rank=1:step=5",
                         expect=4)
        self.assertIn('"aborted"', (self.folder / "run.log").read_text())

    def test_a_log_that_cannot_be_written_is_said_before_anything_is_measured(self):
        out, err = self.run_program(SCALEMARK, "run", *TRIVIAL, "--mllog", "/proc/run.log", expect=6)
        self.assertNotIn("images/sec", out)
        self.assertIn("/proc/run.log", err)


if __name__ == "__main__":
    main()
