"""The rules of the verdict in words: what scales, what does not, why, what to try, how sure.

Each rule looks at one thing and returns the findings that it triggers; docs/report.md has them as a table and a test holds
both together. Rules read numbers of records; limits are the constants here.
"""
from reporting.collection import run_word
from reporting.curve_numbers import largest, ranks_of, share_exposed
from reporting.finding import BAD, GOOD, HINT, LIKELY, NOTE, SURE, Finding, certainty_of_curve
from reporting.record import Number, four_digits, milliseconds, percent, probability, signed_percent, whole
from reporting.step_parts import own_times
from reporting.study_words import EVIDENCE

GOOD_EFFICIENCY = 0.90   # of the largest point: "scales"
WORTH_A_WORD = 0.05      # a share of the step, or a loss of efficiency
WIDE = 0.10              # half an interval / its centre
TAIL = 3.0               # p99 / p50 of a latency
FEW_LAUNCHES = ("too few launches",)


def scales(curve):
    """The verdict itself: is the efficiency of the largest point 90 % or more?"""
    _, last = largest(curve)
    value = last.number("efficiency") if last else None
    if value is None:
        return []
    pair = last.pair("efficiency_ci95")
    good = value >= GOOD_EFFICIENCY
    shown = pair is not None and (pair[0] >= GOOD_EFFICIENCY if good else pair[1] < GOOD_EFFICIENCY)
    sure, because = certainty_of_curve(curve.root, shown)
    why = ["Speedup ", last.cell("speedup", four_digits), " at ", ranks_of(last), "; efficiency ",
           last.cell("efficiency", percent), *([", 95 % interval ", last.interval("efficiency_ci95", percent)] if pair else []), "."]
    lost = Number(percent(1 - value), last.record.href, last.at("efficiency"))
    if not shown:
        says = ["May scale to " if good else "May not scale to ", ranks_of(last), ": 90 % efficiency is neither shown nor excluded."]
        return [Finding("scales", NOTE, curve.name, says, why, ["more repeats (--repeats 5), longer runs, a quieter machine"], sure, because)]
    if good:
        return [Finding("scales", GOOD, curve.name, ["Scales to ", ranks_of(last), "."], why,
                        ["measure more ranks, or see what scalemark project predicts for them"], sure, because)]
    return [Finding("scales", BAD, curve.name,
                    ["Does not scale well to ", ranks_of(last), ": ", lost, " of the ideal is lost."], why,
                    [] if reasons(curve) else ["a baseline on the same ranks tells communication from computing: scalemark scale"],
                    sure, because)]


def reasons(curve):
    return [finding for rule in WHY for finding in rule(curve)]


def link(curve):
    """Communication that is not hidden takes more than 5 % of the step."""
    _, last = largest(curve)
    share = share_exposed(curve, last) if last else None
    if share is None or share <= WORTH_A_WORD:
        return []
    pair, rate = last.pair("exposed_ci95"), last.pair("ci95")
    shown = pair[0] > 0 if pair else bool(rate) and rate[1] < (last.number("baseline_throughput") or 0)
    sure, because = certainty_of_curve(curve.root, shown)
    config = curve.root.config
    tries = []
    if config("wire_dtype") in ("", "fp32"):
        tries.append("send half the bytes: --wire_dtype bf16")
    if config("overlap") == "none":
        tries.append("hide it behind the backward pass: --overlap backward")
    tries += ["a faster link or transport (configs/sweeps/transport.json); scalemark project --link_gbit says what it would bring",
              "more samples per rank between exchanges: --batch_size, --micro_batch_size"]
    why = ["Exposed communication: ", last.cell("exposed_seconds", milliseconds), " a step",
           *([" (95 % interval ", last.interval("exposed_ci95", milliseconds), ")"] if pair else []), ", ",
           Number(percent(share), last.record.href, last.at("baseline_throughput")), " of it, at ", ranks_of(last), "."]
    return [Finding("link", BAD, curve.name, ["The link: ranks wait for gradients."], why, tries, sure, because)]


