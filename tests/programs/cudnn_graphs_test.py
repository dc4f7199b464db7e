#!/usr/bin/env python3
"""Which fused graphs of a ResNet cuDNN has on a GPU that is not here, and whose batch normalisation LibTorch takes:
cudnn_graphs.json against every card of cudnn_devices/. Skipped (77) without cuDNN, or with another than that file is of."""
import importlib.util
import json
import pathlib
import resource
import subprocess
import sys
import unittest

from cudnn_backend import Cudnn

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = json.loads((HERE / "cudnn_graphs.json").read_text(encoding="utf-8"))
DEVICES = sorted((HERE / "cudnn_devices").glob("*.json"))
DTYPES = {"fp16": "HALF", "bf16": "BFLOAT16", "fp32": "FLOAT"}
LIMIT_BYTES = 8 << 30
# A 3x3 convolution of ResNet50's first stage.
IMAGES, CHANNEL, WEIGHTS = (256, 64, 56, 56), (1, 64, 1, 1), (64, 64, 3, 3)


def cudnn_folder():
    """Of the wheel, as LibTorch brings it; None where there is none."""
    found = importlib.util.find_spec("nvidia")
    folders = [pathlib.Path(folder) / "cudnn" for folder in (found.submodule_search_locations if found else [])]
    return next((folder for folder in folders if (folder / "lib/libcudnn.so.9").exists()), None)


class Graphs:
    """Each of them: the operations of a graph whose tensors in memory are of `dtype`, and of `between` what is passed from
    one operation to the next."""

    def __init__(self, cudnn, dtype, between):
        self.cudnn, self.dtype, self.between = cudnn, dtype, between

    def tensor(self, shape):
        return self.cudnn.tensor(shape, self.dtype)

    def passed_on(self):
        return self.cudnn.tensor(IMAGES, self.between, virtual=True)

    def per_channel(self):
        return self.cudnn.tensor(CHANNEL, "FLOAT")

    def pointwise_chain(self, first, *steps):
        """(mode, second operand) one after the other, none of their results in memory: the operations and the last."""
        operations = []
        for mode, second in steps:
            result = self.passed_on()
            operations.append(self.cudnn.pointwise(mode, XDESC=first, YDESC=result, **({"BDESC": second} if second else {})))
            first = result
        return operations, first

    def normalise_relu(self):
        return self.pointwise_chain(self.tensor(IMAGES), ("MUL", self.tensor(CHANNEL)), ("ADD", self.tensor(CHANNEL)),
                                    ("RELU_FWD", None))

    def convolution_bias_relu(self):
        result = self.passed_on()
        convolution = self.cudnn.convolution("FORWARD", 1, X=self.tensor(IMAGES), W=self.tensor(WEIGHTS), Y=result)
        added, total = self.pointwise_chain(result, ("ADD", self.tensor(CHANNEL)))
        return [convolution, *added, self.cudnn.pointwise("RELU_FWD", XDESC=total, YDESC=self.tensor(IMAGES))]

    def normalise_relu_convolution_statistics(self):
        operations, normalised = self.normalise_relu()
        result = self.tensor(IMAGES)
        statistics = {"XDESC": result, "SUMDESC": self.per_channel(), "SQSUMDESC": self.per_channel()}
        return operations + [
            self.cudnn.convolution("FORWARD", 1, X=normalised, W=self.tensor(WEIGHTS), Y=result),
            self.cudnn.operation("GEN_STATS", "GENSTATS", statistics,
                                 ("OPERATION_GENSTATS_MODE", "GENSTATS_MODE", "GENSTATS_SUM_SQSUM"),
                                 ("OPERATION_GENSTATS_MATH_PREC", "DATA_TYPE", "DATA_FLOAT"))]

    def normalise_relu_weight_gradient(self):
        operations, normalised = self.normalise_relu()
        return operations + [self.cudnn.convolution("BWD_FILTER", 1, X=normalised, DY=self.tensor(IMAGES),
                                                    DW=self.tensor(WEIGHTS))]

    def input_gradient_of_convolution_relu_normalisation(self):
        """Back through a convolution, then the ReLU before it, whose input is normalised anew, then the sums of that
        normalisation."""
        gradient, before_relu, images = self.passed_on(), self.tensor(IMAGES), self.tensor(IMAGES)
        mean, deviation, scale, bias = (self.per_channel() for _ in range(4))
        anew, normalised = self.pointwise_chain(images, ("SUB", mean), ("MUL", deviation), ("MUL", scale), ("ADD", bias))
        sums = {name: self.per_channel()
                for name in ("DBN_SCALE_DESC", "DBN_BIAS_DESC", "EQ_DY_SCALE_DESC", "EQ_X_SCALE_DESC", "EQ_BIAS")}
        return [
            self.cudnn.convolution("BWD_DATA", 1, DY=self.tensor(IMAGES), W=self.tensor(WEIGHTS), DX=gradient), *anew,
            self.cudnn.pointwise("RELU_BWD", XDESC=normalised, DYDESC=gradient, DXDESC=before_relu),
            self.cudnn.operation("BN_BWD_WEIGHTS", "BN_BWD_WEIGHTS",
                                 {"X_DESC": images, "DY_DESC": before_relu, "MEAN_DESC": mean, "INVSTD_DESC": deviation,
                                  "BN_SCALE_DESC": scale, **sums},
                                 ("OPERATION_BN_BWD_WEIGHTS_MATH_PREC", "DATA_TYPE", "DATA_FLOAT"))]


class CudnnGraphs(unittest.TestCase):
    @staticmethod
    def has_plan(name, dtype, device):
        return any(CUDNN.has_plan(getattr(Graphs(CUDNN, dtype, between), name)(), device) for between in (dtype, "FLOAT"))

    def test_which_graphs_have_a_plan(self):
        self.assertTrue(DEVICES)
        for path in DEVICES:
            properties = json.loads(path.read_text(encoding="utf-8"))["properties"]
            expected = EXPECTED["graphs"][str(properties["deviceVer"])]
            device = CUDNN.device(json.dumps(properties).encode())
            for name, dtypes in expected.items():
                with self.subTest(device=path.stem, graph=name):
                    self.assertEqual([dtype for dtype, word in DTYPES.items() if self.has_plan(name, word, device)], dtypes)

    def test_whose_batch_normalisation_libtorch_takes(self):
        """On tensors of a GPU that have no memory."""
        asked = """
import torch
from torch._subclasses import FakeTensorMode
with FakeTensorMode():
    for name, dtype in ("fp16", torch.half), ("bf16", torch.bfloat16), ("fp32", torch.float):
        x = torch.empty(64, 64, 56, 56, dtype=dtype, device="cuda").to(memory_format=torch.channels_last)
        parameters = [torch.empty(64, device="cuda") for _ in range(4)]
        print(name, torch._C._select_batch_norm_backend(x, *parameters, True, 1e-5).name)
"""
        done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False, timeout=250)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(dict(line.split() for line in done.stdout.splitlines()), EXPECTED["batch_normalisation"])


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    if not (folder := cudnn_folder()):
        print("skipped: no cuDNN beside this Python")
        sys.exit(77)
    CUDNN = Cudnn(folder)
    if CUDNN.version() != EXPECTED["cudnn"]:
        print(f"skipped: cudnn_graphs.json is of cuDNN {EXPECTED['cudnn']}, here is {CUDNN.version()}")
        sys.exit(77)
    unittest.main()
