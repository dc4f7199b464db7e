"""The networks of lab/peers are those of scalemark: the same parameters, and in float64 from the same weights and the
same batch the same logits and the same loss.

Both are held to the values of scripts/golden, peers here and scalemark in tests/models/golden_test.cpp.
"""

import argparse
import json
import pathlib
import sys
import unittest
import unittest.mock

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "lab" / "peers"), str(SOURCE / "scripts" / "golden")]
try:
    import golden as reference
    import pytorch_bert
    import pytorch_decoder
    import pytorch_resnet
    import pytorch_transformer
    import torch
    import training
except ImportError:
    torch = None
TOLERANCE = 1e-8  # relative


@unittest.skipIf(torch is None, "no torch in this Python")
class Parameters(unittest.TestCase):
    def count(self, make, **size):
        with torch.device("meta"):
            model = make(**size)
        return model, sum(p.numel() for p in model.parameters())

    def dropouts(self, model):
        found = [m.p for m in model.modules() if isinstance(m, torch.nn.Dropout)]
        return found + [m.dropout for m in model.modules() if isinstance(m, torch.nn.MultiheadAttention)]

    def test_resnet50_is_v1_5(self):
        model, parameters = self.count(pytorch_resnet.resnet50, num_classes=1000)
        self.assertEqual(parameters, 25_557_032)
        strided = [m.kernel_size for m in model.modules() if getattr(m, "stride", 1) == (2, 2) and m.kernel_size[0] == 3]
        self.assertEqual(len(strided), 3)  # the 3x3 convolution of conv3_x, conv4_x, conv5_x

    def test_transformer_big(self):
        model, parameters = self.count(pytorch_transformer.Transformer, **pytorch_transformer.SIZES["transformer_big"],
                                       length=64)
        self.assertEqual(parameters, 209_915_904)
        # embeddings; attention, activation and residuals of a layer
        self.assertEqual(self.dropouts(model), (1 + 6 * 4 + 6 * 6) * [0.1])

    def test_bert_large(self):
        model, parameters = self.count(pytorch_bert.Bert, **pytorch_bert.SIZES["bert_large"])
        self.assertEqual(parameters, 336_226_108)
        self.assertEqual(self.dropouts(model), (1 + 24) * [0.1])
        self.assertEqual(pytorch_bert.masked_positions(128), 20)

    def test_decoders(self):
        for name, wanted in (("gpt2", 124_439_808), ("llama_125m", 124_668_672)):
            _, parameters = self.count(pytorch_decoder.Decoder, **pytorch_decoder.SIZES[name], llama=name != "gpt2", length=8)
            self.assertEqual(parameters, wanted)


class FakeEvent:
    """Of a GPU on which every step takes two milliseconds."""
    recorded = 0

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.number = FakeEvent.recorded
        FakeEvent.recorded += 1

    def elapsed_time(self, end):
        return 2.0 * (end.number - self.number)


@unittest.skipIf(torch is None, "no torch in this Python")
class StepsOnAGpu(unittest.TestCase):
    def test_every_step_has_its_seconds_and_its_loss(self):
        cuda = {"Event": FakeEvent, "synchronize": lambda: None, "reset_peak_memory_stats": lambda: None,
                "max_memory_allocated": lambda: 77}
        weight = torch.nn.Parameter(torch.tensor(3.0))
        arguments = argparse.Namespace(warmup=2, steps=3, precision="fp32")
        shared = torch.zeros(())  # a CUDA graph gives every loss in the same place

        def loss_of(model, x):
            loss = (model * x) ** 2
            shared.data.copy_(loss.detach())
            loss.data = shared.data
            return loss

        with unittest.mock.patch.multiple(torch.cuda, **cuda), unittest.mock.patch("torch.autocast"):
            seconds, losses, peak = training.train_on_gpu(arguments, weight, torch.optim.SGD([weight], lr=0.1), loss_of,
                                                          (torch.tensor(1.0),))
        for found, expected in zip(losses, [9 * 0.64**k for k in range(5)], strict=True):
            self.assertAlmostEqual(found, expected, places=5)
        self.assertEqual((seconds, peak), ([0.002] * 5, 77))


def without_dropout(model):
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0
        elif isinstance(module, torch.nn.MultiheadAttention):
            module.dropout = 0
    return model


