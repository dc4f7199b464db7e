"""scalemark infer as users call it: alone, as replicas under mpirun, with wrong input, and stopped."""

import json
import re
import signal

from support import ROOFLINE, SCALEMARK, SMALL, STEADY, ProgramTest, main, mpirun

SHORT = [*SMALL, "--num_batches", "20"]
LINE = re.compile(r"^\d+\timages/sec: \d+\.\d+ \+/- \d+\.\d+ \(jitter = \d+\.\d+\)\t\d+\.\d+$")


class Infer(ProgramTest):
    def infer(self, *words, launch=None, **options):
        command = [SCALEMARK, "infer", *words]
        return self.run_program(*(launch or []), *command, **options)

    def test_alone_prints_lines_and_writes_a_valid_record(self):
        out, err = self.infer(*SHORT, ROOFLINE, "--output", "r.json")
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

    def test_with_both_kernels_every_kind_of_model_runs(self):
        for model in ("resnet18", "smallnet", "trivial", "transformer_tiny"):
            for kernels in ("scalemark", "torch"):
                with self.subTest(model=model, kernels=kernels):
                    size = [] if model == "transformer_tiny" else ["--image_size", "32"]
                    self.infer("--model", model, "--batch_size", "2", *size, "--num_batches", "2", "--num_warmup_batches", "0",
                               "--kernels", kernels, "--precision", "bf16", "--output", f"{model}.json")
                    record = self.read(f"{model}.json")
                    # oneDNN has its fused operators for bf16 where the processor has instructions for it.
                    fused = "off" if kernels == "torch" else "on" if record["precision_native"] else "folded"
                    self.assertEqual((record["kernels"], record["fused"]), (kernels, fused))

    def test_the_former_name_of_kernels_warns(self):
        _, err = self.infer(*SHORT, "--fused", "off", "--output", "r.json")
        record = self.read("r.json")
        self.assertEqual((record["kernels"], record["fused"], record["config"]["kernels"]["value"]), ("torch", "off", "torch"))
        warning, = [text for text in record["warnings"] if "fused" in text]
        self.assertIn("write --kernels torch", warning)
        self.assertIn(f"warning: {warning}", err)

    def test_int8_says_how_it_was_quantised_and_how_far_it_rounds(self):
        self.infer("--model", "resnet18", "--image_size", "32", "--batch_size", "2", "--num_batches", "3", "--precision", "int8",
                   ROOFLINE, "--output", "r.json", launch=mpirun(2))
        record = self.read("r.json")
        self.assertEqual((record["status"], record["precision"], record["fused"]), ("ok", "int8", "on"))
        self.assertEqual(record["quantization"]["layers"], 21)
        self.assertTrue(0 < record["quantization"]["relative_error"] < 0.15)
        self.assertIsNone(record["roofline"]["gemm_flops"])  # a rate of fp32 would say nothing
        for command, words, text in (("run", [], "scalemark infer"), ("infer", ["--kernels", "torch"], "--kernels torch")):
            _, err = self.run_program(SCALEMARK, command, *SMALL, "--precision", "int8", *words, expect=2)
            self.assertIn(text, err)

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
                            (["--kernels", "maybe"], "scalemark, torch"), (["--fused", "maybe"], "off, on"),
                            (["--fused", "off", "--kernels", "scalemark"], "contradict"), (["--optimizer", "adam"], "scalemark run"),
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


# A pass takes 5 ms at least: no more than 200 queries a second.
SERVER = [*SMALL[:2], "--mode", "server", "--num_warmup_batches", "2", "--min_duration", "0", "--latency_quantile", "0.5",
          "--inject", "delay:milliseconds=5"]


