#!/usr/bin/env python3
"""The order of rooms, held on every #include of src/, models/, bench/, lab/ and tests/. Needs Python alone."""
import fnmatch
import glob
import os
import re
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# A room includes itself, the headers that lie in src/ itself, and what its row names: rooms, or a header alone. A row
# names rows above it only, so there is no cycle.
ORDER = """
models    -
config    models/catalog.hpp
measure   config
rendezvous config measure
platform  config measure
record    config measure platform
result    config measure platform record models/catalog.hpp
analysis  config measure platform record result models/catalog.hpp
launch    config measure rendezvous platform record result analysis models/catalog.hpp
report    config measure record result analysis launch models/catalog.hpp
comm      config measure platform
train     config measure rendezvous platform comm models
probe     measure platform comm train
session   config measure rendezvous platform record result analysis report comm train probe models
commands  config measure platform record result analysis report launch models/catalog.hpp
bench     commands session
lab       measure analysis commands
"""

# Against the order: (file, what it includes): why.
EXCEPTIONS = {}

# tests/ROOM includes what ROOM may, ROOM, tests/support, and these. lab/ includes its tests.
TESTS = """
support   comm platform
analysis  report
result    analysis
train     analysis
fuzz      config result analysis report
"""

# Headers of others, the first pattern that fits: where they may be included. What is not listed may be anywhere.
OTHERS = [
    ("MPI", r"mpi\.h", ["src/comm/*"]),
    ("Gloo and c10d", r"torch/csrc/distributed|gloo/", ["src/train/c10d/*", "src/train/cuda/*"]),
    ("CUDA and NCCL", r'(torch/csrc/|c10/|ATen/)?cuda[^"/]*(\.h|/)|nccl\.h|cudnn\.h|nvml\.h',
     ["src/*/cuda/*", "tests/*/cuda/*", "tests/comm/fakes/*", "tests/*_gpu_test.cpp"]),
    ("LibTorch", r"torch/|ATen/|c10/",
     [f"{top}/{room}/*" for top in ("src", "tests") for room in ("train", "probe", "session")] +
     ["models/*", "tests/models/*", "bench/engine.cpp"]),
    ("hwloc", r"hwloc", ["src/platform/*"]),
    ("cxxopts", r"cxxopts", ["src/config/*", "src/commands/*"]),
]
LIBTORCH = next((pattern, places) for who, pattern, places in OTHERS if who == "LibTorch")
# Kernels of our own are reached through models/operator_set.hpp alone, and so is every loop over vectors of a step:
# --kernels torch and a build without them leave all of them out.
KERNELS = re.compile(r"models/kernels/|vector_loop\.hpp")
KERNELS_PLACES = ["models/kernels/*", "tests/models/kernels/*", "src/comm/*"]  # sums and casts of comm are no operators
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^">]+)[">]')


def rows(text):
    return {line.split()[0]: [word for word in line.split()[1:] if word != "-"]
            for line in text.strip().splitlines()}


def allowed_of():
    """Of "config", "tests/config", ...: what its files may include."""
    allowed = rows(ORDER)
    added = rows(TESTS)
    for room, names in list(allowed.items()):
        allowed["tests/" + room] = names + [room, "support"] + added.get(room, [])
    for room in ("support", "fuzz"):  # of no room of src/
        allowed["tests/" + room] = added[room] + [room, "support"]
    return allowed


def room_of(path):
    """"config" of src/config/keys/x.hpp, "tests/config" of tests/config/x.cpp, "" of src/error.hpp."""
    parts = path.split("/")
    if parts[0] == "src":
        return parts[1] if len(parts) > 2 else ""
    return "/".join(parts[:2]) if parts[0] == "tests" else parts[0]


class Tree:
    def __init__(self, root):
        self.includes = {}  # path: [(line, "<" or '"', what)]
        for top in ("src", "models", "bench", "lab", "tests"):
            for folder, _, names in os.walk(os.path.join(root, top)):
                for name in names:
                    if name.endswith((".cpp", ".hpp")):
                        path = os.path.relpath(os.path.join(folder, name), root)
                        with open(os.path.join(root, path), encoding="utf-8") as lines:
                            self.includes[path] = [(number, *found.groups()) for number, line in enumerate(lines, 1)
                                                   if (found := INCLUDE.match(line))]
        self.reached = {}

    def find(self, path, name):
        """The file that `path` means by "name"."""
        for folder in ("src/", "tests/", "", os.path.dirname(path) + "/"):
            if folder + name in self.includes:
                return folder + name
        return None

    def ours(self, path):
        """(line, name, file) of what `path` includes of this project."""
        for number, quote, name in self.includes[path]:
            if quote == '"':
                yield number, name, self.find(path, name)

    def torch_behind(self, path):
        """The chain from `path` to a header of LibTorch; empty: there is none."""
        if path not in self.reached:
            self.reached[path] = []
            chains = [[name] for _, _, name in self.includes[path] if re.match(LIBTORCH[0], name)]
            chains += [chain for _, _, header in self.ours(path) if header and (chain := self.torch_behind(header))]
            if chains:
                self.reached[path] = [path, *chains[0]]
        return self.reached[path]


