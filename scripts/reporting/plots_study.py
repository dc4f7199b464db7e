"""Studies: published figures beside what was measured, in groups of one unit each."""
from reporting.collection import names_of
from reporting.figures import MARKERS, PALETTE, Table, axes, legend_above, log_axis, short
from reporting.labels import labels
from reporting.machines import placed
from reporting.record import four_digits
from reporting.study_words import COMPATIBLE, difference, direction, form_of, measured_cell, published_range, published_words, size
from reporting.study_words import transfers, unit_words

MOST = 20
MOST_ROWS = 14
# Units that have an axis of their own: (title, units, factor, form).
AXES = (("percent", ("percent", "same"), 1, "difference, %"), ("share", ("share",), 100, "efficiency, %"), ("ratio", ("ratio",), 1, "ratio"))


def figure_table(root, name):
    rows = [[figure.words(figure.text("name")), published_words(figure), measured_cell(figure),
             figure.interval("measured/ci95", form_of(figure.text("unit"))), unit_words(figure), difference(figure),
             direction(figure) + (f" ({figure.text('expected', 60)})" if direction(figure) else ""), size(figure)]
            for figure in root.views("figures")]
    return Table(f"{name}: published and measured; transfers: {transfers(root)}",
                 ["figure", "published", "measured", "95 % interval", "unit", "difference", "direction", "size"], rows)


def step_table(root, name):
    rows = [[step.words(step.text("name", 60)), step.text("about"), step.text("status", 20), step.cell("seconds", four_digits),
             step.text("reason")] for step in root.views("steps")]
    return Table(f"{name}: steps", ["step", "what", "status", "seconds", "why"], rows, 3)


def drawn_range(figure, factor):
    """Both ends of what is published; an open one is the other."""
    known = published_range(figure)
    if known is None:
        return None
    low, high = known
    return factor * (high if low is None else low), factor * (low if high is None else high)


def colour(figure):
    """Green: the direction and the size are as published, of the effect itself; red: the opposite; else neither."""
    if direction(figure) == "opposite":
        return PALETTE["bad"]
    good = direction(figure) == "as published" and size(figure) in ("", COMPATIBLE)
    return PALETTE["good" if good and figure.record.root.text("evidence") != "stand_in" else "s1"]


def draw(axis, figures, factor):
    for place, figure in enumerate(figures):
        if known := drawn_range(figure, factor):
            axis.plot(known, [place, place], color=PALETTE["ink"], marker=MARKERS[3], markerfacecolor=PALETTE["paper"], markeredgewidth=1.6,
                      linewidth=1.4, zorder=3, linestyle="-", label="published" if place == 0 else None)
        value, pair = factor * figure.number("measured/value"), figure.pair("measured/ci95")
        if pair:
            axis.plot([factor * end for end in pair], [place, place], color=colour(figure), linewidth=3, alpha=0.45, zorder=2,
                      solid_capstyle="butt")
        axis.plot([value], [place], color=colour(figure), marker=MARKERS[0], linestyle="none", zorder=4,
                  label="measured" if place == 0 else None)
    axis.set_yticks(range(len(figures)), labels([figure.text("name") for figure in figures], 44), fontsize=9)
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
        ends = [end for one in figures for end in (drawn_range(one, factor) or ()) + (factor * one.number("measured/value"),)]
        if title == "ratio" and min(ends) > 0 and max(ends) > 6 * min(ends):
            axis.set_xscale("log")
            log_axis(axis.xaxis)
        elif title == "percent":
            axis.axvline(0, color=PALETTE["muted"], linewidth=1)
        axis.set_xlabel(label)
        axis.margins(x=0.08)
        legend_above(axis, columns=2, colored=False)
        says = "; ".join(f"{one.text('name')}: published {published_words(one)}, measured {measured_cell(one).text}"
                         f" {direction(one)} {size(one)}".rstrip() for one in figures)
        plots.append(album.add(figure, f"study_{name}_{title}", placed(short(root.text("title"), 70), root),
                               "Published (diamond) and measured (dot, bar: 95 % interval). Green: direction and size as published, of the "
                               f"effect itself. Transfers: {transfers(root)}. {root.text('shows')} {root.text('differs')}",
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
