"""Figures of a study in words: what is published, what was measured, and three words on both: the direction, the size, and
whether it transfers."""
from reporting.record import NOT_THERE, Number, four_digits, percent, signed_percent

DIRECTIONS = {"shown": "as published", "opposite": "opposite", "not shown": "not shown"}
COMPATIBLE = "compatible"
TRANSFERS = {"effect": "the effect itself", "stand_in": "a stand-in, which says nothing of the size of the real effect",
             "arithmetic": "arithmetic, which needs no measurement"}


def form_of(unit):
    return {"percent": signed_percent, "same": signed_percent, "share": percent}.get(unit, four_digits)


def published_words(figure):
    unit, form = figure.text("unit"), form_of(figure.text("unit"))
    value, low, high = (figure.number(f"published/{key}") for key in ("value", "low", "high"))
    if value is not None:
        words = form(value)
    elif low is not None and high is not None:
        words = f"{form(low)} to {form(high)}"
    elif low is not None or high is not None:
        words = f"over {form(low)}" if low is not None else f"up to {form(high)}"
    else:
        return "no difference" if unit == "same" else figure.text("published/text", 80) or NOT_THERE
    return ("about " if figure.true("published/about") else "") + words


def published_range(figure):
    """(low, high) of what is published, or None; one of them is None where it is open."""
    value, low, high = (figure.number(f"published/{key}") for key in ("value", "low", "high"))
    if figure.text("unit") == "same":
        value = 0
    if value is not None:
        return value, value
    return None if low is None and high is None else (low, high)


def measured_cell(figure):
    value = figure.raw("measured/value")
    if isinstance(value, (bool, str)):
        return figure.words(str(value).lower() if isinstance(value, bool) else value, "measured/value")
    if figure.number("measured/value") is None:
        return Number(NOT_THERE, figure.record.href, figure.at("measured"), figure.text("reason"))
    return figure.cell("measured/value", form_of(figure.text("unit")))


def unit_words(figure):
    return {"same": "", "percent": "", "share": "", "verdict": "", "ratio": "x"}.get(figure.text("unit"), figure.text("unit", 30))


def difference(figure):
    unit = " %" if figure.text("difference/unit") == "percent" else " points"
    return figure.cell("difference/amount", lambda value: f"{value:+.1f}{unit}")


def direction(figure):
    """"" where nothing is expected, or nothing was measured."""
    return DIRECTIONS.get(figure.text("verdict"), "")


def slack(figure):
    """Part of a published number that is no difference: numbers are rounded, and those that are published as about more so."""
    return 0.05 if figure.true("published/about") else 0.01


def size(figure):
    """"larger" or "smaller" than published, or "compatible" where the interval reaches it; "" where there is no number of either."""
    value, published = figure.number("measured/value"), published_range(figure)
    if value is None or published is None:
        return ""
    if figure.text("unit") == "same" and direction(figure) == DIRECTIONS["shown"]:
        return COMPATIBLE  # within the margin of what counts as no difference
    least, most = figure.pair("measured/ci95") or (value, value)
    low, high = published
    if high is not None and least > high + slack(figure) * abs(high):
        return "larger"
    if low is not None and most < low - slack(figure) * abs(low):
        return "smaller"
    return COMPATIBLE


def transfers(root):
    words = TRANSFERS.get(root.text("evidence"), "unknown")
    return f"{words}, at the size of a laptop" if root.text("evidence") == "effect" and root.text("profile") == "laptop" else words
