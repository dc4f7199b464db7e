#!/usr/bin/env python3
"""docs/gpu.md lists every test that needs a GPU, each with the card, driver and date that it passed on, or "never ran";
records claim a card only where every test has one. Needs Python alone."""
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROVEN = re.compile(r"[^,|]+, driver [\d.]+, \d{4}-\d{2}-\d{2}")


def tests_in_sources():
    names = set()
    for path in (ROOT / "tests").rglob("*_gpu_test.cpp"):
        if path.parent.name != "platform":  # that room needs none: it is about GPUs that are not used
            names |= set(re.findall(r"^TEST(?:_[FP])?\((\w+),\s+(\w+)\)", path.read_text(encoding="utf-8"), re.MULTILINE))
    return {".".join(name) for name in names}


def tests_on_the_page():
    page = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| (\w+\.\w+) \|.*\| ([^|]+) \|$", page, re.MULTILINE))


class GpuPage(unittest.TestCase):
    def test_it_lists_every_test_once_and_no_other(self):
        self.assertGreater(len(tests_in_sources()), 20)
        self.assertEqual(set(tests_on_the_page()), tests_in_sources())

    def test_each_says_where_it_ran(self):
        for name, where in tests_on_the_page().items():
            with self.subTest(name):
                self.assertTrue(where == "never ran" or PROVEN.fullmatch(where), where)

    def test_records_claim_what_the_page_claims(self):
        source = (ROOT / "src" / "result" / "run_metrics.cpp").read_text(encoding="utf-8")
        claimed = re.search(r'kProvenOn = "([^"]*)"', source)[1]
        self.assertTrue(claimed == "" or PROVEN.fullmatch(claimed), claimed)
        if "never ran" in tests_on_the_page().values():
            self.assertEqual(claimed, "", "a test of the page never ran")


if __name__ == "__main__":
    unittest.main()
