"""Networks of transformers 5.24 and torchvision 0.26 with our weights, for make_golden.py: run them with a Python that has both.

Our leaves are in the order of models/*.cpp, and some hold several of the published network's: those of queries, keys and
values, or of SwiGLU's gate and factor, are stacked.
"""

from unittest import mock

import torch
from golden import BATCH, write
from torch.nn import functional


def in_float64():
    """Makes float64 of the fp32 that networks ask for by name, for norms and angles."""
    return mock.patch.multiple(torch, float=torch.float64, float32=torch.float64)


def with_weights(network, weights):
    """Returns a function that calls `network` with `weights` (name -> tensor with graph) in place of its own."""
    missing = {name for name, _ in network.named_parameters()} - set(weights)
    assert not missing, missing

    def run(*inputs):
        with in_float64(), mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
            return torch.func.functional_call(network, weights, inputs)

    return run


def text_golden(name, p, logits_of, vocabulary, length):
    """Token ids are linear in their index modulo the vocabulary."""
    i = torch.arange(BATCH * length).reshape(BATCH, length)
    logits = logits_of((7 * i + 3) % vocabulary)
    about = {"vocabulary": vocabulary, "sequence_length": length}
    loss = functional.cross_entropy(logits.flatten(0, 1), ((3 * i + 2) % vocabulary).flatten(), reduction="sum")
    write(name, about, p, logits, loss)
