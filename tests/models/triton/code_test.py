#!/usr/bin/env python3
"""What the Triton kernels are compiled to, without a GPU. Skipped (77) without Triton."""
import importlib.util
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

if not importlib.util.find_spec("triton") or not importlib.util.find_spec("torch"):
    print("skipped: no Triton beside this Python")
    sys.exit(77)

KERNELS = pathlib.Path(__file__).parents[3] / "models/triton"
sys.path.insert(0, str(KERNELS))

from build import compiled  # noqa: E402
from machine_code import code_of  # noqa: E402
from variants import VARIANTS  # noqa: E402

LIMIT_BYTES = 8 << 30
GENERATIONS = (80, 90, 100)
OF_ALL_GENERATIONS = ("cross_entropy_forward", "cross_entropy_gradient", "batch_norm_gradient_add_relu")
STORES_ONE_VALUE = ("cross_entropy_forward",)
BY_COLUMN = ("batch_norm_moments", "batch_norm_statistics", "batch_norm_gradient_sums", "batch_norm_gradient_sums_relu",
             "sums_of_parts")


class TritonCode(unittest.TestCase):
    def test_memory_is_read_and_written_16_bytes_at_a_time_and_nothing_is_spilled(self):
        for name, variant in VARIANTS.items():
            for version in GENERATIONS if name in OF_ALL_GENERATIONS else (90,):
                with self.subTest(kernel=name, version=version):
                    made = code_of(compiled(variant, version))
                    self.assertEqual(made.spilled_bytes, 0)
                    self.assertLessEqual(made.registers, 128, "two blocks of 256 threads at once on a multiprocessor")
                    self.assertNotIn(16, made.widths("LDG"), "of an element alone")
                    if "statistics" not in name:
                        self.assertIn(128, made.widths("LDG"))
                    if name not in (*BY_COLUMN, *STORES_ONE_VALUE):
                        self.assertIn(128, made.widths("STG"))

    def test_a_file_of_cpp_holds_them(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, KERNELS / "build.py", folder, "90"], check=True, timeout=300)
            made = pathlib.Path(folder, "triton_kernels.cpp").read_text(encoding="utf-8")
            self.assertEqual(made.count(".incbin"), len(VARIANTS))
            for path in pathlib.Path(folder).glob("*.cubin"):
                self.assertEqual(path.read_bytes()[:4], b"\x7fELF")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    with tempfile.TemporaryDirectory(prefix="scalemark-test-") as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        unittest.main()
