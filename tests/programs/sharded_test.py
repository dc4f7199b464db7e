"""--shard and --recompute as users ask for them: curves of several in one command, the plan, lost and stopped ranks, refusals."""

import json
import os
import pathlib
import shutil
import signal
import time
import unittest

from support import PYTHON_HAS_TORCH, SCALEMARK, ProgramTest, main, mpirun

LLAMA = ["--model", "llama_tiny", "--batch_size", "4", "--sequence_length", "16", "--num_warmup_batches", "1", "--num_intra_threads", "1"]
SHARDS = ("none", "optimizer", "gradients", "parameters")


class Sharded(ProgramTest):
    def test_a_curve_of_each_shard_in_one_command(self):
        self.run_program(*mpirun(2, SCALEMARK, "scale", *LLAMA, "--num_batches", "5", "--ranks", "1,2", "--repeats", "1",
                                 "--shard", ",".join(SHARDS), "--output", "s.json"))
        losses = set()
        for shard in SHARDS:
            curve = self.read(f"s-{shard}.json")
            self.assertEqual([point["ranks"] for point in curve["points"]], [1, 2])
            self.check_left_out(curve["points"], shard)
            run = self.read(curve["points"][1]["repeats"][0]["path"])
            losses.add(run["loss"]["trace"][-1])
            communication = run["communication"]
            self.assertEqual(communication["shard"], shard)
            kinds = {one["collective"]: one for one in communication["collectives"]}
            self.assertEqual(set(kinds), {"allreduce"} if shard == "none" else {"allgather", "reduce_scatter"})
            self.assertEqual(sum(one["messages_per_step"] for one in kinds.values()), communication["messages_per_step"])
            self.assertEqual(sum(one["bytes_per_step"] for one in kinds.values()), communication["bytes_per_step"])
            self.assertAlmostEqual(sum(one["wire_bytes_per_step"] for one in kinds.values()),
                                   communication["wire_bytes_per_step"], delta=communication["messages_per_step"])
            states = run["memory"]["optimizer_state_bytes"]
            self.assertAlmostEqual(states, 8 * 500_352 / (1 if shard == "none" else 2), delta=0.01 * states)
        self.assertEqual(len(losses), 1)  # the order of two ranks' sums is the same

    def test_rank_counts_come_in_any_order(self):
        """Whichever point was measured before, all ranks of one make their parts of its weights together."""
        self.run_program(*mpirun(3, SCALEMARK, "scale", *LLAMA, "--num_batches", "2", "--ranks", "1,2,3", "--repeats", "2", "--shard",
                                 "parameters", "--no_baseline", "--output", "o.json"))
        self.assertEqual([len(point["repeats"]) for point in self.read("o.json")["points"]], [2, 2, 2])

    def test_what_is_left_out_never_diverges(self):
        """In place of other blocks' weights stand own ones: trained, that network would soon have no finite loss."""
        self.run_program(SCALEMARK, "scale", "--model", "smallnet", "--shard", "parameters", "--ranks", "2", "--num_batches", "150",
                         "--repeats", "1", "--num_intra_threads", "1", "--roofline=false", "--output", "d.json")
        [point] = self.read("d.json")["points"]
        self.assertEqual(len(point["exposed_collectives"]), 2)

    def check_left_out(self, points, shard):
        """Each collective of --shard was left out once: it alone is missing there, and the step is told."""
        self.assertIsNone(points[0]["exposed_collectives"])
        if shard == "none":
            return self.assertIsNone(points[1]["exposed_collectives"])
        left_out = {one["collective"]: one for one in points[1]["exposed_collectives"]}
        self.assertEqual(set(left_out), {"reduce_scatter", "allgather"})
        whole = self.read(points[1]["repeats"][0]["path"])["step_seconds"]["mean"]
        for name, one in left_out.items():
            run = self.read(one["repeats"][0]["path"])
            self.assertEqual(run["config"]["leave_out"]["value"], name)
            [kind] = run["communication"]["collectives"]
            self.assertEqual({kind["collective"], name}, {"reduce_scatter", "allgather"})
            self.assertEqual(kind["messages_per_step"], run["communication"]["messages_per_step"])
            self.assertAlmostEqual(one["exposed_seconds"], whole - run["step_seconds"]["mean"])
    def test_groups_of_ranks_and_replicas(self):
        """Two ranks divide, as all of the first point and as each of two groups of the second."""
        self.run_program(*mpirun(4, SCALEMARK, "scale", *LLAMA, "--num_batches", "5", "--ranks", "1,2,4", "--repeats", "1",
                                 "--shard", "none,parameters", "--shard_ranks", "2", "--output", "g.json"))
        whole, curve = self.read("g-none.json"), self.read("g-parameters.json")
        self.assertEqual([each["config"]["shard_ranks"]["value"] for each in (whole, curve)], [None, 2])
        one, two, four = (self.read(point["repeats"][0]["path"]) for point in curve["points"])
        self.assertEqual([[part["collective"] for part in point["exposed_collectives"] or []] for point in curve["points"]],
                         [[], ["reduce_scatter", "allgather"], ["reduce_scatter", "allgather", "allreduce"]])
        self.assertEqual([run["communication"]["shard_ranks"] for run in (one, two, four)], [1, 2, 2])
        for key in ("optimizer_state_bytes", "weight_bytes"):
            self.assertEqual(two["memory"][key], four["memory"][key])
            self.assertLess(two["memory"][key], 0.51 * one["memory"][key])
        plain, hybrid = ({each["collective"]: each for each in run["communication"]["collectives"]} for run in (two, four))
        self.assertEqual(set(plain), {"allgather", "reduce_scatter"})
        self.assertEqual(set(hybrid), {"allgather", "reduce_scatter", "allreduce"})
        for kind in plain:
            for number in ("messages_per_step", "bytes_per_step", "wire_bytes_per_step"):
                self.assertEqual(plain[kind][number], hybrid[kind][number], (kind, number))
            self.assertEqual(plain[kind]["wire_bytes_per_step"], plain[kind]["bytes_per_step"] / 2)
        between, scattered = hybrid["allreduce"], hybrid["reduce_scatter"]
        self.assertEqual(between["messages_per_step"], scattered["messages_per_step"])
        self.assertEqual(between["bytes_per_step"], scattered["bytes_per_step"] / 2)
        self.assertEqual(between["wire_bytes_per_step"], between["bytes_per_step"])  # 2 (R - 1) / R of it, R = 2
        communication = four["communication"]
        for number in ("messages_per_step", "bytes_per_step", "wire_bytes_per_step"):
            self.assertAlmostEqual(sum(each[number] for each in hybrid.values()), communication[number],
                                   delta=communication["messages_per_step"])
        self.assertEqual(communication["exposed_method"], "baseline")
        undivided = self.read(whole["points"][2]["repeats"][0]["path"])
        self.assertIsNone(undivided["communication"]["shard_ranks"])
        for loss, right in zip(four["loss"]["trace"], undivided["loss"]["trace"], strict=True):
            self.assertAlmostEqual(loss, right, delta=1e-3)

    def test_recomputed_layers_leave_the_loss(self):
        losses = set()
        for what in ("none", "layer"):
            self.run_program(SCALEMARK, "run", *LLAMA, "--num_batches", "5", "--recompute", what, "--output", "r.json", "--overwrite")
            losses.add(self.read("r.json")["loss"]["trace"][-1])
        self.assertEqual(len(losses), 1)

    def test_the_plan_says_what_fits(self):
        """Llama 3 8B with AdamW in bf16: 16 bytes a parameter, divided, and what a layer needs at a time."""
        out, _ = self.run_program(SCALEMARK, "scale", "--model", "llama3_8b", "--precision", "bf16", "--wire_dtype", "bf16", "--shard",
                                  "parameters", "--recompute", "layer", "--batch_size", "1", "--sequence_length", "8192",
                                  "--ranks", "1,8,1024,16384", "--dry_run", "--device_memory", "80", "--json")
        plan = json.loads(out)
        one, eight, many, most = plan["points"]
        parameters = 8_030_261_248
        self.assertFalse(one["fits"])
        self.assertTrue(eight["fits"])
        self.assertEqual(one["optimizer_bytes"], 8 * parameters)
        for point, ranks in ((eight, 8), (many, 1024), (most, 16384)):
            self.assertAlmostEqual(point["optimizer_bytes"], 8 * parameters / ranks, delta=8)
            self.assertAlmostEqual(point["weight_bytes"], 4 * parameters / ranks, delta=8)
            kinds = {collective["collective"]: collective for collective in point["collectives"]}
            self.assertEqual(kinds["reduce_scatter"]["bytes"], 2 * parameters)
            layers = 32 * 218_103_808
            self.assertEqual(kinds["allgather"]["bytes"], 2 * (parameters - layers + layers * 63 // 32))
            self.assertAlmostEqual(kinds["allgather"]["wire_bytes"], kinds["allgather"]["bytes"] * (ranks - 1) / ranks, delta=2)
        words = [SCALEMARK, "scale", "--model", "llama3_8b", "--precision", "bf16", "--shard", "parameters", "--batch_size", "max",
                 "--ranks", "8,64", "--dry_run"]
        eight, many = json.loads(self.run_program(*words, "--device_memory", "80", "--json")[0])["points"]
        self.assertGreater(many["batch_size_per_rank"], eight["batch_size_per_rank"])
        self.assertTrue(eight["fits"] and many["fits"])
        _, err = self.run_program(*words, expect=2)
        self.assertIn("--device_memory GIB", err)
        text, _ = self.run_program(SCALEMARK, "scale", "--model", "llama3_8b", "--shard", "parameters", "--ranks", "8", "--dry_run",
                                   "--device_memory", "80")
        self.assertRegex(text, "fits in 80 GiB")
        self.assertRegex(text, "reduce_scatter")

    def test_the_plan_of_groups(self):
        """Of 64 ranks each group of 8 holds a model as 8 ranks do; between the groups an eighth of the gradients is summed."""
        given = ["--model", "llama3_8b", "--precision", "bf16", "--wire_dtype", "bf16", "--shard", "parameters", "--shard_ranks", "8",
                 "--batch_size", "1", "--sequence_length", "8192", "--ranks", "4,8,64", "--dry_run"]
        out, _ = self.run_program(SCALEMARK, "scale", *given, "--json")
        four, eight, many = json.loads(out)["points"]
        self.assertEqual(many["memory_bytes"], eight["memory_bytes"])
        self.assertAlmostEqual(four["optimizer_bytes"], 2 * eight["optimizer_bytes"], delta=8)
        self.assertEqual(many["collectives"][:2], eight["collectives"])
        between = many["collectives"][2]
        self.assertEqual(between["collective"], "allreduce")
        self.assertEqual(between["bytes"], 2 * 8_030_261_248 // 8)
        self.assertAlmostEqual(between["wire_bytes"], 2 * 7 / 8 * between["bytes"], delta=2)
        self.assertEqual(many["wire_bytes_per_step"], sum(each["wire_bytes"] for each in many["collectives"]))
        text, _ = self.run_program(SCALEMARK, "scale", *given)
        self.assertRegex(text, "in groups of 8 ranks")

    def rank(self, number):
        [pid] = [pid for pid in self.processes("scalemark-engine")
                 if f"OMPI_COMM_WORLD_RANK={number}" in pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0")]
        return pid

    def test_a_stopped_rank_is_named_and_a_killed_one_ends_the_job(self):
        stopped, killed = (signal.SIGSTOP, 5), (signal.SIGKILL, 128 + signal.SIGKILL)
        for faults, ranks, *words in (((stopped,), 2, "optimizer"), ((killed,), 2, "parameters"),
                                      ((stopped, killed), 4, "parameters", "--shard_ranks", "2")):
            for sent, code in faults:
                with self.subTest(words=words, signal=sent.name):
                    process = self.start(*mpirun(ranks, SCALEMARK, "run", *LLAMA, "--num_batches", "1000000", "--display_every", "100",
                                                 "--shard", *words, "--timeout", "4"))
                    self.wait_for_line(process.stdout, "tokens/sec:")
                    os.kill(self.rank(ranks - 1), sent)
                    begin = time.monotonic()
                    _, err = process.communicate(timeout=60)
                    self.assertLess(time.monotonic() - begin, 25)
                    self.assertEqual(process.returncode, code, err)
                    if sent == signal.SIGSTOP:
                        self.assertRegex(err, r"silent \(stopped, dead or unreachable\)")

    def test_one_rank_that_gets_a_wrong_sum_ends_the_run(self):
        for ranks, *words in ((2, "gradients"), (4, "parameters", "--shard_ranks", "2")):
            for step, when in ((0, ""), (3, "it was right before the measurement")):
                with self.subTest(words=words, step=step):
                    _, err = self.run_program(*mpirun(ranks, SCALEMARK, "run", *LLAMA, "--num_batches", "5", "--timeout", "60", "--shard",
                                                      *words, "--inject", f"corrupt_allreduce:rank={ranks - 1}:step={step}"), expect=4)
                    self.assertRegex(err, f"reduce-scatter.* is wrong on rank {ranks - 1}.*{when}")

    def test_what_has_no_meaning_is_refused(self):
        for words, naming in (
                (["--shard", "parameters", "--overlap", "step"], "--overlap step .* --overlap backward"),
                (["--shard", "optimizer", "--reducer", "c10d"], "--reducer scalemark"),
                (["--shard", "weights"], "none, optimizer, gradients, parameters|none\\|optimizer"),
                (["--shard", "gradients", "--forward_only"], "--forward_only"),
                (["--shard", "optimizer", "--embedding_gradients", "sparse"], "dense gradients"),
                (["--shard", "parameters", "--checkpoint_every", "2", "--checkpoint_writers", "node"], "leave it out, or give rank"),
                (["--shard", "parameters", "--checkpoint_every", "2", "--checkpoint_writers", "root"], "leave it out, or give rank"),
                (["--shard", "none,parameters"], "scalemark scale"),
                (["--shard_ranks", "2"], "--shard optimizer, gradients or parameters"),
                (["--shard", "parameters", "--shard_ranks", "0"], "1 to 1000000"),
                (["--shard", "parameters", "--shard_ranks", "half"], "1 to 1000000|number"),
                (["--shard", "parameters", "--shard_ranks", "3", "--ranks", "4"], "3 does not divide 4 ranks.* 1, 2, 4"),
                (["--recompute", "layer", "--model", "vgg16", "--sequence_length", "16"], "row of layers|sequence"),
                (["--leave_out", "allgather"], "--shard optimizer, gradients or parameters"),
                (["--shard", "optimizer", "--leave_out", "broadcast"], "reduce_scatter.*allgather"),
                (["--shard", "optimizer", "--leave_out", "allreduce"], "--shard_ranks"),
                (["--device_memory", "80"], "--dry_run"),
                (["--model", "gpt2", "--sequence_length", "1025"], "1024")):
            with self.subTest(words=words):
                given = [SCALEMARK, "run", "--model", "llama_tiny", *words] if "--model" not in words else [SCALEMARK, "run", *words]
                _, err = self.run_program(*given, expect=2)
                self.assertRegex(err, naming)
        _, err = self.run_program(*mpirun(3, SCALEMARK, "run", *LLAMA, "--shard", "parameters", "--shard_ranks", "2"), expect=2)
        self.assertRegex(err, "--shard_ranks 2 does not divide 3 ranks.* 1, 3")
        _, err = self.run_program(SCALEMARK, "scale", *LLAMA, "--ranks", "2,4,6", "--shard", "none,parameters", "--shard_ranks", "4", expect=2)
        self.assertRegex(err, "--shard_ranks 4 does not divide 6 ranks.* 1, 2, 3, 6")


class Checkpoints(ProgramTest):
    """Parts of a checkpoint, and what is made of them."""
    WORDS = [*LLAMA, "--num_batches", "4", "--checkpoint_every", "2", "--checkpoint_dir", "c"]

    def join(self, *words, expect=0):
        return self.run_program(SCALEMARK, "join", *words, expect=expect)[1]

    def names(self, folder="c"):
        return sorted(path.name for path in (self.folder / folder).iterdir())

    def train(self, ranks, shard, *words, folder="c"):
        self.run_program(*mpirun(ranks, SCALEMARK, "run", *LLAMA, "--num_batches", "4", "--checkpoint_every", "2", "--checkpoint_dir",
                                 folder, "--shard", shard, "--output", "r.json", "--overwrite", *words))
        return self.read("r.json")

    def assert_same(self, found, right):
        """Of two files of checkpoints."""
        import torch

        found, right = (torch.jit.load(str(self.folder / path)) for path in (found, right))
        for kind in ("named_parameters", "named_buffers"):
            tensors = dict(getattr(found, kind)())
            self.assertEqual(list(tensors), [name for name, _ in getattr(right, kind)()])
            for name, tensor in getattr(right, kind)():
                self.assertTrue(torch.equal(tensors[name], tensor), name)
        for state in ("state0", "state1"):
            pairs = list(zip(getattr(found.optimizer, state), getattr(right.optimizer, state), strict=True))
            self.assertGreater(len(pairs), 10)
            for one, other in pairs:
                self.assertTrue(torch.equal(one, other), state)
        for scalar in ("steps", "optimizer_steps", "learning_rate", "loss_scale"):
            self.assertEqual(getattr(found.training_state, scalar), getattr(right.training_state, scalar))

    @unittest.skipUnless(PYTHON_HAS_TORCH, "no torch in this Python to read it with")
    def test_joined_they_are_what_a_run_without_shards_writes(self):
        for words, shards in ((["--optimizer", "adamw"], SHARDS[1:]),
                              (["--optimizer", "adamw", "--precision", "bf16", "--wire_dtype", "bf16"], ["parameters"])):
            self.train(2, "none", *words, folder="whole")
            for shard in shards:
                with self.subTest(shard=shard, words=words):
                    record = self.train(2, shard, *words)
                    self.assertEqual(self.names(), ["checkpoint-00000005-rank0.pt", "checkpoint-00000005-rank1.pt"])
                    sizes = [(self.folder / "c" / name).stat().st_size for name in self.names()]
                    whole = (self.folder / "whole/checkpoint-00000005.pt").stat().st_size
                    self.assertAlmostEqual(sum(sizes), whole, delta=0.05 * whole)
                    self.assertAlmostEqual(sizes[0], sizes[1], delta=0.05 * whole)
                    checkpoint = record["checkpoint"]
                    self.assertEqual((checkpoint["writers"], checkpoint["files"], checkpoint["count"]), ("rank", 2, 2))
                    self.assertEqual((checkpoint["total_bytes"], checkpoint["bytes"]), (sum(sizes), sum(sizes) // 2))
                    rate = checkpoint["total_bytes_per_second"]
                    self.assertAlmostEqual(rate, checkpoint["total_bytes"] / checkpoint["write_seconds"]["mean"], delta=1e-6 * rate)
                    err = self.join("c", "--output", "joined.pt", "--overwrite")
                    self.assertIn(f"step 5, of 2 ranks with --shard {shard}", err)
                    self.assert_same("joined.pt", "whole/checkpoint-00000005.pt")

    def test_of_several_groups_the_first_one_writes(self):
        record = self.train(4, "parameters", "--shard_ranks", "2")
        self.assertEqual(self.names(), ["checkpoint-00000005-rank0.pt", "checkpoint-00000005-rank1.pt"])
        self.assertEqual(record["checkpoint"]["files"], 2)
        self.assertIn("of 2 ranks with --shard parameters", self.join("c", "--output", "joined.pt"))

    def test_a_curve_leaves_sets_that_are_never_mixed(self):
        self.run_program(*mpirun(3, SCALEMARK, "scale", *self.WORDS, "--ranks", "1,2,3", "--repeats", "2", "--shard", "gradients",
                                 "--output", "s.json"))
        for path in (self.folder / "s.runs").glob("*.json"):
            record = self.read(path)
            ranks = record["world_size"]
            self.assertEqual((record["checkpoint"]["files"], record["checkpoint"]["count"]), (ranks, 2))
        names = self.names()
        self.assertEqual(names, [f"checkpoint-00000005-rank{rank}.pt" for rank in range(len(names))])
        self.assertIn(f"step 5, of {len(names)} rank", self.join("c", "--output", "joined.pt"))

    def test_what_does_not_fit_is_named(self):
        self.train(2, "parameters")
        part = self.folder / "c/checkpoint-00000005-rank1.pt"
        content = part.read_bytes()
        for damaged, words in ((None, "it is not there"), (content[:-1], "it cannot be read"), (content[:1000], "it cannot be read"),
                               (b"", "it cannot be read")):
            part.unlink()
            if damaged is not None:
                part.write_bytes(damaged)
            err = self.join("c", "--output", "joined.pt", expect=6)
            self.assertRegex(err, f"checkpoint-00000005-rank1.pt: {words}.*--step")
            self.assertFalse((self.folder / "joined.pt").exists())
            part.write_bytes(content)
        self.train(3, "parameters", folder="three")
        part.write_bytes((self.folder / "three/checkpoint-00000005-rank1.pt").read_bytes())
        self.assertIn("it is of 3 ranks, and rank 0's is of 2", self.join("c", "--output", "joined.pt", expect=6))
        self.train(2, "parameters", folder="again")
        part.write_bytes((self.folder / "again/checkpoint-00000005-rank1.pt").read_bytes())
        self.assertIn("another measurement", self.join("c", "--output", "joined.pt", expect=6))
        part.write_bytes(content)
        for words, text in ((["c", "--step", "4"], "of step 5"), (["missing"], "--checkpoint_dir"), (["."], "--checkpoint_dir"),
                            ([], "one folder"), (["c", "again"], "one folder")):
            self.assertIn(text, self.join(*words, "--output", "joined.pt", expect=2))
        self.assertIn("--output FILE", self.join("c", expect=2))
        (self.folder / "joined.pt").write_text("mine")
        self.assertIn("--overwrite", self.join("c", "--output", "joined.pt", expect=2))
        self.assertEqual((self.folder / "joined.pt").read_text(), "mine")
        self.assertIn("--output", self.join("c", "--output", "none/joined.pt", expect=6))
        self.assertEqual(self.join("c", "--step", "5", "--output", "joined.pt", "--overwrite", "--quiet"), "")

    def test_killed_at_any_time_a_set_is_there(self):
        for seconds in (0, 0.07):
            with self.subTest(seconds=seconds):
                shutil.rmtree(self.folder / "c", ignore_errors=True)
                process = self.start(*mpirun(2, SCALEMARK, "run", *LLAMA, "--num_batches", "1000000", "--checkpoint_every", "1",
                                             "--checkpoint_dir", "c", "--shard", "parameters"))
                self.wait_until(lambda: len({path.name[:19] for path in (self.folder / "c").glob("*.pt")}) >= 2)
                time.sleep(seconds)
                for pid in self.processes("scalemark-engine"):
                    os.kill(int(pid), signal.SIGKILL)
                process.communicate(timeout=60)
                self.join("c", "--output", "joined.pt", "--overwrite")


if __name__ == "__main__":
    main()
