"""What gradients of embedding tables take of a rank's memory and of the network, by ranks and strategy."""
from reporting.figures import DASHES, MARKERS, SERIES, Table, axes, name_series, rank_axis
from reporting.labels import labels
from reporting.machines import placed
from reporting.record import milliseconds, scaled_bytes, whole


def speaking(runs):
    """Runs with such gradients; not the baselines without communication, which hold their own rows alone."""
    return [run for run in runs if run.number("communication/embedding/buffer_bytes_per_rank") and
            (run.text("communication/communicator") != "none" or run.number("world_size") == 1)]


def strategy(run):
    how = run.text("communication/embedding/strategy")
    tied = run.text("communication/embedding/tied_gradient")
    batch = run.number("batch_size_per_rank")
    way = how + (", tied gradient sparse" if how == "sparse" and tied == "sparse" else "")
    return placed(f"{run.text('model', 60)} x {batch:.0f}, {way}" if batch else f"{run.text('model', 60)}, {way}", run)


def plots(album, collection):
    runs = sorted(speaking(collection.runs), key=lambda run: (strategy(run), run.number("world_size") or 0))
    if not runs:
        return []
    rows = [[run.words(strategy(run)), run.cell("world_size", whole),
             run.cell("communication/embedding/buffer_bytes_per_rank", scaled_bytes),
             run.cell("communication/embedding/wire_bytes_per_step", scaled_bytes),
             run.cell("communication/embedding/exchange_seconds", milliseconds)] for run in runs]
    table = Table("Gradients of embedding tables", ["gradients", "ranks", "buffer of a rank", "sent a step", "exchange"], rows)
    series = {}
    for run in runs:
        buffers = series.setdefault(strategy(run), {})
        buffers[run.number("world_size") or 1] = run.number("communication/embedding/buffer_bytes_per_rank")
    figure, axis = axes()
    ends = []
    shown = list(series.items())[:6]
    for i, (name, (_, points)) in enumerate(zip(labels([name for name, _ in shown]), shown)):
        x, y = list(points), [value / 2**20 for value in points.values()]
        axis.plot(x, y, color=SERIES[i], marker=MARKERS[i], linestyle=DASHES[i], label=name)
        ends.append((x[-1], y[-1], name, SERIES[i]))
    rank_axis(axis, [n for points in series.values() for n in points])
    axis.set_ylabel("buffer of a rank, MiB")
    axis.set_ylim(bottom=0)
    name_series(axis, ends)
    says = "; ".join(f"{name}: " + ", ".join(f"{n:.0f} ranks {scaled_bytes(value)}" for n, value in points.items())
                     for name, points in series.items())
    return [album.add(figure, "embedding", "Bytes of embedding gradients",
                      "What a rank holds to accumulate them: dense gradients stay as they are, gathered rows grow with the ranks.",
                      says, table)]
