"""Runs: where a step goes, how step times are distributed, which rank is slow, and the loss."""
from reporting.collection import names_of, run_word
from reporting.figures import DASHES, PALETTE, SERIES, Table, axes, legend_above, log_axis, short
from reporting.labels import in_common, labels
from reporting.machines import by_machine
from reporting.record import NOT_THERE, Number, four_digits, milliseconds, numbers_in, percent, whole
from reporting.step_parts import PARTS, exposed_share, parts_of

MOST_BARS, MOST_PARTS, MOST_MAPS, MOST_LOSSES, MOST_LINES = 10, 6, 4, 6, 5
OTHER = "all the rest"  # where the records of the runs are not there
PART_COLOURS = dict(zip((*PARTS, OTHER), (PALETTE["s1"], PALETTE["s2"], PALETTE["s5"], PALETTE["s3"], PALETTE["s4"],
                                         PALETTE["s6"])))


def bars_of_curve(curve):
    """[(label, place, {part: share}, seconds of a step or None)] by ranks."""
    bars = []
    for point in curve.measured:
        run = curve.middle_run(point)
        parts = parts_of(run) if run is not None else None
        step = sum(parts.values()) if parts else 0
        label = f"{point.number('ranks'):.0f}"
        if step > 0:
            bars.append((label, run, {part: seconds / step for part, seconds in parts.items()}, step))
        elif (share := exposed_share(point)) is not None:
            share = min(1.0, max(0.0, share))
            bars.append((label, point, {OTHER: 1 - share, "exposed communication": share}, None))
    return bars


def doubts_of(curve):
    """Where communication seems to cost less than nothing."""
    ranks = [point.cell("ranks", whole).text for point in curve.measured if (exposed_share(point) or 0) < 0]
    return f" At {', '.join(ranks)} ranks the baseline is slower than the measurement: noise or foreign load." if ranks else ""


def bars_of_runs(runs):
    """As of a curve, by names."""
    bars = []
    for run, name in zip(runs, names_of(runs, run_word)):
        parts = parts_of(run)
        if parts and sum(parts.values()) > 0:
            step = sum(parts.values())
            bars.append((name, run, {part: seconds / step for part, seconds in parts.items()}, step))
    return bars


def draw_parts(axis, shown):
    """Bars of 100 % from left to right; behind each the step, where it is known."""
    places = range(len(shown))
    left = [0.0] * len(shown)
    for part, color in PART_COLOURS.items():
        width = [100 * shares.get(part, 0) for _, _, shares, _ in shown]
        if max(width) < 0.05:
            continue
        axis.barh(places, width, left=left, color=color, height=0.68, label=part, edgecolor=PALETTE["paper"])
        for place, x, w in zip(places, left, width):
            if w >= 9:
                axis.text(x + w / 2, place, f"{w:.0f} %", ha="center", va="center", color=PALETTE["paper"], fontsize=9)
        left = [a + b for a, b in zip(left, width)]
    for place, (_, _, _, step) in zip(places, shown):
        if step:
            axis.text(101.5, place, milliseconds(step), va="center", color=PALETTE["muted"], fontsize=9)
    axis.invert_yaxis()
    axis.set_xlim(0, 118)
    axis.set_xticks(range(0, 101, 20))
    axis.set_xlabel("share of a step, %" + ("; right: the mean step" if any(step for *_, step in shown) else ""))
    axis.grid(axis="y", visible=False)


def parts_table(bars, heading):
    """Where run records are missing, the share follows from the throughput without communication."""
    rows = []
    for label, view, shares, step in bars:
        place = view.at("phases/seconds" if step else "baseline_throughput")
        rows.append([label, Number(milliseconds(step), view.record.href, place) if step else NOT_THERE,
                     *(Number(percent(shares[part]), view.record.href, place) if part in shares else NOT_THERE
                       for part in PART_COLOURS)])
    return Table("Where a step goes", [heading, "step", *PART_COLOURS], rows)


def titled(title, names):
    """With what all names say, which their labels leave out."""
    words = in_common(names) if len(names) > 1 else names[0]
    return f"{title}: {short(words or 'runs', 70)}"


def parts_plot(album, name, title, bars, of, heading):
    shown = bars[:MOST_BARS]
    figure, axis = axes(height=1.2 + 0.36 * len(shown))
    draw_parts(axis, shown)
    by_ranks = heading == "ranks"
    axis.set_yticks(range(len(shown)), labels([label for label, *_ in shown], 30), fontsize=10 if by_ranks else 9)
    axis.set_ylabel(heading if by_ranks else "")
    legend_above(axis, 2, False)
    says = "; ".join(f"{label}: " + ", ".join(f"{part} {100 * share:.0f} %" for part, share in shares.items() if share >= 0.005)
                     for label, _, shares, _ in shown)
    caption = (f"{of} Waiting for slower ranks: the slowest rank's own time less the mean rank's; exposed communication: what "
               "ranks wait beyond that.")
    if any(step is None for *_, step in shown):
        caption = (f"{of} Exposed communication: 1 - throughput / throughput without communication. The run records are not here, so "
                   "the rest is not divided further.")
    return album.add(figure, name, title, caption, says, parts_table(bars, heading))


