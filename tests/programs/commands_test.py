"""The commands as users call them: alone, under their own mpirun, inside and outside a launcher."""

import json
import os
import pathlib
import re

from support import ROOFLINE, ROOT, SCALEMARK, SMALL, STEADY, ProgramTest, main, mpirun

CORES = len(os.sched_getaffinity(0))

SHORT = [*SMALL, "--num_batches", "10"]
LINE = re.compile(r"^\d+\timages/sec: \d+\.\d+ \+/- \d+\.\d+ \(jitter = \d+\.\d+\)\t\d+\.\d+$")


class Run(ProgramTest):
    def test_alone_prints_tf_cnn_lines_and_writes_a_valid_record(self):
        out, _ = self.run_program(SCALEMARK, "run", *SHORT, ROOFLINE, "--output", "r.json")
        lines = out.splitlines()
        self.assertEqual(lines[0], "Step\tImg/sec\ttotal_loss")
        self.assertEqual([line.split("\t")[0] for line in lines if LINE.match(line)], ["1", "5", "10"])
        self.assertEqual(lines.count("-" * 64), 2)
        record = self.read("r.json")
        self.assertEqual(record["status"], "ok")
        self.assertRegex(out, rf"total images/sec: {record['throughput']['mean']:.2f}\n")
        self.assertEqual(len(record["step_seconds"]["samples"]), 10)

    def test_json_puts_the_record_and_nothing_else_on_stdout(self):
        out, _ = self.run_program(SCALEMARK, "run", *SHORT, "--json")
        self.assertEqual(json.loads(out)["kind"], "run")

    def test_two_ranks_under_a_users_mpirun(self):
        out, _ = self.run_program(*mpirun(2, SCALEMARK, "run", *SHORT, ROOFLINE, "--output", "r.json"))
        record = self.read("r.json")
        self.assertEqual(record["world_size"], 2)
        self.assertEqual(record["global_batch_size"], 8)
        communication = record["communication"]
        self.assertEqual(communication["communicator"], "mpi")
        self.assertEqual(communication["bytes_per_step"], communication["wire_bytes_per_step"])  # ring: 2(N-1)/N = 1
        self.assertEqual(len(record["ranks"]), 2)
        self.assertEqual(out.count("total images/sec"), 1)

    def test_where_ranks_run_is_compared_with_what_was_asked(self):
        if CORES < 2:
            self.skipTest("two ranks need a core each")
        bound = ["mpirun", *ROOT, "--bind-to", "core", "-n", "2"]
        self.run_program(*bound, SCALEMARK, "run", *SHORT, "--output", "r.json")
        self.assertEqual([rank["binding"] for rank in self.read("r.json")["ranks"]],
                         2 * [{"overlaps_with": [], "as_asked": True, "near_gpu": None, "crosses_numa": False}])
        everywhere = ["taskset", "-c", ",".join(map(str, os.sched_getaffinity(0)))]
        _, err = self.run_program(*bound, *everywhere, SCALEMARK, "run", *SHORT, "--output", "r.json")
        self.assertEqual([rank["binding"]["as_asked"] for rank in self.read("r.json")["ranks"]], [False, False])
        self.assertRegex(err, r"rank 1 on .* runs on CPUs .*, which is not what was asked for \(core\)")

    def test_same_seed_gives_the_same_losses(self):
        traces = []
        for name in ("a.json", "b.json"):
            self.run_program(*mpirun(2, SCALEMARK, "run", *SHORT, "--output", name))
            traces.append(self.read(name)["loss"]["trace"])
        self.assertEqual(traces[0], traces[1])

    def test_every_precision_trains_or_is_refused(self):
        for precision in ("bf16", "fp16"):
            with self.subTest(precision=precision):
                _, err = self.run_program(SCALEMARK, "run", *SHORT, "--precision", precision, "--init_learning_rate", "0.01",
                                          "--num_warmup_batches", "0", "--output", "r.json")
                record = self.read("r.json")
                self.assertLess(record["loss"]["last"], record["loss"]["first"])
                self.assertEqual(record["loss"]["scaling"] is None, precision == "bf16")
                self.assertEqual(f"no native {precision}" in err, not record["precision_native"])
        _, err = self.run_program(SCALEMARK, "run", *SHORT, "--device", "cpu", "--precision", "tf32", expect=7)
        self.assertIn("no CPU has it; use fp32", err)

    def test_every_model_of_the_catalog_runs(self):
        out, _ = self.run_program(SCALEMARK, "list", "--json")
        lists = json.loads(out)
        self.assertLessEqual({"config", "plan", "published_curve"}, {config["kind"] for config in lists["configs"]})
        deeper = {"resnet34", "resnet101", "resnet152", "vit_l_16"}  # of the same layers as others
        models = {model["name"] for model in lists["models"] if model["unit"] == "images/sec"}
        self.assertLess(deeper | {"resnet50"}, models)
        for model in sorted(models - deeper):
            with self.subTest(model=model):
                self.run_program(SCALEMARK, "run", "--model", model, "--batch_size", "2", "--image_size", "75",
                                 "--num_batches", "1", "--num_warmup_batches", "0", "--output", f"{model}.json")
                self.assertEqual(self.read(f"{model}.json")["status"], "ok")

    def test_max_seconds_and_target_ci_are_planned_ends(self):
        for flags, reason in ((["--max_seconds", "0.5"], "max_seconds"), (["--target_ci", "0.5", *STEADY], "target_ci")):
            self.run_program(*mpirun(2, SCALEMARK, "run", *SMALL, "--num_batches", "100000", *flags, "--output", "r.json"))
            record = self.read("r.json")
            self.assertEqual(record["status"], "ok")
            self.assertEqual(record["stop_reason"], reason)

    def test_the_environment_is_an_allow_list(self):
        env = self.environment(MY_SECRET_TOKEN="hunter2", OMP_SECRET_KEY="hunter2")
        self.run_program(SCALEMARK, "run", *SHORT, "--output", "r.json", env=env)
        self.assertNotIn("hunter2", (self.folder / "r.json").read_text())
        self.assertIn("OMP_NUM_THREADS", self.read("r.json")["environment"])


    def test_the_plan_of_a_dry_run_is_the_memory_that_a_run_takes(self):
        """Apart from libraries and working space, at most about 1 GiB as the plan says. Of a vocabulary it counts the
        probabilities too, which GPUs keep and CPUs do not."""
        for words in (["--model", "resnet18", "--image_size", "128", "--batch_size", "16"],
                      ["--model", "transformer_base", "--batch_size", "6"]):
            plan, _ = self.run_program(SCALEMARK, "run", *words, "--dry_run", "--json")
            self.run_program(SCALEMARK, "run", *words, "--num_batches", "1", "--num_warmup_batches", "0", "--output", "r.json")
            [point] = json.loads(plan)["points"]
            rest = self.read("r.json")["memory"]["peak_rss_bytes"] - point["memory_bytes"]
            self.assertGreater(rest / point["memory_bytes"], -0.15, words)
            self.assertLess(rest / 2**30, 1, words)


