"""What the end-to-end tests share: starting scalemark as users do, reading its records, looking for left-over processes.

A suite ends with support.main(): its exit code is 77, which ctest shows as a skip, only where every test was skipped.
"""

import importlib.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

from made_records import rescale, times

# scripts/setup leaves packages uncompiled: without a cache every Python here would compile PyTorch anew, for 3 s to 8 s.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/result"))
from validate_records import problems_of, schema_errors  # noqa: E402, F401

BINARY = pathlib.Path(os.environ.get("SCALEMARK_BINARY_DIR", SOURCE / "build" / "release"))
SCALEMARK = BINARY / "bin" / "scalemark"
ROOT = ["--allow-run-as-root"] if os.geteuid() == 0 else []
# One thread, which sleeps where it waits: suites run side by side. The GEMM peak of each launch takes as long as all the rest
# of it; tests of records ask for it again (ROOFLINE).
VARIABLES = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive",
             "SCALEMARK_ROOFLINE": "false"}
ROOFLINE = "--roofline"
# Steps of which each takes about as long as the other, whatever else the machine does.
STEADY = ["--inject", "delay:milliseconds=5"]
# Without what it depends on (scripts/setup with SCALEMARK_CUDA=OFF) it can't be imported.
PYTHON_HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "sympy"))
SKIPPED = 77  # tests/programs/CMakeLists.txt: SKIP_RETURN_CODE
SMALL = ["--model", "smallnet", "--batch_size", "4", "--num_warmup_batches", "1", "--display_every", "5"]


def mpirun(ranks, *words):
    """A user's own mpirun, with more ranks than cores allowed."""
    return ["mpirun", *ROOT, "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *map(str, words)]


def environment(**more):
    """Read at each call: a lab changes it (PATH, SLURM_CONF)."""
    return {**os.environ, **VARIABLES, **more}


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def expand(cpus):
    """The numbers of "0-3,8"."""
    parts = [part.split("-") for part in cpus.split(",")]
    return {n for part in parts for n in range(int(part[0]), int(part[-1]) + 1)}


def scaled(record, factor):
    """The same record, `factor` times as fast: every time and rate that a reader holds against another."""
    record = json.loads(json.dumps(record))
    record["id"] = str(uuid.uuid4())
    if record["kind"] == "scaling":
        for point in record["points"]:
            for repeat in point["repeats"]:
                repeat["seconds"] /= factor
                repeat["throughput"] *= factor
            for rate in ("throughput", "baseline_throughput", "ci95"):
                point[rate] = times(point[rate], factor)
        return record
    rescale(record, factor)
    return record


class ProgramTest(unittest.TestCase):
    """Every command gets a tag in its environment; after each test no process with that tag may be left."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="scalemark-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tag = f"test-{uuid.uuid4()}"
        self.addCleanup(self.assert_nothing_left)

    def environment(self, **more):
        return environment(SCALEMARK_LABEL=self.tag, **more)

    def path_without_ssh(self):
        """PATH, but for ssh and rsh."""
        programs = self.folder / "bin"
        programs.mkdir()
        for folder in reversed(os.environ["PATH"].split(":")):
            for path in pathlib.Path(folder).glob("*"):
                if path.name not in ("ssh", "rsh"):
                    (programs / path.name).unlink(missing_ok=True)
                    (programs / path.name).symlink_to(path)
        return str(programs)

    def write_program(self, name, text):
        """A script in this test's folder that stands for a program, or stands before one."""
        program = self.folder / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
        return program

    def start(self, *words, env=None, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen([str(w) for w in words], env=env or self.environment(), text=True, cwd=self.folder, **options)

    def run_program(self, *words, expect=0, timeout=240, **options):
        """Runs to the end; returns (stdout, stderr); the exit code must be the expected one."""
        process = self.start(*words, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            out, err = process.communicate()
            self.fail(f"{words} hung:\n{out}\n{err}")
        self.assertEqual(process.returncode, expect, f"{' '.join(map(str, words))}\n--- stdout\n{out}\n--- stderr\n{err}")
        return out, err

    def read(self, name):
        record = json.loads((self.folder / name).read_text())
        self.assertEqual(problems_of(record), [])
        return record

    def record_of(self, *words, expect=0):
        """The record of `scalemark WORDS`: the same on stdout and in a file, and valid."""
        out, _ = self.run_program(SCALEMARK, *words, "--json", "--output", "record.json", expect=expect)
        record = json.loads(out)
        self.assertEqual(record, self.read("record.json"))
        return record

    def processes_left(self):
        left = []
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.tag.encode() in path.read_bytes():
                    left.append(int(path.parent.name))
            except OSError:
                continue
        return [pid for pid in left if pid != os.getpid()]

    def processes(self, program):
        """Those of this test that run `program`, which may be the engine: also that without CUDA."""
        found = []
        for pid in self.processes_left():
            try:
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix("-cpu") == program:
                    found.append(pid)
            except OSError:
                pass  # has ended meanwhile
        return found

    def assert_nothing_left(self):
        deadline = time.monotonic() + 10
        while (left := self.processes_left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "processes left behind")

    def wait_until(self, condition, seconds=60, complaint=lambda: "did not come"):
        """Waits for what `condition` returns once that is true."""
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > deadline:
                self.fail(complaint())
            time.sleep(0.02)
        return found

    def wait_for_line(self, stream, text):
        """Reads lines until one contains `text`."""
        for line in stream:
            if text in line:
                return line
        self.fail(f"the output ended before {text!r}")


def cpu_seconds():
    """Of this process and those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Result(unittest.TextTestResult):
    passed = 0

    def startTest(self, test):
        super().startTest(test)
        self.begin = time.monotonic(), cpu_seconds()

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1
        began, cpu = self.begin
        self.stream.writeln(f"  {time.monotonic() - began:.1f} s, {cpu_seconds() - cpu:.1f} of a CPU")


def run_suite():
    """As unittest.main(), with the reason of each skip; the exit code."""
    result = unittest.main(exit=False, testRunner=unittest.TextTestRunner(verbosity=2, resultclass=Result)).result
    if not result.wasSuccessful() or result.testsRun + len(result.skipped) == 0:
        return 1
    return 0 if result.passed else SKIPPED


def main():
    sys.exit(run_suite())