def step_parts(album, collection):
    made = []
    for curve in collection.curves:
        bars = bars_of_curve(curve)
        if bars and len(made) < 4:
            made.append(parts_plot(album, f"step_{curve.name}", f"Where a step goes: {short(curve.name, 60)}", bars,
                                   f"By ranks, of the run with the middle throughput of each point.{doubts_of(curve)}", "ranks"))
    for machine, runs in by_machine([run for run in collection.lone_runs if run.text("status") == "ok"]):
        bars = bars_of_runs(runs)
        if bars and len(made) < MOST_PARTS:
            left = f" {len(bars) - MOST_BARS} more are in the table." if len(bars) > MOST_BARS else ""
            made.append(parts_plot(album, "step_runs", titled("Where a step goes", [name for name, *_ in bars[:MOST_BARS]]), bars,
                                   f"Mean over ranks and steps.{left}", "run"))
    return made


def with_samples(collection):
    """Runs whose steps are drawn: those of no curve first, then the middle run of each point of each curve."""
    runs = [run for run in collection.lone_runs if len(run.numbers("step_seconds/samples")) > 1]
    for curve in collection.curves:
        middle = [curve.middle_run(point) for point in curve.measured]
        runs += [run for run in middle if run is not None and len(run.numbers("step_seconds/samples")) > 1]
    return runs


