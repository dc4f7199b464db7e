"""A visit: the steps of its rows in their order, within so many minutes, with results that are complete after every step."""

import datetime
import json
import pathlib
import shlex
import signal
import tempfile
import time

import comparisons
import first_visit
import second_visit
from results import Results
from steps import STOP_SIGNALS, adopt_orphans, run_program

PACKING_SECONDS = 5   # that a visit keeps for its last files
CPU_TIMES = 8         # a busy machine's tiny steps
LEAST_SECONDS = 3     # a step is not begun with less of its row's time


class Stopped(BaseException):
    """By SIGTERM, SIGINT or SIGHUP. No Exception: nothing that handles a failed step may take it for one."""


def stop_at_signals():
    def stop(number, _frame):
        for one in STOP_SIGNALS:
            signal.signal(one, signal.SIG_IGN)  # the way out takes a few seconds
        raise Stopped(f"stopped by {signal.Signals(number).name}")

    for one in STOP_SIGNALS:
        signal.signal(one, stop)


def shown(value):
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return f"{len(value)}: {value[0]}" if value else "none"
    return " ".join(str(value).split())


TOLD = ("complaint", "card", "status", "throughput", "unit", "loss_first", "loss_last", "joules_per_sample", "passed", "failed", "skipped",
        "errors", "launches", "idle_share", "verdict", "kernels", "reason")


def table_of(summary):
    """A line a step: what came of it, its seconds and limit, exit code and what was expected, and the numbers."""
    lines = [f"visit {summary['visit']} on {summary['device']}, {summary['minutes']:g} minutes, build "
             f"{summary['build'].get('revision')}, begun {summary['begun_at']}; {summary['state']}",
             f"{'step':<28}{'verdict':<17}{'seconds':>8}{'limit':>7}{'exit':>6}{'expected':>10}  found"]
    row = None
    for step in summary["steps"]:
        if step["row"] != row:
            row = step["row"]
            lines.append(f"-- {row}: {step['row_learns']}")
        found = step["found"]
        words = step["why"] or ", ".join(f"{name} {shown(found[name])}" for name in TOLD if found.get(name) not in (None, [], ""))
        lines.append(f"{step['step']:<28}{step['verdict']:<17}{step['seconds']:>8.1f}{step['limit_seconds']:>7.0f}"
                     f"{'-' if step['exit'] is None else step['exit']:>6}"
                     f"{'/'.join(map(str, step['expected'])):>10}  {words[:300]}")
    lines += comparisons.words_of(summary)
    counts = {verdict: sum(step["verdict"] == verdict for step in summary["steps"])
              for verdict in ("as expected", "not as expected", "skipped")}
    lines.append(", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + f", {summary['seconds']:.0f} s")
    return "\n".join(lines) + "\n"


class Visit:
    """rows: of first_visit or second_visit. say(text): for each step."""

    def __init__(self, rows, results, work, minutes, say, **about):
        self.rows, self.results, self.work, self.say = rows, results, pathlib.Path(work), say
        self.begin, self.no_gpu = time.monotonic(), False
        self.deadline = self.begin + 60 * minutes - PACKING_SECONDS
        self.summary = {**about, "minutes": minutes, "seconds": 0.0, "state": "under way", "steps": [],
                        "ratios": [], "losses": [],
                        "begun_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}

    def run(self):
        """Returns the summary. A step that fails stops none after it."""
        self.write()
        try:
            for row in self.rows:
                row_end = time.monotonic() + row.limit
                for step in row.steps:
                    self.take(row, step, row_end)
            self.summary["state"] = "no GPU" if self.no_gpu else "complete"
        except Stopped as reason:
            self.summary["state"] = str(reason)
        self.write()
        return self.summary

    def take(self, row, step, row_end):
        now = time.monotonic()
        left, of_row = self.deadline - now, row_end - now
        result = {"step": step.name, "row": row.name, "row_learns": row.learns, "learns": step.learns, "why": "",
                  "command": shlex.join(map(str, step.words)), "limit_seconds": min(step.limit, max(0.0, of_row)), "seconds": 0.0,
                  "exit": None, "expected": list(step.expect), "verdict": "skipped", "found": {}, "left_out": []}
        self.summary["steps"].append(result)
        if step.skip or not step.words:
            result["why"] = step.skip
        elif self.no_gpu:
            result["why"] = "no GPU"
        elif result["limit_seconds"] > left:
            result["why"] = f"{max(0, left):.0f} s of the visit are left, and it may take {result['limit_seconds']:.0f} s"
        elif of_row < LEAST_SECONDS:
            result["why"] = "no time of its row is left"
        else:
            self.start(step, result)
            self.no_gpu = self.no_gpu or (step.name == "facts" and result["exit"] == 7 and 7 not in step.expect)
        self.say(f"{step.name}: {result['verdict']}" + (f" ({result['why']})" if result["why"] else f", {result['seconds']:.1f} s"))
        self.write()

    def start(self, step, result):
        folder = self.work / step.name
        folder.mkdir(parents=True, exist_ok=True)
        result["verdict"], result["why"] = "not as expected", "cut off"
        try:
            ended = run_program(step.words, result["limit_seconds"], folder / "out.txt", folder / "err.txt", step.variables, folder)
            result["exit"], result["seconds"] = ended.code, ended.seconds
            self.judge(step, folder, ended, result)
        finally:  # also of a step that is cut off
            try:
                result["left_out"] = self.results.keep(folder, self.work)
            except OSError as problem:
                self.say(f"the files of {step.name} are not kept: {problem}")
                result["left_out"] = [str(problem)]

    def judge(self, step, folder, ended, result):
        try:
            result["found"] = step.read(folder) if step.read and ended.code is not None else {}
        except Exception as problem:  # noqa: BLE001: an output that nobody has foreseen must not end the visit
            result["found"] = {"complaint": f"its output cannot be read: {problem!r}"}
        result["why"] = (ended.words if ended.code is None else
                         f"killed at its limit of {result['limit_seconds']:.0f} s" if ended.at_limit else
                         f"left {ended.left_behind} processes behind" if ended.left_behind else
                         f"exit code {ended.code}: {last_line(folder / 'err.txt')}" if ended.code not in step.expect else
                         result["found"].get("complaint", ""))
        result["verdict"] = "not as expected" if result["why"] else "as expected"

    def write(self):
        self.summary["seconds"] = time.monotonic() - self.begin
        self.summary["ratios"] = comparisons.ratios(self.summary["steps"])
        self.summary["losses"] = comparisons.losses(self.summary["steps"])
        try:
            self.results.write(self.summary, table_of(self.summary))
        except OSError as problem:  # the next step may find room again
            self.say(f"the results are not written: {problem}")


def last_line(path):
    lines = path.read_text(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "nothing on stderr"


def visit(place, number, minutes, output, after, build, say):
    """Returns the summary of a whole visit."""
    before = json.loads(after.read_text()) if after else None
    rows = first_visit.rows(place) if number == 1 else second_visit.rows(place, before)
    if not place.on_gpu:  # limits are those of a GPU
        rows = [row.times(CPU_TIMES) for row in rows]
    results = Results(output)
    results.clear()
    adopt_orphans()
    stop_at_signals()
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as work:
        return Visit(rows, results, work, minutes, say, visit=number, device=place.device, build=build).run()
