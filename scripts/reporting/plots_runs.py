"""Runs of no curve: a point for each launch, so that their spread is seen."""
from reporting.collection import run_word
from reporting.figures import PALETTE, Table, axes, legend_above, short
from reporting.labels import in_common, labels
from reporting.machines import MOST, by_machine, placed
from reporting.record import four_digits, milliseconds

MOST_ROWS, MOST_FIGURES = 14, 3


def groups_of(runs):
    """{(model, unit, which machines): {word: runs}}: launches that an axis can hold, those of the same settings, build and
    machine in a row."""
    groups = {}
    builds = {run.text("build/revision", 40) for run in runs}
    for machine, of in by_machine([run for run in runs if run.number("throughput/mean")]):
        for run in of:
            rows = groups.setdefault((run.text("model", 60), run.text("unit", 20), machine.number // MOST if machine else 0), {})
            build = f", build {run.text('build/revision', 12)}" if len(builds) > 1 else ""
            rows.setdefault(placed(run_word(run) + build, run), []).append(run)
    return {key: rows for key, rows in groups.items() if sum(map(len, rows.values())) > 1}


def draw(axis, shown):
    """A row each, in the colour of its machine."""
    told = set()
    for place, (_, runs) in enumerate(shown):
        machine = runs[0].record.machine
        rates = [run.number("throughput/mean") for run in runs]
        colour, marker, label = (machine.colour, machine.marker, machine.label) if machine else (PALETTE["s6"], "P", "")
        axis.plot(rates, [place] * len(rates), color=colour, marker=marker, markersize=7, linestyle="none", alpha=0.75,
                  label=label if label and label not in told else None)
        told.add(label)
    axis.set_ylim(len(shown) - 0.5, -0.5)
    axis.set_xlim(0, 1.06 * axis.get_xlim()[1])


def launches(album, model, unit, rows):
    shown = list(rows.items())[:MOST_ROWS]
    words = [word for word, _ in shown]
    figure, axis = axes(height=1.3 + 0.3 * len(shown))
    draw(axis, shown)
    axis.set_yticks(range(len(shown)), labels(words, 34), fontsize=9)
    axis.set_xlabel(unit)
    legend_above(axis, 3)
    says = "; ".join(f"{word}: " + ", ".join(run.cell("throughput/mean", four_digits).text for run in runs[:5]) for word, runs in shown)
    table = Table(f"Throughput of {model}, a launch a line", ["run", unit, "95 % interval of this launch", "median step"],
                  [[run.words(word), run.cell("throughput/mean", four_digits), run.interval("throughput/ci95"),
                    run.cell("step_seconds/p50", milliseconds)] for word, runs in rows.items() for run in runs])
    more = f" {len(rows) - len(shown)} more settings are in the table." if len(rows) > len(shown) else ""
    title = in_common(words) if len(words) > 1 else words[0]
    return album.add(figure, f"runs_{model}_{unit}", f"Throughput of launches: {short(title or model, 60)}",
                     "A point is a launch; points of a row have the same settings, build and machine. Without repeats nothing says how far "
                     f"launches differ by chance: scalemark compare does.{more}", says, table)


def plots(album, collection):
    """And what is not drawn, in words."""
    groups = groups_of([run for run in collection.lone_runs if run.text("status") == "ok"])
    drawn = [launches(album, model, unit, rows) for (model, unit, _), rows in list(groups.items())[:MOST_FIGURES]]
    left = sum(sum(map(len, rows.values())) for rows in list(groups.values())[MOST_FIGURES:])
    return drawn, f"{left} further launches are not drawn; they are in the table of all runs." if left else ""
