"""What stands first on the page: what was measured, where, when, and by which command to do it again; a card a machine."""
import collections
import dataclasses
import os

from reporting.again import commands
from reporting.collection import NAMES, counted, ids_of_curve
from reporting.machines import Machine, by_machine
from reporting.record import clean, scaled_bytes

MOST_CARDS, MOST_COMMANDS, MOST_MODELS = 4, 4, 4


@dataclasses.dataclass
class Card:
    """`machine`: None of what is of no machine, such as comparisons. `rows`: (word, text). `again`: commands; `more`: how many
    further ones there are."""
    title: str
    machine: Machine
    rows: list
    again: list
    more: int = 0


def joined(values, most=3):
    values = [value for value in dict.fromkeys(values) if value]
    return ", ".join(values[:most]) + (f" and {len(values) - most} more" if len(values) > most else "")


def models(roots):
    words = []
    for root in roots:
        model = root.text("model", 60) or root.config("model") or root.text("curve/model", 60) or root.text("title", 80)
        words.append(" ".join(filter(None, (model, root.text("precision", 20) or root.config("precision")))) if model else "")
    return joined(words, MOST_MODELS)


def what(roots):
    kinds = collections.Counter(root.text("kind") for root in roots)
    words = models(roots)
    return counted(kinds) + (f": {words}" if words else "")


def hosts(roots):
    """That of rank 0 first, then the others of its ranks."""
    found = collections.Counter()
    for root in roots:
        found.update({place.text("host", 60) for place in [*root.views("placement"), *root.views("hosts"), *root.views("ranks")]})
    return [host for host in found if host]


def processor(root):
    name = root.text("system/cpu_model", 80) or root.text("measured_on/cpu_model", 80)
    cores, memory = root.number("system/cores"), root.number("system/memory_bytes")
    return ", ".join(filter(None, (name, f"{cores:.0f} core{'s' if cores != 1 else ''}" if cores else "",
                                   scaled_bytes(memory) if memory else "")))


def gpus(root):
    names = collections.Counter(gpu.text("name", 80) for gpu in root.views("system/gpus"))
    return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in names.items() if name)


def first(text):
    """Of what is written at length, "Open MPI v4.1.4, package: ...", the beginning."""
    return text.split(", ")[0]


def versions(roots):
    """Those that computed, of all records where they differ."""
    of = [joined(f"scalemark {root.text('build/version', 20)} ({root.text('build/revision', 20)})" for root in roots
                 if root.text("build/revision"))]
    for name, keys in (("LibTorch", ("build/libtorch",)), ("", ("system/mpi", "measured_on/mpi", "build/mpi")),
                       ("NCCL", ("system/nccl", "measured_on/nccl")), ("CUDA", ("system/cuda",)), ("driver", ("system/gpu_driver",)),
                       ("", ("system/kernel", "measured_on/kernel"))):
        found = joined(first(next((root.text(key, 120) for key in keys if root.text(key)), "")) for root in roots)
        of.append(f"{name} {found}".strip() if found else "")
    return ", ".join(filter(None, of))


def when(roots):
    times = sorted(clean(root.text("created_at", 40))[:16].replace("T", " ") for root in roots if root.text("created_at"))
    if not times:
        return ""
    begin, end = times[0], times[-1]
    if begin == end:
        return f"{begin} UTC"
    return f"{begin} to {end[11:] if begin[:10] == end[:10] else end} UTC"


def of_others(collection, roots):
    """Ids of those that a curve, a study or a set of jobs was made of: their command makes these too."""
    ids = set().union(*(ids_of_curve(curve.root) for curve in collection.curves))
    for study in collection.of("study"):
        folder = os.path.join(os.path.realpath(os.path.dirname(study.record.path)), "")
        ids |= {root.text("id") for root in roots if root is not study and os.path.realpath(root.record.path).startswith(folder)}
    if collection.of("instances"):
        lone = {run.text("id") for run in collection.lone_runs} | {root.text("id") for root in collection.of("inference")}
        ids |= {root.text("id") for root in roots if root.text("kind") in ("run", "inference")} - lone
    return ids


def card(machine, roots, made_by_others):
    rows = [("What", what(roots))]
    if machine:
        told = next((root for root in roots if root.text("system/host")), roots[0])
        more = [host for host in hosts(roots) if host != machine.host]
        rows += [("Host", machine.host + (f" (rank 0), {joined(more)}" if more else "")), ("Processor", processor(told)),
                 ("Device", gpus(told) if machine.device != "CPU" and gpus(told) else machine.device), ("Link", machine.link),
                 ("Runs on", joined((told.text("system/machine", 80), told.text("system/virtualisation") or
                                     told.text("measured_on/virtualisation"), told.text("system/distribution", 60))))]
    elif found := joined([host for root in roots for one in root.views("sets") for host in one.texts("hosts")], 6):
        rows.append(("Hosts", found))
    rows += [("Versions", versions(roots)), ("When", when(roots))]
    made = commands(sorted((root for root in roots if root.text("id") not in made_by_others),
                           key=lambda root: list(NAMES).index(root.text("kind"))))
    shown = [(words, f"{times} launches" if times > 1 else "") for words, times in made[:MOST_COMMANDS]]
    title = f"On {machine.label or machine.host}" if machine else "Between sets"
    return Card(title, machine, [(word, text) for word, text in rows if text], shown, max(0, len(made) - MOST_COMMANDS))


def cards(collection):
    """The first machines' cards, and how many further ones there are."""
    roots = [root for root in collection.all_roots() if root.text("kind") != "baseline"]
    others = of_others(collection, roots)
    made = [card(machine, of, others) for machine, of in by_machine(roots)]
    return made[:MOST_CARDS], max(0, len(made) - MOST_CARDS)
