"""--trace: a file that trace viewers open, made by a pass of its own; the measurement is never touched by it."""

import collections
import json
import re
import shutil
import subprocess
import unittest

import c10d_test
from support import ROOFLINE, SCALEMARK, SMALL, STEADY, ProgramTest, main, mpirun

GROUPS = {"convolution", "matrix_product", "normalisation", "optimizer", "communication", "other"}
STEPS = 4


def nanoseconds(microseconds):
    return round(1000 * microseconds)


class Trace:
    """A file in the Trace Event Format, held to what viewers rely on."""

    def __init__(self, test, path):
        self.whole = json.loads(path.read_text())
        test.assertEqual(set(self.whole), {"displayTimeUnit", "traceEvents", "otherData"})
        self.events, self.names = [], {}
        for event in self.whole["traceEvents"]:
            test.assertIsInstance(event["pid"], int)
            test.assertIsInstance(event["tid"], int)
            if event["ph"] == "M":
                self.names.setdefault((event["name"], event["pid"], event["tid"]), []).append(event["args"])
                continue
            test.assertEqual(event["ph"], "X", event)
            test.assertTrue(event["name"])
            test.assertIn(event["cat"], {"step", "phase", "operator", "autograd", "wait", "bucket"})
            test.assertGreaterEqual(event["dur"], 0, event)
            self.events.append(event)
        self.check_names(test)
        self.check_nesting(test)

    def check_names(self, test):
        """Every rank and thread has one name."""
        for pid in self.ranks():
            test.assertEqual(len(self.names["process_name", pid, 0]), 1)
            test.assertTrue(self.names["process_name", pid, 0][0]["name"].startswith(f"rank {pid} on "))
        for pid, tid in {(event["pid"], event["tid"]) for event in self.events}:
            test.assertEqual(len(self.names["thread_name", pid, tid]), 1)

    def check_nesting(self, test):
        """Within a thread an event lies within the one that is open, or begins after its end."""
        threads = collections.defaultdict(list)
        for event in self.events:
            begin = nanoseconds(event["ts"])
            threads[event["pid"], event["tid"]].append((begin, begin + nanoseconds(event["dur"]), event))
        for events in threads.values():
            open_until = []
            for begin, end, event in sorted(events, key=lambda e: (e[0], -e[1])):
                while open_until and open_until[-1] <= begin:
                    open_until.pop()
                if open_until:
                    test.assertLessEqual(end, open_until[-1], event)
                open_until.append(end)

    def ranks(self):
        return {event["pid"] for event in self.events}

    def of(self, category, rank=None):
        return [e for e in self.events if e["cat"] == category and rank in (None, e["pid"])]

    def span(self, rank):
        """Begin of its first step, end of its last."""
        steps = self.of("step", rank)
        return min(e["ts"] for e in steps), max(e["ts"] + e["dur"] for e in steps)


