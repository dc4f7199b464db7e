"""The kill matrix: command x process x signal x phase, each provoked for real and then resumed; a table with counts.

    kill_matrix.py [REGEX...] [--jobs N] [--times N] [--results FILE.jsonl]     cells are named "sweep/front door/KILL/step"

After each kill no process is left, no file is torn, the exit code is that of docs/faults.md with a message; the same command
then ends well, counts every run once, leaves nothing that `scalemark clean` does not remove, and keeps whole records' ids. The
phase "again" kills the resumed command, too, as its first launch starts. With --results what was done before is not repeated.
"""

import argparse
import collections
import concurrent.futures
import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid

from kill_commands import COMMANDS, HASTY, PATIENT, is_done, kept, runs_in_record
from support import SCALEMARK, environment, problems_of

SIGNALS = ("KILL", "STOP", "TERM", "INT")
OUTSIDE = ("front door", "step")  # of whom nobody waits for a sign: continued after a while
HELD_SECONDS = 2
END_SECONDS = 90  # --timeout, 20 s, and the launches after that
VANISH_SECONDS = 60
LAUNCHERS = ("orterun", "mpirun", "prterun")
MESSAGE = re.compile(r"kill|signal|interrupt|stopped|silent|was heard|timeout|failed", re.I)
PHASES = ("start", "warm-up", "step", "record", "between", "again")
Cell = collections.namedtuple("Cell", "command process signal phase")


class Missed(Exception):
    """The moment was over before it was seen."""


def cells():
    for name, command in COMMANDS.items():
        for process in command.processes:
            for number in SIGNALS:
                for phase in (*command.phases, "again"):
                    if phase != "between" or process in OUTSIDE:
                        yield Cell(name, process, number, phase)


def of_process(pid, read, otherwise):
    """What `read` finds of /proc/PID, or `otherwise` where that has ended."""
    try:
        return read(pathlib.Path(f"/proc/{pid}"))
    except OSError:
        return otherwise


def children_of(pid):
    """In the order of their start."""
    return [int(word) for word in of_process(pid, lambda path: (path / f"task/{pid}/children").read_text().split(), [])]


def below(pid):
    return [found for child in children_of(pid) for found in (child, *below(child))]


def program_of(pid):
    return of_process(pid, lambda path: os.path.basename(os.readlink(path / "exe")), "")


def rank_of(pid):
    found = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", of_process(pid, lambda path: (path / "environ").read_bytes(), b""))
    return int(found[1]) if found else None


