"""scalemark export and run --mllog: real records, read by Python's own csv; damaged, foreign and missing files."""

import csv
import io
import json
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