class Traces(ProgramTest):
    def traced(self, *words, ranks=2, expect=0):
        """(trace, record, stdout, stderr) of a run."""
        out, err = self.run_program(*mpirun(ranks, SCALEMARK, "run", *SMALL, "--num_batches", "6",
                                            "--trace", "t.json", "--trace_steps", str(STEPS), "--output", "r.json", *words),
                                    expect=expect)
        return Trace(self, self.folder / "t.json"), self.read("r.json"), out, err

    def test_two_ranks_on_one_axis(self):
        trace, record, _, err = self.traced(ROOFLINE, *STEADY)
        self.assertEqual(trace.ranks(), {0, 1})
        for rank in (0, 1):
            self.assertEqual([e["name"] for e in trace.of("step", rank)], [f"step {i + 1}" for i in range(STEPS)])
            buckets = trace.of("bucket", rank)
            self.assertEqual(sum(e["args"]["bytes"] for e in buckets), STEPS * record["communication"]["bytes_per_step"])
            self.assertTrue(trace.of("wait", rank))
            phases = {e["name"] for e in trace.of("phase", rank)}
            self.assertLessEqual({"forward", "backward", "communication", "optimizer", "agreement"}, phases)
            operators = {e["name"] for e in trace.of("operator", rank)}
            self.assertIn("aten::convolution_backward", operators)
            self.assertIn("ConvolutionBackward0", {e["name"] for e in trace.of("autograd", rank)})
        # Gradients are exchanged in every step, so neither rank is a step ahead of the other.
        first, second = trace.span(0), trace.span(1)
        self.assertLess(max(first[0], second[0]), min(first[1], second[1]))
        # A sum is there on both ranks only after both have given theirs.
        pairs = zip(*([e for e in sorted(trace.of("bucket", rank), key=lambda e: e["ts"])] for rank in (0, 1)))
        slack = 2e6 * record["trace"]["clock_uncertainty_seconds"]
        for a, b in pairs:
            self.assertLessEqual(a["ts"], b["ts"] + b["dur"] + slack)
            self.assertLessEqual(b["ts"], a["ts"] + a["dur"] + slack)
        about = trace.whole["otherData"]
        self.assertEqual(about["record"], record["id"])
        self.assertEqual(len(about["clock_uncertainty_seconds"]), 2)
        self.assertEqual(record["trace"]["clock_uncertainty_seconds"], max(about["clock_uncertainty_seconds"]))
        self.assertIn("trace: t.json: 4 steps", err)

    @unittest.skipIf(subprocess.run(["unshare", "--time", "--monotonic", "1", "true"], capture_output=True, check=False).returncode,
                     "no time namespaces here")
    def test_a_host_whose_clock_says_something_else(self):
        elsewhere = 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then exec unshare --time --monotonic 1000 "$@"; else exec "$@"; fi'
        self.run_program(*mpirun(2, "sh", "-c", elsewhere, "sh", SCALEMARK, "run", *SMALL, *STEADY, "--num_batches", "6",
                                 "--trace", "t.json", "--output", "r.json"))
        trace = Trace(self, self.folder / "t.json")
        about = trace.whole["otherData"]
        self.assertAlmostEqual(about["clock_offset_seconds"][1], 1000, delta=about["clock_uncertainty_seconds"][1] + 1e-6)
        self.assertLess(about["clock_uncertainty_seconds"][1], 1)
        first, second = trace.span(0), trace.span(1)
        self.assertLess(max(first[0], second[0]), min(first[1], second[1]))

    def test_the_measurement_is_left_alone(self):
        trace, record, _, _ = self.traced(ROOFLINE)
        self.assertEqual(record["steps"], 6)
        self.assertEqual(len(record["step_seconds"]["samples"]), 6)
        self.assertEqual(len(record["loss"]["trace"]), 6)
        self.assertAlmostEqual(record["throughput"]["mean"] * record["wall_seconds"], 6 * record["units_per_step"], 6)
        self.assertEqual(record["trace"]["path"], "t.json")
        self.assertEqual(record["trace"]["steps"], STEPS)
        self.assertEqual(record["trace"]["events"], len(trace.events))
        self.assertEqual(record["trace"]["dropped_events"], 0)
        self.assertAlmostEqual(record["trace"]["slowdown"],
                               record["trace"]["step_seconds"] / record["step_seconds"]["mean"] - 1, 9)
        _, without = self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "6", "--output", "plain.json")
        self.assertNotIn("trace:", without)
        plain = self.read("plain.json")
        self.assertIsNone(plain["trace"])
        self.assertIn("--trace", plain["unavailable"]["trace"])
        self.assertEqual(plain["config_hash"], self.hash_of_one_rank())

    def hash_of_one_rank(self):
        self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "6", "--trace", "one.json", "--output", "one-r.json")
        return self.read("one-r.json")["config_hash"]

    def test_groups_of_operators(self):
        trace, record, _, err = self.traced(ROOFLINE)
        groups = record["operators"]["groups"]
        self.assertEqual(set(groups), GROUPS)
        shares = [group["share"] for group in groups.values()] + [record["operators"]["outside"]["share"]]
        self.assertAlmostEqual(sum(shares), 1, 6)
        for name in ("convolution", "matrix_product"):
            group = groups[name]
            self.assertAlmostEqual(group["achieved_flops"], group["flops"] / group["seconds"], delta=1)
            self.assertAlmostEqual(group["roofline_fraction"],
                                   group["achieved_flops"] / record["roofline"]["gemm_flops"], 9)
            counted = sum(e["args"].get("flops", 0) for e in trace.events if "args" in e and self.is_of(name, e["name"]))
            self.assertAlmostEqual(counted, STEPS * group["flops"], delta=1)
        # Forward and two gradients of each layer, but that of the images.
        total = groups["convolution"]["flops"] + groups["matrix_product"]["flops"]
        stated = record["flops_per_sample"] * record["global_batch_size"]
        self.assertLess(total, stated)
        self.assertGreater(total, 2 / 3 * stated)
        self.assertIsNone(groups["optimizer"]["achieved_flops"])
        self.assertIn("operators.groups.optimizer.achieved_flops", record["unavailable"])
        self.assertGreater(groups["optimizer"]["seconds"], 0)
        self.assertGreater(groups["communication"]["seconds"], 0)
        top = record["operators"]["top"]
        self.assertLessEqual(len(top), 20)
        self.assertEqual([o["self_seconds"] for o in top], sorted((o["self_seconds"] for o in top), reverse=True))
        self.assertIn("operators: ", err)

    @staticmethod
    def is_of(group, operator):
        return ("conv" in operator.lower()) == (group == "convolution")

    def test_one_rank_sends_nothing(self):
        trace, record, _, _ = self.traced(ranks=1)
        self.assertEqual(trace.ranks(), {0})
        self.assertEqual(trace.of("bucket"), [])
        self.assertEqual(record["trace"]["clock_uncertainty_seconds"], 0)

    def test_the_other_reducer(self):
        if not c10d_test.built():
            raise unittest.SkipTest("this build has no c10d: libgloo-dev is not installed")
        trace, record, _, _ = self.traced("--reducer", "c10d")
        for rank in (0, 1):
            bytes_sent = sum(e["args"]["bytes"] for e in trace.of("bucket", rank))
            self.assertEqual(bytes_sent, STEPS * record["communication"]["bytes_per_step"])
            self.assertTrue(trace.of("wait", rank))

    def test_rows_of_tables_travel_too(self):
        out, _ = self.run_program(*mpirun(2, SCALEMARK, "run", "--model", "transformer_tiny", "--batch_size", "1",
                                          "--num_batches", "1", "--num_warmup_batches", "1",
                                          "--embedding_gradients", "sparse", "--trace", "t.json", "--trace_steps", "1",
                                          "--json"))
        trace = Trace(self, self.folder / "t.json")
        rows = [e for e in trace.of("bucket", 0) if "embedding" in e["name"]]
        self.assertTrue(rows)
        self.assertTrue(all(e["args"]["bytes"] > 0 for e in rows))
        self.assertGreater(json.loads(out)["operators"]["groups"]["matrix_product"]["flops"], 0)

    def test_inference(self):
        for mode in ("batch", "single_stream"):
            self.run_program(*mpirun(2, SCALEMARK, "infer", "--model", "smallnet", "--batch_size", "1", "--mode", mode,
                                     "--num_batches", "5", "--trace", "t.json", "--output", "i.json", ROOFLINE))
            trace, record = Trace(self, self.folder / "t.json"), self.read("i.json")
            self.assertEqual(len(trace.of("step")), 2 * 3)
            self.assertEqual(trace.of("autograd"), [])
            self.assertEqual(record["queries"], 10)
            self.assertEqual(record["trace"]["steps"], 3)
            groups = record["operators"]["groups"]
            total = groups["convolution"]["flops"] + groups["matrix_product"]["flops"]
            self.assertEqual(total, 2 * record["flops_per_sample"])

    def test_operators_of_several_threads_share_a_step(self):
        flops = []
        for threads in (1, 2):
            self.run_program(SCALEMARK, "infer", "--model", "resnet18", "--image_size", "64", "--batch_size", "16",
                             "--num_intra_threads", threads, "--num_batches", "5", "--trace", "t.json", "--output", "i.json", ROOFLINE)
            operators = Trace(self, self.folder / "t.json").of("operator")
            self.assertEqual(len({event["tid"] for event in operators}), threads)
            groups = self.read("i.json")["operators"]["groups"]
            self.assertLess(sum(group["share"] for group in groups.values()), 1.3)  # a busy machine delays one thread
            flops.append(groups["convolution"]["flops"] + groups["matrix_product"]["flops"])
        self.assertEqual(flops[0], flops[1])

    def test_a_curve_traces_its_largest_point_once(self):
        self.run_program(SCALEMARK, "scale", *SMALL, "--num_batches", "4", "--ranks", "1,2", "--repeats", "2",
                         "--trace", "t.json", "--output", "s.json")
        trace = Trace(self, self.folder / "t.json")
        self.assertEqual(trace.ranks(), {0, 1})
        traced = []
        for point in self.read("s.json")["points"]:
            for repeat in point["repeats"]:
                run = self.read(repeat["path"])
                self.assertEqual(run["id"], repeat["run"])
                self.assertEqual(run["steps"], 4)
                if run["trace"]:
                    traced.append((point["ranks"], repeat["repeat"], repeat["baseline"], run["id"]))
        self.assertEqual(traced, [(2, 2, False, trace.whole["otherData"]["record"])])

    def test_curves_have_a_trace_each(self):
        self.run_program(SCALEMARK, "scale", *SMALL, "--num_batches", "2", "--ranks", "1", "--repeats", "1",
                         "--precision", "fp32,bf16", "--trace", "t.json")
        for name in ("t-fp32.json", "t-bf16.json"):
            self.assertEqual(Trace(self, self.folder / name).ranks(), {0})


