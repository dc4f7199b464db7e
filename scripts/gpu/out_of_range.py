#!/usr/bin/env python3
"""out_of_range.py FILE: writes a TorchScript module that on a GPU reads behind the end of its input: the device faults, and every
later call fails. On a CPU, where scalemark tries the module first, it reads what is there."""

import sys

import torch


class OutOfRange(torch.nn.Module):
    """(n, 8) -> (n, 1000)."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.arange(x.size(0), device=x.device)
        if x.is_cuda:
            rows = rows + 1000000
        return self.linear(x.index_select(0, rows))


torch.jit.save(torch.jit.script(OutOfRange()), sys.argv[1])
