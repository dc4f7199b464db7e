"""cmake --install: a tree that works, also after it was moved and where the LibTorch it was linked with is gone."""

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

from support import BINARY, ProgramTest, main, mpirun

RUN = ["run", "--model", "trivial", "--num_batches", "3"]


def linked_torch():
    """The folder of LibTorch that the build knows."""
    cache = (BINARY / "CMakeCache.txt").read_text()
    return pathlib.Path(re.search(r"^TorchLib_CPU_LIBRARY:FILEPATH=(.*)/lib/libtorch_cpu.so$", cache, re.MULTILINE)[1])


def can_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


class Install(ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="scalemark-install-")))
        first = folder / "first place"
        subprocess.run(["cmake", "--install", BINARY, "--prefix", first], check=True, capture_output=True)
        cls.prefix = folder / "moved"
        shutil.move(first, cls.prefix)
        cls.program = cls.prefix / "bin/scalemark"

    def test_a_moved_tree_runs(self):
        self.run_program(*mpirun(2, self.program, *RUN, "--output", "run.json"))
        self.assertEqual(self.read("run.json")["world_size"], 2)
        out, _ = self.run_program(self.program, "list", "configs")
        self.assertIn(str(self.prefix / "share/scalemark/configs/sweeps/threads.json"), out)
        for engine in (self.prefix / "libexec").iterdir():
            out, _ = self.run_program("readelf", "-d", engine)
            self.assertRegex(out, r"R(UN)?PATH.*\$ORIGIN/../lib")
            self.assertNotIn(str(BINARY), out)

    def test_what_the_program_prints_of_itself_is_there(self):
        for place, words in (("man/man1/scalemark.1", ["help", "--man"]),
                             ("bash-completion/completions/scalemark", ["completion", "bash"]),
                             ("zsh/site-functions/_scalemark", ["completion", "zsh"]),
                             ("fish/vendor_completions.d/scalemark.fish", ["completion", "fish"])):
            out, _ = self.run_program(self.program, *words)
            self.assertEqual((self.prefix / "share" / place).read_text(), out)

    def test_documents_schemas_and_licences_come_with_it(self):
        share = self.prefix / "share/scalemark"
        for name in ("LICENSE", "docs/third_party.md", "docs/schema/run.schema.json", "scripts/slurm/submit"):
            self.assertTrue((share / name).is_file(), name)
        self.assertTrue(os.access(share / "scripts/slurm/submit", os.X_OK))
        for config in (share / "configs").rglob("*.json"):
            if (schema := json.loads(config.read_text()).get("$schema", "").split("#")[0]) and "://" not in schema:
                self.assertTrue((config.parent / schema).is_file(), f"{config}: {schema}")
        for page in share.rglob("*.md"):
            for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
                target = pathlib.Path(os.path.relpath((page.parent / link).resolve(), share.resolve()))
                if "://" not in link and target.parts[0] not in ("src", "tests", "models", "lab"):  # the sources stay behind
                    self.assertTrue((share / target).exists(), f"{page}: {link}")

    def test_the_report_of_a_moved_tree(self):
        self.run_program(self.program, *RUN, "--output", "run.json")
        out, _ = self.run_program(self.program, "report", "run.json", env=self.environment(SCALEMARK_PYTHON=sys.executable))
        self.assertIn("trivial", (self.folder / out.strip()).read_text())

    def test_configurations_go_by_their_names_in_the_documents(self):
        out, _ = self.run_program(self.program, "sweep", "configs/sweeps/smoke.json", "--dry_run")
        self.assertIn("--model=smallnet", out)
        for words in (["--config", "configs/quickstart.json"], ["--config=configs/quickstart.json"]):
            out, _ = self.run_program(self.program, "scale", *words, "--dry_run")
            self.assertIn("resnet50", out)
        (self.folder / "configs").mkdir()
        (self.folder / "configs/quickstart.json").write_text('{"model": "trivial"}')
        out, _ = self.run_program(self.program, "scale", *words, "--dry_run")
        self.assertNotIn("resnet50", out)
        _, err = self.run_program(self.program, "sweep", "configs/nothing.json", "--dry_run", expect=2)
        self.assertIn("configs/nothing.json: no such file", err)

    def test_help_names_documents_where_they_are(self):
        for words in (["gate", "--help", "all"], ["sweep", "--help"], ["project", "--help", "all"]):
            out, _ = self.run_program(self.program, *words)
            found = re.findall(r"([^\s(]*\b(?:docs|configs)/[\w./]*\w)", re.sub(r"\n +", " ", out))
            self.assertGreater(len(found), 0, out)
            for path in found:
                self.assertTrue(pathlib.Path(path).is_absolute() and pathlib.Path(path).exists(), path)

    def test_modules_are_loaded_and_unloaded(self):
        """By whichever of the two programs is here; one module is loaded with the other that it wants."""
        kinds = {"lua": pathlib.Path("/usr/share/lmod/lmod/init/bash"), "tcl": pathlib.Path("/usr/share/modules/init/bash")}
        here = [kind for kind, shell in kinds.items() if shell.exists()]
        if not here:
            raise unittest.SkipTest("needs Lmod or Environment Modules")
        for kind in here:
            text = (self.prefix / f"share/scalemark/scripts/packaging/scalemark.{kind}").read_text()
            own = self.folder / kind / "scalemark" / ("0.1.0.lua" if kind == "lua" else "0.1.0")
            mpi = self.folder / kind / "openmpi" / ("4.1.lua" if kind == "lua" else "4.1")
            for path in (own, mpi):
                path.parent.mkdir(parents=True)
            # Neither program takes a folder with a blank in its name.
            (self.folder / "prefix").symlink_to(self.prefix)
            own.write_text(text.replace("/opt/scalemark/0.1.0", str(self.folder / "prefix")))
            mpi.write_text('setenv("MPI_IS", "loaded")\n' if kind == "lua" else "#%Module1.0\nsetenv MPI_IS loaded\n")
            out, err = self.run_program("bash", "-c", f"""
                . {kinds[kind]}
                module use {self.folder / kind}
                module load scalemark
                command -v scalemark; echo "$MPI_IS" "${{MANPATH%%:*}}"
                module unload scalemark
                command -v scalemark || echo gone""")
            prefix = self.folder / "prefix"
            self.assertEqual(out.split(), [f"{prefix}/bin/scalemark", "loaded", f"{prefix}/share/man", "gone"], err)

    def test_without_the_libtorch_that_it_was_linked_with(self):
        """A mount hides it, and shows it elsewhere."""
        site = linked_torch().resolve().parent
        if not can_mount() or site == pathlib.Path("/"):
            raise unittest.SkipTest("needs root and a mount namespace to hide LibTorch")
        elsewhere = self.folder / "another place"
        elsewhere.mkdir()
        hide = f"mount --bind {shlex.quote(str(site))} {shlex.quote(str(elsewhere))} && mount -t tmpfs none {shlex.quote(str(site))}"

        def away(*words, **options):
            return self.run_program("unshare", "-m", "sh", "-c", f'{hide} && exec "$@"', "sh", *words, **options)

        _, err = away(self.program, *RUN, expect=7)
        self.assertRegex(err, r"libtorch_cpu\.so.* cannot be found.*--torch FOLDER or SCALEMARK_TORCH=FOLDER")
        _, err = away(self.program, *RUN, "--torch", "nowhere", expect=2)
        self.assertIn('--torch: "nowhere" holds no lib/libtorch_cpu.so', err)
        other = self.folder / "torch"
        (other / "lib").mkdir(parents=True)
        (other / "lib/libtorch_cpu.so").touch()
        (other / "version.py").write_text("from typing import Optional\n__version__ = '1.99.0+cpu'\n")
        _, err = away(self.program, *RUN, "--torch", other, expect=7)
        self.assertRegex(err, r"holds LibTorch 1\.99, and this program was built with 2\.\d+")
        torch = elsewhere / "torch"
        away(self.program, *RUN, "--torch", torch, "--output", "alone.json")
        away("env", f"SCALEMARK_TORCH={torch}", self.program, *RUN, "--ranks", "2", "--output", "two.json")
        self.assertEqual(self.read("two.json")["world_size"], 2)
        self.assertEqual(self.read("two.json")["config"]["torch"]["value"], str(torch))


if __name__ == "__main__":
    main()
