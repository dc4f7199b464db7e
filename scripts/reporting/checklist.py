"""A preflight record as a checklist: by node what is wrong, then what all nodes passed."""
import dataclasses

from reporting.figures import Table
from reporting.record import NOT_THERE, Number

MOST_LISTS = 6
ORDER = {"fail": 0, "warn": 1, "pass": 2, "skip": 3}


@dataclasses.dataclass
class Node:
    """`wrong`: (status, message as Number), the worst first; `status`: that of the worst."""
    name: str
    status: str
    wrong: list


@dataclasses.dataclass
class Checklist:
    title: Number
    verdict: str
    nodes: list
    table: Table


def checklist(root):
    checks = sorted(root.views("checks"), key=lambda check: ORDER.get(check.text("status"), 4))
    names = [host.text("host", 60) for host in root.views("hosts")]
    names += sorted({check.text("host", 60) for check in checks} - set(names) - {""})
    wrong = {name: [] for name in names}
    for check in checks:
        if check.text("status") in ("fail", "warn"):
            message = check.text("message") or check.text("name", 80)
            entry = (check.text("status"), check.words(f"{check.text('name', 80)}: {message}", "message"))
            wrong.setdefault(check.text("host", 60) or "all nodes", []).append(entry)
    nodes = [Node(name, entries[0][0] if entries else "pass", entries) for name, entries in wrong.items()]
    rows = [[check.words(check.text("name", 80), "name"), check.text("statistic", 40), check.text("status", 10),
             check.text("host", 60) or NOT_THERE, check.text("message")] for check in checks]
    return Checklist(root.words(root.record.stem), root.text("verdict", 20), nodes,
                     Table("All checks", ["check", "statistic", "status", "worst on", "what was found"], rows, 5))


def checklists(collection):
    return [checklist(root) for root in collection.of("preflight")[:MOST_LISTS]]
