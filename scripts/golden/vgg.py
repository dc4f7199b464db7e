"""VGG-16 (Simonyan and Zisserman 2014) with torchvision's classifier in plain tensor operations, for make_golden.py.

No dropout.
"""

import torch.nn.functional as F
from golden import CLASSES, image_golden


def linear(p, cin, cout):
    w, b = p.weight(cout, cin), p.bias(cout)
    return lambda x: x @ w.T + b


def vgg16(p):
    layers, cin = [], 3
    for cout in (64, 64, "pool", 128, 128, "pool", 256, 256, 256, "pool", 512, 512, 512, "pool", 512, 512, 512, "pool"):
        if cout == "pool":
            layers.append(None)
        else:
            layers.append((p.weight(cout, cin, 3, 3), p.bias(cout)))
            cin = cout
    fc1, fc2, fc3 = linear(p, 512 * 7 * 7, 4096), linear(p, 4096, 4096), linear(p, 4096, CLASSES)

    def run(x):
        for layer in layers:
            x = F.relu(F.conv2d(x, *layer, padding=1)) if layer else F.max_pool2d(x, 2, 2)
        x = F.adaptive_avg_pool2d(x, 7).flatten(1)
        return fc3(F.relu(fc2(F.relu(fc1(x)))))

    return run


def make():
    image_golden("vgg16", vgg16, 64)