class Failures(ProgramTest):
    RUN = [SCALEMARK, "run", *SMALL, "--trace"]

    def test_a_place_that_is_none_is_refused_before_anything_is_measured(self):
        (self.folder / "file").write_text("")
        out, err = self.run_program(*self.RUN, "file/t.json", "--json", expect=6)
        self.assertEqual(out, "")
        self.assertIn("with --trace", err)

    def test_a_place_that_vanishes_costs_the_trace_alone(self):
        metrics = self.folder / "m.txt"
        process = self.start(*self.RUN, "gone/t.json", *STEADY, "--num_batches", "300", "--output", "r.json", "--json",
                             "--openmetrics", "m.txt")
        # While steps are measured the engine has seen the place.
        self.wait_until(lambda: metrics.exists() and re.search(r"^scalemark_running\S* 1$", metrics.read_text(), re.MULTILINE))
        shutil.rmtree(self.folder / "gone")
        out, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 6, err)
        record = self.read("r.json")
        self.assertEqual(json.loads(out), record)
        self.assertEqual(record["status"], "ok")
        self.assertEqual(record["steps"], 300)
        self.assertIsNone(record["trace"])
        self.assertIn("with --trace", record["unavailable"]["trace"])
        self.assertIn("warning: no trace: ", err)

    def test_a_rank_that_dies_in_the_pass_leaves_the_record(self):
        # Traced steps are numbered after the measured ones: 1 + 5 before them.
        killed = ["--num_batches", "5", "--inject", "kill:rank=1:step=7", "--output", "r.json"]
        self.run_program(*mpirun(2, *self.RUN, "t.json", *killed), expect=137)
        self.assert_measured_but_not_traced()
        out, _ = self.run_program(*self.RUN, "t.json", *killed, "--ranks", "2", "--json", expect=4)
        self.assertEqual(json.loads(out), self.assert_measured_but_not_traced())

    def assert_measured_but_not_traced(self):
        record = self.read("r.json")
        self.assertEqual((record["status"], record["steps"], record["trace"]), ("ok", 5, None))
        self.assertFalse((self.folder / "t.json").exists())
        return record

    def test_a_rank_that_hangs_in_the_pass_leaves_the_record(self):
        self.run_program(*mpirun(2, *self.RUN, "t.json", "--num_batches", "5", "--inject", "stop:rank=1:step=7",
                                 "--timeout", "3", "--output", "r.json"), expect=5)
        record = self.assert_measured_but_not_traced()
        self.assertIn("the trace pass failed", record["unavailable"]["trace"])

    def test_what_was_not_measured_is_not_traced(self):
        self.run_program(*self.RUN, "t.json", "--num_batches", "3", "--inject", "nan_loss", "--output", "r.json", expect=4)
        record = self.read("r.json")
        self.assertIn("status is invalid", record["unavailable"]["trace"])
        self.assertFalse((self.folder / "t.json").exists())

    def test_refusals(self):
        for words, complaint in ((["run", "--trace", "t.json.gz"], "gzip"),
                                 (["run", "--trace", "t.json", "--trace_steps", "0"], "trace_steps"),
                                 (["infer", "--mode", "server", "--arrival_rate", "10", "--trace", "t.json"],
                                  "--mode batch")):
            _, err = self.run_program(SCALEMARK, *words, expect=2)
            self.assertIn(complaint, err)


if __name__ == "__main__":
    main()
