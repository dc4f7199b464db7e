#!/usr/bin/env python3
"""ResNet50 training in plain PyTorch, a peer that lab/speed compares with.

Synthetic data made once, channels_last, cross-entropy, fused SGD with momentum; bf16 is autocast.
ResNet50 v1.5 (He et al. 2015, stride on the 3x3 convolution) with 25,557,032 parameters.
Prints the JSON of training.py in images/sec.
"""

import torch
import torch.nn.functional as F
import training
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


def loss_of(model, images, labels):
    """Mean over images."""
    return F.cross_entropy(model(images), labels)


def main():
    flags = training.parser(__doc__, batch_size=16)
    flags.add_argument("--image_size", type=int, default=224, help="pixels (default %(default)s)")
    arguments = flags.parse_args()
    training.start(arguments)
    model = resnet50(1000).to(arguments.device, memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=4e-5, fused=True)
    shape = (arguments.batch_size, 3, arguments.image_size, arguments.image_size)
    batch = (torch.randn(shape, device=arguments.device).to(memory_format=torch.channels_last),
             torch.randint(1000, (arguments.batch_size,), device=arguments.device))
    training.run(arguments, model, optimizer, loss_of, batch, arguments.batch_size, "images/sec")


if __name__ == "__main__":
    main()
