"""scripts/speed: the interval of a median by exact small values, rows and their commands; the peers are the same networks.

What needs real processes of scalemark and the peers is in peers_test.py.
"""

import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "scripts" / "peers"), str(SOURCE / "scripts" / "golden")]
try:
    import torch
except ImportError:
    torch = None


def load(path):
    loader = importlib.machinery.SourceFileLoader(path.name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(path.name, loader))
    loader.exec_module(module)
    return module


speed = load(SOURCE / "scripts" / "speed")


class MedianInterval(unittest.TestCase):
    def test_five_values_cannot_cover_95_percent(self):
        self.assertIsNone(speed.median_interval([1, 2, 3, 4, 5]))

    def test_seven_values_give_the_extremes(self):
        self.assertEqual(speed.median_interval([3, 1, 2, 7, 6, 5, 4]), (1, 7, 1 - 2 / 2**7))

    def test_nine_values_leave_out_one_at_each_end(self):  # 1 - 2 (1 + 9) / 512
        self.assertEqual(speed.median_interval(list(range(9))), (1, 7, 1 - 20 / 512))

    def test_it_covers_the_median_of_the_values(self):
        low, high, coverage = speed.median_interval([0.9, 1.3, 1.1, 1.0, 1.2, 1.15, 1.05, 1.25])
        self.assertTrue(low <= 1.125 <= high)
        self.assertGreaterEqual(coverage, 0.95)


class Rounds(unittest.TestCase):
    def test_every_subject_takes_every_place(self):
        orders = [speed.rotated(("a", "b", "c"), index) for index in range(6)]
        for place in range(3):
            self.assertEqual(sorted(order[place] for order in orders), ["a", "a", "b", "b", "c", "c"])

    def test_ratios_are_paired_by_round(self):
        ratio = speed.paired_ratio("ours", "theirs", [{"ours": 2 * k, "theirs": k} for k in (1, 5, 3, 9, 7, 2)])
        self.assertEqual((ratio["median"], ratio["interval"]), (2, [2, 2]))


class Rows(unittest.TestCase):
    def run_speed(self, *words, expect):
        with tempfile.TemporaryDirectory() as folder:
            result = pathlib.Path(folder) / "speed.json"
            done = subprocess.run([SOURCE / "scripts" / "speed", *words, "--output", result], capture_output=True, text=True)
            self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
            self.assertFalse(result.exists())
        return done

    def test_list_gives_every_command_of_every_row(self):
        printed = self.run_speed("--list", expect=0).stdout
        for row in speed.ROWS.values():
            self.assertIn(row.name, printed)
        for words in ("--model transformer_big --device cpu --precision bf16 --batch_size 4 --sequence_length 64",
                      "infer --model resnet50 --device cpu --precision bf16", "pytorch_inference.py --precision bf16",
                      "--overlap backward --wire_dtype bf16 --json", "scripts/netlab --hosts 2 --rate 1gbit"):
            self.assertIn(words, printed)

    def test_a_subject_is_divided_by_others_of_its_row(self):
        for row in speed.ROWS.values():
            names = [subject.name for subject in row.subjects]
            self.assertEqual(len(set(names)), len(names))
            self.assertTrue(any(subject.ours for subject in row.subjects), row.name)
            for subject in row.subjects:
                self.assertLessEqual(set(subject.against), {s.name for s in row.subjects} - {subject.name})

    def program(self, folder, code):
        path = pathlib.Path(folder) / "scalemark"
        path.write_text(f"#!/bin/sh\necho the reason >&2\nexit {code}\n")
        path.chmod(0o755)
        return path

    def test_a_failed_process_is_exit_4_and_a_missing_tool_skips_the_row(self):
        for code, status, expect in ((1, "failed", 4), (7, "skipped", 7)):
            with tempfile.TemporaryDirectory() as folder:
                done = self.run_speed("--rows", "resnet50 fp32,resnet50 bf16", "--scalemark", self.program(folder, code),
                                      "--python", sys.executable, expect=expect)
            for row in ("resnet50 fp32", "resnet50 bf16"):
                self.assertIn(f"{row} {status}", done.stderr)
            self.assertIn("the reason", done.stderr)

    def test_unknown_rows_are_exit_2(self):
        self.assertIn("resnet50 bf16 1gbit", self.run_speed("--rows", "resnet51", expect=2).stderr)


