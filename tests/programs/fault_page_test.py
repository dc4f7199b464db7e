#!/usr/bin/env python3
"""Every row of the table of docs/faults.md names tests that exist, and every test of a numbered fault is in the table.
Needs Python alone."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests/programs"
SHARED = {"fault_table", "slurm"}  # both inherit the tests of fault_table.py


def rows():
    table = (ROOT / "docs/faults.md").read_text(encoding="utf-8").split("\n## Faults\n")[1]
    for line in re.findall(r"^\| (?!fault \||---|\*\*)(.+) \|$", table, re.MULTILINE):
        yield re.split(r" ?\| ?", line)


def numbers_of(name):
    """The numbers of the functions test_NUMBER_* that tests/programs/NAME_test.py runs."""
    files = [PROGRAMS / f"{name}_test.py"] + [PROGRAMS / "fault_table.py"] * (name in SHARED)
    return {number for file in files for number in re.findall(r"def test_(\d\d)_", file.read_text(encoding="utf-8"))}


def exists(test):
    name, _, number = test.partition(" ")
    if "." in name:
        lists = (ROOT / "tests").rglob("CMakeLists.txt")
        return any(f"add_test(NAME {name} " in file.read_text(encoding="utf-8") for file in lists)
    if "/" in name:
        return (ROOT / f"tests/{name}_test.cpp").exists()
    return (PROGRAMS / f"{name}_test.py").exists() and (not number or number in numbers_of(name))


class FaultPage(unittest.TestCase):
    def test_every_row_has_tests_that_exist(self):
        self.assertGreater(len(list(rows())), 35)
        for fault, result, _, tests in rows():
            with self.subTest(fault=fault):
                self.assertTrue(result)
                self.assertEqual([test for test in tests.split(", ") if not exists(test)], [])

    def test_every_numbered_test_has_its_row(self):
        listed = {test for *_, tests in rows() for test in tests.split(", ") if " " in test}
        written = {f"{name} {number}" for name in (file.name[:-len("_test.py")] for file in PROGRAMS.glob("*_test.py"))
                   for number in numbers_of(name)}
        self.assertGreater(len(written), 20)
        self.assertEqual(listed, written)


if __name__ == "__main__":
    unittest.main()
