"""Figures of a study in words: what is published, and what was measured."""
from reporting.record import NOT_THERE, Number, clean, four_digits, percent, signed_percent

NOT_OF_THIS_PROFILE = "not of this profile"
EVIDENCE = {"effect": "the effect itself", "stand_in": "a stand-in", "arithmetic": "arithmetic"}


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