class Server(ProgramTest):
    def served(self, *words, launch=(), **options):
        out, err = self.run_program(*launch, SCALEMARK, "infer", *SERVER, *words, "--output", "r.json", **options)
        return self.read("r.json"), out, err

    def test_queries_arrive_at_the_rate_of_the_job_shared_by_its_ranks(self):
        record, out, err = self.served("--arrival_rate", "40", "--min_query_count", "121", "--latency_bound_ms", "60000",
                                       launch=mpirun(2))
        server = record["server"]
        self.assertEqual((record["mode"], record["status"], record["batch_size_per_rank"]), ("server", "ok", 1))
        self.assertAlmostEqual(server["arrival_rate"], 40)
        self.assertEqual((server["queries_offered"], record["queries"]), (122, 122))
        self.assertEqual([rank["queries"] for rank in record["ranks"]], [61, 61])
        self.assertAlmostEqual(server["achieved_rate"], 122 / record["wall_seconds"])
        self.assertAlmostEqual(record["throughput"]["mean"], server["achieved_rate"] * record["units_per_query"])
        latency = record["latency_seconds"]
        self.assertAlmostEqual(latency["mean"], server["queue_seconds"]["mean"] + server["service_seconds"]["mean"])
        self.assertGreaterEqual(server["service_seconds"]["mean"], 0.005)  # the fault sleeps no less
        self.assertIsNone(latency["p99"])
        self.assertIn("fewer than 1000 queries (--min_query_count)", record["unavailable"]["latency_seconds.p99"])
        self.assertTrue(server["holds"])
        self.assertGreater(server["timer_lateness_seconds"]["waits"], 0)
        self.assertIn("queries/s offered", err)
        self.assertNotIn("Step", out)  # no lines of steps
        self.assertIn("total images/sec", out)

    def test_more_than_it_can_serve_ends_early_and_holds_nothing(self):
        record, _, err = self.served("--arrival_rate", "2000", "--min_query_count", "100000", "--latency_bound_ms", "60000")
        server = record["server"]
        self.assertEqual((server["ended_by"], server["holds"]), ("overload", False))
        self.assertLess(record["queries"], 100000)
        self.assertIsNone(record["latency_seconds"]["p50"])
        self.assertIn("overloaded", record["unavailable"]["latency_seconds.p50"])
        self.assertIn("overloaded", err)

    def test_batches_are_of_what_has_arrived(self):
        # 28 of each rank; the oldest may wait for far longer than three more take to come.
        record, _, _ = self.served("--arrival_rate", "100", "--min_query_count", "56", "--batch_size", "4",
                                   "--max_queue_delay_ms", "60000", launch=mpirun(2))
        self.assertEqual(record["server"]["batch_size_mean"], 4)

    def test_the_largest_rate_is_searched_for_and_confirmed(self):
        record, _, err = self.served("--latency_bound_ms", "2000", "--min_duration", "0.5", launch=mpirun(2))
        search = record["server"]["search"]
        trials = search["trials"]
        self.assertEqual(search["limited_by"], "latency bound", trials)
        self.assertEqual((trials[-1]["confirms"], trials[-1]["holds"]), (True, True))
        self.assertEqual(trials[-1]["arrival_rate"], search["found"])
        self.assertAlmostEqual(record["server"]["arrival_rate"], search["found"])
        failed = min(trial["arrival_rate"] for trial in trials if not trial["holds"])
        self.assertLessEqual(failed, 1.05 * search["found"] * (1 + 1e-9))
        self.assertTrue(record["server"]["holds"])
        self.assertEqual(err.count("queries/s: "), len(trials), err)
        self.assertIn("largest rate that holds the bound", err)

    def test_no_rate_holds_what_one_pass_exceeds(self):
        record, _, err = self.served("--latency_bound_ms", "1")
        search = record["server"]["search"]
        self.assertEqual((search["found"], search["limited_by"]), (None, "no rate held it"))
        self.assertEqual((record["status"], record["server"]["holds"]), ("ok", False))
        self.assertIn("none", err)

    def test_a_stop_ends_a_search(self):
        process = self.start(SCALEMARK, "infer", *SERVER, "--latency_bound_ms", "2000", "--min_duration", "3", "--output", "r.json")
        self.wait_for_line(process.stderr, "queries/s:")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4, err)
        self.assertEqual(self.read("r.json")["status"], "interrupted")

    def test_a_silent_rank_meets_the_deadline(self):
        _, _, err = self.served("--arrival_rate", "40", "--timeout", "5", "--inject", "stop:rank=1:step=9", launch=mpirun(2), expect=5)
        self.assertIn("rank 1", err)

    def test_wrong_input(self):
        for words, text in (([], "--latency_bound_ms"), (["--arrival_rate", "0"], "0.001 to"),
                            (["--latency_bound_ms", "5", "--min_query_count", "3"], "needs 20"),
                            (["--arrival_rate", "5", "--batch_size", "max"], "give a number")):
            _, err = self.run_program(SCALEMARK, "infer", *SERVER, *words, expect=2)
            self.assertIn(text, err)


if __name__ == "__main__":
    main()
