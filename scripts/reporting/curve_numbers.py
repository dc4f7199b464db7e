"""Numbers of a curve that several rules look at."""
from reporting.step_parts import exposed_share


def largest(curve):
    """The base and the point of most ranks; None of a curve with one point."""
    points = curve.measured
    return (points[0], points[-1]) if len(points) > 1 else (None, None)


def ranks_of(point):
    """"8 ranks"."""
    return point.cell("ranks", lambda n: f"{n:.0f} rank{'s' if n != 1 else ''}")


def share_exposed(curve, point):
    """What communication adds to a step: against the baseline, else the waiting of the middle run."""
    share, run = exposed_share(point), curve.middle_run(point)
    if share is None and run is not None and run.number("step_seconds/mean") and point.number("exposed_seconds") is not None:
        return point.number("exposed_seconds") / run.number("step_seconds/mean")
    return share
