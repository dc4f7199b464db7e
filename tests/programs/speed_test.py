"""scripts/speed: the interval of a median, by exact small values; the peer is the same network."""

import importlib.machinery
import importlib.util
import pathlib
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def load(path):
    loader = importlib.machinery.SourceFileLoader(path.name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(path.name, loader))
    loader.exec_module(module)
    return module


speed = load(SOURCE / "scripts" / "speed")


class MedianInterval(unittest.TestCase):
    def test_five_values_cannot_cover_95_percent(self):
        self.assertIsNone(speed.median_interval([1, 2, 3, 4, 5]))

    def test_seven_values_give_the_extremes(self):
        self.assertEqual(speed.median_interval([3, 1, 2, 7, 6, 5, 4]), (1, 7, 1 - 2 / 2**7))

    def test_nine_values_leave_out_one_at_each_end(self):  # 1 - 2 (1 + 9) / 512
        self.assertEqual(speed.median_interval(list(range(9))), (1, 7, 1 - 20 / 512))

    def test_it_covers_the_median_of_the_values(self):
        low, high, coverage = speed.median_interval([0.9, 1.3, 1.1, 1.0, 1.2, 1.15, 1.05, 1.25])
        self.assertTrue(low <= 1.125 <= high)
        self.assertGreaterEqual(coverage, 0.95)


class Peer(unittest.TestCase):
    def test_it_is_resnet50(self):
        try:
            import torch  # noqa: F401
        except ImportError:
            self.skipTest("no torch in this Python")
        peer = load(SOURCE / "scripts" / "peers" / "pytorch_resnet.py")
        model = peer.resnet50(1000)
        self.assertEqual(sum(p.numel() for p in model.parameters()), 25_557_032)
        strided = [m.kernel_size for m in model.modules() if getattr(m, "stride", 1) == (2, 2) and m.kernel_size[0] == 3]
        self.assertEqual(len(strided), 3)  # v1.5: the 3x3 convolution of conv3_x, conv4_x, conv5_x


if __name__ == "__main__":
    unittest.main()
