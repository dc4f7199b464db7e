"""The small convolutional net of the tests in plain tensor operations, for make_golden.py."""

import torch.nn.functional as F
from golden import CLASSES, image_golden


def smallnet(p):
    layers = [(p.weight(o, i, 3, 3), p.bias(o)) for i, o in [(3, 16), (16, 32), (32, 64)]]
    fc = p.weight(CLASSES, 64), p.bias(CLASSES)

    def run(x):
        for w, b in layers:
            x = F.relu(F.conv2d(x, w, b, stride=2, padding=1))
        return x.mean((2, 3)) @ fc[0].T + fc[1]

    return run


def make():
    image_golden("smallnet", smallnet, 32)
