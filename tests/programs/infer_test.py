"""scalemark infer as users call it: alone, as replicas under mpirun, with wrong input, and stopped."""

import json
import re
import signal

from support import ROOF, SCALEMARK, SMALL, STEADY, ProgramTest, main, mpirun

SHORT = [*SMALL, "--num_batches", "20"]
LINE = re.compile(r"^\d+\timages/sec: \d+\.\d+ \+/- \d+\.\d+ \(jitter = \d+\.\d+\)\t\d+\.\d+$")


class Infer(ProgramTest):
    def infer(self, *words, launch=None, **options):
        command = [SCALEMARK, "infer", *words]
        return self.run_program(*(launch or []), *command, **options)

    def test_alone_prints_lines_and_writes_a_valid_record(self):
        out, err = self.infer(*SHORT, ROOF, "--output", "r.json")
        lines = out.splitlines()
        self.assertEqual(lines[0], "Step\tImg/sec\tp50_ms")
        self.assertEqual([line.split("\t")[0] for line in lines if LINE.match(line)], ["1", "5", "10", "15", "20"])
        record = self.read("r.json")
        self.assertEqual((record["kind"], record["status"], record["mode"]), ("inference", "ok", "batch"))
        self.assertEqual((record["queries"], record["units_per_query"], record["fused"]), (20, 4, "on"))
        self.assertRegex(out, rf"total images/sec: {record['throughput']['mean']:.2f}\n")
        latency = record["latency_seconds"]
        self.assertEqual(len(latency["samples"]), 20)
        self.assertLessEqual(latency["p50"], latency["p90"])
        self.assertIsNone(latency["p99"])
        self.assertIn("100", record["unavailable"]["latency_seconds.p99"])
        self.assertIn("p99 unknown", err)

    def test_single_stream_asks_one_sample_at_a_time(self):
        out, _ = self.infer(*SMALL[:2], "--mode", "single_stream", "--num_batches", "1000", "--display_every", "500",
                            "--precision", "bf16", "--json")
        record = json.loads(out)  # nothing else on stdout
        self.assertEqual((record["mode"], record["batch_size_per_rank"]), ("single_stream", 1))
        self.assertEqual(record["config"]["batch_size"], {"value": 1, "origin": "default"})
        latency = record["latency_seconds"]
        self.assertLessEqual(latency["p99"], latency["p99_9"])
        self.assertLessEqual(sum(latency["samples"]), record["wall_seconds"])

    def test_two_ranks_are_replicas(self):
        out, _ = self.infer(*SHORT, "--output", "r.json", launch=mpirun(2))
        record = self.read("r.json")
        self.assertEqual(out.count("total images/sec"), 1)
        self.assertEqual([rank["queries"] for rank in record["ranks"]], [20, 20])
        self.assertEqual(len(record["latency_seconds"]["samples"]), 40)
        self.assertAlmostEqual(record["throughput"]["mean"], 40 * 4 / record["wall_seconds"])

    def test_fused_or_not_every_kind_of_model_runs(self):
        for model in ("resnet18", "smallnet", "trivial", "transformer_tiny"):
            for fused in ("on", "off"):
                with self.subTest(model=model, fused=fused):
                    size = [] if model == "transformer_tiny" else ["--image_size", "32"]
                    self.infer("--model", model, "--batch_size", "2", *size, "--num_batches", "2", "--num_warmup_batches", "0",
                               "--fused", fused, "--precision", "bf16", "--output", f"{model}.json")
                    self.assertEqual(self.read(f"{model}.json")["fused"], fused)

    def test_planned_ends(self):
        for flags, reason in ((["--max_seconds", "0.5"], "max_seconds"), (["--target_ci", "0.5", *STEADY], "target_ci")):
            self.infer(*SMALL, "--num_batches", "1000000", *flags, "--output", "r.json", launch=mpirun(2))
            record = self.read("r.json")
            self.assertEqual((record["status"], record["stop_reason"]), ("ok", reason))

    def test_a_file_of_training_serves_and_its_other_keys_are_ignored(self):
        (self.folder / "c.json").write_text(json.dumps(
            {"model": "smallnet", "scaling": "strong", "global_batch_size": 64, "momentum": 0.5, "num_batches": 3}))
        self.infer("--config", "c.json", "--output", "r.json")
        record = self.read("r.json")
        self.assertEqual(record["queries"], 3)
        self.assertNotIn("momentum", record["config"])

    def test_wrong_input_is_exit_2_and_says_what_is_legal(self):
        for words, text in ((["--mode", "stream"], "single_stream"), (["--batch_size", "0"], "1 to 1000000"),
                            (["--fused", "maybe"], "on, off"), (["--optimizer", "adam"], "scalemark run"),
                            (["--precision", "fp8"], "fp32, tf32, bf16, fp16"), (["--inject", "nan_loss"], "neither a loss"),
                            (["--num_batchs", "3"], "--num_batches"), (["--model", "resnet51"], "resnet50")):
            with self.subTest(words=words):
                _, err = self.infer(*words, "--output", "r.json", expect=2)
                self.assertIn(text, err)
        _, err = self.run_program(SCALEMARK, "run", "--mode", "batch", expect=2)
        self.assertIn("scalemark infer", err)
        self.assertFalse((self.folder / "r.json").exists())

    def test_sigterm_ends_between_two_queries(self):
        process = self.start(SCALEMARK, "infer", *SMALL, "--num_batches", "10000000", "--output", "r.json")
        self.wait_for_line(process.stdout, "images/sec:")
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        self.assertEqual(process.wait(timeout=30), 4, process.stderr.read())
        record = self.read("r.json")
        self.assertEqual(record["status"], "interrupted")
        self.assertIsNone(record["throughput"])
        self.assertGreater(record["partial_throughput"], 0)

    def test_a_silent_rank_meets_the_deadline(self):
        _, err = self.infer(*SMALL, "--num_batches", "50", "--timeout", "5", "--inject", "stop:rank=1:step=3",
                            "--output", "r.json", launch=mpirun(2), expect=5)
        self.assertIn("rank 1", err)
        self.assertEqual(self.read("r.json")["status"], "timeout")


if __name__ == "__main__":
    main()
