"""scalemark sweep: fresh launches by real mpirun, its journal, and how it goes on after it was stopped or killed."""

import collections
import json
import os
import pathlib
import shlex
import signal
import subprocess
import time

from support import SCALEMARK, ProgramTest, expand, main, mpirun, schema_errors

SETTINGS = {"model": "smallnet", "batch_size": 4, "num_warmup_batches": 1, "num_batches": 4, "num_intra_threads": 1}


class SweepTest(ProgramTest):
    def plan(self, **members):
        settings = {**SETTINGS, **members.pop("settings", {})}
        (self.folder / "plan.json").write_text(json.dumps({"settings": settings, "launcher": "mpirun", **members}))
        return [SCALEMARK, "sweep", "plan.json", "--output", "out"]

    def journal(self):
        entries = [json.loads(line) for line in (self.folder / "out/journal.jsonl").read_text().splitlines()]
        for entry in entries:
            self.assertEqual(schema_errors(entry), [])
        return entries

    def statuses(self):
        return [entry["status"] for entry in self.journal()]


class Points(SweepTest):
    def test_secrets_of_a_plan_reach_the_ranks_and_nobody_else(self):
        secret = "hunter2-of-the-plan"
        words = self.plan(axes={"env.AWS_SECRET_ACCESS_KEY": [secret, secret + "-too"]}, repeats=1, settings={"num_batches": 60})
        out, err = self.run_program(*words, "--dry_run")
        self.assertNotIn(secret, out + err)
        process = self.start(*words)
        seen, shown = set(), []

        def look():
            for path in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    if self.tag.encode() in (own := (path / "environ").read_bytes()):
                        shown.append((path / "cmdline").read_bytes())
                        seen.update(line for line in own.split(b"\0") if line.startswith(b"AWS_SECRET"))
                except OSError:
                    pass
            return process.poll() is not None
        self.wait_until(look, 120)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(len(seen), 2)  # each launch its own
        everything = out + err + str(shown) + "".join(
            path.read_text() for path in (self.folder / "out").rglob("*") if path.is_file())
        self.assertNotIn(secret, everything)
        self.assertIn("env.AWS_SECRET_ACCESS_KEY=sha256:", everything)
        _, err = self.run_program(*words)  # the points are the same ones
        self.assertIn("2 launches are done", err)

    def test_every_point_and_repeat_is_a_launch_of_its_own(self):
        out, err = self.run_program(*self.plan(axes={"ranks": [1, 2], "precision": ["fp32", "bf16"]}, repeats=2,
                                               default={"ranks": 1, "precision": "fp32"}))
        entries = self.journal()
        self.assertEqual(collections.Counter((e["settings"]["ranks"], e["settings"]["precision"], e["repeat"]) for e in entries),
                         {(n, p, k): 1 for n in (1, 2) for p in ("fp32", "bf16") for k in (1, 2)})
        self.assertEqual([e["repeat"] for e in entries], [1] * 4 + [2] * 4)
        ids = set()
        for entry in entries:
            record = self.read(f"out/{entry['record']}")
            self.assertEqual((record["status"], record["world_size"], record["precision"], record["config_hash"]),
                             ("ok", entry["settings"]["ranks"], entry["settings"]["precision"], entry["config_hash"]))
            ids.add(record["id"])
        self.assertEqual(len(ids), 8)
        self.assertIn("[8/8]", err)
        self.assertIn("left", err)
        self.assertRegex(out, r"ranks=1 precision=fp32 +2 +0 .*images/sec +1\.000\n")
        self.assertRegex(out, r"fastest: not shown; repeat \d+ times "
                              r"\(largest mean: ranks=\d precision=\w+, \d\.\d+ x ranks=1 precision=fp32\)\n")

    def test_the_table_is_there_as_json(self):
        words = self.plan(axes={"ranks": [1, 2]}, repeats=2, default={"ranks": 1})
        table, _ = self.run_program(*words)
        out, _ = self.run_program(*words, "--json")  # everything is done
        sweep = json.loads(out)
        self.assertEqual([point["launches"] for point in sweep["points"]], [2, 2])
        for point in sweep["points"]:
            self.assertIn(point["point"], table)
            rates = [self.read(f"out/{record}")["throughput"]["mean"] for record in point["records"]]
            self.assertAlmostEqual(point["throughput"]["largest"], max(rates), delta=1e-6 * max(rates))
        self.assertEqual(sweep["points"][0]["over_default"], 1)
        self.assertFalse(sweep["fastest"]["shown"])
        _, err = self.run_program(*words, "--json", "--dry_run", expect=2)
        self.assertIn("--dry_run prints commands", err)

    def test_variables_reach_the_ranks_or_are_taken_away(self):
        self.run_program(*self.plan(axes={"env.NCCL_ALGO": ["Ring", None]}), env=self.environment(NCCL_ALGO="Tree"))
        for entry in self.journal():
            environment = self.read(f"out/{entry['record']}")["environment"]
            self.assertEqual(environment.get("NCCL_ALGO"), entry["settings"]["env.NCCL_ALGO"])

    def test_a_dry_run_prints_the_very_commands(self):
        words = self.plan(axes={"ranks": [1, 2], "env.NCCL_ALGO": ["a b;$(c)"]})
        out, _ = self.run_program(*words, "--dry-run")
        self.assertFalse((self.folder / "out").exists())
        self.assertEqual(len(out.splitlines()), 2)
        command = out.splitlines()[0]
        record = next(word for word in shlex.split(command) if word.startswith("--output=")).removeprefix("--output=")
        subprocess.run(["bash", "-c", command], check=True, cwd=self.folder, env=self.environment(), capture_output=True, timeout=60)
        self.assertEqual(json.loads(pathlib.Path(record).read_text())["environment"]["NCCL_ALGO"], "a b;$(c)")

    def test_ranks_are_bound_as_the_plan_says_and_keep_their_threads(self):
        plain = {name: value for name, value in self.environment().items() if name not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        self.run_program(*self.plan(axes={"binding": ["core", "socket", "numa", "none"]},
                                    settings={"ranks": 2, "cpus_per_rank": 1, "num_intra_threads": None}), env=plain)
        for entry in self.journal():
            asked = entry["settings"]["binding"]
            for rank in self.read(f"out/{entry['record']}")["ranks"]:
                self.assertEqual(rank["affinity_requested"], "core:1" if asked == "core" else asked)
                self.assertIsNot(rank["binding"]["as_asked"], False, rank)
                self.assertEqual(rank["threads"], 1)
                if asked == "none":
                    self.assertEqual(expand(rank["cpus"]), os.sched_getaffinity(0))

    def test_inference_too(self):
        self.run_program(*self.plan(command="infer", axes={"kernels": ["scalemark", "torch"]}))
        self.assertEqual({self.read(f"out/{e['record']}")["kind"] for e in self.journal()}, {"inference"})


class Failures(SweepTest):
    def test_a_failing_point_is_recorded_and_the_rest_goes_on(self):
        words = self.plan(points=[{"seed": 1}, {"inject": "nan_loss:step=2"}, {"seed": 2}])
        out, err = self.run_program(*words, expect=4)
        self.assertEqual(sorted(self.statuses()), ["invalid", "ok", "ok"])
        self.assertRegex(out, r"inject=\S+ +0 +1 ")
        _, err = self.run_program(*words, expect=4)
        self.assertIn("3 launches are done", err)
        self.assertEqual(len(self.journal()), 3)
        self.run_program(*words, "--retry-failed", expect=4)
        self.assertEqual(len(self.journal()), 4)

    def test_a_killed_rank_has_its_reason_in_the_journal(self):
        self.run_program(*self.plan(axes={"ranks": [2]}, settings={"inject": "kill:rank=1:step=2"}), expect=4)
        entry, = self.journal()
        self.assertEqual((entry["status"], entry["record"]), ("failed", ""))
        self.assertIn("killed by signal 9", entry["reason"])

    def test_a_launch_that_takes_too_long_is_ended(self):
        words = self.plan(points=[{"seed": 1}, {"inject": "delay:milliseconds=60000"}], launch_timeout=10)
        start = time.monotonic()
        self.run_program(*words, expect=5)
        self.assertLess(time.monotonic() - start, 40)
        self.assertEqual(sorted(self.statuses()), ["ok", "timeout"])
        self.assertIn("10 s", next(e["reason"] for e in self.journal() if e["status"] == "timeout"))

    def test_what_is_wrong_is_said_before_anything_starts(self):
        plan = self.plan(axes={"precision": ["fp8"]})
        for words, text in (([SCALEMARK, "sweep"], "one plan"), ([SCALEMARK, "sweep", "none.json", "--output", "o"], "no such file"),
                            (plan, "/axes/precision/0"), ([*plan, "--retry"], "retry"), (mpirun(2, *plan), "start it once")):
            _, err = self.run_program(*words, expect=2)
            self.assertIn(text, err)
        _, err = self.run_program(*self.plan()[:3], expect=2)
        self.assertIn("--output DIR", err)
        self.assertFalse((self.folder / "out").exists())

    def test_a_folder_has_one_sweep_at_a_time(self):
        words = self.plan(settings={"inject": "delay:milliseconds=300"})
        first = self.start(*words)
        self.wait_for_line(first.stderr, "[1/1]")
        _, err = self.run_program(*words, expect=7)
        self.assertIn("another sweep", err)
        first.communicate(timeout=60)
        self.assertEqual(first.returncode, 0)


class Resuming(SweepTest):
    def finish(self, words):
        self.run_program(*words)
        done = [(e["point"], e["repeat"]) for e in self.journal() if e["status"] == "ok"]
        self.assertEqual(len(done), len(set(done)), "a launch counted twice")
        self.assertEqual(len(done), 4)

    def test_after_kill_9_and_a_torn_line(self):
        words = self.plan(axes={"seed": [1, 2]}, repeats=2, settings={"inject": "delay:milliseconds=200"})
        process = self.start(*words)
        self.wait_for_line(process.stderr, "[3/4]")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
        self.assert_nothing_left()  # also the launch that it watched
        self.assertEqual(self.statuses(), ["ok", "ok"])
        with open(self.folder / "out/journal.jsonl", "a") as file:
            file.write('{"schema_version": 1, "kind": "journal_en')
        self.finish(words)

    def test_after_ctrl_c(self):
        words = self.plan(axes={"seed": [1, 2]}, repeats=2, settings={"inject": "delay:milliseconds=300"})
        process = self.start(*words)
        self.wait_for_line(process.stderr, "[2/4]")
        self.wait_until(lambda: sum("images/sec:" in log.read_text() for log in (self.folder / "out/logs").iterdir()) == 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4, err)
        self.assertIn("goes on from here", err)
        self.assertEqual(self.statuses()[0], "ok")
        self.assertEqual(self.statuses()[1:], ["interrupted"])
        self.finish(words)

    def test_a_record_that_is_gone_is_named_and_measured_again_only_when_asked(self):
        words = self.plan(axes={"seed": [1, 2]}, repeats=2)
        self.run_program(*words)
        gone, torn = (self.folder / "out" / entry["record"] for entry in self.journal()[:2])
        whole = torn.read_text()
        gone.unlink()
        torn.write_text(whole[:100])
        for more in ([], ["--retry_failed"]):
            _, err = self.run_program(*words, *more, expect=6)
            for text in ("2 launches are done", gone.name, torn.name, "--repair"):
                self.assertIn(text, err)
        self.assertEqual(len(self.journal()), 4)  # nothing was launched
        _, err = self.run_program(SCALEMARK, "compare", "out", "--by", "seed", expect=6)
        self.assertIn("--repair", err)
        torn.write_text(whole)
        _, err = self.run_program(*words, "--repair")
        self.assertIn("[1/1]", err)
        self.assertEqual(torn.read_text(), whole)
        self.assertEqual(self.read(f"out/runs/{gone.name}")["status"], "ok")
        self.run_program(*words)

    def test_a_changed_plan_measures_what_is_new(self):
        self.run_program(*self.plan(axes={"seed": [1, 2]}))
        _, err = self.run_program(*self.plan(axes={"seed": [2, 3, 1]}))
        self.assertIn("2 launches are done", err)
        self.assertEqual([e["settings"]["seed"] for e in self.journal()][2:], [3])


if __name__ == "__main__":
    main()
