"""The processes of a round: each subject's, one after the other, or all at once interleaved."""

import dataclasses
import json
import os
import select
import shlex
import signal
import subprocess
import tempfile

from commands import SOURCE, Unavailable
from interleaving import Interleaver
from machine import short_of_memory

POLL_SECONDS = 0.1  # of processes that end without a word


class Failed(Exception):
    """A process of a row failed."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """What one process said: units/sec of its median step, peak bytes of its largest rank, build or versions; of training
    by scalemark also the model's FLOPs for one unit, and the FLOP/s of the matrix products that this run measured."""

    speed: float
    peak_rss_bytes: int
    build: dict
    flops_per_unit: float | None = None
    gemm_flops: float | None = None


def measured_by_scalemark(record):
    """Of a record as `--json` prints it."""
    speeds, flops = record["throughput"], record.get("achieved_flops")
    return Measured(speeds["median"], record["memory"]["peak_rss_bytes"], record["build"], flops and flops / speeds["mean"],
                    record.get("roofline", {}).get("gemm_flops"))


class Process:
    """Of a subject, in a group of its own; what it prints goes to files, so that it waits for no reader."""

    def __init__(self, subject, argv, variables):
        self.subject, self.argv = subject, argv
        self.out, self.err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        self.popen = subprocess.Popen(argv, cwd=SOURCE, env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
                                      stdout=self.out, stderr=self.err, start_new_session=True)

    def has_ended(self):
        return self.popen.poll() is not None

    def end(self):
        """mpirun and netlab take their ranks along."""
        if not self.has_ended():
            os.killpg(self.popen.pid, signal.SIGTERM)
            try:
                self.popen.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.popen.pid, signal.SIGKILL)
                self.popen.wait()
        self.out.close()
        self.err.close()

    def result(self):
        """Waits for it. Raises Unavailable and Failed."""
        status, words = self.popen.wait(), shlex.join(self.argv)
        out, err = (self._text(file) for file in (self.out, self.err))
        if status == 7:
            raise Unavailable(f"{words}: {err.strip()[-500:]}")
        if status == -signal.SIGKILL:
            err += "\nif the kernel's memory ran out: --alternate launches has one process at a time"
        if status != 0:
            raise Failed(f"{self.subject.name} exited with {status}: {words}\n{err[-2000:]}")
        try:
            said = json.loads(out)
            if self.subject.ours:
                return measured_by_scalemark(said)
            return Measured(said["throughput"], said["peak_rss_bytes"], said["versions"])
        except (ValueError, KeyError, TypeError) as error:
            raise Failed(f"{self.subject.name} printed no such record ({error!r}): {words}\n{out[-2000:]}") from None

    @staticmethod
    def _text(file):
        file.seek(0)
        return file.read()


def one_after_the_other(commands):
    """[(subject, argv)]: yields (subject, Measured or the Unavailable or Failed that came of it)."""
    for subject, argv in commands:
        process = Process(subject, argv, {})
        try:
            yield subject, _outcome(process)
        finally:
            process.end()


def interleaved(commands, ranks):
    """The same of processes of so many ranks each that are all there at once; one warms up after the other."""
    with tempfile.TemporaryDirectory(prefix="slices-") as folder:
        giver, processes = Interleaver(folder, [ranks] * len(commands)), []
        try:
            for index, (subject, argv) in enumerate(commands):
                processes.append(Process(subject, argv, giver.environment(index)))
                _interleave(giver, processes, lambda job=index: giver.is_ready(job))
            _interleave(giver, processes, lambda: all(process.has_ended() for process in processes))
            failed = next(filter(_ends_the_row, processes), None)  # the others wait for slices that nobody gives
            yield from ((process.subject, _outcome(process)) for process in ([failed] if failed else processes))
        finally:
            for process in processes:
                process.end()
            giver.close()


def _interleave(giver, processes, is_over):
    """Until is_over(), or there is no row any more. Raises Failed where the machine would go on for hours."""
    while not is_over() and not any(map(_ends_the_row, processes)):
        heard, _, _ = select.select(giver.inputs(), [], [], POLL_SECONDS)
        if not heard and short_of_memory():  # looked at where nothing comes, not at each slice
            raise Failed(f"{len(processes)} processes of this row at once leave too little memory free: --alternate launches "
                         "has one at a time")
        for index, process in enumerate(processes):
            if process.has_ended():
                giver.gone(index)
        giver.update()


def _ends_the_row(process):
    return process.has_ended() and process.popen.returncode != 0 and not process.subject.optional


def _outcome(process):
    try:
        return process.result()
    except (Unavailable, Failed) as problem:
        return problem
