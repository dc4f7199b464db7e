"""How plots look, and how one drawing becomes a PNG, an SVG and an SVG within the page.

Everything is drawn once, in the light palette. Within the page each colour of that palette is replaced by a CSS variable,
so that the same drawing serves light, dark and paper.
"""
import dataclasses
import io
import os
import re
import xml.etree.ElementTree as ElementTree

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot, ticker  # noqa: E402

# Names of CSS variables (templates/report.css) and their light values, each used nowhere else. The first six tell series
# apart for every kind of colour vision, with 4.5 : 1 against white, since labels have them too.
PALETTE = {"s1": "#0b5fa5", "s2": "#b8430f", "s3": "#00704e", "s4": "#8a3f8f", "s5": "#7a5a01", "s6": "#5a5f66",
           "ink": "#1d2127", "muted": "#5b626c", "grid": "#dde1e6", "paper": "#fefefe", "bad": "#b3261d", "good": "#13703b",
           "band": "#cfe0f1"}
SERIES = [PALETTE[f"s{i}"] for i in range(1, 7)]
MARKERS = ["o", "s", "^", "D", "v", "P"]
DASHES = ["-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2))]
MOST_ROWS = 1000  # of a table: a browser takes seconds for more
SIZE = (5.2, 3.4)  # inches: legible on a phone, three side by side on a wide screen
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)

matplotlib.rcdefaults()  # a user's own matplotlibrc may ask for LaTeX, or for fonts that are not here
matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "scalemark", "text.parse_math": False, "axes.unicode_minus": True,
    "font.family": "sans-serif", "font.size": 11, "axes.labelsize": 11, "axes.titlesize": 11, "xtick.labelsize": 10,
    "ytick.labelsize": 10, "legend.fontsize": 10, "figure.figsize": SIZE, "figure.facecolor": PALETTE["paper"],
    "axes.facecolor": PALETTE["paper"], "savefig.facecolor": PALETTE["paper"], "text.color": PALETTE["ink"],
    "axes.labelcolor": PALETTE["muted"], "xtick.color": PALETTE["muted"], "ytick.color": PALETTE["muted"],
    "axes.edgecolor": PALETTE["muted"], "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": PALETTE["grid"], "grid.linewidth": 0.8, "lines.linewidth": 2,
    "lines.markersize": 6, "legend.frameon": False, "figure.constrained_layout.use": True})


@dataclasses.dataclass
class Table:
    """Cells are text or Number. Columns after the first `words` hold numbers. `more`: rows beyond those that a page can hold."""
    caption: str
    columns: list
    rows: list
    words: int = 1
    more: int = 0

    def __post_init__(self):
        self.more = max(0, len(self.rows) - MOST_ROWS)
        self.rows = self.rows[:MOST_ROWS]


@dataclasses.dataclass
class Plot:
    """`name`: of its files. `says`: what a person sees in it, for those who do not see it."""
    name: str
    title: str
    caption: str
    says: str
    table: Table
    svg: str = ""
    files: tuple = ()


def axes(width=SIZE[0], height=SIZE[1]):
    """A figure with one pair of axes. Their ticks do not depend on the space that the layout leaves, which depends on them."""
    figure, axis = pyplot.subplots(figsize=(width, height))
    for along in (axis.xaxis, axis.yaxis):
        along.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    return figure, axis


def rank_axis(axis, ranks):
    """A logarithmic axis of rank counts with a tick at each, as far as they can be read."""
    ranks = sorted(set(ranks))
    axis.set_xscale("log", base=2)
    axis.minorticks_off()
    shown = ranks if len(ranks) <= 9 else [ranks[0], *(n for n, m in zip(ranks[1:], ranks) if n >= 1.9 * m), ranks[-1]]
    axis.set_xticks(sorted(set(shown)), [f"{n:.0f}" for n in sorted(set(shown))])
    if len(ranks) > 1:
        axis.set_xlim(ranks[0] / 1.15, ranks[-1] * 1.15)
    axis.set_xlabel("ranks")


