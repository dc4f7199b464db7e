"""The verdict at a glance: a line for each curve, and findings of one thing together."""
import dataclasses

from reporting.figures import Table
from reporting.finding import BAD, GOOD, NOTE
from reporting.record import NOT_THERE, percent, whole

OPEN = ("link", "straggler")  # as a note these may be no reason
WORDS = {GOOD: "scales", NOTE: "not shown", BAD: "does not scale"}


@dataclasses.dataclass
class Group:
    about: str
    findings: list

    @property
    def weight(self):
        weights = [finding.weight for finding in self.findings]
        return BAD if BAD in weights else GOOD if GOOD in weights else NOTE


def grouped(findings):
    """In the order of their first findings."""
    groups = {}
    for finding in findings:
        groups.setdefault(finding.about, []).append(finding)
    return [Group(about, of) for about, of in groups.items()]


def glance(collection, findings):
    """A line a curve: its largest point, the verdict, the reasons and how sure they are; None without curves."""
    rows = []
    for curve in collection.curves:
        of = [finding for finding in findings if finding.about == curve.name]
        verdict = next((finding for finding in of if finding.rule == "scales"), None)
        if verdict is None:
            continue
        last = curve.measured[-1]
        reasons = [finding.label for finding in of if finding.label and not (finding.weight == NOTE and finding.rule in OPEN)]
        rows.append([curve.root.words(curve.name), last.cell("ranks", whole), last.cell("efficiency", percent),
                     last.interval("efficiency_ci95", percent), WORDS[verdict.weight], ", ".join(dict.fromkeys(reasons)) or NOT_THERE,
                     verdict.sure])
    more = f": {len(rows)} of {len(collection.curves)}" if len(rows) < len(collection.curves) else ""
    return Table(f"Each curve at its most ranks{more}", ["curve", "ranks", "efficiency", "95 % interval", "verdict", "why", "how sure"],
                 rows) if rows else None