class Scale(ProgramTest):
    def check_curve(self, name):
        curve = self.read(name)
        self.assertEqual(curve["status"], "ok")
        self.assertEqual([point["ranks"] for point in curve["points"]], [1, 2])
        one, two = curve["points"]
        self.assertEqual((one["speedup"], one["efficiency"]), (1, 1))
        self.assertAlmostEqual(two["speedup"], two["throughput"] / one["throughput"])
        self.assertAlmostEqual(two["efficiency"], two["speedup"] / 2)
        self.assertGreater(two["baseline_throughput"], 0)
        for point in curve["points"]:
            self.assertEqual(len([r for r in point["repeats"] if not r["baseline"]]), 2)
            for repeat in point["repeats"]:
                run = self.read(repeat["path"])
                self.assertEqual((run["id"], run["world_size"]), (repeat["run"], point["ranks"]))
        return run["ranks"]

    def test_outside_a_launcher_it_starts_the_ranks_itself(self):
        out, err = self.run_program(SCALEMARK, "scale", *SHORT, ROOFLINE, "--ranks", "1,2", "--repeats", "2", "--output", "s.json")
        for rank in self.check_curve("s.json"):
            self.assertRegex(rank["affinity_requested"], "^core:[0-9]+$" if CORES >= 2 else "^none$")
            self.assertTrue(rank["binding"]["as_asked"])
        self.assertIn("efficiency", out)
        self.assertIn("ranks", out)

    def test_inside_a_launcher_it_uses_the_ranks_that_are_there(self):
        self.run_program(*mpirun(3, SCALEMARK, "scale", *SHORT, "--ranks", "1,2", "--repeats", "2", "--output", "s.json"))
        self.check_curve("s.json")

    def test_a_second_curve_replaces_the_first_and_its_runs(self):
        for _ in range(2):
            self.run_program(*mpirun(2, SCALEMARK, "scale", *SHORT, "--ranks", "1,2", "--repeats", "2", "--output", "s.json"))
        self.check_curve("s.json")
        self.assertEqual(len(list((self.folder / "s.runs").iterdir())), 2 * 3)

    def test_strong_scaling_divides_the_global_batch(self):
        self.run_program(*mpirun(2, SCALEMARK, "scale", "--model", "smallnet", "--scaling", "strong", "--global_batch_size", "8",
                                 "--num_batches", "5", "--ranks", "1,2", "--repeats", "2", "--output", "s.json"))
        curve = self.read("s.json")
        self.assertEqual(curve["scaling"], "strong")
        batches = [self.read(point["repeats"][0]["path"])["batch_size_per_rank"] for point in curve["points"]]
        self.assertEqual(batches, [8, 4])

    def test_a_world_smaller_than_the_largest_point_is_exit_2(self):
        _, err = self.run_program(*mpirun(2, SCALEMARK, "scale", *SHORT, "--ranks", "1,2,4"), expect=2)
        self.assertIn("-n 4", err)


class FrontDoor(ProgramTest):
    def test_help_version_and_list(self):
        for words, texts in ((["--help"], ["run", "scale", "infer", "list"]), (["run", "--help"], ["--batch_size", "--precision"]),
                             (["scale", "--help"], ["--ranks", "--repeats"]),
                             (["infer", "--help", "all"], ["--mode", "--kernels", "--batch_size"]), (["--version"], ["libtorch", "mpi", "kernels"]),
                             (["list"], ["resnet50", "quickstart"])):
            out, _ = self.run_program(SCALEMARK, *words)
            for text in texts:
                self.assertIn(text, out)

    def test_the_build_without_cuda_libraries_runs(self):
        engine = SCALEMARK.parents[1] / "libexec" / "scalemark-engine-cpu"
        if not engine.exists():
            self.skipTest("this build has no CUDA at all")
        self.run_program(engine, "run", *SHORT, "--output", "r.json")
        self.assertEqual(self.read("r.json")["status"], "ok")
        _, err = self.run_program(engine, "run", *SHORT, "--device", "cuda", expect=7)
        self.assertIn("cuda", err.lower())
        process = self.start(SCALEMARK, "run", *SMALL, *STEADY, "--device", "cpu", "--num_batches", "200")
        self.wait_for_line(process.stdout, "images/sec:")
        self.assertEqual(pathlib.Path(f"/proc/{process.pid}/exe").readlink().name, engine.name)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)


if __name__ == "__main__":
    main()
