"""Sets of one plan, such as a sweep on two machines: the program compares them, and its record lies beside the plots."""
import dataclasses
import json
import os
import re
import subprocess

from reporting.collection import curve_word, ids_of_curve, run_word
from reporting.files import File, classified, read_json
from reporting.finding import HINT, NOTE, Finding
from reporting.labels import in_common
from reporting.plots_compare import comparison_word
from reporting.record import Record, clean, link_from, signed_percent, whole

MOST_PLANS, MOST_SETS = 4, 6


@dataclasses.dataclass
class Set:
    """Launches of a sweep, or the rounds of a curve. `plan`: equal for sets of one; `word`: what it measures."""
    path: str
    machine: object
    plan: tuple
    word: str
    ids: set


def sweeps(launches, records):
    by_path = {os.path.realpath(record.path): record for record in records}
    folders = {}
    for launch in launches:
        if launch.record in by_path:
            folders.setdefault(launch.folder, []).append(launch)
    for folder, of in folders.items():
        found = [by_path[launch.record] for launch in of]
        words = [run_word(record.root) for record in found]
        yield Set(folder, found[0].machine, ("sweep", frozenset(launch.point for launch in of)), in_common(words) or words[0],
                  {record.data["id"] for record in found})


def curves(collection):
    for curve in collection.curves:
        root = curve.root
        if root.text("config_hash"):
            plan = ("scale", root.text("config_hash", 80), root.text("unit"), root.text("scaling"),
                    json.dumps(root.raw("settings"), sort_keys=True))
            yield Set(root.record.path, root.record.machine, plan, curve_word(root),
                      ids_of_curve(root))


def is_compared(sets, roots):
    """Whether one of these records has them all, each as a set of its own."""
    for root in roots:
        known = [set(one.texts("records")) for one in root.views("sets")]
        places = [next((i for i, ids in enumerate(known) if ids & one.ids), None) for one in sets]
        if None not in places and len(set(places)) == len(sets):
            return True
    return False


def plans(launches, records, collection):
    """[sets of one plan], those that nobody has compared."""
    groups = {}
    for one in [*sweeps(launches, records), *curves(collection)]:
        groups.setdefault(one.plan, []).append(one)
    compared = collection.of("comparison") + collection.of("verdict")
    found = [sorted(sets, key=lambda one: (one.machine.number if one.machine else -1, one.path))[:MOST_SETS]
             for sets in groups.values() if len(sets) > 1 and not is_compared(sets, compared)]
    return found[:MOST_PLANS]


def names(sets):
    """By their machines; where one machine has several by their files, as far as these differ."""
    for words in ([one.machine.label if one.machine else "" for one in sets],
                  [os.path.splitext(os.path.basename(one.path))[0] for one in sets], [one.path for one in sets]):
        words = [clean(word, 60).replace("=", " ") for word in words]
        if all(words) and len(set(words)) == len(words):
            return words
    return [f"set {i + 1}" for i in range(len(sets))]


def compare(program, sets, path):
    """Writes the record to `path`; why not, in words, or nothing."""
    words = [f"{name}={os.path.abspath(one.path)}" for name, one in zip(names(sets), sets)]
    try:
        done = subprocess.run([program, "compare", *words, "--output", path, "--quiet"], capture_output=True, encoding="utf-8",
                              errors="replace", check=False)
    except (OSError, ValueError) as error:
        return clean(error)
    return "" if done.returncode == 0 else clean(done.stderr.strip()) or f"exit code {done.returncode}"


def unshown(root):
    """Of a comparison in which no point differs, whose largest difference is told all the same; else None."""
    points = [point for point in root.views("points") if point.number("difference_percent") is not None]
    if not points or any(point.text("verdict") != "no difference shown" for point in points):
        return None
    most = max(points, key=lambda point: abs(point.number("difference_percent")))
    ranks = most.cell("ranks", whole)
    return Finding("compared", NOTE, comparison_word(root), [f"No difference is shown at {len(points)} of {len(points)} points."], [
        "Most at ", ranks, f" rank{'s' if ranks.text != '1' else ''}: ", most.cell("difference_percent", signed_percent), ", interval ",
        most.interval("interval_percent", signed_percent), "."], ["more repeats"], HINT, "a difference that is not shown may be there")


def comparisons(program, found, folder, page_folder):
    """(records, files, [(what, why it was not compared)]) of `found` plans; `folder`: where records go."""
    records, files, failed = [], [], []
    for sets in found:
        os.makedirs(folder, exist_ok=True)
        stem = re.sub(r"[^a-z0-9]+", "_", f"compare {sets[0].word}".lower()).strip("_")[:50]
        path = os.path.join(folder, f"{stem}_{len(records) + len(failed) + 1}.json")
        why = compare(program, sets, path)
        try:
            content = None if why else read_json(path)
            if content is not None and classified(content) == ("read", "comparison"):
                records.append(Record(path, os.path.basename(path), link_from(page_folder, path), content, what=sets[0].word))
                files.append(File(records[-1].shown, records[-1].href, "read", "comparison that this page made of two sets or more"))
                continue
        except (OSError, ValueError) as error:
            why = clean(error)
        failed.append((sets[0].word, why or "no comparison"))
    return records, files, failed
