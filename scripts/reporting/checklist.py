"""A preflight record as a checklist: the worst node first, then what is wrong between two nodes, then what all passed."""
import dataclasses

from reporting.figures import Table
from reporting.record import NOT_THERE, Number

MOST_LISTS = 6
ORDER = {"fail": 0, "warn": 1, "pass": 2, "skip": 3}
ALL = "all nodes"
BETWEEN = " - "  # of two nodes, in a check's host


@dataclasses.dataclass
class Place:
    """A node, or the way between two. `wrong`: (status, message as Number), the worst first; `status`: that of the worst."""
    name: str
    status: str
    wrong: list


@dataclasses.dataclass
class Checklist:
    title: Number
    verdict: str
    places: list
    table: Table


def is_between(name):
    return BETWEEN in name


def shown(name):
    return f"between {name.replace(BETWEEN, ' and ')}" if is_between(name) else name


def rank_of(place):
    """Nodes before what is between them, those with the most failures first, then with the most warnings."""
    count = [sum(status == worst for status, _ in place.wrong) for worst in ("fail", "warn")]
    return is_between(place.name), -count[0], -count[1]


def checklist(root):
    checks = sorted(root.views("checks"), key=lambda check: ORDER.get(check.text("status"), 4))
    names = [host.text("host", 60) for host in root.views("hosts")]
    wrong = {name: [] for name in names}
    for check in checks:
        name = check.text("host", 130)
        if check.text("status") in ("fail", "warn"):
            message = check.text("message") or check.text("name", 80)
            wrong.setdefault(name or ALL, []).append((check.text("status"), check.words(f"{check.text('name', 80)}: {message}", "message")))
        elif name and not is_between(name):
            wrong.setdefault(name, [])
    places = sorted((Place(name, entries[0][0] if entries else "pass", entries) for name, entries in wrong.items()), key=rank_of)
    rows = [[check.words(check.text("name", 80), "name"), check.text("statistic", 40), check.text("status", 10),
             shown(check.text("host", 130)) or NOT_THERE, check.text("message")] for check in checks]
    for place in places:
        place.name = shown(place.name)
    return Checklist(root.words(root.record.stem), root.text("verdict", 20), places,
                     Table("All checks", ["check", "statistic", "status", "worst on", "what was found"], rows, 5))


def checklists(collection):
    return [checklist(root) for root in collection.of("preflight")[:MOST_LISTS]]
