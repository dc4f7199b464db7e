"""What becomes of stdin, stdout and stderr decides nothing but what is delivered: closed, full and broken ones, of every
command. Data that was asked for on stdout and does not get there is exit 6; a measurement whose record goes to a file is
kept, whatever people could watch of it.
"""

import contextlib
import json
import os
import subprocess
import time

from measured_sweep import MeasuredSweepTest
from support import SCALEMARK, SMALL, SOURCE, main

RUN = [*SMALL, "--num_batches", "3"]
SCALE = ["scale", *RUN, "--ranks", "1,2", "--repeats", "1"]
PLAN = {"settings": {"model": "trivial", "batch_size": 4, "num_warmup_batches": 1, "num_batches": 3}, "repeats": 1}
GENEROUS = ["--delta", "50", "--point_delta", "90"]
CURVE = SOURCE / "results/baselines/resnet50-1gbit-4hosts.json"
# Commands whose results go to a file.
MEASURING = {"run": ["run", *RUN], "scale": SCALE, "infer": ["infer", *RUN], "preflight": ["preflight", "--pinning"],
             "instances": ["instances", *RUN, "--instances", "1", "--repeats", "1"]}
# Commands whose stdout is all that they give.
TELLING = [["--help"], ["--version"], ["help"], ["list"], ["run", "--help"], ["gate", "--help"], ["compare", "a", "b"],
           ["compare", "a", "b", "--json"], ["project", CURVE], ["project", CURVE, "--json"], ["gate", "a", "b", *GENEROUS, "--json"],
           ["gate", "--history", "a", "b", *"cdef", *GENEROUS], ["sweep", "plan.json", "--dry_run"], ["run", *RUN, "--dry_run"],
           ["scale", *RUN, "--ranks", "1,2", "--dry_run"], ["instances", *RUN, "--dry_run"], ["run", *RUN, "--json"],
           ["infer", *RUN, "--json"], [*SCALE, "--json"], ["preflight", "--pinning", "--json"], ["preflight", "--pinning"]]


@contextlib.contextmanager
def broken_pipe():
    """A file to write to whose reader has left."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as file:
        yield file


class StreamsTest(MeasuredSweepTest):
    def setUp(self):
        super().setUp()
        (self.folder / "plan.json").write_text(json.dumps(PLAN))

    def end_of(self, words, redirections):
        """The exit code of scalemark with a shell's redirections; 3 is a pipe without a reader."""
        with broken_pipe() as pipe:
            return subprocess.run(["bash", "-c", f'exec "$@" {redirections.replace("BROKEN", str(pipe.fileno()))}', "bash",
                                   SCALEMARK, *map(str, words)], env=self.environment(), cwd=self.folder, timeout=120,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[pipe.fileno()]).returncode


class Kept(StreamsTest):
    def test_a_measurement_whose_record_goes_to_a_file(self):
        kinds = ("<&- >&- 2>&-", ">/dev/full 2>/dev/full", ">&BROKEN 2>&BROKEN")
        for number, (name, words) in enumerate(MEASURING.items()):
            for redirections in (kinds if name in ("run", "scale") else [kinds[number % 3]]):
                with self.subTest(command=name, streams=redirections):
                    self.assertEqual(self.end_of([*words, "--output", "r.json"], redirections), 0)
                    self.assertEqual(self.read("r.json")["status"], "ok")
                    (self.folder / "r.json").unlink()

    def test_a_sweep(self):
        for number, redirections in enumerate(("<&- >&- 2>&-", ">/dev/full 2>/dev/full", ">&BROKEN 2>&BROKEN")):
            self.assertEqual(self.end_of(["sweep", "plan.json", "--output", f"s{number}"], redirections), 0)
            entry, = (self.folder / f"s{number}/journal.jsonl").read_text().splitlines()
            self.assertEqual(self.read(f"s{number}/{json.loads(entry)['record']}")["status"], "ok")

    def test_a_verdict(self):
        for name, factor in (("a", 1), ("same", 1), ("slower", 0.3)):
            self.copy(name, factor)
        for new, code in (("same", 0), ("slower", 1)):
            for redirections in ("<&- >&- 2>&-", ">/dev/full 2>/dev/full", ">&BROKEN 2>&BROKEN"):
                with self.subTest(new=new, streams=redirections):
                    self.assertEqual(self.end_of(["gate", "a", new, *GENEROUS, "--output", f"{new}.json"], redirections), code)
                    self.assertEqual(self.read(f"{new}.json")["verdict"], ("pass", "regressed")[code])


class Delivered(StreamsTest):
    def test_what_was_asked_for_on_stdout(self):
        for name in "abcdef":
            self.copy(name)
        lost, unseen = (">/dev/full", ">&-", ">&BROKEN"), ("2>&-", "2>/dev/full", "2>&BROKEN")
        for number, words in enumerate(TELLING):  # in turn: all write by the same function
            for redirections, code in ((lost[number % 3], 6), (unseen[number % 3], 0)):
                with self.subTest(words=" ".join(map(str, words)), streams=redirections):
                    self.assertEqual(self.end_of(words, redirections), code)

    def test_the_loss_is_told(self):
        _, err = self.run_program("bash", "-c", '"$0" run --json "$@" >/dev/full', SCALEMARK, *RUN, expect=6)
        self.assertIn("stdout: No space left on device", err)
        _, err = self.run_program("bash", "-c", '"$0" scale --json "$@" >/dev/full', SCALEMARK, *SCALE[1:], expect=6)
        self.assertIn("stdout", err)

    def test_a_reader_that_has_seen_enough(self):
        for words in (["run", *RUN, "--num_batches", "50", "--display_every", "1"], [*SCALE, "--display_every", "1"]):
            out, _ = self.run_program("bash", "-c", '"$@" 2>&1 | head -1; exit ${PIPESTATUS[0]}', "bash", SCALEMARK, *words,
                                      "--output", "r.json")
            self.assertEqual(len(out.splitlines()), 1)
            self.assertEqual(self.read("r.json")["status"], "ok")

    def test_a_slow_reader_gets_all(self):
        process = self.start(SCALEMARK, *SCALE, "--json")
        time.sleep(2)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(json.loads(out)["status"], "ok")


if __name__ == "__main__":
    main()