@unittest.skipIf(torch is None, "no torch in this Python")
class Peers(unittest.TestCase):
    def test_resnet50_is_v1_5(self):
        import pytorch_resnet

        model = pytorch_resnet.resnet50(1000)
        self.assertEqual(sum(p.numel() for p in model.parameters()), 25_557_032)
        strided = [m.kernel_size for m in model.modules() if getattr(m, "stride", 1) == (2, 2) and m.kernel_size[0] == 3]
        self.assertEqual(len(strided), 3)  # the 3x3 convolution of conv3_x, conv4_x, conv5_x

    def test_transformer_big_has_its_parameters(self):
        import pytorch_transformer

        with torch.device("meta"):
            model = pytorch_transformer.Transformer(**pytorch_transformer.SIZES["transformer_big"], length=64)
        self.assertEqual(sum(p.numel() for p in model.parameters()), 209_915_904)
        dropouts = [m.p for m in model.modules() if isinstance(m, torch.nn.Dropout)]
        dropouts += [m.dropout for m in model.modules() if isinstance(m, torch.nn.MultiheadAttention)]
        self.assertEqual(set(dropouts), {0.1})
        self.assertEqual(len(dropouts), 1 + 6 * 4 + 6 * 6)  # embeddings; attention, activation and residuals of a layer

    def test_transformer_base_gives_the_reference_logits(self):
        import golden as reference
        import pytorch_transformer

        golden = json.loads((SOURCE / "tests/models/golden/transformer_base.json").read_text())
        vocabulary, length, batch = golden["vocabulary"], golden["sequence_length"], golden["batch_size"]
        torch.set_default_dtype(torch.float64)
        self.addCleanup(torch.set_default_dtype, torch.float32)
        size = {**pytorch_transformer.SIZES["transformer_base"], "vocabulary": vocabulary}
        model = pytorch_transformer.Transformer(**size, length=length)
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0
            elif isinstance(module, torch.nn.MultiheadAttention):
                module.dropout = 0
        i = torch.arange(batch * length).reshape(batch, length)
        with torch.no_grad():
            fill_by_formula(model, reference.Parameters())
            logits = model((7 * i + 3) % vocabulary, (5 * i + 1) % vocabulary)
        for found, expected in zip(reference.summary(logits), golden["logits"], strict=True):
            self.assertAlmostEqual(found, expected, delta=1e-8 * golden["logits"][0])


def fill_by_formula(model, p):
    """Fills the peer in the order in which scripts/golden makes its parameters."""
    def put(target, value):
        target.copy_(value.detach())

    def norm(module):
        put(module.weight, p.gamma(len(module.weight)))
        put(module.bias, p.bias(len(module.bias)))

    def linear(*modules):
        for weight, bias in modules:
            put(weight, p.weight(*weight.shape))
            put(bias, p.bias(len(bias)))

    def attention(module, query_apart):
        weight, bias, out = module.in_proj_weight, module.in_proj_bias, module.out_proj
        d = len(out.bias)
        parts = [(weight[:d], bias[:d]), (weight[d:], bias[d:])] if query_apart else [(weight, bias)]
        linear(*parts, (out.weight, out.bias))

    def feed_forward(layer):
        linear((layer.linear1.weight, layer.linear1.bias), (layer.linear2.weight, layer.linear2.bias))

    put(model.embedding.weight, p.weight(*model.embedding.weight.shape))
    for stack in (model.stacks.encoder, model.stacks.decoder):
        for layer in stack.layers:
            attention(layer.self_attn, query_apart=False)
            norm(layer.norm1)
            if stack is model.stacks.decoder:
                attention(layer.multihead_attn, query_apart=True)
                norm(layer.norm2)
            feed_forward(layer)
            norm(layer.norm3 if stack is model.stacks.decoder else layer.norm2)
        norm(stack.norm)


if __name__ == "__main__":
    unittest.main()
