#!/usr/bin/env python3
"""How many files src/ and models/ have, how many of their headers one file alone includes, and how many declare next to
nothing: limits that may only fall. A change that needs less says so here."""
import collections
import os
import re
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FEWEST_LINES = 3
# What there was when each was written: whoever gets below one of them lowers it.
LIMITS = {"files": 512, "headers of one user": 40, "headers of at most three lines": 10}


def sources(root, *tops):
    for top in tops:
        for folder, _, names in os.walk(os.path.join(root, top)):
            yield from (os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith((".cpp", ".hpp")))


def users(root):
    """Of each header: the files of src/, models/ and bench/ that include it, but for its own source."""
    found = collections.defaultdict(set)
    for path in sources(root, "src", "models", "bench"):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for name in re.findall(r'^#include "([^"]+)"', file.read(), re.M):
                for header in ("src/" + name, name):
                    if header.removesuffix(".hpp") != path.removesuffix(".cpp"):
                        found[header].add(path)
    return found


def code_lines(root, path):
    """Lines that declare something."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    frame = re.compile(r"//|#pragma once|#include|namespace |}  // namespace|$")
    return sum(1 for line in lines if not frame.match(line))


def counts(root):
    files = sorted(sources(root, "src", "models"))
    headers = [path for path in files if path.endswith(".hpp")]
    of = users(root)
    return {"files": files, "headers of one user": [path for path in headers if len(of[path]) <= 1],
            "headers of at most three lines": [path for path in headers if code_lines(root, path) <= FEWEST_LINES]}


class FileCounts(unittest.TestCase):
    def test_limits_only_fall(self):
        for what, found in counts(ROOT).items():
            self.assertLessEqual(len(found), LIMITS[what], f"{what}: merge some, do not raise the limit; --list names them")
            if len(found) < LIMITS[what]:
                print(f"{what}: {len(found)}, below the limit of {LIMITS[what]}: lower it")

    def test_what_is_counted(self):
        files = {"src/a/one.hpp": "// A file.\n#pragma once\n\nnamespace scalemark {\n\n/// It.\nint one();\n\n}  // namespace scalemark\n",
                 "src/a/one.cpp": '#include "a/one.hpp"\n', "src/a/two.hpp": "int a();\nint b();\nint c();\nint d();\n",
                 "src/a/b.cpp": '#include "a/one.hpp"\n#include "a/two.hpp"\n', "models/c.cpp": '#include "a/two.hpp"\n',
                 "tests/a/one_test.cpp": '#include "a/one.hpp"\n'}
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            found = counts(root)
        self.assertEqual(len(found["files"]), 5)
        self.assertEqual(found["headers of one user"], ["src/a/one.hpp"], "neither its own source nor a test counts")
        self.assertEqual(found["headers of at most three lines"], ["src/a/one.hpp"])


if __name__ == "__main__":
    if "--list" in sys.argv:
        for kind, paths in counts(ROOT).items():
            print(f"{len(paths)} {kind}", *(paths if kind != "files" else []), sep="\n  ")
        sys.exit()
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
