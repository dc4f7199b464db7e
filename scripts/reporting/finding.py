"""What a rule says of records: plain words with the numbers they rest on. The rules are the program's (src/analysis/diagnosis);
here its findings become sentences whose numbers are links."""
import dataclasses

from reporting.record import Number, clean, finite

GOOD, NOTE, BAD = "good", "note", "bad"
SURE = {"sure": "sure", "likely": "likely", "hint": "a hint"}
HINT = SURE["hint"]
LONGEST = 2000


@dataclasses.dataclass
class Finding:
    """`says` and `why` are lists of text and Number; `sure` is followed by what that rests on. `label`: of the rule, for the
    table of curves; empty where that does not name it."""
    rule: str
    weight: str
    about: str
    says: list
    why: list
    try_next: list
    sure: str
    because: str
    label: str = ""


def sentence(text, numbers, hrefs):
    """`text` in parts: a Number for each of `numbers`, whose record has a file here. A number that is not where it says is text."""
    text = clean(text, LONGEST)
    parts, end = [], 0
    for number in sorted(numbers, key=lambda number: finite(number.get("begin")) or 0):
        begin, words = number.get("begin"), clean(number.get("text", ""), LONGEST)
        href = hrefs.get(number.get("record")) if isinstance(number.get("record"), str) else None
        if href is None or not words or not isinstance(begin, int) or begin < end or text[begin:begin + len(words)] != words:
            continue
        parts += [text[end:begin], Number(words, href, clean(number.get("pointer", "")))]
        end = begin + len(words)
    return [part for part in [*parts, text[end:]] if part != ""]


def finding_of(made, about, hrefs, label):
    """A Finding of the program's JSON; None of what is none."""
    texts = [made.get(key) for key in ("rule", "what", "why", "because")]
    if not all(isinstance(text, str) for text in texts) or made.get("tone") not in (GOOD, NOTE, BAD) or made.get("sure") not in SURE:
        return None
    rule, what, why, because = texts
    numbers = [number for number in made.get("numbers") or [] if isinstance(number, dict)] if isinstance(made.get("numbers"), list) else []

    def parts(text, name):
        return sentence(text, [number for number in numbers if number.get("sentence") == name], hrefs)

    tries = made.get("try") if isinstance(made.get("try"), list) else []
    return Finding(clean(rule, 40), made["tone"], about, parts(what, "what"), parts(why, "why"),
                   [clean(text) for text in tries if isinstance(text, str)], SURE[made["sure"]], clean(because), label)
