"""Exports a network with torch.export and writes beside it what Python computes: inputs, output and every gradient.

tests/models/exported_model_test.cpp compares each NAME.pt2 of the folder SCALEMARK_EXPORTED with its NAME.values.pt.
"""

import os
import re
import subprocess

import torch


def write(net, inputs, folder, name, dynamic=True, decomposed=False):
    """NAME.pt2 of `net`, whose first dimension of every input is left open unless not `dynamic`, and NAME.values.pt."""
    batch = {0: torch.export.Dim("batch", min=1, max=64)}
    program = torch.export.export(net, inputs, dynamic_shapes=tuple(batch for _ in inputs) if dynamic else None)
    if decomposed:
        program = program.run_decompositions()
    torch.export.save(program, folder / f"{name}.pt2")
    net.zero_grad()
    output = first_of(net(*inputs))
    weights = torch.cos(torch.arange(output.numel(), dtype=output.dtype)).reshape(output.shape)
    (output * weights).sum().backward()
    gradients = {key.replace(".", "_"): value.grad for key, value in net.named_parameters() if value.grad is not None}
    torch.save((list(inputs), output.detach(), list(gradients), list(gradients.values())), folder / f"{name}.values.pt")


def first_of(output):
    return output if isinstance(output, torch.Tensor) else output[0]


def compared(models_test, folder):
    """{name: (largest relative difference of the output, of any gradient)} as models_test finds them in `folder`."""
    done = subprocess.run([models_test, "--gtest_filter=ExportedModel.EqualsPython"], capture_output=True, text=True, check=False,
                          env=os.environ | {"SCALEMARK_EXPORTED": str(folder)})
    found = {name: (float(output), float(gradient))
             for name, output, gradient in re.findall(r"^(\w+): output (\S+), gradients (\S+)$", done.stdout, re.MULTILINE)}
    if done.returncode:
        raise AssertionError(done.stdout[-4000:] + done.stderr[-4000:])
    return found
