"""Projections: predicted throughput with its band, and the points that were measured."""
from reporting.collection import names_of
from reporting.figures import MARKERS, PALETTE, Table, axes, log_axis, rank_axis, short
from reporting.record import four_digits, milliseconds, percent, signed_percent, whole

MOST = 3


def hours(seconds):
    return f"{four_digits(seconds / 3600)} h"


def word(root):
    return " ".join(text for text in (root.text("curve/model", 60), root.text("curve/scaling")) if text)


def projection(album, root, name):
    points = [point for point in root.views("points") if point.number("ranks") and point.number("throughput")]
    unit = root.text("curve/unit") or "units/sec"
    rows = [[point.cell("ranks", whole), point.cell("throughput"), point.interval("throughput_band"),
             point.cell("measured_throughput"), point.cell("error_percent", signed_percent), point.cell("efficiency", percent),
             point.cell("exposed_seconds", milliseconds), "unseen" if point.true("held_out") else ""] for point in root.views("points")]
    columns = ["ranks", unit, "band", "measured", "error", "efficiency", "exposed", ""]
    if root.raw("budget"):  # of a training that was asked for
        columns.insert(-1, "time to solution")
        for row, point in zip(rows, root.views("points")):
            row.insert(-1, point.cell("time_to_solution_seconds", hours))
    table = Table(f"Projection: {name}", columns, rows, 0)
    if len(points) < 2:
        return [table]
    figure, axis = axes()
    ranks = [point.number("ranks") for point in points]
    banded = [(point.number("ranks"), *point.pair("throughput_band")) for point in points if point.pair("throughput_band")]
    if banded:
        axis.fill_between(*zip(*banded), color=PALETTE["band"], linewidth=0, label="90 % band of the model")
    base, rate = root.number("base/ranks"), root.number("base/throughput")
    if base and rate:
        axis.plot(ranks, [rate * n / base for n in ranks], color=PALETTE["muted"], linestyle=(0, (2, 2)), linewidth=1.5,
                  label="ideal")
    axis.plot(ranks, [point.number("throughput") for point in points], color=PALETTE["s1"], label="predicted")
    for held_out, marker, label in ((False, MARKERS[0], "measured, fitted"), (True, MARKERS[3], "measured, unseen by the fit")):
        seen = [(point.number("ranks"), point.number("measured_throughput")) for point in points
                if point.number("measured_throughput") and point.true("held_out") == held_out]
        if seen:
            axis.plot(*zip(*seen), color=PALETTE["s2"], marker=marker, linestyle="none", zorder=4, label=label,
                      markerfacecolor=PALETTE["paper"] if held_out else PALETTE["s2"], markeredgewidth=1.8)
    rank_axis(axis, ranks)
    axis.set_yscale("log")
    log_axis(axis.yaxis)
    axis.set_ylabel(unit)
    axis.legend(loc="upper left", fontsize=9)
    last = points[-1]
    says = (f"At {last.cell('ranks', whole).text} ranks {last.cell('throughput').text} {unit}, band "
            f"{last.interval('throughput_band').text}, efficiency {last.cell('efficiency', percent).text}.")
    return [album.add(figure, f"projection_{name}", f"Projection: {short(name, 60)}",
                      "A cost model fitted to the measured points. Its band is what the model holds for possible, no promise.",
                      says, table)]


def plots(album, collection):
    roots = collection.of("projection")
    return [part for root, name in list(zip(roots, names_of(roots, word)))[:MOST] for part in projection(album, root, name)]