def fill_in_order(model, p):
    """Where the peer registers its parameters in the order in which scripts/golden makes them."""
    norms = (torch.nn.LayerNorm, torch.nn.BatchNorm2d, torch.nn.RMSNorm)
    gammas = {id(module.weight) for module in model.modules() if isinstance(module, norms)}
    with torch.no_grad():
        for parameter in model.parameters():
            make = p.weight if parameter.dim() > 1 else p.gamma if id(parameter) in gammas else p.bias
            parameter.copy_(make(*parameter.shape))


def linear(rows, columns, factor, offset, modulus):
    return ((factor * torch.arange(rows * columns) + offset) % modulus).reshape(rows, columns)


@unittest.skipIf(torch is None, "no torch in this Python")
class Arithmetic(unittest.TestCase):
    def setUp(self):
        torch.set_default_dtype(torch.float64)
        self.addCleanup(torch.set_default_dtype, torch.float32)

    def check(self, name, model, loss_of, batch, count):
        """count: what the reference's sum of losses is divided by."""
        golden = json.loads((SOURCE / f"tests/models/golden/{name}.json").read_text())
        fill = fill_transformer if name.startswith("transformer") else fill_in_order
        fill(model, reference.Parameters())
        outputs = []
        model.register_forward_hook(lambda module, inputs, output: outputs.append(output))
        with torch.no_grad():
            loss = loss_of(model, *batch).item()
            logits = outputs[0] if isinstance(outputs[0], torch.Tensor) else torch.cat([x.flatten() for x in outputs[0]])
            for found, expected in zip(reference.summary(logits), golden["logits"], strict=True):
                self.assertAlmostEqual(found, expected, delta=TOLERANCE * golden["logits"][0])
        self.assertAlmostEqual(loss, golden["loss_sum"] / count, delta=TOLERANCE * loss)

    def golden(self, name, *keys):
        golden = json.loads((SOURCE / f"tests/models/golden/{name}.json").read_text())
        return [golden[key] for key in ("batch_size", *keys)]

    def test_resnet50(self):
        batch, pixels, classes = self.golden("resnet50", "image_size", "classes")
        model = pytorch_resnet.resnet50(classes).to(memory_format=torch.channels_last).train()
        images = (2 * reference.wave((batch, 3, pixels, pixels), 0.25)).to(memory_format=torch.channels_last)
        labels = (7 * torch.arange(batch) + 3) % classes
        self.check("resnet50", model, pytorch_resnet.loss_of, (images, labels), batch)

    def test_transformer(self):
        batch, vocabulary, length = self.golden("transformer_base", "vocabulary", "sequence_length")
        size = {**pytorch_transformer.SIZES["transformer_base"], "vocabulary": vocabulary}
        model = without_dropout(pytorch_transformer.Transformer(**size, length=length)).train()
        inputs = [linear(batch, length, *numbers, vocabulary) for numbers in ((7, 3), (5, 1), (3, 2))]
        self.check("transformer_base", model, pytorch_transformer.loss_of, inputs, batch * length)

    def test_bert(self):
        batch, vocabulary, length, count = self.golden("bert_base", "vocabulary", "sequence_length", "masked_positions")
        with torch.device("meta"):  # to draw weights in vain takes seconds
            model = without_dropout(pytorch_bert.Bert(**{**pytorch_bert.SIZES["bert_base"], "vocabulary": vocabulary}))
        model = model.to_empty(device="cpu").train()
        tokens = linear(batch, length, 7, 3, vocabulary)
        segments = (torch.arange(batch * length).reshape(batch, length) % length >= length // 2).long()
        masked, labels = linear(batch, count, 2, 1, length), linear(batch, count, 5, 2, vocabulary)
        following = torch.arange(batch) % 2
        self.check("bert_base", model, pytorch_bert.loss_of, (tokens, segments, masked, labels, following), batch * count)


    def test_decoders(self):
        for name in ("gpt2", "llama_125m"):
            batch, vocabulary, length = self.golden(name, "vocabulary", "sequence_length")
            size = {**pytorch_decoder.SIZES[name], "vocabulary": vocabulary}
            model = pytorch_decoder.Decoder(**size, llama=name != "gpt2", length=length).train()
            text = [linear(batch, length, *numbers, vocabulary) for numbers in ((7, 3), (3, 2))]
            self.check(name, model, pytorch_decoder.loss_of, text, batch * length)


def fill_transformer(model, p):
    """nn.Transformer registers them in another order than scripts/golden makes them."""
    def put(target, value):
        target.data.copy_(value.detach())

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
