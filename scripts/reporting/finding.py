"""What a rule says: plain words with the numbers they rest on."""
import dataclasses

SURE, LIKELY, HINT = "sure", "likely", "a hint"
GOOD, NOTE, BAD = "good", "note", "bad"


@dataclasses.dataclass
class Finding:
    """`says` and `why` are lists of text and Number; `sure` is followed by what that rests on."""
    rule: str
    weight: str
    about: str
    says: list
    why: list
    try_next: list
    sure: str
    because: str


def certainty_of_curve(root, shown):
    """`shown`: whether an interval excludes the other answer."""
    if not shown:
        return HINT, "no interval excludes the opposite"
    if root.text("repeat_unit") == "launch":
        return SURE, "the interval over fresh launches excludes the opposite"
    return LIKELY, "the interval excludes the opposite, but over repeats of one launch: other launches may differ"