def small_batch(curve):
    """Communication lasts longer than the computing that could hide it."""
    _, last = largest(curve)
    run = curve.middle_run(last) if last else None
    if run is None or (share_exposed(curve, last) or 0) <= WORTH_A_WORD:
        return []
    total, step = run.number("communication/total_seconds"), run.number("step_seconds/mean")
    exposed = run.number("communication/exposed_seconds")
    if None in (total, step, exposed) or total <= step - exposed:
        return []
    return [Finding("small_batch", BAD, curve.name, ["Small batch: too little computing between two exchanges to hide them."],
                    ["Communication takes ", run.cell("communication/total_seconds", milliseconds), " of a step of ",
                     run.cell("step_seconds/mean", milliseconds), ", with ", run.cell("batch_size_per_rank", whole),
                     " samples per rank."],
                    ["a larger --batch_size, or accumulate gradients over micro-batches (--micro_batch_size)",
                     "fewer bytes: --wire_dtype bf16"], LIKELY, "from the times of one run")]


def strong_scaling_computes_less(curve):
    """In strong scaling ranks compute less efficiently with a smaller share of the batch."""
    return of_computing(curve, "strong", "small_share", "Small batch per rank: it computes less efficiently than the whole.",
                        ["a larger --global_batch_size", "fewer ranks: the efficiency table shows where it stops to pay"])


def host(curve):
    """In weak scaling ranks slow each other down even without communication: memory, caches, clocks, cores."""
    return of_computing(curve, "weak", "host", "The host: ranks slow each other down even without communication.",
                        ["more cores or memory bandwidth per rank: fewer ranks a node (--ranks_per_node), other --num_intra_threads",
                         "binding and clocks: scalemark preflight, configs/sweeps/binding.json",
                         "scalemark instances measures what independent neighbours cost"])


def of_computing(curve, scaling, rule, says, tries):
    base, last = largest(curve)
    if curve.root.text("scaling") != scaling or last is None:
        return []
    first, without = base.number("throughput"), last.number("baseline_throughput")
    ratio = (last.number("resources") or 0) / (base.number("resources") or 1)
    if not first or not without or ratio <= 1:
        return []
    kept = without / first / ratio
    if kept >= 1 - WORTH_A_WORD:
        return []
    pair = last.pair("efficiency_ci95")
    sure, because = (HINT, "from throughputs without an interval of their ratio")
    if pair and pair[1] < 1:
        sure, because = LIKELY, "the efficiency is shown to be below 100 %; the share of this cause has no interval"
    return [Finding(rule, BAD, curve.name, [says],
                    ["Without communication ", ranks_of(last), " reach ", last.cell("baseline_throughput"), " ",
                     curve.root.text("unit"), ", ", Number(percent(kept), last.record.href, last.at("baseline_throughput")),
                     " of what ", ranks_of(base), " alone would come to."], tries, sure, because)]


def dip(curve):
    """A point lies below the line between its neighbours."""
    dips = [point for point in curve.measured if point.true("trend/dip")]
    return [Finding("dip", BAD, curve.name, ["A dip at ", ranks_of(point), ": worse than both neighbours suggest."],
                    ["Efficiency ", point.cell("efficiency", percent), ", expected ",
                     point.cell("trend/expected_efficiency", percent), "."],
                    ["look at the placement of that point: ranks across sockets or nodes, another algorithm of the allreduce"],
                    *certainty_of_curve(curve.root, point.pair("efficiency_ci95") is not None)) for point in dips]


def better_than_ideal(curve):
    """More than ideal, shown: the base is what was slow."""
    _, last = largest(curve)
    pair = last.pair("efficiency_ci95") if last else None
    if not pair or pair[0] <= 1 + WORTH_A_WORD:
        return []
    return [Finding("better_than_ideal", NOTE, curve.name, ["More than ideal at ", ranks_of(last), ": look at the base."],
                    ["Efficiency ", last.cell("efficiency", percent), ", 95 % interval ",
                     last.interval("efficiency_ci95", percent), "."],
                    ["the smallest point may have been disturbed, or its batch does not fit a cache that smaller shares fit: "
                     "measure again with --repeats 5"], LIKELY, "the interval is above 105 %")]


def noise(curve):
    """An interval is so wide that the point says little."""
    found = []
    for point in curve.measured:
        value, pair = point.number("throughput"), point.pair("ci95")
        if value and pair and (pair[1] - pair[0]) / 2 > WIDE * value:
            found.append(point)
    if not found:
        return []
    widest = max(found, key=lambda p: (p.pair("ci95")[1] - p.pair("ci95")[0]) / p.number("throughput"))
    return [Finding("noise", NOTE, curve.name, ["Noise: repeats differ so much that small differences are not shown."],
                    ["At ", ranks_of(widest), " ", widest.cell("throughput"), " ", curve.root.text("unit"),
                     ", 95 % interval ", widest.interval("ci95"), "."],
                    ["more and longer repeats (--repeats 5, --num_batches), a quiet machine (--wait_for_idle); docs/reducing_variance.md"],
                    SURE, "the interval is wider than 10 % to each side")]


