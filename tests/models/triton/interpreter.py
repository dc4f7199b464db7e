#!/usr/bin/env python3
"""Runs kernels of models/triton in Triton's interpreter, on tensors that lie in files.
  interpreter.py KERNELS ANSWERS   reads a call a line: {"kernel": ..., "programs": [...], "arguments": [...]}, where a tensor
                                   is {"file": ..., "dtype": ..., "elements": ...}; writes "ok" a line to ANSWERS"""
import json
import os
import sys

answers = open(sys.argv[2], "w", encoding="utf-8")  # before anything fails: who reads there waits for it
os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined
sys.path.insert(0, sys.argv[1])

import torch  # noqa: E402
from triton.runtime import interpreter  # noqa: E402

from variants import TYPES, VARIANTS  # noqa: E402

patch_tensor = interpreter._patch_lang_tensor


def patch_index(tensor, scope):
    """NumPy 2.4 makes no int of an array of one element, which Triton 3.6 asks it to where a loop ends at a variable."""
    patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))


interpreter._patch_lang_tensor = patch_index

DTYPES = {"B": torch.bfloat16, "F": torch.float32, "I": torch.int64}


def argument_of(given, kind):
    if kind not in DTYPES:
        assert isinstance(given, float if TYPES[kind] == "fp32" else int), (given, kind)
        return given
    assert given["dtype"] == str(DTYPES[kind]), (given, kind)
    return torch.from_file(given["file"], shared=True, size=given["elements"], dtype=DTYPES[kind])


def run(call):
    variant = VARIANTS[call["kernel"]]
    values = [argument_of(*pair) for pair in zip(call["arguments"], variant.arguments, strict=True)]
    variant.kernel[tuple(call["programs"])](**dict(zip(variant.names(), values, strict=True)), **variant.constants)


for line in sys.stdin:
    run(json.loads(line))
    print("ok", file=answers, flush=True)