def distribution(album, runs):
    """Empirical distribution of the step times of each run, against its median."""
    every = names_of(runs, run_word)
    shown, names = runs[:MOST_LINES], every[:MOST_LINES]
    figure, axis = axes()
    longest = []
    for i, (run, label) in enumerate(zip(shown, labels(names))):
        samples = sorted(x for x in run.numbers("step_seconds/samples") if x is not None and x > 0)
        middle = run.number("step_seconds/p50")
        if not samples or not middle:
            continue
        stride = max(1, len(samples) // 200)
        values = [100 * (k + 1) / len(samples) for k in range(len(samples))]
        axis.plot([x / middle for x in samples[::stride]] + [samples[-1] / middle], values[::stride] + [100], color=SERIES[i],
                  linestyle=DASHES[i], drawstyle="steps-post", label=label)
        longest.append((run.number("step_seconds/p99") or samples[-1]) / middle)
    if not longest:
        return None
    axis.set_xlim(0.5, max(1.5, min(4, 1.1 * max(longest))))
    axis.set_ylim(0, 102)
    axis.axvline(1, color=PALETTE["muted"], linewidth=1, linestyle=(0, (2, 2)))
    axis.set_xlabel("step time / median of the run")
    axis.set_ylabel("steps at most so long, %")
    legend_above(axis)
    keys = ("p50", "p90", "p99", "mean")
    rows = [[run.words(name), *(run.cell(f"step_seconds/{key}", milliseconds) for key in keys)] for run, name in zip(runs, every)]
    says = "; ".join(f"{name}: median {run.cell('step_seconds/p50', milliseconds).text}, 99 % within "
                     f"{run.cell('step_seconds/p99', milliseconds).text}" for run, name in zip(shown, names))
    more = f" {len(runs) - len(shown)} more runs are in the table." if len(runs) > len(shown) else ""
    return album.add(figure, "step_times", titled("Distribution of step times", names),
                     "Of each step the slowest rank's time, divided by the median of its run: a steep line is a steady run, a "
                     f"long top a tail of slow steps.{more}", says,
                     Table("Quantiles of step times", ["run", "median", "90 %", "99 %", "mean"], rows))


def map_of(run):
    """Rows of own seconds by rank over the steps, and how many steps a column is."""
    given = run.raw("rank_steps/compute_seconds")
    rows = [numbers_in(row) for row in given] if isinstance(given, list) else []
    if not rows or not rows[0] or any(len(row) != len(rows[0]) or None in row for row in rows):
        return None, 0
    return rows, run.number("rank_steps/steps_per_cell") or 1


def against_the_middle(rows):
    """How much longer each rank computes than the middle one of the same column, in percent."""
    columns = [sorted(column) for column in zip(*rows)]
    middles = [column[(len(column) - 1) // 2] for column in columns]
    return [[100 * (x / m - 1) if m > 0 else 0 for x, m in zip(row, middles)] for row in rows]


def draw_map(figure, axis, rows, width, slow):
    image = axis.imshow(against_the_middle(rows), aspect="auto", interpolation="none", cmap="cividis", vmin=0, vmax=30,
                        extent=(0.5, len(rows[0]) * width + 0.5, len(rows) - 0.5, -0.5))
    bar = figure.colorbar(image, ax=axis, pad=0.02, extend="max")
    bar.set_label("slower by, %")
    bar.outline.set_visible(False)
    axis.grid(visible=False)
    axis.set_xlabel("step")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_ylabel("rank")
    axis.yaxis.get_major_locator().set_params(integer=True)
    if len(rows) <= 12:
        axis.set_yticks(range(len(rows)))
    for rank in slow:
        axis.annotate("\u25c0 straggler", (1, rank), xycoords=("axes fraction", "data"), xytext=(-4, 0), va="center", ha="right",
                      textcoords="offset points", color=PALETTE["ink"], fontsize=9,
                      bbox={"facecolor": PALETTE["paper"], "edgecolor": "none", "pad": 1.5})


def heat_map(album, run, name):
    """Ranks by steps: a slow rank is a line."""
    rows, width = map_of(run)
    ranks = run.views("ranks")
    slow = [i for i, rank in enumerate(ranks) if rank.true("straggler") and i < len(rows)][:8]
    figure, axis = axes(height=min(4.6, 2.4 + 0.16 * len(rows)))
    draw_map(figure, axis, rows, width, slow)
    rank_rows = [[rank.cell("rank", whole), rank.words(rank.text("host", 60) or NOT_THERE, "host"),
                  rank.cell("step_seconds_mean", milliseconds), rank.cell("wait_seconds_mean", milliseconds),
                  "straggler" if rank.true("straggler") else ""] for rank in ranks]
    hosts = ", ".join(f"rank {i} on {ranks[i].text('host', 60)}" for i in slow)
    cells = f" A column is {width:.0f} steps." if width > 1 else ""
    return album.add(figure, f"ranks_by_steps_{name}", f"Ranks by steps: {short(name, 100)}",
                     "Own time of each rank (step less wait) against the middle rank of the same step: a bright row is a slow "
                     f"rank, a bright cell one that was held up alone.{cells}",
                     f"Slower than the others over the run: {hosts}." if slow else "No rank is a straggler.",
                     Table("Ranks, means over the run", ["rank", "host", "step", "of which it waited", ""], rank_rows))


def heat_maps(album, runs):
    """Of runs with several ranks; those with a straggler first."""
    able = [run for run in runs if len(run.views("ranks")) > 1 and map_of(run)[0]]
    able.sort(key=lambda run: not any(rank.true("straggler") for rank in run.views("ranks")))
    names = names_of(able, run_word)
    return [heat_map(album, run, name) for run, name in list(zip(able, names))[:MOST_MAPS]]


def losses(album, runs):
    """Of runs of one machine."""
    able = [run for run in runs if len([x for x in run.numbers("loss/trace") if x is not None]) > 1]
    able.sort(key=lambda run: not run.true("loss/diverged"))
    if not able:
        return None
    shown, names = able[:MOST_LOSSES], names_of(able, run_word)
    figure, axis = axes()
    lowest = []
    for i, (run, label) in enumerate(zip(shown, labels(names[:MOST_LOSSES], 30))):
        stride = run.number("loss/trace_stride") or 1
        trace = [(1 + k * stride, x) for k, x in enumerate(run.numbers("loss/trace")) if x is not None]
        mark = " (diverged)" if run.true("loss/diverged") else ""
        axis.plot(*zip(*trace), color=SERIES[i], linestyle=DASHES[i], linewidth=1.6, label=label + mark)
        lowest.append(min(x for _, x in trace))
    if min(lowest) > 0:
        axis.set_yscale("log")
        log_axis(axis.yaxis)
    axis.set_xlabel("step")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_ylabel("loss")
    legend_above(axis)
    rows = [[run.words(name), run.cell("loss/first", four_digits), run.cell("loss/last", four_digits),
             "diverged" if run.true("loss/diverged") else ""] for run, name in zip(able, names)]
    says = "; ".join(f"{name}: from {run.cell('loss/first').text} to {run.cell('loss/last').text}"
                     + (", diverged" if run.true("loss/diverged") else "") for run, name in zip(shown, names))
    more = f" {len(able) - len(shown)} more runs are in the table." if len(able) > len(shown) else ""
    return album.add(figure, "loss", titled("Loss", names[:MOST_LOSSES]), f"Global mean loss of the measured steps.{more}", says,
                     Table("Loss", ["run", "first", "last", ""], rows))


def plots(album, collection):
    runs = with_samples(collection)
    made = step_parts(album, collection)
    made += [distribution(album, of) for _, of in by_machine(runs)[:MOST_PARTS]]
    return [plot for plot in made if plot] + heat_maps(album, runs)


def loss_plots(album, collection):
    plots_of = [losses(album, runs) for _, runs in by_machine(with_samples(collection))[:MOST_PARTS]]
    return [plot for plot in plots_of if plot]
