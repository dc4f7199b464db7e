"""Curves: throughput, speedup and efficiency over the number of ranks."""
from reporting.figures import DASHES, MARKERS, PALETTE, SERIES, Table, axes, name_series, rank_axis, short
from reporting.labels import labels
from reporting.machines import by_machine
from reporting.record import four_digits, percent, whole

# More series than this can't be told apart in one plot; more plots than this nobody looks at.
MOST_SERIES, MOST_FIGURES = 6, 6
INTERVALS = {"in_process": "repeats within one launch; it says nothing of other launches",
             "launch": "repeats in fresh launches"}


def interval_words(curves):
    """What the bars are, for a caption."""
    units = {curve.root.text("repeat_unit") for curve in curves}
    words = "; ".join(sorted(INTERVALS[unit] for unit in units if unit in INTERVALS))
    return f"Bars: 95 % interval over {words}." if words else ""


def groups_of(curves):
    """[((unit, model and scaling), curves that share an axis)], at most MOST_SERIES together; and how many are left out."""
    found = {}
    places = {id(root): place for place, root in enumerate(root for _, of in by_machine([curve.root for curve in curves]) for root in of)}
    for curve in sorted(curves, key=lambda curve: places[id(curve.root)]):
        if curve.measured:
            words = (curve.root.config("model"), curve.root.text("scaling"))
            found.setdefault((curve.root.text("unit"), words), []).append(curve)
    parts = [(key, group[i:i + MOST_SERIES]) for key, group in found.items() for i in range(0, len(group), MOST_SERIES)]
    return parts[:MOST_FIGURES], sum(len(group) for _, group in parts[MOST_FIGURES:])


def styles_of(curves):
    """A number of colour, marker and dashes each: that of its machine where each curve has one of its own, else its place."""
    numbers = [curve.root.record.machine.number for curve in curves if curve.root.record.machine]
    alone = len(set(numbers)) == len(curves) and max(numbers, default=0) < MOST_SERIES
    return numbers if alone else range(len(curves))


def draw(axis, curves, key, interval, scale=1.0):
    """A series each with its intervals, moved apart a little; where the last points are, for their names."""
    ends = []
    styles = styles_of(curves)
    for i, (curve, label) in enumerate(zip(curves, labels([curve.name for curve in curves]))):
        points = [point for point in curve.measured if point.number(key) is not None]
        if not points:
            continue
        apart = 2 ** (0.035 * (i - (len(curves) - 1) / 2))
        x = [apart * point.number("ranks") for point in points]
        y = [scale * point.number(key) for point in points]
        axis.plot(x, y, color=SERIES[styles[i]], marker=MARKERS[styles[i]], linestyle=DASHES[styles[i]], label=label, zorder=3)
        for point, at, value in zip(points, x, y):
            if pair := point.pair(interval):
                bars = [[max(0, value - scale * pair[0])], [max(0, scale * pair[1] - value)]]
                axis.errorbar([at], [value], yerr=bars, color=SERIES[styles[i]], capsize=4, linewidth=1.5, zorder=2)
        ends.append((x[-1], y[-1], label, SERIES[styles[i]]))
    return ends


def table_of(curves, caption, columns):
    """`columns`: (heading, key, form, whether it is an interval)."""
    rows = [[curve.root.words(curve.name), point.cell("ranks", whole),
             *(point.interval(key, form) if pair else point.cell(key, form) for _, key, form, pair in columns)]
            for curve in curves for point in curve.points]
    return Table(caption, ["curve", "ranks", *(heading for heading, *_ in columns)], rows)


def ends_in_words(curves, key, form):
    """"resnet50 fp32: 1 rank 3.65, 2 ranks 6.49"."""
    texts = []
    for curve in curves:
        points = [f"{point.cell('ranks', whole).text} ranks {point.cell(key, form).text}" for point in curve.measured]
        texts.append(f"{curve.name}: " + ", ".join(points))
    return "; ".join(texts)


