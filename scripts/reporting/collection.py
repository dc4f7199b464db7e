"""Sorts records by what they are, and finds the run records that a curve was made of."""
import collections
import dataclasses

from reporting.machines import placed
from reporting.record import View


# One of a kind, several of it.
NAMES = {"study": ("study", "studies"), "run": ("run", "runs"), "scaling": ("curve", "curves"), "inference": ("inference", "inferences"),
         "instances": ("set of jobs side by side", "sets of jobs side by side"), "comparison": ("comparison", "comparisons"),
         "verdict": ("gate", "gates"), "history": ("history", "histories"), "projection": ("projection", "projections"),
         "preflight": ("preflight", "preflights"), "baseline": ("baseline", "baselines")}


def counted(kinds):
    """"12 runs, 3 curves" of a Counter of kinds."""
    return ", ".join(f"{kinds[kind]} {words[kinds[kind] > 1]}" for kind, words in NAMES.items() if kinds[kind])


@dataclasses.dataclass
class Curve:
    """A scaling record, the name that tells it from the others, and those of its runs that were found: by point, the
    repeats with communication."""
    root: View
    name: str
    runs: dict

    @property
    def points(self):
        return [point for point in self.root.views("points") if point.number("ranks")]

    @property
    def measured(self):
        """Points that have a throughput."""
        return [point for point in self.points if point.number("throughput")]

    def middle_run(self, point):
        """Of the runs of a point the one of middle throughput: its numbers are those of one record."""
        found = sorted((run for run in self.runs.get(point.pointer, ()) if run.number("throughput/mean")),
                       key=lambda run: run.number("throughput/mean"))
        return found[(len(found) - 1) // 2] if found else None


@dataclasses.dataclass
class Collection:
    curves: list
    runs: list        # all run records
    lone_runs: list   # those that are of no curve and of no set of instances that was read
    by_kind: dict     # kind -> views of the other records

    def of(self, kind):
        return self.by_kind.get(kind, [])

    def all_roots(self):
        return [curve.root for curve in self.curves] + self.runs + [root for of in self.by_kind.values() for root in of]


def names_of(roots, word):
    """A name for each record: `word(root)` and its machine, and where two are alike the launch too, or the name of the file, or
    its path."""
    names = [placed(word(root), root) for root in roots]
    for more in (lambda record: f", launch {record.repeat}" if record.repeat else "", lambda record: f", {record.stem}",
                 lambda record: f" ({record.shown})"):
        alike = collections.Counter(names)
        names = [name + more(root.record) if alike[name] > 1 else name for name, root in zip(names, roots)]
    return names


def curve_word(root):
    words = [root.config("model") or root.record.stem, root.config("precision"), root.text("scaling")]
    return " ".join(word for word in words if word) + kernels_words(root.config("kernels"))


def kernels_words(kernels):
    """Whose kernels computed, for the name of what they did; nothing where an older record does not tell."""
    return f", {kernels} kernels" if kernels else ""


# Settings of a sweep that the words of a run say anyway.
IN_WORDS = ("model", "precision", "kernels", "ranks", "batch_size")


def run_word(run):
    ranks = run.number("world_size")
    batch = run.number("batch_size_per_rank")
    words = [run.text("model", 60), run.text("precision")]
    if ranks:
        words.append(f"{ranks:.0f} rank{'s' if ranks > 1 else ''}" + (f" x {batch:.0f}" if batch else ""))
    more = [f"{key}={value}" for key, value in run.record.settings.items() if key not in IN_WORDS]
    return ", ".join([" ".join(word for word in words if word) + kernels_words(run.text("kernels")), *more[:4]])


def ids_of_curve(root):
    """Of all its runs, with communication, without it and without one collective."""
    return {repeat.text("run") for point in root.views("points") for of in (point, *point.views("exposed_collectives"))
            for repeat in of.views("repeats")}


def runs_of_curve(root, by_id):
    """{pointer of a point: its run records}, those left out that do not communicate as others do."""
    runs = {}
    for point in root.views("points"):
        for repeat in point.views("repeats"):
            run = by_id.get(repeat.text("run"))
            if run is not None and not repeat.true("baseline"):
                runs.setdefault(point.pointer, []).append(run)
    return runs


def collect(records):
    by_kind = {}
    for record in records:
        by_kind.setdefault(record.kind, []).append(record.root)
    runs = by_kind.pop("run", [])
    by_id = {run.text("id"): run for run in runs}
    roots = by_kind.pop("scaling", [])
    curves, of_others = [], set()
    for root, name in zip(roots, names_of(roots, curve_word)):
        curves.append(Curve(root, name, runs_of_curve(root, by_id)))
        of_others |= ids_of_curve(root)
    for root in by_kind.get("instances", []):
        launches = root.views("alone") + root.views("points")
        of_others |= {job.text("run") for launch in launches for repeat in launch.views("repeats")
                      for job in repeat.views("instances")}
    lone = [run for run in runs if run.text("id") not in of_others]
    inference = [root for root in by_kind.get("inference", []) if root.text("id") not in of_others]
    if inference:
        by_kind["inference"] = inference
    else:
        by_kind.pop("inference", None)
    return Collection(curves, runs, lone, by_kind)
