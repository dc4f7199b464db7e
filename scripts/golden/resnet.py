"""ResNet v1.5 (He et al. 2015) in plain tensor operations, for make_golden.py."""

import torch.nn.functional as F
from golden import CLASSES, image_golden


def batch_norm(x, gamma, beta, epsilon):
    mean = x.mean((0, 2, 3), keepdim=True)
    var = x.var((0, 2, 3), unbiased=False, keepdim=True)
    return (x - mean) / (var + epsilon).sqrt() * gamma[:, None, None] + beta[:, None, None]


def conv_norm(p, cin, cout, kernel, stride):
    w, gamma, beta = p.weight(cout, cin, kernel, kernel), p.gamma(cout), p.bias(cout)

    def run(x):
        return batch_norm(F.conv2d(x, w, stride=stride, padding=kernel // 2), gamma, beta, 1e-5)

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


def make():
    image_golden("resnet18", lambda p: resnet(p, [2, 2, 2, 2], False), 64)
    image_golden("resnet50", lambda p: resnet(p, [3, 4, 6, 3], True), 64)
