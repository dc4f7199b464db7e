"""Comparisons: differences between sets with their intervals."""
from reporting.collection import names_of
from reporting.figures import PALETTE, Table, axes, short
from reporting.labels import labels
from reporting.record import clean, probability, signed_percent

MOST_BARS, MOST_COMPARISONS = 14, 6
COLOURS = {"faster": "good", "lower": "s1", "higher": "s1", "slower": "bad", "regressed": "bad", "pass": "good"}


def settings_words(point):
    settings = point.raw("settings")
    words = [clean(f"{key}={value}") for key, value in settings.items()] if isinstance(settings, dict) else []
    return ", ".join(words)


def point_name(point, several_sets):
    ranks = point.number("ranks")
    words = [f"{ranks:.0f} rank{'s' if ranks != 1 else ''}"] if ranks else []
    if several_sets:
        words.insert(0, point.text("set", 60))
    if more := settings_words(point):
        words.append(more)
    return ", ".join(words)


def bars(axis, entries):
    """`entries`: (name, difference, interval or None, colour). Zero is no difference."""
    for place, (_, value, pair, colour) in enumerate(entries):
        axis.barh([place], [value], color=PALETTE[colour], height=0.55, zorder=2)
        if pair:
            axis.errorbar([value], [place], xerr=[[max(0, value - pair[0])], [max(0, pair[1] - value)]], color=PALETTE["ink"],
                          capsize=4, linewidth=1.4, zorder=3)
    axis.axvline(0, color=PALETTE["ink"], linewidth=1)
    axis.set_yticks(range(len(entries)), labels([name for name, *_ in entries], 34))
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.margins(x=0.12)


def comparison_table(view, name):
    """Of the metric of a comparison, or of one of its further metrics."""
    columns = ["point", "base", "other", "unit", "difference", "interval", "p (Holm)", "verdict"]
    rows = [[point.words(point_name(point, True)), point.cell("base_value"), point.cell("value"), point.text("unit"),
             point.cell("difference_percent", signed_percent), point.interval("interval_percent", signed_percent),
             point.cell("p_adjusted", probability), point.text("verdict")] for point in view.views("points")]
    return Table(f"{name}: {view.text('metric')}", columns, rows)


def comparison(album, root, name):
    points = [point for point in root.views("points") if point.number("difference_percent") is not None]
    several = len({point.text("set") for point in points}) > 1
    table, further = comparison_table(root, name), [comparison_table(view, name) for view in root.views("further")]
    if not points:
        return [table, *further]
    shown = points[:MOST_BARS]
    figure, axis = axes(height=1.5 + 0.4 * len(shown))
    bars(axis, [(point_name(point, several), point.number("difference_percent"), point.pair("interval_percent"),
                 COLOURS.get(point.text("verdict"), "s6")) for point in shown])
    axis.set_xlabel(f"difference in {root.text('metric') or 'the metric'}, %")
    says = "; ".join(f"{point_name(point, True)}: {point.cell('difference_percent', signed_percent).text}, {point.text('verdict')}"
                     for point in shown)
    missing = "" if all(point.pair("interval_percent") for point in shown) else " Without a bar: too few repeats for an interval."
    return [album.add(figure, f"comparison_{name}", f"Comparison: {short(name, 100)}",
                      f"Against {root.text('base', 80)}; bars: interval of the difference. Green: faster, red: slower, grey: no "
                      f"difference shown.{missing}", says, table), *further]


def comparison_word(root):
    others = [view.text("label", 60) for view in root.views("sets") if view.text("label") != root.text("base")]
    words = f"{', '.join(others) or 'sets'} against {root.text('base', 60)}"
    return f"{root.record.what}: {words}" if root.record.what else words


def comparison_plots(album, collection):
    roots = collection.of("comparison")
    return [part for root, name in list(zip(roots, names_of(roots, comparison_word)))[:MOST_COMPARISONS]
            for part in comparison(album, root, name)]
