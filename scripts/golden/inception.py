"""Inception v3 (Szegedy et al. 2016, as torchvision has it) in plain tensor operations, for make_golden.py.

No auxiliary classifier, no dropout. Blocks a to e are those of torchvision's source.
"""

import torch
import torch.nn.functional as F
from golden import CLASSES, image_golden
from resnet import batch_norm
from vgg import linear


def conv(p, cin, cout, kernel=1, stride=1, padding=0):
    shape = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    w, gamma, beta = p.weight(cout, cin, *shape), p.gamma(cout), p.bias(cout)
    return lambda x: F.relu(batch_norm(F.conv2d(x, w, stride=stride, padding=padding), gamma, beta, 1e-3))


def chain(*layers):
    def run(x):
        for layer in layers:
            x = layer(x)
        return x

    return run


def side_by_side(*branches):
    return lambda x: torch.cat([branch(x) for branch in branches], 1)


def row(p, cin, cout, n):
    return conv(p, cin, cout, (1, n), padding=(0, n // 2))


def column(p, cin, cout, n):
    return conv(p, cin, cout, (n, 1), padding=(n // 2, 0))


def mean_3x3(x):
    return F.avg_pool2d(x, 3, 1, 1)


def largest_3x3(x):
    return F.max_pool2d(x, 3, 2)


def block_a(p, cin, pool):
    return side_by_side(
        conv(p, cin, 64),
        chain(conv(p, cin, 48), conv(p, 48, 64, 5, padding=2)),
        chain(conv(p, cin, 64), conv(p, 64, 96, 3, padding=1), conv(p, 96, 96, 3, padding=1)),
        chain(mean_3x3, conv(p, cin, pool)))


def block_b(p, cin):
    return side_by_side(
        conv(p, cin, 384, 3, stride=2),
        chain(conv(p, cin, 64), conv(p, 64, 96, 3, padding=1), conv(p, 96, 96, 3, stride=2)),
        largest_3x3)


def block_c(p, cin, c7):
    return side_by_side(
        conv(p, cin, 192),
        chain(conv(p, cin, c7), row(p, c7, c7, 7), column(p, c7, 192, 7)),
        chain(conv(p, cin, c7), column(p, c7, c7, 7), row(p, c7, c7, 7), column(p, c7, c7, 7), row(p, c7, 192, 7)),
        chain(mean_3x3, conv(p, cin, 192)))


def block_d(p, cin):
    return side_by_side(
        chain(conv(p, cin, 192), conv(p, 192, 320, 3, stride=2)),
        chain(conv(p, cin, 192), row(p, 192, 192, 7), column(p, 192, 192, 7), conv(p, 192, 192, 3, stride=2)),
        largest_3x3)


def block_e(p, cin):
    return side_by_side(
        conv(p, cin, 320),
        chain(conv(p, cin, 384), side_by_side(row(p, 384, 384, 3), column(p, 384, 384, 3))),
        chain(conv(p, cin, 448), conv(p, 448, 384, 3, padding=1),
              side_by_side(row(p, 384, 384, 3), column(p, 384, 384, 3))),
        chain(mean_3x3, conv(p, cin, 192)))


def inception3(p):
    return chain(
        conv(p, 3, 32, 3, stride=2), conv(p, 32, 32, 3), conv(p, 32, 64, 3, padding=1), largest_3x3,
        conv(p, 64, 80), conv(p, 80, 192, 3), largest_3x3,
        block_a(p, 192, 32), block_a(p, 256, 64), block_a(p, 288, 64), block_b(p, 288),
        block_c(p, 768, 128), block_c(p, 768, 160), block_c(p, 768, 160), block_c(p, 768, 192), block_d(p, 768),
        block_e(p, 1280), block_e(p, 2048), lambda x: x.mean((2, 3)), linear(p, 2048, CLASSES))


def make():
    image_golden("inception3", inception3, 139)