def straggler(runs, about=""):
    """A rank computes 10 % longer than the others (the rule of the record)."""
    together = [run for run in runs if (run.number("world_size") or 0) > 1]
    found = {}
    for run in together:
        for rank in run.views("ranks"):
            if rank.true("straggler"):
                found.setdefault((rank.text("host", 60), rank.number("rank")), []).append((run, rank))
    worst = sorted(found.values(), key=len, reverse=True)[:5]
    return [straggler_finding(of, len(together), about or run_word(of[0][0])) for of in worst]


def straggler_finding(found, runs, about):
    run, rank = found[0]
    own, wait = own_times(run), rank.number("wait_seconds_mean")
    name = ["rank ", rank.cell("rank", whole), " on ", rank.words(rank.text("host", 60), "host")]
    why = []
    if own and wait is not None and rank.number("step_seconds_mean") is not None:
        mine = rank.number("step_seconds_mean") - wait
        why = ["It computes ", Number(milliseconds(mine), run.record.href, rank.at("step_seconds_mean")), " a step, the fastest rank ",
               Number(milliseconds(min(own)), run.record.href, "/ranks"), "; "]
    why.append(f"{'in' if why else 'In'} {len(found)} of {runs} runs with several ranks.")
    sure = (LIKELY, "in several runs") if len(found) > 1 else (HINT, "in one run")
    return Finding("straggler", BAD, about, ["A straggler: ", *name, " holds the others up."], why,
                   ["scalemark preflight on that host; look for foreign load, throttling and its binding",
                    "leave the host out and measure again"], *sure)


def straggler_of_curve(curve):
    """The same among the runs of the largest point."""
    _, last = largest(curve)
    return straggler(curve.runs.get(last.pointer, []), curve.name) if last else []


def phase_share(runs, rule, phase, says, tries):
    found = [run for run in runs if (run.number(f"phases/fractions/{phase}") or 0) > WORTH_A_WORD]
    if not found:
        return []
    worst = max(found, key=lambda run: run.number(f"phases/fractions/{phase}"))
    return [Finding(rule, BAD, run_word(worst), [says],
                    [worst.cell(f"phases/fractions/{phase}", percent), f" of a step; above 5 % in {len(found)} of {len(runs)} runs."],
                    tries, LIKELY, "measured within the step")]


def input_bound(runs):
    """Ranks wait for their batch more than 5 % of a step."""
    return phase_share(runs, "input", "input", "Input: ranks wait for their batches.",
                       ["--input device keeps batches where they are used", "faster copies: binding near the GPU, fewer ranks a node"])


def checkpoints(runs):
    """Checkpoints take more than 5 % of the time."""
    return phase_share(runs, "checkpoint", "checkpoint", "Checkpoints take a noticeable part of the time.",
                       ["a larger --checkpoint_every, faster storage, or --checkpoint_writers node"])


def drift(runs):
    """The throughput changed while a run went on."""
    found = [run for run in runs if run.text("windows/drift/verdict") in ("slower", "faster")]
    return [Finding("drift", BAD, run_word(run), [f"The run became {run.text('windows/drift/verdict')} while it went on."],
                    ["By ", run.cell("windows/drift/change", percent), " from its first to its last third, 95 % interval ",
                     run.interval("windows/drift/ci95", percent), ", p ", run.cell("windows/drift/p", probability), "."],
                    ["clocks and temperatures of its windows; other load; a longer warm-up"], SURE, "p at most 0.01") for run in found[:5]]


def diverged(runs):
    """The loss went up for good."""
    return [Finding("diverged", BAD, run_word(run), ["The loss diverged: this run trains nothing."],
                    ["From ", run.cell("loss/first"), " to ", run.cell("loss/last"), "."],
                    ["a smaller --init_learning_rate or a warm-up; with fp16 look at the loss scale"], SURE,
                    "above 10 times the noise of its best level") for run in runs if run.true("loss/diverged")][:5]


