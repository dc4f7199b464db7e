"""Runs that are watched while they go on: windows in the record, events on stderr, a file for monitoring."""

import importlib.util
import json
import signal
import subprocess
import time

from support import SCALEMARK, SMALL, STEADY, ProgramTest, main, mpirun

LONG = [*SMALL, *STEADY, "--num_batches", "1000000"]


def events_of(text):
    return [json.loads(line) for line in text.splitlines()]


def named(events, name):
    return [event for event in events if event["event"] == name]


class Windows(ProgramTest):
    def test_they_hold_the_whole_run_and_the_machine(self):
        for command in ("run", "infer"):
            with self.subTest(command):
                record = self.record_of(command, *LONG, "--max_seconds", "3.5", "--window_seconds", "1")
                windows = record["windows"]
                self.assertEqual(windows["seconds"], 1)
                series = windows["series"]
                self.assertGreaterEqual(len(series), 3)
                steps = record["steps"] if command == "run" else record["queries"]
                self.assertEqual(sum(row["steps"] for row in series), steps)
                self.assertAlmostEqual(sum(row["seconds"] for row in series), record["wall_seconds"], delta=1)
                for row in series[:3]:
                    self.assertGreater(row["memory_bytes"], 1e7)
                    self.assertGreaterEqual(row["busy_cpus"], 0)
                self.assertIn(windows["drift"]["verdict"], ("slower", "faster", "steady", "not shown"))
                _, err = self.run_program(SCALEMARK, command, *LONG, "--max_seconds", "1.2", "--window_seconds", "1")
                self.assertIn(" windows of 1 s: ", err)

    def test_ranks_and_curves(self):
        self.run_program(*mpirun(2, SCALEMARK, "scale", *LONG, "--max_seconds", "1.2", "--window_seconds", "1", "--ranks", "1,2",
                         "--repeats", "1", "--output", "s.json"))
        for path in (self.folder / "s.runs").glob("*.json"):
            record = self.read(path)
            steps = record["steps"]
            self.assertEqual(sum(row["steps"] for row in record["windows"]["series"]), steps)

    def test_without_the_flag_there_are_none(self):
        record = self.record_of("run", *SMALL, "--num_batches", "3")
        self.assertIsNone(record["windows"])
        self.assertIn("--window_seconds", record["unavailable"]["windows"])


class Events(ProgramTest):
    def test_every_line_of_a_run_is_an_event(self):
        out, err = self.run_program(SCALEMARK, "run", *LONG, "--max_seconds", "2.5", "--progress", "jsonl", "--json")
        events = events_of(err)
        self.assertEqual(json.loads(out)["status"], "ok")
        start, end = named(events, "start")[0], events[-1]
        self.assertEqual((start["model"], start["ranks"]), ("smallnet", [1]))
        self.assertEqual((end["event"], end["exit_code"]), ("end", 0))
        steps = named(events, "step")
        self.assertGreaterEqual(len(steps), 2)
        self.assertEqual([step["step"] for step in steps], sorted({step["step"] for step in steps}))
        for step in steps:
            self.assertGreater(step["throughput"], 0)
            self.assertEqual((step["of"], step["unit"]), (1000000, "images/sec"))
            self.assertLessEqual(step["left_seconds"], 2.5)
        self.assertAlmostEqual(named(events, "result")[0]["throughput"]["mean"], json.loads(out)["throughput"]["mean"])

    def test_of_ranks_and_of_a_curve_too(self):
        _, err = self.run_program(SCALEMARK, "scale", "--ranks", "1,2", "--repeats", "1", *SMALL, "--num_batches", "5",
                                  "--progress", "jsonl", "--output", "s.json")
        events = events_of(err)
        self.assertEqual(len(named(events, "plan")[0]["runs"]), 3)
        self.assertEqual([event["number"] for event in named(events, "run_end")], [1, 2, 3])
        self.assertEqual(named(events, "result")[0]["record"], "s.json")
        self.assertEqual(named(events, "end")[-1]["exit_code"], 0)

    def test_errors_and_warnings_are_events(self):
        _, err = self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "3", "--progress", "jsonl", "--output", "/proc/x.json",
                                  expect=6)
        events = events_of(err)
        self.assertIn("/proc", " ".join(event["text"] for event in named(events, "message")))
        self.assertEqual(events[-1]["exit_code"], 6)
        _, err = self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "3", "--progress", "jsonl", "--target_loss", "0.1")
        self.assertIn("--data learnable", " ".join(event["text"] for event in named(events_of(err), "warning")))


