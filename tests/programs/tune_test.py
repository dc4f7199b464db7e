"""scalemark tune: real launches, from which hopeless candidates drop out."""

import json
import signal

from support import SCALEMARK, ProgramTest, main

FAST = ["--model", "trivial", "--seconds", "0.1"]
# Two of which one is slower, whatever else the machine does.
SLOW, QUICK = "delay:milliseconds=200", "delay:milliseconds=1"


class Tune(ProgramTest):
    def tune(self, *words, expect=0):
        return self.run_program(SCALEMARK, "tune", *words, expect=expect)

    def entries(self):
        return [json.loads(line) for line in (self.folder / "out/journal.jsonl").read_text().splitlines()]

    def test_the_fastest_is_picked_and_written_and_the_slow_ones_drop_out(self):
        words = [*FAST, "--try", "ranks=1", "--try", "batch_size=1,1024", "--try", f"inject={SLOW},{QUICK}",
                 "--output", "out"]
        out, _ = self.tune(*words, "--json", "--within", "20")
        summary = json.loads(out)
        self.assertRegex(summary["picked"], f"batch_size=1024 .*{QUICK}$", out)
        self.assertGreaterEqual(summary["chance"], 0.95)
        self.assertEqual(len(summary["points"]), 4)
        self.assertEqual([point["point"] for point in summary["points"]][0], summary["picked"])
        self.assertEqual(summary["launches"], len(self.entries()))
        config = json.loads((self.folder / "out/tuned.json").read_text())
        self.assertEqual((config["model"], config["batch_size"], config["ranks"], config["inject"]),
                         ("trivial", 1024, [1], QUICK))
        self.assertNotIn("max_seconds", config)
        self.run_program(SCALEMARK, "run", "--config", "out/tuned.json", "--num_batches", "3", "--output", "again.json")
        self.assertEqual(len(self.read("again.json")["ranks"]), 1)
        before = self.entries()
        again, _ = self.tune(*words, "--within", "20")  # all is measured
        self.assertEqual(self.entries(), before)
        self.assertIn("picked: ", again)
        rows, _ = self.run_program(SCALEMARK, "export", "out")  # a folder of a sweep
        self.assertEqual(len(rows.splitlines()), 1 + len(before))

    def test_what_one_rank_alone_does_not_need_is_not_tried_for_it(self):
        out, _ = self.tune("--model", "trivial", "--try", "ranks=1,2", "--batch_size", "4", "--dry_run")
        points = out.splitlines()
        self.assertEqual(points[0], "ranks=1")
        self.assertEqual(len(points), 1 + 2 * 3)
        out, _ = self.tune("--model", "trivial", "--batch_size", "4", "--try", "ranks=1,2", "--try", "wire_dtype=fp32,bf16", "--try",
                           "overlap=none", "--try", "bucket_mb=8", "--dry_run")
        self.assertEqual(len(out.splitlines()), 3)

    def test_variables_of_other_commands_are_none_of_a_run(self):
        out, _ = self.run_program(SCALEMARK, "tune", "--model", "trivial", "--dry_run", env=self.environment(SCALEMARK_REPEATS="2", SCALEMARK_OUTPUT="x"))
        self.assertIn("ranks=1 batch_size=", out)

    def test_keys_of_a_launch_are_those_of_all(self):
        self.tune(*FAST, "--launcher", "mpirun", "--try", "ranks=1", "--try", "batch_size=4,8", "--rounds", "2", "--output", "out")
        self.assertEqual(len(self.entries()), 4)
        self.assertEqual(json.loads((self.folder / "out/tuned.json").read_text())["launcher"], "mpirun")

    def test_a_candidate_that_fails_drops_out(self):
        out, _ = self.tune(*FAST, "--try", "ranks=1", "--try", "batch_size=4", "--try", f"inject=kill:step=1,{QUICK},{SLOW}", "--output", "out")
        self.assertRegex(out, r"inject=kill:step=1 +failed +- +- +- +after round 1\n")
        self.assertRegex(out, f"picked: .*{QUICK}\n")

    def test_where_all_fail_there_is_no_pick(self):
        _, err = self.tune(*FAST, "--try", "ranks=1", "--try", "batch_size=4", "--try", "inject=kill:step=1,kill:step=2", "--output", "out",
                           expect=4)
        self.assertIn("every candidate failed", err)
        self.assertFalse((self.folder / "out/tuned.json").exists())

    def test_it_goes_on_where_it_was_ended(self):
        words = ["tune", *FAST, "--try", "ranks=1", "--try", "batch_size=1,8,64", "--rounds", "3", "--chance", "0.9999", "--output", "out"]
        process = self.start(SCALEMARK, *words)
        self.wait_until(lambda: (self.folder / "out/journal.jsonl").exists() and len(self.entries()) >= 2)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("the same command goes on from here", err)
        done = [entry for entry in self.entries() if entry["status"] == "ok"]
        self.run_program(SCALEMARK, *words)
        kept = [entry for entry in self.entries() if entry["status"] == "ok"]
        self.assertEqual(kept[:len(done)], done)

    def test_wrong_words(self):
        for words, naming in ((["--model", "trivial"], "--output DIR is missing"), (["--model", "trivia", "--output", "out"], "trivial"),
                              (["--try", "batch_size", "--output", "out"], "KEY=VALUE"),
                              (["--try", "batch_sise=4,8", "--output", "out"], "batch_size"),
                              (["--batch_size", "4", "--try", "batch_size=4,8", "--output", "out"], "leave out one of both"),
                              (["--try", "seed=1,2", "--try", "seed=3", "--output", "out"], "given twice"),
                              (["--ranks", "1", "--batch_size", "4", "--model", "trivial", "--output", "out"], "one candidate is no choice"),
                              (["plan.json", "--model", "trivial", "--output", "out"], "leave out the flags of a run"),
                              (["--within", "0", "--output", "out"], "--within")):
            _, err = self.tune(*words, expect=2)
            self.assertIn(naming, err)


if __name__ == "__main__":
    main()
