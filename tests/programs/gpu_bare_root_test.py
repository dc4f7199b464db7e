"""The folder of scripts/gpu_bundle on a root file system that has only a newer glibc and libstdc++, the smallest Debian 13 and a
Python, with LibTorch at another path than the build had: what a machine is that has torch and nothing else.

The root is made once, by debootstrap, and kept in /var/tmp.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import gpu_folder
from support import ProgramTest, main

ROOT = pathlib.Path("/var/tmp/scalemark-bare-root")
SUITE = "trixie"
PACKAGES = "libstdc++6,python3"
# Within a mount namespace of its own: "$1" the root, "$2" LibTorch's site-packages, "$3" the folder.
ENTER = """
set -e
root=$1 site=$2 folder=$3; shift 3
mount -t tmpfs none "$root/opt"
mkdir -p "$root/opt/other place" "$root/opt/folder" "$root/opt/results"
mount --bind "$site" "$root/opt/other place"
mount --bind "$folder" "$root/opt/folder"
mount --bind . "$root/opt/results"
mount -t proc none "$root/proc"
mount -t sysfs none "$root/sys"
mount --rbind /dev "$root/dev"
exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LC_ALL=C "SCALEMARK_LABEL=$SCALEMARK_LABEL" \\
  OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive SCALEMARK_ROOFLINE=false sh -c 'cd /opt/results && exec "$@"' sh "$@"
"""


def make_root():
    """Skips where it cannot be made."""
    if (ROOT / "complete").exists():
        return
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise unittest.SkipTest("needs root and debootstrap to make a root file system")
    shutil.rmtree(ROOT, ignore_errors=True)
    done = subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, ROOT], capture_output=True, text=True,
                          timeout=600, check=False)
    if done.returncode != 0:
        raise unittest.SkipTest(f"debootstrap {SUITE} failed: {done.stdout[-300:]}{done.stderr[-300:]}")
    (ROOT / "complete").touch()


class BareRoot(ProgramTest):
    @classmethod
    def setUpClass(cls):
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
            raise unittest.SkipTest("needs a mount namespace")
        make_root()
        cls.bundle = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="scalemark-bundle-"))) / "folder"
        gpu_folder.make(cls.bundle)
        cls.site = gpu_folder.linked_torch().parent

    def inside(self, *words, **more):
        return self.run_program("unshare", "-m", "bash", "-c", ENTER, "bash", ROOT, self.site, self.bundle, *words, **more)

    def run_inside(self, *words, **more):
        return self.inside("/opt/folder/run", "--torch", "/opt/other place/torch", *words, **more)

    TRIVIAL = ["--device", "cpu", "--model", "trivial", "--num_batches", "3"]

    def test_nothing_of_the_build_is_there(self):
        for name in ("mpirun", "g++", "ssh"):
            self.inside("sh", "-c", f"! command -v {name}")
        self.inside("sh", "-c", f"! test -e {gpu_folder.BINARY} && ! ls /usr/lib/*/libmpi* /usr/lib/*/libhwloc*")

    def test_on_the_cpu(self):
        self.run_inside("scalemark", "run", *self.TRIVIAL, "--output", "run.json")
        self.assertEqual(self.read("run.json")["status"], "ok")
        self.run_inside("scalemark", "scale", *self.TRIVIAL, "--ranks", "1,2", "--repeats", "1", "--output", "scale.json")
        self.assertEqual([point["ranks"] for point in self.read("scale.json")["points"]], [1, 2])
        self.run_inside("mpirun", "-n", "2", "--oversubscribe", "--bind-to", "none", "scalemark", "run", *self.TRIVIAL, "--output",
                        "two.json")
        self.assertEqual(self.read("two.json")["world_size"], 2)
        self.run_inside("scalemark", "run", *self.TRIVIAL, "--ranks", "2", "--reducer", "c10d", "--output", "c10d.json")
        self.assertEqual(self.read("c10d.json")["communication"]["communicator"], "gloo")
        preflight = ("scalemark preflight --device cpu --ranks 2 --seconds 0.1 --sizes 8,1024 --scratch_mb 1 "
                     "--output preflight.json || [ $? = 4 ]")  # 4: the machine is busy, so that one rank is slower
        self.run_inside("sh", "-c", preflight)
        self.assertEqual(self.read("preflight.json")["status"], "ok")

    @unittest.skipIf(pathlib.Path("/dev/nvidiactl").exists(), "there is a GPU")
    def test_the_cuda_path_loads_and_skips(self):
        _, err = self.run_inside("scalemark", "run", "--device", "cuda", "--model", "trivial", expect=7)
        self.assertIn("no usable GPU", err)
        for path in sorted((self.bundle / "bin").glob("*_gpu_test")):
            out, _ = self.run_inside(path.name)
            self.assertRegex(out, r"\[  PASSED  \] 0 tests")

    @unittest.skipIf(pathlib.Path("/dev/nvidiactl").exists(), "there is a GPU")
    def test_a_visit_without_a_gpu_is_exit_7_with_its_files(self):
        for words in (["/opt/folder/run", "--torch", "/opt/other place/torch", "gpu_check"],
                      ["python3", "/opt/folder/scripts/gpu_check", "--bundle", "--torch", "/opt/other place/torch"]):
            _, err = self.inside(*words, "--minutes", "2", "--output", "visit", expect=7)
            self.assertIn("no GPU", err)
            summary = json.loads((self.folder / "visit/summary.json").read_text())
            self.assertEqual(summary["state"], "no GPU")
            facts = next(step for step in summary["steps"] if step["step"] == "facts")
            self.assertEqual((facts["exit"], facts["found"]["not_found"], facts["found"]["changed_files"]), (7, {}, []))
            self.assertIn("Debian GNU/Linux 13", facts["found"]["machine"]["system"])
            self.assertIn("no GPU", (self.folder / "visit/table.txt").read_text())
            shutil.rmtree(self.folder / "visit")


if __name__ == "__main__":
    main()