class OpenMetrics(ProgramTest):
    def metrics(self):
        """{name: value} as the reference parser of OpenMetrics reads the file, where it is there."""
        text = (self.folder / "m.prom").read_text()
        self.assertTrue(text.endswith("# EOF\n"))
        if importlib.util.find_spec("prometheus_client"):
            from prometheus_client.openmetrics.parser import text_string_to_metric_families as of_openmetrics
            from prometheus_client.parser import text_string_to_metric_families as of_prometheus

            samples = [sample for family in of_openmetrics(text) for sample in family.samples]
            self.assertEqual(len(samples), sum(len(family.samples) for family in of_prometheus(text)))
            self.assertEqual(samples[0].labels["model"], "smallnet")
            return {sample.name.removeprefix("scalemark_"): sample.value for sample in samples}
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        return {line.split("{")[0].removeprefix("scalemark_"): float(line.split()[-1]) for line in lines}

    def test_the_file_follows_the_run_and_is_whole_at_every_moment(self):
        process = self.start(SCALEMARK, "run", "--ranks", "2", *LONG, "--max_seconds", "4", "--openmetrics", "m.prom", "--output", "r.json")
        seen = set()
        while process.poll() is None:
            if (self.folder / "m.prom").exists():
                metrics = self.metrics()
                seen.add((metrics["running"], metrics["steps_total"]))
            time.sleep(0.02)
        process.communicate()
        self.assertEqual(process.returncode, 0)
        self.assertGreaterEqual(len({steps for running, steps in seen if running}), 2)
        record, metrics = self.read("r.json"), self.metrics()
        self.assertEqual((metrics["running"], metrics["steps_total"]), (0, record["steps"]))
        self.assertAlmostEqual(metrics["mean_throughput"], record["throughput"]["mean"], delta=1e-6 * metrics["mean_throughput"])
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["m.prom", "r.json"])

    def test_a_killed_run_leaves_what_it_said_last(self):
        process = self.start(SCALEMARK, "run", *LONG, "--openmetrics", "m.prom")
        self.wait_until(lambda: (self.folder / "m.prom").exists() and self.metrics()["steps_total"] > 0)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        metrics = self.metrics()
        self.assertEqual(metrics["running"], 1)
        self.assertLess(abs(metrics["updated_timestamp_seconds"] - time.time()), 60)

    def test_a_place_that_cannot_be_written_is_exit_6_before_the_clock(self):
        for path in ("none/m.prom", "/proc/m.prom"):
            _, err = self.run_program(SCALEMARK, "run", *SMALL, "--openmetrics", path, expect=6)
            self.assertIn(f"--openmetrics {path}", err)

    def test_one_that_goes_away_later_costs_no_measurement(self):
        (self.folder / "d").mkdir()
        process = self.start(SCALEMARK, "run", *LONG, "--max_seconds", "3", "--openmetrics", "d/m.prom", "--output", "r.json")
        self.wait_until(lambda: (self.folder / "d/m.prom").exists())
        subprocess.run(["rm", "-r", "d"], cwd=self.folder, check=True)
        _, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(err.count("warning: --openmetrics d/m.prom"), 1)
        self.assertEqual(self.read("r.json")["status"], "ok")


if __name__ == "__main__":
    main()
