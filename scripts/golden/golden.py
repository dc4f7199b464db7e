"""What every reference in this folder is made with: weights and inputs by a formula, and how results are stored.

The networks are written here in plain PyTorch, independently of models/*.cpp. Norms and projections of the logits and of
every gradient, in float64, lie in tests/models/golden/<model>.json, one file a model, which tests/models/golden_test.cpp
goes through.
"""

import json
from pathlib import Path

import torch
import torch.nn.functional as F

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
    """`build(p)` makes the leaves and returns logits(images): (batch, 3, image_size, image_size) -> (batch, CLASSES)."""
    p = Parameters()
    run = build(p)
    targets = torch.tensor([(7 * i + 3) % CLASSES for i in range(BATCH)])
    logits = run(2 * wave((BATCH, 3, image_size, image_size), 0.25))
    loss = F.cross_entropy(logits, targets, reduction="sum")
    write(name, {"image_size": image_size, "classes": CLASSES}, p, logits, loss)
