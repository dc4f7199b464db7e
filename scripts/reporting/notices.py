"""What a reader must know before trusting the numbers: warnings of records, failures, and sets that do not belong together."""
import collections
import dataclasses
import math
import re

from reporting.record import Number, whole

MOST_EXAMPLES = 5


@dataclasses.dataclass
class Notice:
    """`parts`: text and Number; `grave`: numbers may be wrong, not only uncertain."""
    title: str
    parts: list
    grave: bool = False


def examples(views, words, key=""):
    """Links to the first few, and how many more there are."""
    parts = []
    for view in views[:MOST_EXAMPLES]:
        parts += [", " if parts else "", view.words(words(view), key)]
    if len(views) > MOST_EXAMPLES:
        parts.append(f" and {len(views) - MOST_EXAMPLES} more")
    return parts


def named(root):
    return root.record.stem


def failures(roots):
    bad = [root for root in roots if root.text("status") != "ok"]
    by_status = {}
    for root in bad:
        by_status.setdefault(root.text("status", 40), []).append(root)
    return [Notice(f"{len(of)} records are {status}",
                   [of[0].text("reason") or "no reason is recorded", ": ", *examples(of, named), "."], True)
            for status, of in by_status.items()]


def preflights(roots):
    failed = [root for root in roots if root.text("kind") == "preflight" and root.text("verdict") == "fail"]
    measured = [root for root in roots if root.text("preflight/verdict") == "fail"]
    notices = []
    if failed:
        notices.append(Notice("Preflight failed", [*examples(failed, named), "."], True))
    if measured:
        notices.append(Notice("Measured although preflight had failed", [*examples(measured, named), "."], True))
    return notices


def bindings(roots):
    """Ranks whose binding did not happen, that share a CPU, or that have parts of several NUMA nodes."""
    notices = []
    for title, wrong in (("Binding not achieved", lambda rank: rank.raw("binding/as_asked") is False),
                         ("Ranks share CPUs", lambda rank: bool(rank.raw("binding/overlaps_with"))),
                         ("Ranks cross NUMA nodes", lambda rank: rank.raw("binding/crosses_numa") is True)):
        ranks = [rank for root in roots for rank in root.views("ranks") if wrong(rank)]
        if ranks:
            found = {}
            for rank in ranks:
                found.setdefault(rank.record.path, rank)
            parts = examples(list(found.values()), lambda rank: rank.record.stem)
            notices.append(Notice(title, [f"{len(ranks)} ranks, in ", *parts, "."], True))
    return notices


def throttled(roots):
    found = [root for root in roots if (root.number("noise/throttled") or 0) > 0]
    return [Notice("Throttled by a CPU quota", [*examples(found, named), "."], True)] if found else []


def told(roots):
    """Warnings of the records themselves, those that differ in numbers alone together."""
    found = {}
    for root in roots:
        for i, text in enumerate(root.texts("warnings")):
            found.setdefault(re.sub(r"[\d.]+", "#", text), []).append((root, text, i))
    notices = []
    for of in sorted(found.values(), key=len, reverse=True):
        root, text, i = of[0]
        more = f" (and alike in {len(of) - 1} more record{'s' if len(of) > 2 else ''})" if len(of) > 1 else ""
        notices.append(Notice("Recorded warning", [Number(text, root.record.href, f"/warnings/{i}"), more]))
    return notices


def builds(roots):
    """Builds that differ between records: a difference between them may be that. Machines that differ are told apart everywhere."""
    found = collections.Counter(root.text("build/revision", 80) for root in roots if root.text("build/revision"))
    if len(found) < 2:
        return []
    words = ", ".join(f"{value} ({count})" for value, count in found.most_common(MOST_EXAMPLES))
    more = f" and {len(found) - MOST_EXAMPLES} more" if len(found) > MOST_EXAMPLES else ""
    return [Notice("Mixed builds", [f"{words}{more}. Numbers of different builds side by side differ by these too."])]


def slow_baselines(collection):
    """Points whose baseline, which leaves communication out, is slower than the point: that is noise, no communication."""
    slow = [(curve, point) for curve in collection.curves for point in curve.measured
            if (point.number("baseline_throughput") or math.inf) < point.number("throughput")]
    if not slow:
        return []
    views = [point for _, point in slow]
    return [Notice("A baseline is slower than what it is the baseline of", [
        "Leaving communication out cannot cost time, so this is noise or foreign load, and exposed communication below 0 means nothing: ",
        *examples(views, lambda point: f"{point.cell('ranks', whole).text} ranks of {point.record.stem}", "baseline_throughput"), "."])]


def one_launch(collection):
    """Intervals that say nothing of other launches."""
    found = [curve.root for curve in collection.curves
             if curve.root.text("repeat_unit") == "in_process" and any(point.pair("ci95") for point in curve.points)]
    if not found:
        return []
    return [Notice("Intervals of one launch", ["These curves repeat within one launch, so their intervals say nothing of other "
                                               "launches (scale --repeat_unit launch): ", *examples(found, named), "."])]


def lost_launches(launches):
    """Launches of sweeps that left no record."""
    lost = [launch for launch in launches if launch.status != "ok" and not launch.record]
    if not lost:
        return []
    first = ", ".join(f"{key}={value}" for key, value in lost[0].settings.items())
    words = f"{first}: {lost[0].reason or lost[0].status}"
    return [Notice(f"{len(lost)} launch{'es' if len(lost) > 1 else ''} left no record", [Number(words, lost[0].href), "."], True)]


def notices(collection, files, launches, failed=()):
    roots = collection.all_roots()
    broken = [file for file in files if file.status in ("damaged", "other version")]
    found = failures(roots) + lost_launches(launches) + preflights(roots) + bindings(roots) + throttled(roots)
    if broken:
        found.append(Notice(f"{len(broken)} files could not be read", [Number("see all files", "#files"), "."], True))
    found += [Notice("Not compared", [f"The sets of {what} are of one plan, but: {why}."]) for what, why in failed]
    return found + slow_baselines(collection) + builds(roots) + one_launch(collection) + told(roots)
