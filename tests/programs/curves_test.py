"""What a curve can say: several precisions or batches in one command, resources, a target loss, a time to solution."""

import json
import os
import pathlib
import signal

from support import SCALEMARK, SMALL, ProgramTest, expand, main, mpirun

ONCE = ["--ranks", "1,2", "--repeats", "1", "--num_batches", "5"]
POINTS = [*ONCE, "--repeats", "2"]
STRONG = ["--model", "smallnet", "--scaling", "strong", "--num_warmup_batches", "1", "--display_every", "1000"]


def value(record, key):
    return record["config"][key]["value"]


class Families(ProgramTest):
    def test_a_curve_per_precision(self):
        out, err = self.run_program(SCALEMARK, "scale", *SMALL, *ONCE, "--precision", "fp32,bf16", "--output", "out/s.json")
        hashes = set()
        for precision in ("fp32", "bf16"):
            curve = self.read(f"out/s-{precision}.json")
            self.assertEqual((curve["status"], value(curve, "precision")), ("ok", precision))
            hashes.add(curve["config_hash"])
            for point in curve["points"]:
                for repeat in point["repeats"]:
                    self.assertTrue(repeat["path"].startswith(f"s-{precision}.runs/"))
                    run = self.read(f"out/{repeat['path']}")
                    self.assertEqual((run["precision"], value(run, "precision")), (precision, precision))
        self.assertEqual(len(hashes), 2)
        self.assertFalse((self.folder / "out/s.json").exists())
        self.assertIn("curve 2 of 2: bf16", err)
        self.assertRegex(out, r"Curves side by side, images/sec\n\nranks +fp32 +bf16 +bf16 over fp32\n +1 ")

    def test_its_hash_is_that_of_the_curve_alone(self):
        for flags in (["--precision", "bf16"], ["--precision", "fp32,bf16"]):
            self.run_program(*mpirun(2, SCALEMARK, "scale", *SMALL, *ONCE, *flags, "--output", "s.json"))
        self.assertEqual(self.read("s.json")["config_hash"], self.read("s-bf16.json")["config_hash"])

    def test_a_curve_per_global_batch_as_a_json_array(self):
        out, _ = self.run_program(SCALEMARK, "scale", *STRONG, *ONCE, "--global_batch_size", "4,8", "--precision", "fp32,bf16",
                                  "--nobaseline", "--json")
        curves = json.loads(out)
        self.assertEqual([(value(c, "precision"), value(c, "global_batch_size")) for c in curves],
                         [("fp32", 4), ("fp32", 8), ("bf16", 4), ("bf16", 8)])
        self.assertEqual([p["batch_size_per_rank"] for p in curves[1]["points"]], [8, 4])

    def test_a_curve_per_model_and_reducer(self):
        out, _ = self.run_program(SCALEMARK, "scale", "--model", "smallnet,transformer_tiny", "--reducer", "scalemark,c10d", "--batch_size", "4",
                                  "--num_warmup_batches", "1", *ONCE, "--nobaseline", "--output", "s.json")
        for model, unit in (("smallnet", "images/sec"), ("transformer_tiny", "tokens/sec")):
            for reducer in ("scalemark", "c10d"):
                curve = self.read(f"s-{model}-{reducer}.json")
                self.assertEqual((curve["status"], curve["unit"]), ("ok", unit))
                run = self.read(curve["points"][1]["repeats"][0]["path"])
                self.assertEqual((run["model"], run["communication"]["reducer"]), (model, reducer))
            self.assertIn(f"Curves side by side, {unit}", out)
        self.assertNotIn("transformer_tiny-scalemark over smallnet", out)

    def test_a_batch_for_each_precision(self):
        out, _ = self.run_program(SCALEMARK, "scale", "--model", "smallnet", *ONCE, "--precision", "fp32,bf16", "--batch_size", "4,8",
                                  "--batch_per_precision", "--nobaseline", "--json")
        self.assertEqual([(value(c, "precision"), value(c, "batch_size")) for c in json.loads(out)], [("fp32", 4), ("bf16", 8)])

    def test_a_curve_per_batch_of_a_rank(self):
        out, _ = self.run_program(SCALEMARK, "scale", "--model", "smallnet", *POINTS, "--batch_size", "4,8", "--nobaseline",
                                  "--output", "s.json")
        self.assertIn("b8 over b4", out)
        points = self.read("s-b8.json")["points"]
        self.assertEqual([(p["batch_size_per_rank"], [r["repeat"] for r in p["repeats"]]) for p in points], [(8, [1, 2])] * 2)

    def test_lists_are_for_scale(self):
        for command in ("run", "infer"):
            _, err = self.run_program(SCALEMARK, command, *SMALL, "--precision", "fp32,bf16", expect=2)
            self.assertIn("scalemark scale", err)

    def test_a_stop_keeps_the_finished_curve_and_the_one_at_work(self):
        process = self.start(SCALEMARK, "scale", *STRONG, "--global_batch_size", "4,64,8", "--ranks", "1,2", "--repeats", "1",
                             "--num_batches", "100", "--nobaseline", "--output", "s.json")
        self.wait_for_line(process.stderr, "curve 2 of 3")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4)
        self.assertEqual(self.read("s-b4.json")["status"], "ok")
        self.assertEqual(self.read("s-b64.json")["status"], "interrupted")
        self.assertFalse((self.folder / "s-b8.json").exists())
        self.assertFalse((self.folder / "s-b8.runs").exists())

    def test_the_same_command_goes_on_where_a_stop_or_a_kill_ended_it(self):
        words = [SCALEMARK, "scale", *STRONG, "--global_batch_size", "4,16", "--ranks", "1,2", "--repeats", "2",
                 "--num_batches", "40", "--output", "s.json"]

        def end(line, number):
            process = self.start(*words, start_new_session=True)
            self.wait_for_line(process.stderr, line)
            if number == signal.SIGKILL:
                for pid in self.processes_left():
                    os.kill(pid, number)
            else:
                process.send_signal(number)
            _, err = process.communicate(timeout=60)
            return err

        end("[4/6]", signal.SIGKILL)  # all of them, in the second round of the first curve
        self.assertFalse((self.folder / "s-b4.json").exists())
        before = {path.name for path in (self.folder / "s-b4.runs").glob("ranks*-round1-*")}
        self.assertEqual(len(before), 3)
        err = end("curve 2 of 2", signal.SIGTERM)
        first = self.read("s-b4.json")
        self.assertEqual((first["status"], first["kept_rounds"]), ("ok", 1), err)
        named = {pathlib.Path(repeat["path"]).name for point in first["points"] for repeat in point["repeats"]}
        self.assertLessEqual(before, named)
        self.assertEqual(len(named), 6)
        self.assertEqual(self.read("s-b16.json")["status"], "interrupted")

        out, err = self.run_program(*words)
        self.assertIn("curve 1 of 2: b4: an earlier command finished it", err)
        self.assertEqual(self.read("s-b4.json")["id"], first["id"])
        self.assertEqual(self.read("s-b16.json")["status"], "ok")
        self.assertIn("Curves side by side", out)

        self.run_program(*words, "--num_batches", "5")  # all finished, and another configuration
        again = self.read("s-b4.json")
        self.assertNotEqual(again["id"], first["id"])
        self.assertEqual(again["kept_rounds"], 0)

    def test_other_variables_are_measured_anew(self):
        words = [SCALEMARK, "scale", *STRONG, "--global_batch_size", "4", "--ranks", "1,2", "--repeats", "2", "--num_batches", "20",
                 "--nobaseline", "--output", "s.json"]
        process = self.start(*words, start_new_session=True)
        self.wait_for_line(process.stderr, "[3/4]")
        for pid in self.processes_left():
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=60)
        _, err = self.run_program(*words, env=self.environment(OMPI_MCA_btl="tcp,self"))
        self.assertIn("under other variables is measured again", err)
        record = self.read("s.json")
        self.assertEqual(record["kept_rounds"], 0)
        runs = [json.loads((self.folder / repeat["path"]).read_text()) for repeat in record["points"][1]["repeats"]]
        self.assertEqual({run["communication"]["transport"] for run in runs}, {"tcp"})

    def test_a_killed_rank_keeps_the_finished_curve_and_what_the_other_had(self):
        process = self.start(SCALEMARK, "scale", *STRONG, "--global_batch_size", "4,8", "--ranks", "1,2", "--repeats", "5",
                             "--num_batches", "10", "--nobaseline", "--output", "s.json")
        self.wait_for_line(process.stderr, "curve 2 of 2")
        self.wait_for_line(process.stderr, "[3/10]")
        ranks = [pid for pid in self.processes_left() if "scalemark-engine" in os.readlink(f"/proc/{pid}/exe")]
        os.kill(ranks[-1], signal.SIGKILL)
        _, err = process.communicate(timeout=90)
        self.assertEqual(process.returncode, 4, err)
        self.assertEqual(self.read("s-b4.json")["status"], "ok")
        partial = self.read("s-b8.json")
        self.assertEqual((partial["status"], value(partial, "global_batch_size")), ("failed", 8))
        self.assertGreaterEqual(sum(len(point["repeats"]) for point in partial["points"]), 3)


