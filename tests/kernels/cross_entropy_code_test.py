#!/usr/bin/env python3
"""What the cross-entropy kernels are compiled to for three generations of GPUs. Skipped (77) without Triton."""
import importlib.util
import os
import resource
import sys
import tempfile
import unittest

if not importlib.util.find_spec("triton") or not importlib.util.find_spec("torch"):
    print("skipped: no Triton beside this Python")
    sys.exit(77)

from cross_entropy import cross_entropy_forward, cross_entropy_gradient  # noqa: E402
from kernel_check import compile_for  # noqa: E402

LIMIT_BYTES = 8 << 30
VOCABULARY = 32768  # of transformer_big
TYPES = ["*bf16", "*i64", "*fp32", "*fp32", "i64", "fp32"]


class CrossEntropyCode(unittest.TestCase):
    def test_a_row_is_read_and_written_16_bytes_at_a_time_and_nothing_is_spilled(self):
        for version in (80, 90, 100):
            for kernel, stores in ((cross_entropy_forward, [32]), (cross_entropy_gradient, [128])):
                with self.subTest(version=version, kernel=kernel.fn.__name__):
                    made = compile_for(kernel, version, TYPES, warps=8, CLASSES=VOCABULARY, BLOCK=4096)
                    self.assertIn(128, made.widths("LDG"))
                    self.assertNotIn(16, made.widths("LDG"), "of a logit alone")
                    self.assertEqual(made.widths("STG"), stores)
                    self.assertEqual(made.spilled_bytes, 0)
                    # Four blocks of 256 threads and more at once on a multiprocessor of 65,536 registers.
                    self.assertLessEqual(made.registers, 64)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    with tempfile.TemporaryDirectory(prefix="scalemark-test-") as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        unittest.main()
