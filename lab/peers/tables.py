"""The tables of lab/speed, as text or Markdown: speeds with peak memory and shares of the machine's rate of matrix products,
then ratios with their goals."""

import statistics

STOPPED = {"rounds": "as asked for", "half_width": "narrow enough", "max_rounds": "the most", "no_goal": "no goal"}
MACHINE = {True: "quiet", False: "busy", None: "not looked at"}


def table(heads, lines, markdown):
    cells = [heads, *lines]
    if markdown:
        return "\n".join("| " + " | ".join(line) + " |" for line in [heads, ["---"] * len(heads), *lines])
    widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells)


def subject_text(result, subject):
    peak = statistics.median(one[subject] for one in result["peak_rss_bytes"])
    share = result["gemm_peak"] and f", {100 * result['gemm_peak']['shares'][subject]:.0f} %"
    return f"{result['median'][subject]:.2f} ({peak / 2**30:.2f} GiB{share or ''})"


def speeds(results, markdown):
    """One table of rows with the same unit and subjects."""
    subjects = list(results[0]["median"])
    share = ", share of the GEMM peak" if any(result["gemm_peak"] for result in results) else ""
    heads = [f"{results[0]['unit']}, median (peak memory{share})", *subjects, "rounds", "machine"]
    lines = [[result["row"], *(subject_text(result, subject) for subject in subjects),
              f"{len(result['rounds'])} ({STOPPED[result['stopped']['reason']]})", MACHINE[result["machine"]["quiet"]]]
             for result in results]
    return table(heads, lines, markdown)


def ratio_text(ratio):
    if ratio["interval"] is None:
        return f"{ratio['median']:.3f} (no interval below 6 rounds)"
    low, high = ratio["interval"]
    return f"{ratio['median']:.3f} [{low:.3f}, {high:.3f}]"


def goal_texts(ratio):
    """Goal and verdict."""
    if ratio["goal"] is None:
        return ["-", "-"]
    bound = "at least" if ratio["quantity"] == "speed" else "at most"
    reason = f": {ratio['reason']}" if ratio["reason"] else ""
    return [f"{bound} {ratio['goal']:.2f}", ratio["verdict"] + reason]


def ratio_line(row, ratio):
    of = f" (fastest of {len(ratio['fastest_of'])})" if len(ratio["fastest_of"]) > 1 else ""
    return [row, ratio["quantity"], f"{ratio['subject']} / {ratio['peer']}{of}", ratio_text(ratio), *goal_texts(ratio)]


def missing_lines(entry):
    """Of a row that was not measured: what its goals would have been."""
    return [[entry["row"], "speed", f"{goal['subject']} / {' or '.join(goal['peers'])}", "-", f"at least {goal['goal']:.2f}",
             "not shown: " + entry["status"]] for goal in entry["goals"]]


def ratios(results, missing, markdown):
    lines = [ratio_line(result["row"], ratio) for result in results for ratio in result["ratios"]]
    lines += [line for entry in missing for line in missing_lines(entry)]
    return table(["row", "ratio of", "subject / peer", "median", "goal", "verdict"], lines, markdown)


def one_line(reason):
    text = " ".join(reason.split())
    return text if len(text) <= 300 else "... " + text[-300:]


def notes(results, missing):
    for entry in missing:
        yield f"{entry['row']} {entry['status']}: {one_line(entry['reason'])}"
    for result in results:
        for subject, reason in result["left_out"].items():
            yield f"{result['row']} without {subject}: {one_line(reason)}"
        if result["machine"]["quiet"] is False:
            yield f"{result['row']} on a busy machine: {result['machine']['worst']}"
    if any(ratio["interval"] for result in results for ratio in result["ratios"]):
        yield ("[ ]: order-statistic interval of the median of paired ratios, coverage at least 95 % (nominal where its "
               "width chose the number of rounds)")


def tables(results, missing, markdown):
    groups = {}
    for result in results:
        groups.setdefault((result["unit"], *result["median"]), []).append(result)
    return "\n\n".join([*(speeds(group, markdown) for group in groups.values()), ratios(results, missing, markdown),
                        *notes(results, missing)])
