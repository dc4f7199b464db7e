"""Real files with damage: refused with their name and the place in them, at once, and nothing made of them is no number."""

import copy
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import socket
import subprocess
import time

from measured_sweep import MeasuredSweepTest
from support import SCALEMARK, SOURCE, main

REMOVED = object()
WRONG = [None, "x", -1, 0, 1e308, 1e-320, 2**63, [], {}, True, "\x1b[31m\u202e", REMOVED]
EVIL = "\x1b[31mevil\u202e\n::error::"
PUBLISHED = SOURCE / "configs/published/dlperf-resnet50-pytorch.json"


def places(value, path=()):
    """Every place of a JSON tree but its root, of lists the first two items."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, part in items:
        yield path + (key,)
        yield from places(part, path + (key,))


def damaged(tree, path, value):
    tree = copy.deepcopy(tree)
    *above, last = path
    part = tree
    for key in above:
        part = part[key]
    if value is REMOVED:
        del part[last]
    else:
        part[last] = value
    return tree


def with_checksum(baseline):
    rest = {key: value for key, value in baseline.items() if key != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**rest, "checksum": hashlib.sha256(text.encode()).hexdigest()}


class DamagedTest(MeasuredSweepTest):
    def check(self, words, named=None, what=""):
        """Runs a command on a damaged file: read or refused, never another end."""
        process = subprocess.run([SCALEMARK, *words], cwd=self.folder, capture_output=True, timeout=60, env=self.environment())
        told = f"{words} {what}\n{process.stdout!r}\n{process.stderr!r}"
        self.assertIn(process.returncode, (0, 1, 2, 3, 6), told)
        out, err = process.stdout.decode(), process.stderr.decode()  # valid UTF-8
        for text in (out, err):
            self.assertNotIn("\x1b", text, told)
            self.assertNotIn("\u202e", text, told)
            self.assertNotRegex(text, "(?m)^::", told)
        self.assertNotIn("json.exception", err, told)
        if process.returncode == 0:
            self.assertNotRegex(out, re.compile(r"(?<![A-Za-z_])-?(nan|inf)(?![A-Za-z_])", re.I), told)
        if process.returncode == 6 and named:
            self.assertIn(named, err, told)
        return process.returncode

    def damage(self, tree, count, write, *commands, named=None):
        """`count` of all pairs of a place and a wrong value; a wrong value must be found now and then."""
        pairs = list(itertools.product(places(tree), WRONG))
        random.Random(20250101).shuffle(pairs)
        codes = set()
        for path, value in pairs[:count]:
            write(damaged(tree, path, value))
            for words in commands:
                codes.add(self.check(words, named, f"{path}: {value!r}"))
        self.assertIn(6, codes)

    def writer(self, name):
        return lambda tree: (self.folder / name).write_text(json.dumps(tree))


class Fields(DamagedTest):
    def test_of_a_record(self):
        self.copy("sweep")
        name = sorted((self.folder / "sweep/runs").iterdir())[0].name
        record = json.loads((self.folder / "sweep/runs" / name).read_text())
        self.damage(record, 150, self.writer(f"sweep/runs/{name}"), ["compare", "sweep", "--by", "precision"],
                    ["project", f"sweep/runs/{name}"], named=name)

    def test_of_a_journal(self):
        self.copy("sweep")
        first, *rest = (self.folder / "sweep/journal.jsonl").read_text().splitlines()

        def write(entry):
            (self.folder / "sweep/journal.jsonl").write_text("\n".join([json.dumps(entry), *rest]) + "\n")

        self.damage(json.loads(first), 100, write, ["compare", "sweep", "--by", "precision"])

    def test_of_a_published_curve(self):
        self.damage(json.loads(PUBLISHED.read_text()), 100, self.writer("curve.json"), ["project", "curve.json"], named="curve.json")

    def test_of_a_baseline_whose_checksum_fits(self):
        self.run_program(SCALEMARK, "gate", "--save_baseline", "base.json", self.sweep)
        baseline = json.loads((self.folder / "base.json").read_text())
        baseline["launches"] = baseline["launches"][:2]
        self.damage(baseline, 100, lambda tree: self.writer("base.json")(with_checksum(tree)), ["compare", "base.json", str(self.sweep)],
                    ["project", "base.json"], named="base.json")

    def test_of_a_plan(self):
        plan = json.loads((SOURCE / "configs/sweeps/links.json").read_text())
        pairs = list(itertools.product(places(plan), WRONG))
        random.Random(1).shuffle(pairs)
        for path, value in pairs[:60]:
            self.writer("plan.json")(damaged(plan, path, value))
            self.assertIn(self.check(["sweep", "plan.json", "--dry_run"], what=f"{path}: {value!r}"), (0, 2))


class Texts(DamagedTest):
    def test_a_key_twice_and_what_follows_a_zero_byte_are_refused(self):
        whole = sorted((self.sweep / "runs").iterdir())[0].read_text()
        for text, reason in ((whole[:-2] + ', "status": "ok"}', "twice"), (whole + "\0 more", "zero byte"),
                             (whole.replace('"mean":', '"mean": 1, "mean":', 1), "/throughput")):
            (self.folder / "r.json").write_text(text)
            _, err = self.run_program(SCALEMARK, "project", "r.json", expect=6)
            self.assertIn("r.json", err)
            self.assertIn(reason, err)

    def test_a_failed_launch_of_a_journal_has_a_code_of_ours(self):
        self.copy("sweep")
        journal = self.folder / "sweep/journal.jsonl"
        first, *rest = journal.read_text().splitlines()
        journal.write_text("\n".join([json.dumps({**json.loads(first), "status": "failed", "exit_code": 137}), *rest]) + "\n")
        _, err = self.run_program(SCALEMARK, "compare", "sweep", "--by", "precision", expect=6)
        self.assertIn("line 1: /exit_code is 137", err)

    def test_hostile_text_is_cleaned_wherever_it_is_shown(self):
        shutil.copytree(self.sweep, self.folder / "sweep")
        for number, path in enumerate(sorted((self.folder / "sweep/runs").iterdir())):
            record = json.loads(path.read_text())
            record["build"]["revision"] = record["system"]["cpu_model"] = EVIL
            record["warnings"], record["environment"][EVIL] = [EVIL], EVIL
            if number == 0:
                record["config"]["num_classes"]["value"] = EVIL
            path.write_text(json.dumps(record))
        journal = self.folder / "sweep/journal.jsonl"
        first, *rest = journal.read_text().splitlines()
        entry = {**json.loads(first), "status": "failed", "exit_code": 4, "reason": EVIL, "settings": {EVIL: EVIL}}
        journal.write_text("\n".join([json.dumps(entry), *rest]) + "\n")
        published = json.loads(PUBLISHED.read_text())
        (self.folder / "curve.json").write_text(json.dumps({**published, "source": EVIL, "description": EVIL, "model": EVIL}))
        sets = [["sweep", str(self.sweep)], ["sweep", "--by", "precision"], ["sweep", "--by", "revision"]]
        commands = [["compare", *words, *more] for words in sets for more in ([], ["--markdown"])]
        commands += [["gate", "sweep", str(self.sweep), "--other_machine"], ["gate", "--history", "sweep", str(self.sweep)],
                     ["gate", "--save_baseline", "base.json", "sweep"], ["project", "sweep"], ["project", "curve.json"],
                     ["project", "curve.json", "--markdown"], ["compare", b"\xff\x1b", b"\xfe"], ["gate", b"\xff", "sweep"],
                     ["sweep", b"\xff\x1b"], ["run", "--config", b"\xff\x1b"], [b"\xff\x1b"]]
        for words in commands:
            self.check(words)


class NoFiles(DamagedTest):
    """What may never end is refused at once, wherever a file is named."""

    COMMANDS = [["run", "--config", "IT"], ["infer", "--config", "IT"], ["instances", "--config", "IT"], ["sweep", "IT", "--dry_run"],
                ["sweep", "plan.json", "--dry_run", "--hostfile", "IT"], ["scale", "--ranks", "1,2", "--hostfile", "IT"],
                ["preflight", "--rules", "IT"], ["run", "--model", "trivial", "--preflight", "IT"], ["compare", "IT", "r.json"],
                ["project", "IT"], ["gate", "r.json", "IT"], ["gate", "--history", "IT", "r.json"],
                ["gate", "IT", "--base", "x", "--new", "x", "--output", "out"],
                ["gate", "--save_baseline", "IT", "r.json", "--because", "so"]]
    OUTPUTS = [["gate", "r.json", "r.json", flag, "IT"] for flag in ("--output", "--junit", "--summary")]
    OUTPUTS += [["compare", "a=r.json", "b=s.json", "--output", "IT"], ["project", str(PUBLISHED), "--output", "IT"]]

    def setUp(self):
        super().setUp()
        for name, path in zip(("r.json", "s.json"), sorted((self.sweep / "runs").iterdir())):
            shutil.copy(path, self.folder / name)
        (self.folder / "plan.json").write_text('{"settings": {"model": "trivial"}}')

    def refused(self, commands, path, text):
        for words in commands:
            words = [path if word == "IT" else word for word in words]
            start = time.monotonic()
            process = subprocess.run([SCALEMARK, *words], cwd=self.folder, capture_output=True, text=True, timeout=60,
                                     env=self.environment(), stdin=subprocess.DEVNULL)
            self.assertIn(process.returncode, (2, 6), (words, process.stderr))
            self.assertRegex(process.stderr, text, words)
            self.assertLess(time.monotonic() - start, 30, words)

    def test_pipes(self):
        os.mkfifo(self.folder / "it")
        self.refused(self.COMMANDS, "it", "a pipe")
        self.refused(self.OUTPUTS, "it", "a pipe that nobody reads|not a regular file")

    def test_devices_and_sockets(self):
        self.refused(self.COMMANDS, "/dev/zero", "a device")
        with socket.socket(socket.AF_UNIX) as there:
            there.bind(str(self.folder / "it"))
            self.refused(self.COMMANDS[:1] + self.COMMANDS[8:10], "it", "a socket")

    def test_folders(self):
        (self.folder / "it").mkdir()
        takes_folders = {"compare", "project", "gate"}
        self.refused([words for words in self.COMMANDS if words[0] not in takes_folders], "it", "a folder")

    def test_sizes(self):
        with open(self.folder / "it", "wb") as file:
            file.truncate(1 << 40)
        self.refused(self.COMMANDS, "it", "larger than")


class Size(DamagedTest):
    """No more memory than a small machine has."""

    def limited(self, *words, expect, megabytes=400):
        process = subprocess.run(["bash", "-c", f'ulimit -v {megabytes << 10}; exec "$@"', "bash", SCALEMARK, *words], cwd=self.folder,
                                 capture_output=True, text=True, timeout=120, env=self.environment())
        self.assertEqual(process.returncode, expect, process.stderr)
        return process.stderr

    def test_many_unknown_keys(self):
        unknown = {f"key_{i}": i for i in range(60_000)}
        record = json.loads(sorted((self.sweep / "runs").iterdir())[0].read_text())
        self.writer("r.json")({**record, **unknown})
        self.assertIn("rank count", self.limited("project", "r.json", expect=2))  # read: a curve needs more than one
        self.writer("plan.json")({"settings": {f"k{i}": 0 for i in range(60_000)}})
        self.assertIn("/settings/k0", self.limited("sweep", "plan.json", "--dry_run", expect=2))

    def test_large_records(self):
        whole = sorted((self.sweep / "runs").iterdir())[0].read_text()
        for name, junk, expect, reason in (("text", '"' + "x" * 30_000_000 + '"', 2, "rank count"),
                                           ("numbers", "[" + "0.125," * 1_500_000 + "0]", 2, "rank count"),
                                           ("objects", "[" + "{}," * 9_000_000 + "{}]", 6, "MiB of memory"),
                                           ("more", '"' + "x" * 63_000_000 + '"', 6, "larger than")):
            with self.subTest(name):
                (self.folder / "r.json").write_text('{"junk": ' + junk + ", " + whole.lstrip()[1:])
                self.assertIn(reason, self.limited("project", "r.json", expect=expect))

    def test_a_plan_of_480_launches(self):
        self.writer("plan.json")({"settings": {"model": "trivial"}, "axes": {"seed": list(range(80))}, "repeats": 6})
        self.assertIn("480 launches", self.limited("sweep", "plan.json", "--dry_run", expect=0))


if __name__ == "__main__":
    main()
