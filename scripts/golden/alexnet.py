"""AlexNet (Krizhevsky 2014, as torchvision has it) in plain tensor operations, for make_golden.py. No dropout."""

import torch.nn.functional as F
from golden import CLASSES, image_golden
from vgg import linear


def alexnet(p):
    conv1, conv2, conv3, conv4, conv5 = [
        (p.weight(cout, cin, kernel, kernel), p.bias(cout))
        for cin, cout, kernel in [(3, 64, 11), (64, 192, 5), (192, 384, 3), (384, 256, 3), (256, 256, 3)]]
    fc1, fc2, fc3 = linear(p, 256 * 6 * 6, 4096), linear(p, 4096, 4096), linear(p, 4096, CLASSES)

    def run(x):
        x = F.max_pool2d(F.relu(F.conv2d(x, *conv1, stride=4, padding=2)), 3, 2)
        x = F.max_pool2d(F.relu(F.conv2d(x, *conv2, padding=2)), 3, 2)
        x = F.relu(F.conv2d(x, *conv3, padding=1))
        x = F.relu(F.conv2d(x, *conv4, padding=1))
        x = F.max_pool2d(F.relu(F.conv2d(x, *conv5, padding=1)), 3, 2)
        x = F.adaptive_avg_pool2d(x, 6).flatten(1)
        return fc3(F.relu(fc2(F.relu(fc1(x)))))

    return run


def make():
    image_golden("alexnet", alexnet, 96)