class TargetLoss(ProgramTest):
    LEARNABLE = ["--data", "learnable", "--init_learning_rate", "0.05", "--num_classes", "10", "--num_batches", "300",
                 "--display_every", "1000"]

    def test_a_run_ends_when_its_loss_has_come_down(self):
        flags = ["--model", "smallnet", "--batch_size", "8", *self.LEARNABLE, "--num_warmup_batches", "0", "--target_loss", "1"]
        _, err = self.run_program(*mpirun(2, SCALEMARK, "run", *flags, "--output", "r.json"))
        record = self.read("r.json")
        loss, target = record["loss"], record["loss"]["target"]
        self.assertEqual((record["status"], record["stop_reason"]), ("ok", "target_loss"))
        self.assertTrue(target["reached"])
        self.assertLess(record["steps"], 300)
        self.assertLessEqual(target["steps"], record["steps"])
        self.assertLessEqual(record["steps"], target["steps"] + 2)  # agreed on one step late
        last = loss["trace"][:target["steps"]][-5:]
        self.assertLessEqual(sorted(last)[2], 1)
        self.assertGreater(sorted(loss["trace"][:target["steps"] - 1][-5:])[2], 1)
        self.assertLessEqual(target["seconds"], record["wall_seconds"] * 1.01)
        self.assertIn(f"target loss 1: reached after {target['steps']} steps", err)

    def test_what_is_not_reached_is_ok_and_said(self):
        _, err = self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "8", "--target_loss", "0.01", "--output", "r.json")
        record = self.read("r.json")
        self.assertEqual((record["status"], record["stop_reason"], record["steps"]), ("ok", "num_batches", 8))
        self.assertEqual(record["loss"]["target"], {"loss": 0.01, "reached": False, "steps": None, "seconds": None})
        self.assertIn("--data learnable", err)

    def test_steps_and_seconds_for_a_list_of_global_batches(self):
        out, _ = self.run_program(SCALEMARK, "scale", *STRONG, *self.LEARNABLE, "--global_batch_size", "16,32", "--ranks", "1,2",
                                  "--repeats", "1", "--nobaseline", "--target_loss", "1", "--output", "s.json")
        for batch in (16, 32):
            curve = self.read(f"s-b{batch}.json")
            for point in curve["points"]:
                self.assertTrue(point["target"]["reached"])
                self.assertRegex(out, rf"\n +b{batch} +{point['ranks']} +{batch} +{point['target']['steps']:.0f} +\d")
                [repeat] = point["repeats"]
                run = self.read(repeat["path"])["loss"]["target"]
                self.assertEqual(run["steps"], point["target"]["steps"])