def complaints(tree, used=None):
    """What stands against the tables, as FILE:LINE: why. `used`: receives the exceptions that are made."""
    found, allowed = [], allowed_of()
    for path in sorted(tree.includes):
        room = room_of(path)
        if room and room not in allowed:
            found.append(f"{path}: the folder {room} has no row in tests/programs/includes_test.py")
            continue
        may = allowed.get(room, [])
        for number, name, header in tree.ours(path):
            if not header and "/" not in name:
                continue  # one that the build makes
            if KERNELS.match(name) and not any(fnmatch.fnmatch(path, place) for place in KERNELS_PLACES):
                found.append(f"{path}:{number}: {name} is reached through models/operator_set.hpp only")
            target = room_of(header).removeprefix("tests/") if header else name.split("/")[0]
            if target in ("", room.removeprefix("tests/")) or target in may or name in may:
                continue
            if (path, target) in EXCEPTIONS:
                if used is not None:
                    used.add((path, target))
                continue
            found.append(f"{path}:{number}: {room or 'src'} may not include {name}; it may include "
                         f"{' '.join(may) or 'no other room'} (tests/programs/includes_test.py)")
        for number, _, name in tree.includes[path]:
            who, places = next(((who, places) for who, pattern, places in OTHERS if re.match(pattern, name)), (None, []))
            if who and not any(fnmatch.fnmatch(path, place) for place in places):
                found.append(f"{path}:{number}: {who} may be included in {' '.join(places)} only, not <{name}>")
        if not any(fnmatch.fnmatch(path, place) for place in LIBTORCH[1]) and len(chain := tree.torch_behind(path)) > 2:
            found.append(f"{path}: reaches LibTorch by {' -> '.join(chain)}")
    return found


class Includes(unittest.TestCase):
    def test_the_rooms_are_in_order(self):
        tree, used = Tree(ROOT), set()
        self.assertGreater(len(tree.includes), 300)
        if found := complaints(tree, used):
            self.fail("\n" + "\n".join(found))
        self.assertEqual(sorted(set(EXCEPTIONS) - used), [], "exceptions that nothing needs any more")

    def test_a_row_names_rows_above_it(self):
        above = set()
        for room, names in rows(ORDER).items():
            self.assertLessEqual({name.split("/")[0] for name in names}, above, room)
            above.add(room)

    def wrong(self, files):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return complaints(Tree(root))

    def test_a_wrong_include_is_named_by_file_and_line(self):
        header = {"src/analysis/a.hpp": "", "src/error.hpp": ""}
        self.assertEqual(self.wrong({"src/analysis/gate/b.cpp": '#include "analysis/a.hpp"\n#include "error.hpp"\n',
                                     **header}), [])
        found, = self.wrong({"src/config/b.hpp": '#include "error.hpp"\n\n# include "analysis/a.hpp"\n', **header})
        self.assertRegex(found, r"^src/config/b.hpp:3: config may not include analysis/a.hpp; it may include models/cat")
        found, = self.wrong({"tests/config/b_test.cpp": '#include "analysis/a.hpp"\n', **header})
        self.assertIn("tests/config/b_test.cpp:1: ", found)
        found, = self.wrong({"src/new/b.cpp": ""})
        self.assertIn("src/new/b.cpp: the folder new has no row", found)

    def test_headers_of_others_stay_in_their_places(self):
        for path, name, who in [("src/session/a.cpp", "mpi.h", "MPI"), ("src/comm/a.hpp", "torch/torch.h", "LibTorch"),
                                ("src/train/a.cpp", "cuda_runtime.h", "CUDA"), ("models/a.cpp", "c10/cuda/x.h", "CUDA"),
                                ("src/train/a.cpp", "torch/csrc/distributed/c10d/reducer.hpp", "Gloo and c10d")]:
            found, = self.wrong({path: f"// a file\n#include <{name}>\n"})
            self.assertRegex(found, f"^{path}:2: {who}")
        self.assertEqual(self.wrong({"src/comm/cuda/a.cpp": "#include <nccl.h>\n"}), [])

    def test_kernels_are_reached_through_their_interface(self):
        files = {"models/kernels/a.hpp": "", "src/vector_loop.hpp": ""}
        self.assertEqual(self.wrong({"models/kernels/a.cpp": '#include "models/kernels/a.hpp"\n#include "vector_loop.hpp"\n',
                                     **files}), [])
        for path in ("models/b.cpp", "src/train/b.cpp"):
            for name in ("models/kernels/a.hpp", "vector_loop.hpp"):
                found, = self.wrong({path: f'#include "{name}"\n', **files})
                self.assertRegex(found, f"^{path}:1: {name} is reached through models/operator_set.hpp only")
        for folder in ("models", "src/train"):  # nor is there a loop over threads elsewhere, but for drawing weights
            for path in glob.glob(os.path.join(ROOT, folder, "**", "*.[ch]pp"), recursive=True):
                if "/models/kernels/" not in path:
                    with open(path, encoding="utf-8") as file:
                        self.assertLessEqual(file.read().count("parallel_for("), path.endswith("models/layers.cpp"), path)

    def test_what_older_and_newer_libraries_need(self):
        """fmt 11 has moved join() to a header of its own; cxxopts 2 has no Options::program()."""
        for path in sorted(name for folder in ("src", "models", "bench", "lab", "tests") for name in
                           glob.glob(os.path.join(ROOT, folder, "**", "*.[ch]pp"), recursive=True)):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            if "fmt::join" in text:
                self.assertIn("#include <fmt/ranges.h>", text, path)
            self.assertNotIn("options.program()", text, path)

    def test_no_way_leads_to_libtorch(self):
        files = {"models/catalog.hpp": '#include "models/layers.hpp"\n', "models/layers.hpp": "#include <torch/nn.h>\n"}
        found, = self.wrong({"src/config/a.cpp": '#include "models/catalog.hpp"\n', **files})
        self.assertEqual(found, "src/config/a.cpp: reaches LibTorch by src/config/a.cpp -> models/catalog.hpp -> "
                                "models/layers.hpp -> torch/nn.h")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