def throughput(album, curves, unit, what):
    figure, axis = axes()
    ends = draw(axis, curves, "throughput", "ci95")
    rank_axis(axis, [point.number("ranks") for curve in curves for point in curve.measured])
    axis.set_ylabel(unit)
    axis.set_ylim(0, 1.05 * axis.get_ylim()[1])
    name_series(axis, ends)
    table = table_of(curves, f"Throughput, {unit}",
                     [(unit, "throughput", four_digits, False), ("95 % interval", "ci95", four_digits, True),
                      ("without communication", "baseline_throughput", four_digits, False)])
    return album.add(figure, f"throughput_{what}", f"Throughput: {what}",
                     f"{unit.capitalize()} of all ranks together. {interval_words(curves)}",
                     ends_in_words(curves, "throughput", four_digits), table)


def speedup(album, curves, unit, what):
    figure, axis = axes()
    ends = draw(axis, curves, "speedup", "speedup_ci95")
    ranks = [point.number("ranks") for curve in curves for point in curve.measured]
    bases = sorted({curve.root.number("base/ranks") or min(ranks) for curve in curves})
    ideal = sorted({*ranks, bases[0]})
    axis.plot(ideal, [n / bases[0] for n in ideal], color=PALETTE["muted"], linestyle=(0, (2, 2)), linewidth=1.5, zorder=1)
    rank_axis(axis, ranks)
    if len(set(ranks)) > 2:
        axis.set_yscale("log", base=2)
        axis.yaxis.set_major_formatter("{x:.3g}")
        axis.yaxis.minorticks_off()
    axis.annotate("ideal", (ideal[-1], ideal[-1] / bases[0]), xytext=(-8, 2), textcoords="offset points", ha="right",
                  va="bottom", color=PALETTE["muted"], fontsize=10)
    axis.set_ylabel("speedup")
    name_series(axis, ends)
    table = table_of(curves, "Speedup against the smallest rank count",
                     [("speedup", "speedup", four_digits, False), ("95 % interval", "speedup_ci95", four_digits, True)])
    other = "" if len(bases) == 1 else " The dashed line is ideal from the smallest base."
    return album.add(figure, f"speedup_{what}", f"Speedup: {what}",
                     f"Throughput against that of the smallest rank count; dashed: ideal.{other} {interval_words(curves)}",
                     ends_in_words(curves, "speedup", four_digits), table)


def efficiency(album, curves, unit, what):
    figure, axis = axes()
    ends = draw(axis, curves, "efficiency", "efficiency_ci95", 100)
    rank_axis(axis, [point.number("ranks") for curve in curves for point in curve.measured])
    axis.axhline(100, color=PALETTE["muted"], linestyle=(0, (2, 2)), linewidth=1.5, zorder=1)
    axis.set_ylabel("efficiency, %")
    highest = max(100 * point.number("efficiency") for curve in curves for point in curve.measured
                  if point.number("efficiency") is not None)
    clipped = axis.get_ylim()[1] > 1.4 * max(100, highest)
    axis.set_ylim(0, min(max(110, axis.get_ylim()[1]), 1.4 * max(100, highest)))
    name_series(axis, ends)
    resources = sorted({curve.root.text("resource") for curve in curves} - {""})
    table = table_of(curves, "Efficiency: speedup divided by the ratio of resources",
                     [("efficiency", "efficiency", percent, False), ("95 % interval", "efficiency_ci95", percent, True)])
    return album.add(figure, f"efficiency_{what}", f"Efficiency: {what}",
                     f"Speedup divided by the ratio of resources ({', '.join(resources) or 'rank'}); dashed: 100 %. "
                     f"{interval_words(curves)}{' Wider ones are cut off.' if clipped else ''}",
                     ends_in_words(curves, "efficiency", percent), table)


def plots(album, collection):
    parts, left_out = groups_of(collection.curves)
    made, seen = [], {}
    for (unit, words), group in parts:
        seen[words] = seen.get(words, 0) + 1
        part = f", part {seen[words]}" if seen[words] > 1 else ""
        what = " ".join([*(short(word, 40) for word in words if word), "scaling"]) + part
        for draw_one, key in ((throughput, "throughput"), (speedup, "speedup"), (efficiency, "efficiency")):
            if any(point.number(key) is not None for curve in group for point in curve.measured):
                made.append(draw_one(album, group, unit or "units/sec", what))
    note = f"{left_out} further curves are not drawn; they are in the table of all curves." if left_out else ""
    return made, note
