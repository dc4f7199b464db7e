"""What a study found, in three words: whether the direction is the published one, whether the size is, and whether that transfers.
The judgement of each figure is the record's; here they are counted."""
from reporting.finding import BAD, GOOD, HINT, NOTE, Finding
from reporting.machines import placed
from reporting.study_words import COMPATIBLE, difference, direction, measured_cell, published_words, size, transfers

MOST_NAMED = 3


def named(figures, words):
    """"; NAME: words" of the first few."""
    parts = []
    for figure in figures[:MOST_NAMED]:
        parts += ["; ", figure.words(figure.text("name"), "name"), ": ", *words(figure)]
    return parts + ([f"; and {len(figures) - MOST_NAMED} more"] if len(figures) > MOST_NAMED else [])


def off(figure):
    """Where the size is another one: both numbers, and how far apart they are."""
    parts = [measured_cell(figure), f" against {published_words(figure)}"]
    return parts + ([" (", difference(figure), ")"] if figure.number("difference/amount") is not None else [])


def counted(judged, good, what, words):
    """"Direction: 1 of 2 figures as published; NAME: not shown."."""
    if not judged:
        return [f"{what}: nothing to judge it by. "]
    kept = sum(good(figure) for figure in judged)
    others = [figure for figure in judged if not good(figure)]
    return [f"{what}: {kept} of {len(judged)} figure{'s' if len(judged) > 1 else ''} {words[0]}", *named(others, words[1]), ". "]


def finding(root):
    """None of a study of which nothing was measured."""
    figures = [figure for figure in root.views("figures") if figure.raw("measured") is not None]
    judged, sized = [f for f in figures if direction(f)], [f for f in figures if size(f)]
    if not judged and not sized:
        return None
    opposite = [figure for figure in judged if direction(figure) == "opposite"]
    shown = judged and all(direction(figure) == "as published" for figure in judged)
    compatible = {size(figure) for figure in sized} <= {COMPATIBLE}
    stand_in = root.text("evidence") == "stand_in"
    ways = ("The opposite of what is published" if opposite else "The direction is the published one" if shown else
            "The published direction is not shown" if judged else "No direction is judged")
    words = list(dict.fromkeys(map(size, sized)))
    others = [word for word in words if word != COMPATIBLE]
    sizes = f", the size is {others[0] if len(others) == 1 else 'another one' if others else COMPATIBLE}" if words and (shown or not judged) else ""
    why = counted(judged, lambda f: direction(f) == "as published", "Direction", ("as published", lambda f: [direction(f)]))
    why += counted(sized, lambda f: size(f) == COMPATIBLE, "Size", ("compatible", off))
    why.append(f"Transfers: {transfers(root)}.")
    good, warned = shown and compatible and not stand_in, bool(root.texts("warnings"))
    sure = HINT if stand_in or not (shown or opposite) else "sure" if good and not warned else "likely"
    because = ("a stand-in for the published setting" if stand_in else "a whole interval is on the other side" if opposite else
               "not every whole interval is as published" if not shown else
               "the whole intervals are as published" + ("" if compatible else ", sizes are not") +
               ("; but the record warns" if warned else ""))
    weight = BAD if opposite else GOOD if good else NOTE
    tries = [] if good else ["the full profile, where the published setting is at hand"] if shown else [
        "more repeats, a quieter machine, the full profile"]
    return Finding("study", weight, placed(f"study: {root.text('study', 60)}", root), [f"{ways}{sizes}: {root.text('title', 200)}."], why,
                   tries, sure, because)


def findings(collection):
    return [made for made in map(finding, collection.of("study")) if made]