def server(roots):
    """A server holds its latency bound, or does not."""
    findings = []
    for root in roots:
        if root.raw("server/holds") not in (True, False):
            continue
        holds = root.true("server/holds")
        at = root.cell("server/latency_at_quantile_seconds", milliseconds)
        overload = root.text("server/ended_by") == "overload"
        findings.append(Finding(
            "server", GOOD if holds else BAD, run_word(root),
            ["Holds its latency bound at " if holds else "Does not hold its latency bound at ",
             root.cell("server/arrival_rate"), " queries/s."],
            ["The quantile ", root.cell("server/latency_quantile"), " came to ", at, ", the bound is ",
             root.cell("server/latency_bound_seconds", milliseconds), "." + (" The queue grew without end." if overload else "")],
            ["a higher rate; without --arrival_rate the largest is searched for"] if holds else
            ["a lower rate, more ranks, a smaller --batch_size or --max_queue_delay_ms, bf16 or int8"], LIKELY, "one measurement"))
    return findings


def tail(roots):
    """The slowest percent of queries takes three times the median or more."""
    found = [root for root in roots if (root.number("latency_seconds/p50") or 0) > 0 and
             (root.number("latency_seconds/p99") or 0) > TAIL * root.number("latency_seconds/p50")]
    return [Finding("tail", NOTE, run_word(root), ["A long tail: some queries take far longer than most."],
                    ["Median ", root.cell("latency_seconds/p50", milliseconds), ", 99 % within ",
                     root.cell("latency_seconds/p99", milliseconds), "."],
                    ["foreign load, clocks and binding (scalemark preflight); of a server the queue: server.queue_seconds"],
                    HINT, "quantiles of one run") for root in found[:5]]


def neighbours(roots):
    """Jobs side by side lose more than 5 % to each other, or do not."""
    findings = []
    for root in roots:
        points = [point for point in root.views("points") if point.number("efficiency") is not None]
        if not points or (points[-1].number("instances") or 1) <= 1:
            continue
        last = points[-1]
        lost = 1 - last.number("efficiency")
        bad = lost > WORTH_A_WORD
        says = (["Neighbours: ", last.cell("instances", whole), " jobs side by side lose ",
                 Number(percent(lost), last.record.href, last.at("efficiency")), "."] if bad else
                [last.cell("instances", whole), " jobs side by side lose next to nothing to each other."])
        findings.append(Finding("neighbours", BAD if bad else GOOD, f"{root.text('job')} {root.text('model', 60)}", says,
                                ["Efficiency ", last.cell("efficiency", percent), ", together ", last.cell("cumulative/mean"), " ",
                                 root.text("unit"), "."],
                                ["slots that share less: another socket, NUMA node or GPU (--slots)"] if bad else [],
                                LIKELY, "mean over repeats in fresh launches"))
    return findings


def compared(roots):
    """What a comparison found, point by point."""
    findings = []
    for root in roots:
        points = root.views("points")
        for wanted, weight in (("slower", BAD), ("faster", GOOD)):
            of = [point for point in points if point.text("verdict") == wanted]
            if of:
                worst = max(of, key=lambda point: abs(point.number("difference_percent") or 0))
                findings.append(Finding(
                    "compared", weight, f"{worst.text('set', 60)} against {root.text('base', 60)}",
                    [worst.words(worst.text("set", 60), "set"), f" is {wanted} at {len(of)} of {len(points)} points."],
                    ["Most at ", ranks_of(worst), ": ", worst.cell("difference_percent", signed_percent), ", interval ",
                     worst.interval("interval_percent", signed_percent), ", p ", worst.cell("p_adjusted", probability), " (Holm)."], [], SURE,
                    "the exact test shows it at the level of all points together"))
        few = [point for point in points if point.text("verdict") in FEW_LAUNCHES]
        if few:
            findings.append(Finding("compared", NOTE, root.text("base", 60), [f"Too few launches to compare at {len(few)} points."],
                                    ["There are ", few[0].cell("repeats", whole), " repeats, ", few[0].cell("repeats_needed", whole),
                                     " are needed."], ["more repeats: scalemark sweep with \"repeats\": 7"], SURE, "by the exact test"))
    return findings


def gate(roots):
    """The verdict of a gate."""
    words = {"regressed": (BAD, "The gate: the new build is slower."), "pass": (GOOD, "The gate passes: no slowdown of note."),
             "inconclusive": (NOTE, "The gate is inconclusive.")}
    return [Finding("gate", words[root.text("verdict")][0], f"gate: {root.record.stem}", [words[root.text("verdict")][1]],
                    ["Slowdown ", root.cell("slowdown_percent", signed_percent), ", 95 % interval ",
                     root.interval("interval_percent", signed_percent), ", ", root.cell("repeats", whole), " pairs or launches."],
                    ["more pairs (--pairs)"] if root.text("verdict") == "inconclusive" else [], SURE,
                    "the gate's own levels of error hold") for root in roots if root.text("verdict") in words]


