"""Runs of no curve: a point for each launch, so that their spread is seen."""
from reporting.collection import run_word
from reporting.figures import PALETTE, Table, axes, short
from reporting.record import four_digits, milliseconds

MOST_ROWS, MOST_FIGURES = 14, 3


def groups_of(runs):
    """{(model, unit): {word: runs}}: launches that an axis can hold, those of the same settings and build in a row."""
    groups = {}
    builds = {run.text("build/revision", 40) for run in runs}
    for run in runs:
        if run.number("throughput/mean"):
            rows = groups.setdefault((run.text("model", 60), run.text("unit", 20)), {})
            build = f", build {run.text('build/revision', 12)}" if len(builds) > 1 else ""
            rows.setdefault(run_word(run) + build, []).append(run)
    return {key: rows for key, rows in groups.items() if sum(map(len, rows.values())) > 1}


def launches(album, model, unit, rows):
    shown = list(rows.items())[:MOST_ROWS]
    figure, axis = axes(height=1.3 + 0.3 * len(shown))
    for place, (_, runs) in enumerate(shown):
        rates = [run.number("throughput/mean") for run in runs]
        axis.plot(rates, [place] * len(rates), color=PALETTE["s1"], marker="o", markersize=7, linestyle="none", alpha=0.75)
    words = [word.removeprefix(model).strip() or word for word, _ in shown]
    axis.set_yticks(range(len(shown)), [short(word, 34) for word in words], fontsize=9)
    axis.set_ylim(len(shown) - 0.5, -0.5)
    axis.set_xlim(0, 1.06 * axis.get_xlim()[1])
    axis.set_xlabel(unit)
    says = "; ".join(f"{word}: " + ", ".join(run.cell("throughput/mean", four_digits).text for run in runs[:5]) for word, runs in shown)
    table = Table(f"Throughput of {model}, a launch a line", ["run", unit, "95 % interval of this launch", "median step"],
                  [[run.words(word), run.cell("throughput/mean", four_digits), run.interval("throughput/ci95"),
                    run.cell("step_seconds/p50", milliseconds)] for word, runs in rows.items() for run in runs])
    more = f" {len(rows) - len(shown)} more settings are in the table." if len(rows) > len(shown) else ""
    return album.add(figure, f"runs_{model}_{unit}", f"Throughput of launches: {short(model, 40)}",
                     "A point is a launch; points of a row have the same settings and build. Without repeats nothing says how far launches "
                     f"differ by chance: scalemark compare does.{more}", says, table)


def plots(album, collection):
    groups = groups_of([run for run in collection.lone_runs if run.text("status") == "ok"])
    return [launches(album, model, unit, rows) for (model, unit), rows in list(groups.items())[:MOST_FIGURES]]
