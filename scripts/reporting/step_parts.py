"""Where a step goes, from one run record: the five parts of the report.

Waiting is split by one subtraction: the slowest rank's own time (step less wait) less the mean rank's is what the mean
rank waits for the slowest; what else it waits is exposed communication.
"""
PARTS = ("compute", "exposed communication", "waiting for slower ranks", "input", "checkpoint")


def own_times(run):
    """Seconds of a step that each rank does not wait; empty where that is unknown."""
    times = [(rank.number("step_seconds_mean"), rank.number("wait_seconds_mean")) for rank in run.views("ranks")]
    return [] if not times or any(None in pair for pair in times) else [step - wait for step, wait in times]


def parts_of(run):
    """{part: seconds of a step}, or None where the record has no phases."""
    phases = run.view("phases/seconds")
    if phases.number("forward") is None:
        return None

    def seconds(*names):
        return sum(phases.number(name) or 0 for name in names)

    waits = seconds("communication", "agreement")
    own = own_times(run)
    uneven = min(waits, max(own) - sum(own) / len(own)) if len(own) > 1 else 0
    return {"compute": seconds("forward", "backward", "optimizer", "rest"), "exposed communication": waits - uneven,
            "waiting for slower ranks": uneven, "input": seconds("input"), "checkpoint": seconds("checkpoint")}


def exposed_share(point):
    """Of a point of a curve with a baseline: the share of its step that communication adds (docs/measurements.md)."""
    with_it, without = point.number("throughput"), point.number("baseline_throughput")
    return 1 - with_it / without if with_it and without else None
