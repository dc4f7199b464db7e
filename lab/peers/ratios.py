"""Ratios of a row: paired by round, with an interval of their median, and what that says of a goal.

The goal of a speed holds where the median of the ratios is at least the goal and the interval lies above 1; that of peak
memory where the interval lies at or below 1. What a busy machine or fewer than 6 rounds measured shows nothing.
"""

import math
import statistics

SPEED, MEMORY = "speed", "peak memory"
HOLDS, FALLS_SHORT, NOT_SHOWN = "holds", "falls short", "not shown"
LEAST_ROUNDS = 6  # fewer give no interval


def median_interval(values):
    """(low, high, coverage) of the median by order statistics: x(k), x(n+1-k) cover it with 1 - 2 P(B(n,1/2) < k).

    The largest k that covers at least 95 %; None for fewer than 6 values, which cannot.
    """
    ordered, n = sorted(values), len(values)
    best = None
    for k in range(1, n // 2 + 1):
        coverage = 1 - 2 * sum(math.comb(n, j) for j in range(k)) / 2**n
        if coverage >= 0.95:
            best = (ordered[k - 1], ordered[n - k], coverage)
    return best


def paired_ratio(subject, peer, rounds):
    """Of rounds {name: number}."""
    ratios = [numbers[subject] / numbers[peer] for numbers in rounds]
    interval = median_interval(ratios)
    return {"subject": subject, "peer": peer, "median": statistics.median(ratios),
            "interval": list(interval[:2]) if interval else None, "coverage": interval[2] if interval else None}


def fastest(names, speeds):
    """The one with the highest median over the rounds."""
    return max(names, key=lambda name: statistics.median(one[name] for one in speeds))


def half_width_percent(ratio):
    low, high = ratio["interval"]
    return 100 * (high - low) / 2 / ratio["median"]


def speed_verdict(ratio, goal, quiet):
    """(verdict, reason of one that is not shown)"""
    if quiet is None:
        return NOT_SHOWN, "nobody looked whether the machine was quiet"
    if not quiet:
        return NOT_SHOWN, "the machine was busy"
    if ratio["interval"] is None:
        return NOT_SHOWN, f"fewer than {LEAST_ROUNDS} rounds"
    if ratio["median"] < goal:
        return FALLS_SHORT, None
    return (HOLDS, None) if ratio["interval"][0] > 1 else (NOT_SHOWN, "the interval reaches down to 1")


def memory_verdict(ratio):
    if ratio["interval"] is None:
        return NOT_SHOWN, f"fewer than {LEAST_ROUNDS} rounds"
    if ratio["median"] > 1:
        return FALLS_SHORT, None
    return (HOLDS, None) if ratio["interval"][1] <= 1 else (NOT_SHOWN, "the interval reaches above 1")


def ratios_of(comparison, speeds, memory, quiet):
    """Of speed and, where it has a goal, of peak memory. Peers that are in no round are left out."""
    peers = [name for name in comparison.peers if name in speeds[0]]
    peer = fastest(peers, speeds)
    entries = []
    for quantity, rounds, goal in ((SPEED, speeds, comparison.goal), (MEMORY, memory, 1.0)):
        if quantity == MEMORY and comparison.goal is None:
            continue
        ratio = paired_ratio(comparison.subject, peer, rounds)
        verdict, reason = None, None
        if goal is not None:
            verdict, reason = speed_verdict(ratio, goal, quiet) if quantity == SPEED else memory_verdict(ratio)
        entries.append({**ratio, "quantity": quantity, "fastest_of": peers, "goal": goal, "verdict": verdict,
                        "reason": reason})
    return entries


def widest_percent(ratios):
    """The largest half-width of the speeds that have a goal; None without such, or without their intervals."""
    wanted = [ratio for ratio in ratios if ratio["quantity"] == SPEED and ratio["goal"] is not None]
    if not wanted or any(ratio["interval"] is None for ratio in wanted):
        return None
    return max(map(half_width_percent, wanted))


def why_stop(ratios, count, settings):
    """Why these rounds are enough, else None. settings: rounds (None: as many as it takes), half_width, max_rounds."""
    if settings.rounds is not None:
        return "rounds" if count >= settings.rounds else None
    if count < LEAST_ROUNDS:
        return None
    if not any(ratio["goal"] for ratio in ratios):
        return "no_goal"
    if widest_percent(ratios) <= settings.half_width:
        return "half_width"
    return "max_rounds" if count >= settings.max_rounds else None
