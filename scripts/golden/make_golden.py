#!/usr/bin/env python3
"""Reference values for tests/models/golden_test.cpp: logits and gradients in float64.

The networks are written here in plain PyTorch, independently of models/*.cpp, and filled by a formula. Writes norms
and projections to tests/models/golden/<model>.json:  .venv/bin/python scripts/golden/make_golden.py
"""

import json
from pathlib import Path

import torch
import torch.nn.functional as F
from bert import bert, pretraining_loss
from transformer import label_smoothed_loss, transformer

CLASSES = 100
BATCH = 2


def wave(shape, phase):
    """sin(0.1 i + 0.003 (i mod 997)^2 + phase) over the row-major index i: full rank, reproducible, |x| <= 1."""
    i = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return torch.sin(0.1 * i + 0.003 * (i % 997) ** 2 + phase).reshape(shape)


class Parameters:
    """Leaves in the order of their creation: weights ~ sqrt(3 / fan-in), gamma ~ 1, everything else ~ 0.1."""

    def __init__(self):
        self.leaves = []

    def _leaf(self, value):
        self.leaves.append(value.requires_grad_())
        return self.leaves[-1]

    def weight(self, *shape):
        fan_in = torch.Size(shape[1:]).numel()
        return self._leaf((3 / fan_in) ** 0.5 * wave(shape, len(self.leaves)))

    def gamma(self, n):
        return self._leaf(1 + 0.1 * wave((n,), len(self.leaves)))

    def bias(self, n):
        return self._leaf(0.1 * wave((n,), len(self.leaves)))


def conv_norm(p, cin, cout, kernel, stride):
    w, gamma, beta = p.weight(cout, cin, kernel, kernel), p.gamma(cout), p.bias(cout)

    def run(x):
        x = F.conv2d(x, w, stride=stride, padding=kernel // 2)
        mean = x.mean((0, 2, 3), keepdim=True)
        var = x.var((0, 2, 3), unbiased=False, keepdim=True)
        return (x - mean) / (var + 1e-5).sqrt() * gamma[:, None, None] + beta[:, None, None]

    return run


def resnet(p, depths, bottleneck):
    stem = conv_norm(p, 3, 64, 7, 2)
    blocks, cin = [], 64
    for stage, depth in enumerate(depths):
        width = 64 * 2**stage
        cout = width * (4 if bottleneck else 1)
        for index in range(depth):
            s = 2 if stage > 0 and index == 0 else 1
            shape = [(1, 1), (3, s), (1, 1)] if bottleneck else [(3, s), (3, 1)]
            widths = [cin] + [width] * (len(shape) - 1) + [cout]
            body = [conv_norm(p, widths[k], widths[k + 1], *shape[k]) for k in range(len(shape))]
            shortcut = conv_norm(p, cin, cout, 1, s) if s != 1 or cin != cout else (lambda x: x)
            blocks.append((body, shortcut))
            cin = cout
    w, b = p.weight(CLASSES, cin), p.bias(CLASSES)

    def run(x):
        x = F.max_pool2d(F.relu(stem(x)), 3, 2, 1)
        for body, shortcut in blocks:
            y = x
            for layer in body[:-1]:
                y = F.relu(layer(y))
            x = F.relu(body[-1](y) + shortcut(x))
        return x.mean((2, 3)) @ w.T + b

    return run


def smallnet(p):
    layers = [(p.weight(o, i, 3, 3), p.bias(o)) for i, o in [(3, 16), (16, 32), (32, 64)]]
    fc = p.weight(CLASSES, 64), p.bias(CLASSES)

    def run(x):
        for w, b in layers:
            x = F.relu(F.conv2d(x, w, b, stride=2, padding=1))
        return x.mean((2, 3)) @ fc[0].T + fc[1]

    return run


def summary(x):
    """Norm and a projection of a tensor."""
    return [x.norm().item(), (x * wave(x.shape, 0.5)).sum().item()]


def write(name, about, p, logits, loss):
    """Stores summaries of the logits and, in the order of their creation, of every leaf's gradient."""
    loss.backward()
    values = {"model": name, **about, "batch_size": BATCH, "loss_sum": loss.item(), "logits": summary(logits.detach()),
              "gradients": [summary(leaf.grad) for leaf in p.leaves]}
    path = Path(__file__).parents[2] / "tests/models/golden" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(values, indent=1) + "\n")


def image_golden(name, build, image_size):
    p = Parameters()
    run = build(p)
    targets = torch.tensor([(7 * i + 3) % CLASSES for i in range(BATCH)])
    logits = run(2 * wave((BATCH, 3, image_size, image_size), 0.25))
    loss = F.cross_entropy(logits, targets, reduction="sum")
    write(name, {"image_size": image_size, "classes": CLASSES}, p, logits, loss)


def transformer_golden(name, vocabulary, length, **size):
    """Label smoothing 0.1, no dropout; token ids are linear in their index modulo the vocabulary."""
    p = Parameters()
    run = transformer(p, vocabulary, **size)
    i = torch.arange(BATCH * length).reshape(BATCH, length)
    source, decoder_input, targets = (7 * i + 3) % vocabulary, (5 * i + 1) % vocabulary, (3 * i + 2) % vocabulary
    logits = run(source, decoder_input)
    about = {"vocabulary": vocabulary, "sequence_length": length}
    write(name, about, p, logits, label_smoothed_loss(logits, targets, 0.1))


def bert_golden(name, vocabulary, length, masked, **size):
    """Ids and positions are linear in their index, modulo what there is. The loss of the model is a sum: the mean times
    the number of masked positions."""
    p = Parameters()
    run = bert(p, vocabulary, **size)
    i, k = torch.arange(BATCH * length).reshape(BATCH, length), torch.arange(BATCH * masked).reshape(BATCH, masked)
    words, following = run((7 * i + 3) % vocabulary, (i % length >= length // 2).long(), (2 * k + 1) % length)
    loss = BATCH * masked * pretraining_loss(words, (5 * k + 2) % vocabulary, following, torch.arange(BATCH) % 2)
    about = {"vocabulary": vocabulary, "sequence_length": length, "masked_positions": masked}
    write(name, about, p, torch.cat([words.flatten(), following.flatten()]), loss)


if __name__ == "__main__":
    image_golden("resnet18", lambda p: resnet(p, [2, 2, 2, 2], False), 64)
    image_golden("resnet50", lambda p: resnet(p, [3, 4, 6, 3], True), 64)
    image_golden("smallnet", smallnet, 32)
    transformer_golden("transformer_base", 97, 7, d=512, ffn=2048, heads=8, layers=6)
    bert_golden("bert_base", 97, 7, 3, d=768, ffn=3072, heads=12, layers=12)
