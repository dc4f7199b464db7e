"""What the end-to-end tests share: starting scalemark as users do, reading its records, looking for left-over processes."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("SCALEMARK_BINARY_DIR", SOURCE / "build" / "release"))
SCALEMARK = BINARY / "bin" / "scalemark"
ROOT = ["--allow-run-as-root"] if os.geteuid() == 0 else []
SMALL = ["--model", "smallnet", "--batch_size", "4", "--num_warmup_batches", "1", "--display_every", "5"]


def mpirun(ranks, *words):
    """A user's own mpirun, with more ranks than cores allowed."""
    return ["mpirun", *ROOT, "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *map(str, words)]


def schema_errors(record):
    """Messages of the schema of the record's kind; none where it is valid."""
    import jsonschema

    folder = SOURCE / "docs" / "schema"
    schema = json.loads((folder / f"{record['kind']}.schema.json").read_text())
    store = {path.name: json.loads(path.read_text()) for path in folder.glob("*.json")}
    try:
        from referencing import Registry, Resource

        registry = Registry().with_resources(
            [(name, Resource.from_contents(content)) for name, content in store.items()]
            + [(content["$id"], Resource.from_contents(content)) for content in store.values() if "$id" in content])
        validator = jsonschema.Draft202012Validator(schema, registry=registry)
    except ImportError:
        validator = jsonschema.Draft202012Validator(schema)
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(record)]


def scaled(record, factor):
    """The same record, `factor` times as fast."""
    record = json.loads(json.dumps(record))
    record["id"] = str(uuid.uuid4())
    if record["kind"] == "scaling":
        for repeat in (repeat for point in record["points"] for repeat in point["repeats"]):
            repeat["seconds"] /= factor
        return record
    record["wall_seconds"] /= factor
    record["throughput"]["mean"] *= factor
    for name in ("mean", "p50", "p99"):
        if "latency_seconds" in record:
            record["latency_seconds"][name] /= factor
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
        return {**os.environ, "OMP_NUM_THREADS": "1", "SCALEMARK_LABEL": self.tag, **more}

    def start(self, *words, env=None, **options):
        return subprocess.Popen([str(w) for w in words], env=env or self.environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder, **options)

    def run_program(self, *words, expect=0, timeout=90, **options):
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
        self.assertEqual(schema_errors(record), [])
        return record

    def record_of(self, *words, expect=0):
        """The record of `scalemark WORDS`: the same on stdout and in a file, and valid."""
        out, _ = self.run_program(SCALEMARK, *words, "--json", "--output", "record.json", expect=expect)
        record = json.loads(out)
        self.assertEqual(record, self.read("record.json"))
        done = subprocess.run([sys.executable, SOURCE / "tests/result/validate_records.py", self.folder / "record.json"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
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

    def assert_nothing_left(self):
        deadline = time.monotonic() + 10
        while (left := self.processes_left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "processes left behind")

    def wait_for_line(self, stream, text):
        """Reads lines until one contains `text`."""
        for line in stream:
            if text in line:
                return line
        self.fail(f"the output ended before {text!r}")
