"""The sections of the page in their order."""
import dataclasses
import sys

from reporting import plots_compare, plots_embedding, plots_gate, plots_inference, plots_operators, plots_projection, plots_runs
from reporting import plots_scaling, plots_steps, plots_study
from reporting.checklist import MOST_LISTS, checklists
from reporting.collection import names_of, run_word
from reporting.figures import Plot, Table
from reporting.machines import by_machine
from reporting.record import clean, exposed, four_digits, milliseconds, percent, whole


@dataclasses.dataclass
class Section:
    id: str
    title: str
    plots: list = dataclasses.field(default_factory=list)
    tables: list = dataclasses.field(default_factory=list)
    checklists: list = dataclasses.field(default_factory=list)
    note: str = ""


def of_parts(section_id, title, parts, note=""):
    """A section of plots and tables; None where there is nothing."""
    if not parts and not note:
        return None
    return Section(section_id, title, [part for part in parts if isinstance(part, Plot)],
                   [part for part in parts if isinstance(part, Table)], [], note)


def left_out(roots, most):
    """Of a section with room for `most` records."""
    more = len(roots) - most
    return f"{more} further record{'s are' if more > 1 else ' is'} not shown here; all are under Files." if more > 0 else ""


def studies(album, collection):
    return of_parts("studies", "Studies", plots_study.plots(album, collection), left_out(collection.of("study"), plots_study.MOST))


def scaling(album, collection):
    parts, note = plots_scaling.plots(album, collection)
    if not parts and collection.curves:
        note = "No curve has a point with a throughput."
    return of_parts("scaling", "Scaling", parts, note)


def steps(album, collection):
    machines = len(by_machine(collection.runs))
    note = f"Runs of the first {plots_steps.MOST_PARTS} of {machines} machines." if machines > plots_steps.MOST_PARTS else ""
    parts = plots_steps.plots(album, collection)
    return of_parts("steps", "Where the time goes", parts, note if parts else "")


def runs(album, collection):
    return of_parts("runs", "Launches", *plots_runs.plots(album, collection))


def operators(album, collection):
    return of_parts("operators", "Operators", plots_operators.plots(album, collection))


def loss(album, collection):
    return of_parts("loss", "Loss", plots_steps.loss_plots(album, collection))


def inference(album, collection):
    roots = collection.of("inference")
    return of_parts("latency", "Latency", plots_inference.latency(album, roots) if roots else [])


def instances(album, collection):
    return of_parts("instances", "Jobs side by side", plots_inference.instance_plots(album, collection),
                    left_out(collection.of("instances"), plots_inference.MOST_INSTANCES))


def comparison(album, collection):
    return of_parts("comparison", "A against B", plots_compare.comparison_plots(album, collection),
                    left_out(collection.of("comparison"), plots_compare.MOST_COMPARISONS))


def gate(album, collection):
    parts = plots_gate.gate_plots(album, collection) + plots_gate.baselines(collection)
    notes = (left_out(collection.of("verdict"), plots_gate.MOST_GATES), left_out(collection.of("history"), plots_gate.MOST_HISTORIES))
    return of_parts("gate", "Gate", parts, " ".join(filter(None, notes)))


def projection(album, collection):
    return of_parts("projection", "Projection", plots_projection.plots(album, collection),
                    left_out(collection.of("projection"), plots_projection.MOST))


def preflight(_, collection):
    lists = checklists(collection)
    note = left_out(collection.of("preflight"), MOST_LISTS)
    return Section("preflight", "Preflight", checklists=lists, note=note) if lists else None


def embedding(album, collection):
    return of_parts("embedding", "Embedding gradients", plots_embedding.plots(album, collection))


def all_curves(_, collection):
    """Every curve and every run: also those that no plot has room for."""
    tables = []
    if collection.curves:
        rows = [[curve.root.words(curve.name), point.cell("ranks", whole), point.cell("throughput", four_digits),
                 curve.root.text("unit"), point.cell("efficiency", percent), point.interval("efficiency_ci95", percent),
                 point.cell("exposed_seconds", exposed)] for curve in collection.curves for point in curve.points]
        tables.append(Table("Curves", ["curve", "ranks", "throughput", "unit", "efficiency", "95 % interval", "exposed"], rows))
    rows = [[curve.root.words(curve.name), point.cell("ranks", whole), one.text("collective"), one.cell("exposed_seconds", exposed),
             one.interval("exposed_ci95", milliseconds)]
            for curve in collection.curves for point in curve.points for one in point.views("exposed_collectives")]
    if rows:
        tables.append(Table("What each collective adds to a step (--shard)",
                            ["curve", "ranks", "collective", "exposed", "95 % interval"], rows))
    if collection.runs:
        runs = [run for _, of in by_machine(collection.runs) for run in of]
        rows = [[run.words(name), run.text("status", 20), run.cell("throughput/mean", four_digits), run.text("unit", 20),
                 run.interval("throughput/ci95"), run.cell("step_seconds/p50", milliseconds),
                 run.cell("step_seconds/p99", milliseconds)]
                for run, name in zip(runs, names_of(runs, run_word))]
        tables.append(Table("Runs (the interval is of one launch)",
                            ["run", "status", "throughput", "unit", "95 % interval", "median step", "99 %"], rows, 2))
    return Section("records", "All curves and runs", tables=tables) if tables else None


# What a gate or a comparison answers is what the page was made for.
SECTIONS = (gate, comparison, studies, scaling, runs, steps, operators, loss, inference, instances, projection, embedding, preflight,
            all_curves)


def sections(album, collection, makers=SECTIONS):
    """What cannot be drawn, of values that no measurement has, is said in its place and ends nothing."""
    made = []
    for make in makers:
        try:
            section = make(album, collection)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            name = make.__name__
            section = Section(name, name.replace("_", " ").capitalize(), note="Not drawn: values that no measurement has "
                              f"({type(error).__name__}: {clean(error, 120)}).")
            print(f"scalemark report: the section {name} could not be drawn: {clean(error)}", file=sys.stderr)
        if section is not None:
            made.append(section)
    return made