class Resources(ProgramTest):
    def curve(self, *flags):
        self.run_program(SCALEMARK, "scale", "--model", "trivial", "--num_warmup_batches", "1", "--display_every", "1000", *ONCE,
                         "--device", "cpu", *flags, "--output", "s.json")
        return self.read("s.json")

    def test_two_ranks_of_one_node_are_one_node(self):
        curve = self.curve("--resource", "node")
        one, two = curve["points"]
        self.assertEqual((curve["resource"], one["resources"], two["resources"]), ("node", 1, 1))
        self.assertAlmostEqual(two["efficiency"], two["speedup"])

    def test_cores_are_those_of_the_masks(self):
        one, two = self.curve("--resource", "core")["points"]
        for point in (one, two):
            ranks = self.read(point["repeats"][0]["path"])["ranks"]
            self.assertGreaterEqual(point["resources"], 1)
            self.assertLessEqual(point["resources"], sum(len(expand(rank["cpus"])) for rank in ranks))
        self.assertAlmostEqual(two["efficiency"], two["speedup"] * one["resources"] / two["resources"])

    def test_gpus_that_are_not_there_are_exit_2(self):
        _, err = self.run_program(SCALEMARK, "scale", *SMALL, *POINTS, "--resource", "gpu", "--device", "cpu", expect=2)
        self.assertIn("--resource gpu", err)


class TimeToSolution(ProgramTest):
    FLAGS = ["--global_batch_size", "16", "--solution_steps", "100", "--base_solution_steps", "800", "--base_batch_size", "2"]

    def test_the_base_has_its_own_batch_and_steps(self):
        out, _ = self.run_program(SCALEMARK, "scale", *STRONG, *POINTS, *self.FLAGS, "--output", "s.json")
        base, two = self.read("s.json")["points"]
        self.assertEqual((base["batch_size_per_rank"], base["global_batch_size"]), (2, 2))
        self.assertEqual((two["batch_size_per_rank"], two["global_batch_size"]), (8, 16))
        for point, steps in ((base, 800), (two, 100)):
            runs = [self.read(r["path"]) for r in point["repeats"]]
            self.assertTrue(all(run["batch_size_per_rank"] == point["batch_size_per_rank"] for run in runs))
            self.assertTrue(all(value(run, "batch_size") in (None, 2) for run in runs))
            timed = [r for r in point["repeats"] if not r["baseline"]]
            mean = sum(r["seconds"] for r in timed) / (5 * len(timed))
            self.assertAlmostEqual(point["time_to_solution_seconds"], steps * mean)
        self.assertAlmostEqual(two["time_to_solution_speedup"],
                               base["time_to_solution_seconds"] / two["time_to_solution_seconds"])
        self.assertEqual(len(two["time_to_solution_speedup_ci95"]), 2)
        self.assertIn("time to solution", out)

    def test_a_dry_run_shows_the_batch_of_the_base(self):
        plan, _ = self.run_program(SCALEMARK, "scale", *STRONG, *POINTS, *self.FLAGS, "--dry_run", "--json")
        self.assertEqual([p["batch_size_per_rank"] for p in json.loads(plan)["points"]], [2, 8])


if __name__ == "__main__":
    main()
