"""A page that stands alone (--standalone): what its numbers link to is in the page, the key facts of each record, and nothing
leads to a file."""
import dataclasses

from reporting.again import command
from reporting.record import NOT_THERE, four_digits

# Of a record itself, by the paths of its keys; then of each element of its lists.
KEYS = ("status", "reason", "created_at", "build/version", "build/revision", "model", "precision", "kernels", "unit", "scaling",
        "world_size", "batch_size_per_rank", "global_batch_size", "device_name", "communication/transport", "throughput/mean",
        "throughput/ci95", "step_seconds/p50", "step_seconds/p99", "communication/exposed_seconds", "loss/first", "loss/last",
        "latency_seconds/p50", "latency_seconds/p99", "server/holds", "metric", "base", "verdict", "slowdown_percent",
        "interval_percent", "p", "repeats", "study", "profile", "site", "evidence", "publication", "published_on", "differs",
        "system/host", "system/cpu_model", "measured_on/host", "measured_on/cpu_model")
LISTS = {"points": ("set", "ranks", "instances", "throughput", "ci95", "efficiency", "efficiency_ci95", "baseline_throughput",
                    "exposed_seconds", "base_value", "value", "difference_percent", "interval_percent", "slowdown_percent", "verdict"),
         "figures": ("name", "published/value", "published/low", "published/high", "measured/value", "measured/ci95", "verdict"),
         "checks": ("name", "statistic", "host", "status", "message"), "sets": ("label", "path", "relative_rate"),
         "ranks": ("rank", "host", "step_seconds_mean", "wait_seconds_mean", "straggler"),
         "changes": ("kind", "at", "change_percent", "p"), "warnings": ()}
MOST_LINES = 24


@dataclasses.dataclass
class Facts:
    """`id`: of the place in the page that numbers link to. `rows`: (key, text)."""
    id: str
    title: str
    kind: str
    rows: list


def text_of(view, key):
    """"" where there is nothing."""
    value = view.raw(key)
    if isinstance(value, bool):
        return str(value).lower()
    if (number := view.number(key)) is not None:
        return str(value) if isinstance(value, int) else four_digits(number)
    if pair := view.pair(key):
        return f"{four_digits(pair[0])} to {four_digits(pair[1])}"
    return view.text(key)


def line_of(view, keys):
    return ", ".join(f"{key} {text}" for key in keys if (text := text_of(view, key)))


def facts_of(record):
    root = record.root
    rows = [(key, text) for key in KEYS if (text := text_of(root, key))]
    if words := command(root):
        rows.append(("command", words))
    rows += [(f"warnings/{i}", text) for i, text in enumerate(root.texts("warnings")[:MOST_LINES])]
    for name, keys in LISTS.items():
        views = root.views(name)
        rows += [(f"{name}/{i}", line_of(view, keys) or NOT_THERE) for i, view in enumerate(views[:MOST_LINES])]
        if len(views) > MOST_LINES:
            rows.append((name, f"and {len(views) - MOST_LINES} more"))
    return Facts(record.href[1:], record.shown, record.kind, rows)


def stand_alone(records, files, launches):
    """Makes records places in the page, and what is no record no link."""
    for number, record in enumerate(records):
        record.href = f"#record-{number + 1}"
    anchors = {record.shown: record.href for record in records}
    for file in files:
        file.href = anchors.get(file.shown, "") if file.status == "read" else ""
    for launch in launches:
        launch.href = ""
