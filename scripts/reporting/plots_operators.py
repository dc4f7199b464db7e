"""Which operators a step spends its time in, as the steps that --trace recorded say (docs/measurements.md, A trace)."""
from reporting.collection import names_of, run_word
from reporting.figures import PALETTE, SERIES, Table, axes, legend_above
from reporting.labels import labels
from reporting.record import four_digits, milliseconds, percent

GROUPS = ("convolution", "matrix_product", "normalisation", "optimizer", "communication", "other")
MOST = 6


def giga(value):
    return f"{four_digits(1e-9 * value)} GFLOP/s"


def words_of(group):
    return group.replace("_", " ")


def share_of(root, group):
    return root.cell(f"operators/groups/{group}/share", percent).text


def group_table(name, root):
    rows = []
    for group in GROUPS:
        place = root.view(f"operators/groups/{group}")
        rows.append([words_of(group), place.cell("seconds", milliseconds), place.cell("share", percent),
                     place.cell("achieved_flops", giga), place.cell("roofline_fraction", percent)])
    outside = root.view("operators/outside")
    rows.append(["outside of operators", outside.cell("seconds", milliseconds), outside.cell("share", percent), "", ""])
    return Table(f"Groups of operators: {name}", ["group", "of a step", "share", "rate", "of the GEMM peak"], rows)


def top_table(name, root):
    rows = [[one.words(one.text("name", 60)), words_of(one.text("group", 20)), one.cell("calls_per_step"),
             one.cell("self_seconds", milliseconds), one.cell("share", percent)] for one in root.views("operators/top")[:10]]
    return Table(f"Operators with the most time of their own: {name}", ["operator", "group", "calls a step", "own time", "share"],
                 rows, 2)


def plots(album, collection):
    """A bar a traced record, then its tables; nothing where no record was traced or no times are known."""
    traced = [root for root in (*collection.runs, *collection.of("inference")) if root.views("operators/top")]
    shown = list(zip(names_of(traced, run_word), traced))[:MOST]
    if not shown:
        return []
    figure, axis = axes(height=1.3 + 0.45 * len(shown))
    colors = dict(zip((*GROUPS, "outside"), (*SERIES, PALETTE["grid"])))
    for place, (_, root) in enumerate(shown):
        left = 0
        for group, color in colors.items():
            share = root.number("operators/outside/share" if group == "outside" else f"operators/groups/{group}/share") or 0
            axis.barh(place, 100 * share, left=100 * left, color=color, height=0.6,
                      label=words_of(group) if place == 0 else None)
            left += share
    axis.set_yticks(range(len(shown)), labels([name for name, _ in shown], 34), fontsize=9)
    axis.set_ylim(len(shown) - 0.5, -0.5)
    axis.set_xlabel("share of a traced step, %")
    legend_above(axis, columns=3, colored=False)
    says = "; ".join(f"{name}: " + ", ".join(f"{words_of(group)} {share_of(root, group)}" for group in GROUPS)
                     for name, root in shown)
    plot = album.add(figure, "operators", "Operators of a step",
                     "Time that operators spend themselves, without those that they call, in the steps that --trace "
                     "recorded after the measured ones; open the trace itself in Perfetto.", says, group_table(*shown[0]))
    tables = [table(name, root) for name, root in shown for table in (group_table, top_table)]
    return [plot, *tables[1:]]  # the first is the plot's
