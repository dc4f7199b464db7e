"""Verdicts of the gate with the launches that they rest on, their history, and baselines."""
from reporting.collection import names_of
from reporting.figures import PALETTE, Table, axes, legend_above, short
from reporting.plots_compare import COLOURS, MOST_BARS, bars, point_name
from reporting.record import NOT_THERE, Number, four_digits, probability, signed_percent, whole

MOST_GATES, MOST_HISTORIES = 4, 2


def is_at(run, point):
    """Whether a launch is of this point: by its ranks and by the settings that the verdict tells."""
    settings = point.raw("settings")
    return run.number("world_size") == point.number("ranks") and all(
        str(value) in (run.record.settings.get(key), run.config(key), run.text(key)) for key, value in
        (settings.items() if isinstance(settings, dict) else ()))


def launches(root, by_id):
    """Of base and new the runs that were found, in the order of their start."""
    sets = [[by_id[key] for key in one.raw("records") if isinstance(key, str) and key in by_id] if isinstance(one.raw("records"), list)
            else [] for one in root.views("sets")]
    return [sorted((run for run in of if run.number("throughput/mean")), key=lambda run: run.text("created_at")) for of in sets]


def slowdowns(root, point, sets):
    """(of each pair, of each launch of base, of each of new) in percent: pairs where the gate measured pairs, else launches
    against the base's value. Empty where records of launches are not here."""
    base, new = ([run for run in of if is_at(run, point)] for of in sets)
    rate = {id(run): run.number("throughput/mean") for run in base + new}
    if "pairs" in root.text("design/mode"):
        later = {run.record.repeat or i + 1: run for i, run in enumerate(new)}
        pairs = [(run, later.get(run.record.repeat or i + 1)) for i, run in enumerate(base)]
        return [100 * (1 - rate[id(after)] / rate[id(before)]) for before, after in pairs if after], [], []
    value = point.number("base_value")
    return ([], *([100 * (1 - rate[id(run)] / value) for run in of] for of in (base, new))) if value else ([], [], [])


def dots(axis, place, found):
    """The launches behind a bar."""
    pairs, base, new = found
    for values, marker, colour, label in ((pairs, "o", "s2", "a pair of launches"), (base, "s", "s1", "launches of the base"),
                                          (new, "o", "s2", "launches of the new build")):
        named = label not in axis.get_legend_handles_labels()[1]
        if values:
            axis.plot(values, [place] * len(values), color=PALETTE[colour], marker=marker, markersize=5, linestyle="none", zorder=4,
                      markerfacecolor=PALETTE["paper"], label=label if named else None)


def verdict(album, root, name, by_id):
    points = root.views("points")
    table = Table(f"Gate: {name}", ["point", "base", "new", "unit", "slowdown", "p (adjusted)", ""],
                  [[point.words(point_name(point, False)), point.cell("base_value"), point.cell("value"), point.text("unit"),
                    point.cell("slowdown_percent", signed_percent), point.cell("p_adjusted", probability),
                    "regressed" if point.true("regressed") else ""] for point in points])
    overall = root.number("slowdown_percent")
    if overall is None:
        return [table]
    entries = [("all points", overall, root.pair("interval_percent"), COLOURS.get(root.text("verdict"), "s6"))]
    shown = [point for point in points if point.number("slowdown_percent") is not None][:MOST_BARS]
    entries += [(point_name(point, False), point.number("slowdown_percent"), None, "bad" if point.true("regressed") else "s6")
                for point in shown]
    figure, axis = axes(height=1.5 + 0.4 * len(entries))
    bars(axis, entries)
    sets = launches(root, by_id)
    found = [slowdowns(root, point, sets) for point in shown] if len(sets) == 2 else []
    for place, of in enumerate(found):
        dots(axis, place + 1, of)
    axis.set_xlabel("slowdown of the new build, %")
    legend_above(axis, 2, False)
    missing = "" if any(map(any, found)) else " The records of its launches are not here, so they are not drawn."
    return [album.add(figure, f"gate_{name}", f"Gate: {short(name, 100)}",
                      f"Verdict: {root.text('verdict') or 'none'}. Line: 95 % interval of the mean slowdown; points have none.{missing}",
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


def gate_plots(album, collection):
    roots, older = collection.of("verdict"), collection.of("history")
    by_id = {run.text("id"): run for run in collection.runs}
    made = [part for root, name in list(zip(roots, names_of(roots, verdict_word)))[:MOST_GATES]
            for part in verdict(album, root, name, by_id)]
    return made + [part for root in older[:MOST_HISTORIES] for part in history(album, root, root.record.stem)]


def baselines(collection):
    """Files of `gate --save_baseline`: there is nothing to draw."""
    roots = collection.of("baseline")
    rows = [[root.words(root.text("label", 60) or root.record.stem), root.text("revision", 40),
             Number(whole(len(root.views("launches"))), root.record.href, "/launches"), root.text("created_at", 20)] for root in roots]
    return [Table("Baselines of the gate", ["baseline", "revision", "launches", "made"], rows, 2)] if roots else []
