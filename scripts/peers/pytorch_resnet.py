#!/usr/bin/env python3
"""ResNet50 training in plain PyTorch eager, the peer that scripts/speed compares with.

One process, synthetic data made once, channels_last, cross-entropy, fused SGD with momentum; bf16 is autocast.
ResNet50 v1.5 (He et al. 2015, stride on the 3x3 convolution) with 25,557,032 parameters.
Prints one JSON object: median images/sec over the measured steps, step seconds, first and last loss, versions.
"""

import argparse
import json
import statistics
import sys
import time

import torch
from torch import nn


class Bottleneck(nn.Module):
    """1x1 -> 3x3 (stride) -> 1x1 with a shortcut; (n, in, h, w) -> (n, 4 * width, h / stride, w / stride)."""

    def __init__(self, channels_in, width, stride):
        super().__init__()
        channels_out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, channels_out, 1, bias=False), nn.BatchNorm2d(channels_out))
        self.shortcut = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride, bias=False), nn.BatchNorm2d(channels_out))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x) + self.shortcut(x))


def resnet50(num_classes):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(channels, width, stride if block == 0 else 1))
            channels = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, num_classes)]
    return nn.Sequential(*layers)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--image_size", type=int, default=224)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1234)
    model = resnet50(1000).to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=4e-5, fused=True)
    shape = (arguments.batch_size, 3, arguments.image_size, arguments.image_size)
    images = torch.randn(shape).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (arguments.batch_size,))
    loss_function = nn.CrossEntropyLoss()

    seconds, losses = [], []
    for _ in range(arguments.warmup + arguments.steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=arguments.precision == "bf16"):
            loss = loss_function(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    seconds = seconds[arguments.warmup:]
    json.dump({
        "images_per_second": arguments.batch_size / statistics.median(seconds),
        "step_seconds": seconds,
        "loss": {"first": losses[0], "last": losses[-1]},
        "parameters": sum(p.numel() for p in model.parameters()),
        "versions": {"torch": torch.__version__, "python": sys.version.split()[0]},
    }, sys.stdout)
    print()


if __name__ == "__main__":
    main()