class Job:
    """One call of a command in a folder of its own, and the processes that have its tag."""

    def __init__(self, command, folder, timeout):
        self.command, self.folder, self.out = command, folder, folder / "out"
        self.tag = f"kill-{uuid.uuid4()}"
        (folder / "tmp").mkdir(exist_ok=True)
        self.env = environment(SCALEMARK_PROGRESS="jsonl", SCALEMARK_LABEL=self.tag, TMPDIR=str(folder / "tmp"),
                               OMPI_MCA_btl_vader_backing_directory=str(folder / "tmp"))
        if command.plan:
            del self.env["SCALEMARK_ROOFLINE"]  # the plan says so
        self.words = list(map(str, command.prepare(folder, timeout)))

    def start(self, *more):
        self.since = None
        with open(self.folder / "stderr", "w") as err, open(self.folder / "stdout", "w") as out:
            self.process = subprocess.Popen([*self.words, *more], env=self.env, cwd=self.folder, stdout=out, stderr=err)

    def call(self, *words):
        return subprocess.run([SCALEMARK, *map(str, words)], env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=60)

    def processes(self):
        """The ids of this tag, whoever is their parent."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.tag.encode() in path.read_bytes() and " Z " not in (path.parent / "stat").read_text():
                    found.append(int(path.parent.name))
            except OSError:
                pass
        return found

    def find(self, process):
        """The id of the newest one below the front door, or nothing."""
        if process == "front door":
            return self.process.pid
        family = below(self.process.pid)
        if process == "step":
            found = children_of(self.process.pid)
        elif process == "mpirun":
            found = [pid for pid in family if program_of(pid) in LAUNCHERS]
        elif "mpirun" in self.command.processes:
            found = [pid for pid in family if rank_of(pid) == (0 if process == "rank 0" else 1)]
        else:  # instances of one rank each
            engines = [pid for pid in family if program_of(pid).startswith("scalemark-engine")]
            found = engines[:1] if process == "rank 0" else engines[1:]
        return found[-1] if found else None

    def told(self, event):
        """Whether this event was told since the launch began."""
        for path in (self.folder / "stderr", *self.out.rglob("*.log")):
            try:
                lines = path.read_text().splitlines()
            except OSError:
                continue
            for line in lines:
                if re.search(event, line) and float(re.search(r'"time":([\d.]+)', line)[1]) >= self.since:
                    return True
        return False

    def is_begun(self, launch):
        if self.since is None and (not launch or re.search(launch, (self.folder / "stderr").read_text())):
            # An event of a curve says when it was; another line was seen a little later than it came.
            self.since = 0 if not launch or "run_begin" in launch else time.time()
        return self.since is not None

    def is_writing(self, process):
        own = self.command.final if process == "front door" else ""
        for path in self.out.rglob(own or ".*.tmp"):
            try:
                with open(path, "rb") as file:
                    if file.read(1) == b"{":  # the room that was reserved begins otherwise
                        return True
            except OSError:
                pass
        return False

    def wait_for(self, phase, process, launch):
        """The id of the process in the phase."""
        def until(condition, pause=0.01):
            deadline = time.monotonic() + END_SECONDS
            while not (found := condition()):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise Missed(f"{phase} did not come: {(self.folder / 'stderr').read_text()[-300:]}")
                time.sleep(pause)
            return found

        until(lambda: self.is_begun(launch))
        if phase == "between":
            return self.find(process)
        if phase == "start":
            first = "mpirun" if "mpirun" in self.command.processes else "rank 0"
            return until(lambda: self.find(first if process == "front door" else process)) and self.find(process)
        until(lambda: self.told(self.command.warm_up if phase == "warm-up" else '"event":"step"')
              or phase == "record" and "preflight" in self.command.words)
        pid = until(lambda: self.find(process))
        if phase == "record":
            until(lambda: self.is_writing(process), pause=0)
        return pid

    def hit(self, phase, process, number, launch):
        """Sends the signal in the phase and waits for the end; the exit code."""
        pid = self.wait_for(phase, process, launch)
        try:
            os.kill(pid, getattr(signal, f"SIG{number}"))
        except ProcessLookupError:
            raise Missed(f"{process} had ended") from None
        if number == "STOP" and process in OUTSIDE:
            time.sleep(HELD_SECONDS)
            os.kill(pid, signal.SIGCONT)
        return self.process.wait(END_SECONDS)

    def left(self):
        deadline = time.monotonic() + VANISH_SECONDS
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return [program_of(pid) for pid in left]

    def end(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def torn(folder):
    for path in sorted(folder.rglob("*.json")):
        if path.name.startswith("."):
            continue
        try:
            record = json.loads(path.read_text())
        except ValueError:
            yield f"torn: {path.name}"
            continue
        if record.get("kind") in ("run", "inference", "scaling", "instances", "verdict", "study", "preflight"):
            yield from (f"invalid: {path.name}: {problem.split(':')[0]}" for problem in problems_of(record)[:1])


def wrong_code(cell, code, job):
    command = COMMANDS[cell.command]
    expected = {4}
    if cell.signal == "KILL" and cell.process == "front door":
        expected = {-signal.SIGKILL}
    elif cell.signal == "STOP":
        expected = set(command.codes) if cell.process in OUTSIDE else {5}
    if cell.phase == "record" or cell.process == command.idle or cell.process == "mpirun" and cell.signal in ("KILL", "STOP"):
        expected |= set(command.codes)  # it may have been done, or the ranks come to their end without it
    if code not in expected:
        yield f"exit code {code}"
    said = (job.folder / "stderr").read_text() + (job.folder / "stdout").read_text()
    if code > 0 and code not in command.codes and not MESSAGE.search(said):
        yield "no message"
    if code > 0 and code not in command.codes and is_done(job.out / "r.json"):
        yield f"exit code {code} and a record that is ok"


def wrong_counts(command, job):
    if (counted := runs_in_record(job.out)) != command.runs:
        yield f"the record counts {counted} of {command.runs} runs"
    table = job.call("export", "out")
    rows = [row for row in csv.DictReader(io.StringIO(table.stdout)) if row["row"] == "launch"]
    if len(rows) != command.runs or len({row["id"] for row in rows}) != len(rows) or any(row["status"] != "ok" for row in rows):
        yield f"export counts {len(rows)} of {command.runs} runs"


def ends_well(command, job, more):
    """Problems of the same command, once more."""
    before = kept(command, job.out)
    job.start(*more)
    try:
        code = job.process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        yield "resumed: hangs"
        return
    if code not in command.codes:
        yield f"resumed: exit code {code}: {(job.folder / 'stderr').read_text().strip().splitlines()[-1:]}"
    after = {path: json.loads(path.read_text())["id"] for path in before if path.exists()}
    if before != after:
        yield f"{sum(after.get(path) != name for path, name in before.items())} of {len(before)} kept records have changed"


def provoke(cell, folder):
    command = COMMANDS[cell.command]
    job = Job(command, folder, HASTY if cell.signal == "STOP" else PATIENT)
    more = [command.retry] if command.retry and cell.process != "front door" else []
    again, code = cell.phase == "again", None
    try:
        job.start()
        code = job.hit("step" if again else cell.phase, cell.process, cell.signal, command.launch)
        problems = [f"left: {name}" for name in job.left()] + [*wrong_code(cell, code, job), *torn(job.out)]
        if again and code not in command.codes:
            job.start(*more)
            try:
                code = job.hit("start", cell.process, cell.signal, "")
            except Missed:
                code = job.process.wait()  # no launch was left to it
            problems += [f"left again: {name}" for name in job.left()] + [*wrong_code(cell, code, job), *torn(job.out)]
        problems += [*ends_well(command, job, more), *torn(job.out), *wrong_counts(command, job)]
        for path in job.out.rglob(".*"):
            os.utime(path, (time.time() - 3600,) * 2)  # the young stay
        job.call("clean", "out")
        problems += [f"not cleaned: {'.*' + path.suffix if path.is_file() else 'a folder'}" for path in job.out.rglob(".*")]
        problems += [f"left at the end: {name}" for name in job.left()]
    except subprocess.TimeoutExpired:
        problems = [f"no end within {END_SECONDS} s"]
    finally:
        job.end()
    return code, problems


def result_of(cell, tries=3):
    begin = time.monotonic()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what is started in the background ignores it
    for _ in range(tries):
        with tempfile.TemporaryDirectory(prefix="scalemark-kill-", ignore_cleanup_errors=True) as name:
            try:
                code, problems = provoke(cell, pathlib.Path(name))
                break
            except Missed as missed:
                code, problems = None, [f"missed: {missed}"]
            except Exception as fault:  # the other cells go on
                code, problems = None, [f"not checked: {fault!r}"]
    return {"cell": "/".join(cell), "code": code, "problems": problems, "seconds": round(time.monotonic() - begin, 1)}


def table_of(results):
    """Markdown: a row for each command, process and signal, a column for each phase."""
    by_row = {}
    for result in results:
        *row, phase = result["cell"].split("/")
        by_row.setdefault(tuple(row), {}).setdefault(phase, []).append(result["problems"])
    lines = ["| command | process | signal | " + " | ".join(PHASES) + " |", "| --- | --- | --- |" + " --- |" * len(PHASES)]
    for row, phases in by_row.items():
        told = []
        for phase in PHASES:
            attempts = phases.get(phase, [])
            wrong = sorted({problem[:60] for problems in attempts for problem in problems})
            held = f"{sum(not problems for problems in attempts)} of {len(attempts)}"
            told.append("; ".join([held, *wrong]).replace("|", "\\|") if attempts else "")
        lines.append("| " + " | ".join([*row, *told]) + " |")
    return "\n".join(lines)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("only", nargs="*", default=[".*"], metavar="REGEX")
    words.add_argument("--jobs", type=int, default=2, help="cells at a time: they mostly wait")
    words.add_argument("--times", type=int, default=1)
    words.add_argument("--results", type=pathlib.Path)
    asked = words.parse_args()
    results = []
    if asked.results and asked.results.exists():
        results = [json.loads(line) for line in asked.results.read_text().splitlines()]
    done = collections.Counter(result["cell"] for result in results)
    chosen = dict.fromkeys(cell for regex in asked.only for cell in cells() if re.fullmatch(regex, "/".join(cell)))
    left = [cell for cell in chosen for _ in range(asked.times - done["/".join(cell)])]
    begin = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(asked.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(result_of, cell) for cell in left]):
            results.append(result := future.result())
            print(json.dumps(result), file=sys.stderr, flush=True)
            if asked.results:
                with open(asked.results, "a") as file:
                    file.write(json.dumps(result) + "\n")
    place = {"/".join(cell): i for i, cell in enumerate(cells())}
    results = sorted((result for result in results if result["cell"] in place), key=lambda result: place[result["cell"]])
    print(table_of(results))
    held = sum(not result["problems"] for result in results)
    print(f"\n{held} of {len(results)} held; {len(left)} provoked in {time.monotonic() - begin:.0f} s")
    return 0 if held == len(results) and results else 1


if __name__ == "__main__":
    sys.exit(main())
