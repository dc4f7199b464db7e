"""Comparisons: differences between sets with their intervals; verdicts of the gate and their history."""
from reporting.collection import names_of
from reporting.figures import PALETTE, Table, axes, short
from reporting.record import NOT_THERE, Number, four_digits, probability, signed_percent, whole

MOST_BARS, MOST_COMPARISONS, MOST_HISTORIES = 14, 4, 2
COLOURS = {"faster": "good", "lower": "s1", "higher": "s1", "slower": "bad", "regressed": "bad", "pass": "good"}


def settings_words(point):
    settings = point.raw("settings")
    words = [f"{key}={value}" for key, value in settings.items()] if isinstance(settings, dict) else []
    return ", ".join(words)


def point_name(point, several_sets):
    ranks = point.number("ranks")
    words = [f"{ranks:.0f} rank{'s' if ranks != 1 else ''}"] if ranks else []
    if several_sets:
        words.insert(0, point.text("set", 60))
    if more := settings_words(point):
        words.append(more)
    return short(", ".join(words), 34)


def bars(axis, entries):
    """`entries`: (name, difference, interval or None, colour). Zero is no difference."""
    for place, (_, value, pair, colour) in enumerate(entries):
        axis.barh([place], [value], color=PALETTE[colour], height=0.55, zorder=2)
        if pair:
            axis.errorbar([value], [place], xerr=[[max(0, value - pair[0])], [max(0, pair[1] - value)]], color=PALETTE["ink"],
                          capsize=4, linewidth=1.4, zorder=3)
    axis.axvline(0, color=PALETTE["ink"], linewidth=1)
    axis.set_yticks(range(len(entries)), [name for name, *_ in entries])
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
    return [album.add(figure, f"comparison_{name}", f"Comparison: {short(name, 60)}",
                      f"Against {root.text('base', 80)}; bars: interval of the difference. Green: faster, red: slower, grey: no "
                      f"difference shown.{missing}", says, table), *further]


def comparison_word(root):
    others = [view.text("label", 60) for view in root.views("sets") if view.text("label") != root.text("base")]
    return f"{', '.join(others) or 'sets'} against {root.text('base', 60)}"


def verdict(album, root, name):
    points = root.views("points")
    table = Table(f"Gate: {name}", ["point", "base", "new", "unit", "slowdown", "p (adjusted)", ""],
                  [[point.words(point_name(point, False)), point.cell("base_value"), point.cell("value"), point.text("unit"),
                    point.cell("slowdown_percent", signed_percent), point.cell("p_adjusted", probability),
                    "regressed" if point.true("regressed") else ""] for point in points])
    overall = root.number("slowdown_percent")
    if overall is None:
        return [table]
    entries = [("all points", overall, root.pair("interval_percent"), COLOURS.get(root.text("verdict"), "s6"))]
    entries += [(point_name(point, False), point.number("slowdown_percent"), None, "bad" if point.true("regressed") else "s6")
                for point in points if point.number("slowdown_percent") is not None][:MOST_BARS]
    figure, axis = axes(height=1.5 + 0.4 * len(entries))
    bars(axis, entries)
    axis.set_xlabel("slowdown of the new build, %")
    return [album.add(figure, f"gate_{name}", f"Gate: {short(name, 60)}",
                      f"Verdict: {root.text('verdict') or 'none'}. Bar: 95 % interval of the mean slowdown; points have none.",
                      f"Verdict {root.text('verdict')}, slowdown {root.cell('slowdown_percent', signed_percent).text}.", table)]


def verdict_word(root):
    labels = [view.text("label", 60) for view in root.views("sets")]
    return f"{labels[1]} against {labels[0]}" if len(labels) == 2 else root.record.stem


def history(album, root, name):
    sets = [view for view in root.views("sets") if view.number("relative_rate")]
    changes = root.views("changes")
    change_rows = [[change.words(change.text("kind")), change.text("at", 60), change.text("until", 60) or NOT_THERE,
                    change.cell("change_percent", signed_percent), change.cell("p", probability)] for change in changes]
    table = Table(f"Changes: {name}", ["kind", "from", "until", "change", "p"], change_rows, 3)
    sets_table = Table(f"Sets: {name}", ["set", "rate against the first set"],
                       [[view.words(view.text("label", 60)), view.cell("relative_rate", four_digits)] for view in sets])
    if len(sets) < 2:
        return [table]
    labels = [view.text("label", 60) for view in sets]
    values = [100 * (view.number("relative_rate") - 1) for view in sets]
    figure, axis = axes()
    axis.plot(range(len(sets)), values, color=PALETTE["s1"], marker="o", markersize=4, linewidth=1.4)
    for change in changes:
        if change.text("at", 60) in labels:
            at = labels.index(change.text("at", 60))
            axis.axvline(at - 0.5, color=PALETTE["s2"], linewidth=1.4, linestyle=(0, (3, 2)))
            axis.annotate(f"{change.text('kind')} {change.cell('change_percent', signed_percent).text}", (at - 0.5, 0.98),
                          xycoords=("data", "axes fraction"), xytext=(4, 0), textcoords="offset points", va="top",
                          color=PALETTE["s2"], fontsize=9)
    ticks = sorted({0, len(sets) // 2, len(sets) - 1})
    axis.set_xticks(ticks, [short(labels[i], 16) for i in ticks])
    axis.set_ylabel("rate against the first set, %")
    axis.set_xlabel("sets, oldest first")
    says = f"{len(sets)} sets; " + ("; ".join(f"{change.text('kind')} of {change.cell('change_percent', signed_percent).text} at "
                                               f"{change.text('at', 60)}" for change in changes) or "no change found") + "."
    plot = album.add(figure, f"history_{name}", f"History of a gate: {short(name, 60)}",
                     "Geometric mean of the rates of all common points; dashed: where a new level begins. Advice, since a change of "
                     "the machine looks like a change of the build.", says, sets_table)
    return [plot, table] if change_rows else [plot]


def comparison_plots(album, collection):
    roots = collection.of("comparison")
    return [part for root, name in list(zip(roots, names_of(roots, comparison_word)))[:MOST_COMPARISONS]
            for part in comparison(album, root, name)]


def gate_plots(album, collection):
    roots, older = collection.of("verdict"), collection.of("history")
    made = [part for root, name in list(zip(roots, names_of(roots, verdict_word)))[:MOST_COMPARISONS]
            for part in verdict(album, root, name)]
    return made + [part for root in older[:MOST_HISTORIES] for part in history(album, root, root.record.stem)]


def baselines(collection):
    """Files of `gate --save_baseline`: there is nothing to draw."""
    roots = collection.of("baseline")
    rows = [[root.words(root.text("label", 60) or root.record.stem), root.text("revision", 40),
             Number(whole(len(root.views("launches"))), root.record.href, "/launches"), root.text("created_at", 20)] for root in roots]
    return [Table("Baselines of the gate", ["baseline", "revision", "launches", "made"], rows, 2)] if roots else []
