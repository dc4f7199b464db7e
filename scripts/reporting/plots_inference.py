"""Inference records: quantiles of the latency; and jobs side by side."""
from reporting.collection import kernels_words, names_of
from reporting.figures import DASHES, MARKERS, PALETTE, SERIES, Table, axes, log_axis, name_series, short
from reporting.labels import in_common, labels
from reporting.record import four_digits, milliseconds, percent, whole

QUANTILES = (("p50", "50"), ("p90", "90"), ("p99", "99"), ("p99_9", "99.9"))
MOST_SERIES, MOST_INSTANCES = 5, 3


def word(root):
    words = " ".join(text for text in (root.text("model", 60), root.text("precision"), root.text("mode")) if text)
    return words + kernels_words(root.text("kernels"))


def latency_table(roots, names):
    rows = [[root.words(name), *(root.cell(f"latency_seconds/{key}", milliseconds) for key, _ in QUANTILES),
             root.cell("throughput/mean", four_digits), root.text("unit"),
             root.cell("server/latency_bound_seconds", milliseconds)] for root, name in zip(roots, names)]
    return Table("Latency of all queries", ["inference", *(f"{text} %" for _, text in QUANTILES), "throughput", "unit", "bound"], rows)


def draw_latency(axis, able):
    """`able`: (record, name). Where the last points are, for the names."""
    ends = []
    for i, ((root, _), name) in enumerate(zip(able, labels([name for _, name in able]))):
        known = [(at, 1e3 * root.number(f"latency_seconds/{key}")) for at, (key, _) in enumerate(QUANTILES)
                 if (root.number(f"latency_seconds/{key}") or 0) > 0]
        axis.plot(*zip(*known), color=SERIES[i], marker=MARKERS[i], linestyle=DASHES[i], label=name)
        ends.append((*known[-1], name, SERIES[i]))
        if bound := root.number("server/latency_bound_seconds"):
            axis.axhline(1e3 * bound, color=SERIES[i], linewidth=1, linestyle=(0, (2, 2)))
    axis.set_xticks(range(len(QUANTILES)), [f"{text} %" for _, text in QUANTILES])
    axis.set_xlim(-0.3, len(QUANTILES) - 0.7)
    axis.set_yscale("log")
    log_axis(axis.yaxis)
    axis.set_ylabel("latency, ms")
    axis.set_xlabel("quantile of the queries")
    return ends


def latency(album, roots):
    names = names_of(roots, word)
    table = latency_table(roots, names)
    able = [(root, name) for root, name in zip(roots, names) if (root.number("latency_seconds/p50") or 0) > 0]
    if not able:
        return [table]
    shown = able[:MOST_SERIES]
    figure, axis = axes()
    name_series(axis, draw_latency(axis, shown))
    says = "; ".join(f"{name}: " + ", ".join(f"{text} % within {root.cell(f'latency_seconds/{key}', milliseconds).text}"
                                              for key, text in QUANTILES if root.number(f"latency_seconds/{key}"))
                     for root, name in shown)
    more = f" {len(able) - MOST_SERIES} more are in the table." if len(able) > MOST_SERIES else ""
    title = in_common([name for _, name in shown]) if len(shown) > 1 else shown[0][1]
    return [album.add(figure, "latency", f"Latency: {short(title, 70)}" if title else "Latency",
                      f"Quantiles over all queries of all ranks; dotted: the bound of a server.{more}",
                      says, table)]


def instances(album, root, name):
    points = [point for point in root.views("points") if point.number("instances") and point.number("cumulative/mean")]
    rows = [[point.cell("instances", whole), point.cell("cumulative/mean", four_digits), point.interval("cumulative/ci95"),
             point.cell("speedup", four_digits), point.cell("efficiency", percent), point.cell("overlap", percent)]
            for point in root.views("points")]
    table = Table(f"Jobs side by side: {name}", ["jobs", root.text("unit"), "95 % interval", "speedup", "efficiency", "overlap"],
                  rows, 0)
    slots = [[point.cell("instances", whole), slot.cell("slot", whole), slot.cell("throughput", four_digits),
              slot.cell("alone", four_digits), slot.cell("ratio", percent)]
             for point in root.views("points") for slot in point.views("per_instance")]
    each = Table(f"Each job: {name}", ["jobs", "slot", "with neighbours", "alone", "ratio"], slots, 0)
    if not points:
        return [table, each]
    figure, axis = axes()
    x = [point.number("instances") for point in points]
    y = [point.number("cumulative/mean") for point in points]
    axis.bar(x, y, width=0.6, color=PALETTE["s1"])
    for point, at, value in zip(points, x, y):
        if pair := point.pair("cumulative/ci95"):
            axis.errorbar([at], [value], yerr=[[max(0, value - pair[0])], [max(0, pair[1] - value)]], color=PALETTE["ink"], capsize=5)
        if (share := point.number("efficiency")) is not None:
            axis.annotate(percent(share), (at, 0), xytext=(0, 5), textcoords="offset points", ha="center", color=PALETTE["paper"])
    first = y[0] / x[0]
    axis.plot(x, [first * k for k in x], color=PALETTE["muted"], linestyle=(0, (2, 2)), linewidth=1.5)
    axis.set_xticks(x, [f"{k:.0f}" for k in x])
    axis.grid(axis="x", visible=False)
    axis.set_xlabel("jobs at once")
    axis.set_ylabel(root.text("unit") or "units/sec")
    says = "; ".join(f"{point.cell('instances', whole).text} jobs {point.cell('cumulative/mean').text}, efficiency "
                     f"{point.cell('efficiency', percent).text}" for point in points)
    plot = album.add(figure, f"instances_{name}", f"Jobs side by side: {short(name, 100)}",
                     "All jobs together; within the bars the efficiency against the same slots alone; dashed: no loss to neighbours.",
                     says, table)
    return [plot, each]


def instance_plots(album, collection):
    roots = collection.of("instances")
    names = names_of(roots, lambda root: f"{root.text('job')} {root.text('model', 60)}")
    return [part for root, name in list(zip(roots, names))[:MOST_INSTANCES] for part in instances(album, root, name)]
