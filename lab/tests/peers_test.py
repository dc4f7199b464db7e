"""lab/speed and its peers as real processes at tiny sizes: alone and with two ranks, and the result file's schema."""

import importlib.util
import json
import os
import pathlib
import select
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "programs"))
from support import PYTHON_HAS_TORCH, SCALEMARK, SOURCE, ProgramTest, free_port, main, mpirun  # noqa: E402

PEERS = SOURCE / "lab" / "peers"
sys.path.insert(0, str(PEERS))
import interleaving  # noqa: E402

SHORT = ["--threads", "1", "--steps", "3", "--warmup", "1", "--batch_size", "2"]
RESNET = [PEERS / "pytorch_resnet.py", "--image_size", "32", *SHORT]
INFERENCE = [PEERS / "pytorch_inference.py", "--image_size", "32", *SHORT]
TRANSFORMER = [PEERS / "pytorch_transformer.py", "--layers", "1", "--width", "32", "--heads", "2", "--ffn", "64",
               "--vocabulary", "50", "--sequence_length", "8", *SHORT]
DECODER = [PEERS / "pytorch_decoder.py", "--model", "llama_125m", "--layers", "1", "--width", "32", "--heads", "4", "--key_heads", "2",
           "--inner", "64", "--vocabulary", "50", "--sequence_length", "8", *SHORT]
BERT = [PEERS / "pytorch_bert.py", "--layers", "1", "--width", "32", "--heads", "2", "--vocabulary", "50",
        "--sequence_length", "8", *SHORT]
# Each peer in a process of its own, one after the other, which begins where PyTorch is imported: that takes longest.
ONE_AFTER_THE_OTHER = """
import json, os, runpy, sys
sys.path.insert(0, sys.argv[1])
import torch, training
torch.optim.SGD([torch.zeros(1, requires_grad=True)])  # imports what is imported late
for words, variables in json.loads(sys.argv[2]):
    if not (child := os.fork()):
        os.environ.update(variables)
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
        sys.stdout.flush()
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(f"{words} failed")
"""


@unittest.skipUnless(PYTHON_HAS_TORCH, "no torch in this Python")
class Peers(ProgramTest):
    def outputs(self, *peers, ranks=1):
        """What each of these prints; `ranks` of them train together."""
        given = [[list(map(str, words)), {"MASTER_PORT": str(free_port())}] for words in peers]
        words = [sys.executable, "-c", ONE_AFTER_THE_OTHER, PEERS, json.dumps(given)]
        out, _ = self.run_program(*(mpirun(ranks, *words) if ranks > 1 else words))
        lines = out.splitlines()
        self.assertEqual(len(lines), len(peers), out)
        return lines

    def check(self, out, unit, units, ranks, steps=3):
        said = json.loads(out)
        self.assertEqual((said["unit"], said["world_size"], len(said["step_seconds"])), (unit, ranks, steps))
        self.assertAlmostEqual(said["throughput"], ranks * units / statistics.median(said["step_seconds"]))
        self.assertGreater(said["loss"]["first"], 0)
        self.assertGreater(said["peak_rss_bytes"], 2**20)
        return said

    def test_one_process(self):
        peers = ([*RESNET, "--precision", "bf16"], TRANSFORMER, BERT, DECODER)
        units = (("images/sec", 2), ("tokens/sec", 16), ("sequences/sec", 2), ("tokens/sec", 16))
        for out, (unit, count) in zip(self.outputs(*peers), units):
            self.check(out, unit, count, 1)

    @unittest.skipIf(importlib.util.find_spec("intel_extension_for_pytorch"), "Intel's extension is installed")
    def test_a_missing_extension_is_exit_7(self):
        _, err = self.run_program(sys.executable, *BERT, "--ipex", expect=7)
        self.assertIn("intel_extension_for_pytorch with torch", err)

    def test_inference(self):
        flags = ((), ("--precision", "bf16"), ("--precision", "bf16", "--bf16", "autocast"))
        for said in map(json.loads, self.outputs(*([*INFERENCE, *more] for more in flags))):
            self.assertEqual((said["unit"], said["parameters"], len(said["step_seconds"])), ("images/sec", 25_557_032, 3))
            self.assertAlmostEqual(said["throughput"], 2 / statistics.median(said["step_seconds"]))

    def test_queries_take_turns_with_a_peer(self):
        ours = [SCALEMARK, "infer", "--model", "resnet18", "--image_size", "32", "--batch_size", "2", "--num_intra_threads", "1",
                "--num_batches", "400", "--num_warmup_batches", "2", "--json"]  # a slice is many of these queries
        theirs = [sys.executable, *INFERENCE, "--steps", "40"]
        with tempfile.TemporaryDirectory() as folder:
            giver = interleaving.Interleaver(folder, [1, 1])
            jobs = [subprocess.Popen(list(map(str, words)), env=self.environment(**giver.environment(job)), stdout=subprocess.PIPE)
                    for job, words in enumerate((ours, theirs))]
            while any(job.poll() is None for job in jobs):
                select.select(giver.inputs(), [], [], 0.1)
                giver.update()
            giver.close()
        record, said = (json.loads(job.communicate()[0]) for job in jobs)
        self.assertEqual((len(record["latency_seconds"]["samples"]), len(said["step_seconds"])), (400, 40))
        self.assertGreater(min(job.slices for job in giver.jobs), 2, [job.slices for job in giver.jobs])

    def test_two_ranks_train_together(self):
        resnets = [[*RESNET, "--steps", "1", "--wire_dtype", wire] for wire in ("fp32", "bf16")]
        transformer, *outs = self.outputs([*TRANSFORMER, "--precision", "bf16"], *resnets, ranks=2)
        self.check(transformer, "tokens/sec", 16, 2)
        losses = [self.check(out, "images/sec", 2, 2, steps=1)["loss"] for out in outs]  # before and after one update
        self.assertEqual(losses[0]["first"], losses[1]["first"])
        self.assertNotEqual(losses[0]["last"], losses[1]["last"])  # the gradients were rounded on the way

    def test_shards_train_alike(self):
        outs = self.outputs(*([*DECODER, "--shard", shard] for shard in ("none", "optimizer", "parameters")), ranks=2)
        losses = [self.check(out, "tokens/sec", 16, 2)["loss"] for out in outs]
        for loss in losses[1:]:
            self.assertAlmostEqual(loss["first"], losses[0]["first"], places=5)
            self.assertAlmostEqual(loss["last"], losses[0]["last"], places=5)
        self.assertNotEqual(losses[0]["first"], losses[0]["last"])

    @unittest.skipUnless(len(os.sched_getaffinity(0)) > 1, "two ranks need a core each")
    def test_speed_writes_a_valid_file(self):
        out, err = self.run_program(
            SOURCE / "lab" / "speed", "--scalemark", SCALEMARK, "--python", sys.executable, "--rows",
            "resnet50 fp32 2 ranks", "--rounds", "1", "--steps", "1", "--warmup", "1", "--batch_size", "2", "--image_size", "32",
            "--quiet_seconds", "0.1", "--output", self.folder / "speed.json")
        row, = self.read("speed.json")["rows"]
        self.assertIn("resnet50 fp32 2 ranks", out)
        for ratio in row["ratios"]:
            self.assertAlmostEqual(ratio["median"], row["median"][ratio["subject"]] / row["median"][ratio["peer"]])
        for peak in row["peak_rss_bytes"][0].values():
            self.assertGreater(peak, 2**20)


if __name__ == "__main__":
    main()
