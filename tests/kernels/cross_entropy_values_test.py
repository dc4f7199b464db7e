#!/usr/bin/env python3
"""What the cross-entropy kernels compute, in Triton's interpreter on the CPU, against float64. Skipped (77) without
Triton."""
import importlib.util
import itertools
import os
import resource
import sys
import unittest

if not importlib.util.find_spec("triton") or not importlib.util.find_spec("torch"):
    print("skipped: no Triton beside this Python")
    sys.exit(77)
os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined

import torch  # noqa: E402

from cross_entropy import cross_entropy_forward, cross_entropy_gradient  # noqa: E402

LIMIT_BYTES = 8 << 30
IGNORED = -100
# Of the gradient: fp32, of which logits of some hundred leave 5 digits; the interpreter cuts it to bf16, a GPU rounds.
TOLERANCES = {torch.float: 1e-4, torch.bfloat16: 2**-7}


def by_hand(logits, labels, smoothing, scale):
    """Losses of the rows and the gradient of scale x their sum, in float64."""
    x = logits.double().requires_grad_()
    losses = torch.nn.functional.cross_entropy(x, labels, ignore_index=IGNORED, reduction="none",
                                               label_smoothing=smoothing)
    (scale * losses.sum()).backward()
    return losses.detach(), x.grad


class CrossEntropyValues(unittest.TestCase):
    def check(self, dtype, classes, smoothing):
        torch.manual_seed(classes)
        logits = (4 * torch.randn(5, classes)).to(dtype)
        logits[3] = 300 * torch.randn(classes)  # exponentials that fp32 does not hold
        labels = torch.tensor([0, classes - 1, IGNORED, 7, 7])
        losses, normalisers, scale = torch.full((5,), torch.nan), torch.full((5,), torch.nan), torch.tensor([0.25])
        expected, gradient = by_hand(logits, labels, smoothing, 0.25)
        last = IGNORED, smoothing, classes, 256
        cross_entropy_forward[(5,)](logits, labels, losses, normalisers, *last)
        torch.testing.assert_close(losses.double(), expected, rtol=1e-5, atol=1e-5)
        cross_entropy_gradient[(5,)](logits, labels, normalisers, scale, *last)
        torch.testing.assert_close(logits.double(), gradient, rtol=TOLERANCES[dtype], atol=1e-7)

    def test_losses_and_gradients_are_those_of_float64(self):
        for dtype, classes, smoothing in itertools.product(TOLERANCES, (1024, 1001, 200), (0.0, 0.1)):
            with self.subTest(dtype=dtype, classes=classes, smoothing=smoothing):
                self.check(dtype, classes, smoothing)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    unittest.main()
