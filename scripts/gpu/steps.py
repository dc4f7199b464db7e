"""A step of a visit: one program with a limit, ended as a whole with whatever it started."""

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import signal
import subprocess
import time

GRACE_SECONDS = 3  # between TERM and KILL
POLL_SECONDS = 0.05
PR_SET_CHILD_SUBREAPER = 36
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclasses.dataclass(frozen=True)
class Step:
    """One program. A step without words is skipped, and `skip` says why.

    expect: exit codes that are as expected. read(folder): what to note of the files that it left in the folder (out.txt,
    err.txt, record.json, ...), a dictionary; a "complaint" in it makes the step unexpected.
    """

    name: str
    limit: float
    words: tuple = ()
    learns: str = ""
    expect: tuple = (0,)
    read: object = None
    variables: tuple = ()  # ((name, value), ...)
    skip: str = ""


@dataclasses.dataclass(frozen=True)
class Row:
    """Steps that share a time: what one of them takes too long, the others lose."""

    name: str
    limit: float
    learns: str
    steps: tuple

    def times(self, factor):
        return dataclasses.replace(self, limit=self.limit * factor, steps=tuple(
            dataclasses.replace(step, limit=step.limit * factor) for step in self.steps))


@dataclasses.dataclass
class Ended:
    code: int | None  # as a shell has it: 128 + signal; None: it could not be started
    seconds: float
    at_limit: bool
    left_behind: int  # processes that were still there when it had ended by itself
    words: str = ""   # why it could not be started


def adopt_orphans():
    """What a step leaves behind becomes a child of this process, which can find and end it."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(of=None):
    """Process ids of children, their children and so on; a dead one that nobody has waited for is none."""
    children = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # has ended meanwhile
        if fields[0] not in "ZX":
            children.setdefault(int(fields[1]), []).append(int(path.parent.name))
        else:
            children.setdefault(int(fields[1]), [])
    found, waiting = [], [of or os.getpid()]
    while waiting:
        mine = children.get(waiting.pop(), [])
        found += mine
        waiting += mine
    return found


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def reap():
    """Waits for the orphans that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end_all(keep=()):
    """TERM to every descendant, KILL to those that are still there after a while; how many there were."""
    def left():
        return [pid for pid in descendants() if pid not in keep]

    first = left()
    send(first, signal.SIGTERM)
    send(first, signal.SIGCONT)  # a stopped one takes no TERM
    deadline = time.monotonic() + GRACE_SECONDS
    while (now := left()) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    while now:
        send(now, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
        now = left()
    return len(first)


@contextlib.contextmanager
def held_signals():
    """What must not be left half done; a signal that comes meanwhile is taken at the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run_program(words, limit, out, err, variables=(), folder=None):
    """Runs it in a process group of its own with its output in the files `out` and `err`; nothing of it is left then."""
    begin, process, at_limit = time.monotonic(), None, False
    with open(out, "wb") as stdout, open(err, "wb") as stderr:
        try:
            process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                                       env={**os.environ, **dict(variables)}, cwd=folder, start_new_session=True)
            process.wait(limit)
        except OSError as problem:
            return Ended(None, 0.0, False, 0, str(problem))
        except subprocess.TimeoutExpired:
            at_limit = True
        finally:  # also where this process is told to stop
            with held_signals():
                left = end_all()
                code = process.wait() if process else None
                reap()
    return Ended(128 - code if code < 0 else code, time.monotonic() - begin, at_limit, 0 if at_limit else left)