def label_ends(axis, ends):
    """Names of series at the right end of their lines, (x, y, name, color), moved apart where they would overlap."""
    if not ends:
        return
    low, high = axis.get_ylim()
    step = 0.075
    scale = axis.transAxes.inverted()
    places = sorted(((scale.transform(axis.transData.transform((x, y)))[1], name, color) for x, y, name, color in ends))
    heights = []
    for place, _, _ in places:
        heights.append(max(place, heights[-1] + step) if heights else place)
    over = max(0, heights[-1] - 1) if heights else 0
    for height, (_, name, color) in zip(heights, places):
        axis.annotate(name, (1, height - over), xycoords="axes fraction", xytext=(6, 0), textcoords="offset points",
                      va="center", color=color, fontsize=10, annotation_clip=False)
    axis.set_ylim(low, high)


def legend_above(axis, columns=1, colored=True):
    """Names above the plot, which grows by so many lines."""
    handles, labels = axis.get_legend_handles_labels()
    if not handles:
        return
    figure = axis.figure
    figure.set_figheight(figure.get_figheight() + 0.21 * -(-len(handles) // columns))
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, columnspacing=1.2, borderaxespad=0.1,
                  handlelength=2.2 if colored else 1, labelcolor="linecolor" if colored else None)


def name_series(axis, ends):
    """At the lines where the names are short, else in a legend above the plot."""
    if len(ends) > 1 and max(len(name) for _, _, name, _ in ends) <= 12:
        label_ends(axis, ends)
    elif len(ends) > 1:
        legend_above(axis)


def log_axis(axis):
    """`axis`: x or y of a plot. Plain numbers; those between powers of ten where there is room."""
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.LogFormatter(minor_thresholds=(1, 0.5)))


def short(text, longest=40):
    return text if len(text) <= longest else text[:longest - 1] + "\u2026"


class Album:
    """Hands figures on as Plots, and saves them in a folder beside the page where they are `kept`."""

    def __init__(self, folder, href, kept=True):
        self.folder, self.href, self.kept, self.count, self.names = folder, href, kept, 0, set()

    def add(self, figure, name, title, caption, says, table):
        self.count += 1
        name = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:60] or "plot"
        while name in self.names:
            name += f"_{self.count}"
        self.names.add(name)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Title": title})
        files = self.save(figure, name, text.getvalue()) if self.kept else ()
        pyplot.close(figure)
        return Plot(name, title, caption, says, table, inline(text.getvalue(), f"plot{self.count}", title, says), files)

    def save(self, figure, name, svg):
        """Links to its files."""
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(svg)
        figure.savefig(os.path.join(self.folder, name + ".png"), dpi=144)
        return tuple((f"{self.href}/{name}.{ending}", ending.upper()) for ending in ("png", "svg"))


COLOURS = re.compile("|".join(PALETTE.values()), re.IGNORECASE)
VARIABLES = {value: f"var(--{name})" for name, value in PALETTE.items()}
REFERENCE = re.compile(r"url\(#([^)]+)\)")


def inline(text, prefix, title, says):
    """The drawing as a part of the page: ids of its own, colours as variables, a name and a description."""
    root = ElementTree.fromstring(text)
    for parent in root.iter():
        for child in [c for c in parent if c.tag == f"{{{SVG}}}metadata"]:
            parent.remove(child)
    used = {word for element in root.iter() for key, value in element.attrib.items()
            for word in ([value[1:]] if key.endswith("href") and value.startswith("#") else REFERENCE.findall(value))}
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            if key == "id":
                if value in used:
                    element.set(key, f"{prefix}-{value}")
                else:
                    del element.attrib[key]
            elif key.endswith("href") and value.startswith("#"):
                element.set(key, f"#{prefix}-{value[1:]}")
            elif key == "style":
                value = re.sub(r"font-family:[^;]*;?|(font:[^;]*?px) [^;]*", r"\1", value)
                element.set(key, COLOURS.sub(lambda found: VARIABLES[found[0].lower()], value))
            elif "url(#" in value:
                element.set(key, REFERENCE.sub(rf"url(#{prefix}-\1)", value))
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{prefix}-title {prefix}-desc")
    for place, (tag, words) in enumerate((("title", title), ("desc", says))):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", {"id": f"{prefix}-{tag}"})
        element.text = words
        root.insert(place, element)
    return ElementTree.tostring(root, encoding="unicode")