def history(roots):
    """A change of level in a row of sets."""
    return [Finding("history", BAD if (change.number("change_percent") or 0) < 0 else NOTE, f"history: {root.record.stem}",
                    ["History: a ", change.text("kind"), " at ", change.words(change.text("at", 60)), "."],
                    [change.cell("change_percent", signed_percent), ", p ", change.cell("p", probability), "."],
                    ["scalemark gate between the two builds: a change of the machine looks the same"], LIKELY,
                    "shown at the level of the history; its cause is not") for root in roots for change in root.views("changes")[:5]]


def projected(roots):
    """How well the model predicted points that it had not seen."""
    findings = []
    for root in roots:
        unseen, inside = root.number("errors/points"), root.number("errors/in_band")
        if not unseen or inside is None:
            continue
        good = inside == unseen
        findings.append(Finding("projected", NOTE if good else BAD, f"projection: {root.text('curve/model', 60) or root.record.stem}",
                                ["The projection held on points that it had not seen." if good else
                                 "The projection missed points that it had not seen: do not lean on it."],
                                ["Mean error ", root.cell("errors/model_percent", lambda x: f"{x:.1f} %"), "; in the band ",
                                 root.cell("errors/in_band", whole), " of ", root.cell("errors/points", whole), "."],
                                [] if good else ["fit more rank counts: scalemark scale --ranks"], LIKELY,
                                "tested on this curve alone"))
    return findings


def preflight(roots):
    """Checks of nodes that failed."""
    findings = []
    for root in roots:
        failed = [check for check in root.views("checks") if check.text("status") == "fail"]
        if failed:
            hosts = sorted({check.text("host", 60) for check in failed} - {""})
            findings.append(Finding("preflight", BAD, "preflight", [f"Preflight failed: {len(failed)} check{'s' if len(failed) > 1 else ''}"
                                                                    + (f" on {', '.join(hosts[:6])}." if hosts else ".")],
                                    [failed[0].words(failed[0].text("message", 200), "message"), "."],
                                    ["mend or leave out these nodes before measuring on them"], SURE, "measured against its rules"))
    return findings


def study(roots):
    """Whether a published effect shows here."""
    findings = []
    for root in roots:
        judged = [figure for figure in root.views("figures") if figure.text("verdict")]
        if not judged:
            continue
        other = [figure for figure in judged if figure.text("verdict") != "shown"]
        bad = any(figure.text("verdict") == "opposite" for figure in other)
        says = [f"The published effect shows: {root.text('title')}." if not other else
                f"Not every published effect shows: {root.text('title')}."]
        why = [f"{len(judged) - len(other)} of {len(judged)} figures are as expected, whole interval included"]
        for figure in other[:3]:
            why += ["; ", figure.words(figure.text("name")), f": {figure.text('verdict')}"]
        findings.append(Finding("study", GOOD if not other else BAD if bad else NOTE, f"study: {root.text('study', 60)}", says,
                                [*why, "."], ["more repeats, a quieter machine, the full profile"] if other else [],
                                SURE if not other else HINT, f"{EVIDENCE.get(root.text('evidence'), 'evidence')}, at this size"))
    return findings


WHY = (link, small_batch, strong_scaling_computes_less, host, straggler_of_curve)
OF_A_CURVE = (scales, *WHY, dip, better_than_ideal, noise)
OF_RUNS = (input_bound, checkpoints, drift, diverged)
OF_OTHERS = (("comparison", compared), ("verdict", gate), ("history", history), ("preflight", preflight), ("instances", neighbours),
             ("inference", server), ("inference", tail), ("projection", projected))
MOST_CURVES = 40


def verdict(collection):
    """All findings: of studies, of each curve its verdict and its reasons together, then runs, then the rest."""
    findings = study(collection.of("study"))
    findings += [finding for curve in collection.curves[:MOST_CURVES] for rule in OF_A_CURVE for finding in rule(curve)]
    runs = [run for run in collection.runs if run.text("status") == "ok"]
    findings += straggler(collection.lone_runs + collection.of("inference"))
    findings += [finding for rule in OF_RUNS for finding in rule(runs)]
    return findings + [finding for kind, rule in OF_OTHERS for finding in rule(collection.of(kind))]
