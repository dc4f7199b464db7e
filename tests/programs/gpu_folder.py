"""The folder of scripts/gpu_bundle, for the tests that run from it."""

import os
import pathlib
import re
import subprocess
import unittest

from support import BINARY, SOURCE


def linked_torch():
    """LibTorch's folder as the build knows it."""
    cache = (BINARY / "CMakeCache.txt").read_text()
    return pathlib.Path(re.search(r"^TorchLib_CPU_LIBRARY:\w+=(.*)$", cache, re.MULTILINE)[1]).parents[1].resolve()


def make(folder):
    """What the script prints. Skips where this build has no CUDA path."""
    if not (BINARY / "libexec/scalemark-engine-cpu").exists():
        raise unittest.SkipTest("this build has no CUDA path")
    done = subprocess.run([SOURCE / "scripts/gpu_bundle", "--build", BINARY, "--output", folder], capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C"}, check=False)
    if "patchelf is missing" in done.stderr:
        raise unittest.SkipTest(done.stderr.strip())
    if done.returncode != 0:
        raise AssertionError(f"scripts/gpu_bundle ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
