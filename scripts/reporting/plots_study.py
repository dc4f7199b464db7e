"""Studies: published figures beside what was measured, in groups of one unit each."""
from reporting.collection import names_of
from reporting.figures import MARKERS, PALETTE, Table, axes, legend_above, log_axis, short
from reporting.record import four_digits
from reporting.study_words import difference, form_of, measured_cell, published_words, unit_words

MOST = 20
MOST_ROWS = 14
COLOURS = {"shown": "good", "opposite": "bad", "not shown": "s2", "": "s1"}
# Units that have an axis of their own: (title, units, factor, form).
AXES = (("percent", ("percent", "same"), 1, "difference, %"), ("share", ("share",), 100, "efficiency, %"), ("ratio", ("ratio",), 1, "ratio"))


def figure_table(root, name):
    rows = [[figure.words(figure.text("name")), published_words(figure), measured_cell(figure),
             figure.interval("measured/ci95", form_of(figure.text("unit"))), unit_words(figure), difference(figure),
             figure.text("verdict") + (f" ({figure.text('expected', 60)})" if figure.text("verdict") else "")]
            for figure in root.views("figures")]
    return Table(f"{name}: published and measured", ["figure", "published", "measured", "95 % interval", "unit", "difference", "effect"],
                 rows)


def step_table(root, name):
    rows = [[step.words(step.text("name", 60)), step.text("about"), step.text("status", 20), step.cell("seconds", four_digits),
             step.text("reason")] for step in root.views("steps")]
    return Table(f"{name}: steps", ["step", "what", "status", "seconds", "why"], rows, 3)


def published_range(figure, factor):
    """(low, high) of what is published, or None."""
    value, low, high = (figure.number(f"published/{key}") for key in ("value", "low", "high"))
    if figure.text("unit") == "same":
        value = 0
    if value is not None:
        return factor * value, factor * value
    if low is None and high is None:
        return None
    return factor * (high if low is None else low), factor * (low if high is None else high)


def draw(axis, figures, factor):
    for place, figure in enumerate(figures):
        if known := published_range(figure, factor):
            axis.plot(known, [place, place], color=PALETTE["ink"], marker=MARKERS[3], markerfacecolor=PALETTE["paper"], markeredgewidth=1.6,
                      linewidth=1.4, zorder=3, linestyle="-", label="published" if place == 0 else None)
        value, pair = factor * figure.number("measured/value"), figure.pair("measured/ci95")
        colour = PALETTE[COLOURS.get(figure.text("verdict"), "s1")]
        if pair:
            axis.plot([factor * end for end in pair], [place, place], color=colour, linewidth=3, alpha=0.45, zorder=2,
                      solid_capstyle="butt")
        axis.plot([value], [place], color=colour, marker=MARKERS[0], linestyle="none", zorder=4, label="measured" if place == 0 else None)
    axis.set_yticks(range(len(figures)), [short(figure.text("name"), 44) for figure in figures], fontsize=9)
    axis.set_ylim(len(figures) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)


def drawings(album, root, name):
    """A plot for each kind of unit that has something to compare."""
    plots = []
    for title, units, factor, label in AXES:
        figures = [figure for figure in root.views("figures")
                   if figure.text("unit") in units and figure.number("measured/value") is not None][:MOST_ROWS]
        if not figures:
            continue
        figure, axis = axes(height=1.4 + 0.34 * len(figures))
        draw(axis, figures, factor)
        ends = [end for one in figures for end in (published_range(one, factor) or ()) + (factor * one.number("measured/value"),)]
        if title == "ratio" and min(ends) > 0 and max(ends) > 6 * min(ends):
            axis.set_xscale("log")
            log_axis(axis.xaxis)
        elif title == "percent":
            axis.axvline(0, color=PALETTE["muted"], linewidth=1)
        axis.set_xlabel(label)
        axis.margins(x=0.08)
        legend_above(axis, columns=2, colored=False)
        says = "; ".join(f"{one.text('name')}: published {published_words(one)}, measured {measured_cell(one).text}"
                         f" {one.text('verdict')}".rstrip() for one in figures)
        plots.append(album.add(figure, f"study_{name}_{title}", f"{short(root.text('title'), 70)}",
                               f"Published (diamond) and measured (dot, bar: 95 % interval). {root.text('shows')} {root.text('differs')}",
                               says, figure_table(root, name)))
    return plots


def word(root):
    return f"{root.text('study', 60)} ({root.text('profile', 20)}, {root.text('site', 40)})"


def plots(album, collection):
    roots = collection.of("study")
    parts = []
    for root, name in list(zip(roots, names_of(roots, word)))[:MOST]:
        drawn = drawings(album, root, name)
        parts += [*drawn, *([] if drawn else [figure_table(root, name)]), step_table(root, name)]
    return parts
