"""Processes that measure interleaved: while one computes, the others sleep, so that what the machine does meets all alike.

Both ends of the lines of src/rendezvous/start_barrier.hpp: scalemark's ranks and the peers' come to a socket of their job, named
in SMK_INTERNAL_TURNS, and say one byte when they wait. Turns go to the jobs in order and back, A B C C B A, which takes a
steady drift out as well; a job that has ended leaves its slices to the others, and all are let go when all have ended.
"""

import math
import os
import pathlib
import socket

READY, ENDED, GO = b"r", b"e", b"g"
VARIABLE = "SMK_INTERNAL_TURNS"
TURN_SECONDS = 0.05  # as src/rendezvous/start_barrier.hpp


class InterleavedRank:
    """A rank's end. Where nobody gives slices, nothing is said and nothing waited for."""

    def __init__(self):
        self.socket = None
        if address := os.environ.get(VARIABLE):
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.socket.connect(address)

    def wait(self):
        """Until the next slice of this job."""
        self._await_go(READY)

    def end(self):
        """Returns when the measuring is over everywhere: what a process does at its end would disturb the others."""
        self._await_go(ENDED)
        if self.socket is not None:
            self.socket.close()

    def _await_go(self, word):
        if self.socket is None:
            return
        self.socket.send(word)
        if self.socket.recv(1) != GO:
            raise SystemExit("whoever gives the slices is gone")


def steps_of_a_slice(step_seconds, ranks):
    """As scalemark: until TURN_SECONDS are over and, of several ranks, one more, in which they agree on it."""
    return max(1, math.ceil(TURN_SECONDS / step_seconds)) + (1 if ranks > 1 else 0)


class _Job:
    def __init__(self, path, ranks):
        self.ranks, self.lines, self.slices = ranks, {}, 0  # lines: {socket: word that it waits with; None: it computes}
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        self.listener.listen()
        self.listener.setblocking(False)
        self.is_gone = False

    def hear(self):
        try:
            while True:
                line, _ = self.listener.accept()
                line.setblocking(False)
                self.lines[line] = None
        except BlockingIOError:
            pass
        for line in self.lines:
            try:
                while word := line.recv(1):
                    self.lines[line] = word
                self.lines[line] = ENDED
            except BlockingIOError:
                pass
            except ConnectionError:
                self.lines[line] = ENDED

    def waits(self):
        return self.is_gone or (len(self.lines) == self.ranks and all(self.lines.values()))

    def has_ended(self):
        return self.is_gone or (len(self.lines) == self.ranks and all(word == ENDED for word in self.lines.values()))

    def go(self):
        for line in self.lines:
            self.lines[line] = None
            try:
                line.send(GO)
            except OSError:  # it is gone
                pass

    def close(self):
        for one in (self.listener, *self.lines):
            one.close()


class Interleaver:
    """Of jobs with so many ranks each, on this machine; the sockets lie in `folder`."""

    def __init__(self, folder, ranks):
        self.paths = [pathlib.Path(folder) / f"slices-{index}" for index in range(len(ranks))]
        self.jobs = [_Job(path, count) for path, count in zip(self.paths, ranks)]
        self.slice = 0

    def environment(self, job):
        return {VARIABLE: str(self.paths[job])}

    def is_ready(self, job):
        """Its warm-up is over: it waits for its first slice."""
        return self.jobs[job].waits()

    def gone(self, job):
        """Its process has ended, well or not, and waits for nothing any more."""
        self.jobs[job].is_gone = True

    def inputs(self):
        """On which something may be said."""
        return [one for job in self.jobs for one in (job.listener, *(line for line, word in job.lines.items() if word != ENDED))]

    def update(self):
        for job in self.jobs:
            job.hear()
        if not all(job.waits() for job in self.jobs):
            return
        if all(job.has_ended() for job in self.jobs):
            for job in self.jobs:
                job.go()
            return
        job = self._next()
        job.slices += 1
        job.go()

    def _next(self):
        order = [*self.jobs, *reversed(self.jobs)]
        while True:
            job = order[self.slice % len(order)]
            self.slice += 1
            if not job.has_ended():
                return job

    def close(self):
        for job in self.jobs:
            job.close()
