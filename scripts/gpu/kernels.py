"""A trace of the engine (--trace FILE) in a few numbers: which kernels take the GPU's time, how many are launched, and
in which share of the time the GPU runs neither a kernel nor a copy."""

import json

SHOWN = 12
NAME_LENGTH = 90


def busy_microseconds(rows):
    """In which at least one of the rows runs; streams overlap."""
    busy, end = 0.0, float("-inf")
    for begin, duration in sorted((row["ts"], row["dur"]) for row in rows):
        busy += max(0.0, begin + duration - max(begin, end))
        end = max(end, begin + duration)
    return busy


def summary_of(events):
    """events: rows of a Chrome trace."""
    rows = [row for row in events if row.get("cat") == "kernel" and "dur" in row]
    if not rows:
        return {"kernels": "no kernel rows"}
    work = rows + [row for row in events if row.get("cat") == "copy" and "dur" in row]
    span = max(row["ts"] + row["dur"] for row in work) - min(row["ts"] for row in work)
    busy = busy_microseconds(work)
    by_name = {}
    for row in rows:
        total = by_name.setdefault(row["name"], [0.0, 0])
        total[0] += row["dur"]
        total[1] += 1
    whole = sum(row["dur"] for row in rows)
    longest = sorted(by_name.items(), key=lambda item: -item[1][0])[:SHOWN]
    return {"launches": len(rows), "different_kernels": len(by_name), "milliseconds": span / 1e3,
            "kernel_milliseconds": whole / 1e3, "idle_share": 1 - busy / span if span > 0 else None,
            "kernels": [{"name": name[:NAME_LENGTH], "milliseconds": total / 1e3, "launches": count, "share": total / whole}
                        for name, (total, count) in longest]}


def read_trace(path):
    whole = json.loads(path.read_text())
    return summary_of(whole["traceEvents"] if isinstance(whole, dict) else whole)
