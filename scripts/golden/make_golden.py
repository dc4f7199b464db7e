#!/usr/bin/env python3
"""Reference values for tests/models/golden_test.cpp: make() of every file in this folder that has one.

    .venv/bin/python scripts/golden/make_golden.py [FILE_WITHOUT_PY...]
"""

import importlib
import sys
from pathlib import Path

if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(file.stem for file in Path(__file__).parent.glob("*.py")):
        network = importlib.import_module(name)
        if hasattr(network, "make"):
            network.make()
