"""A record as the rest of the package sees it: typed access by JSON pointer, so that a value of another type than the
schema's is no value, and every number knows the file and the place it comes from.
"""
import array
import dataclasses
import math
import os
import re
import urllib.parse

# Control characters, and halves of surrogate pairs, which no UTF-8 file can hold. The marks that turn text around
# (bidirectional overrides) could make a name read as another one.
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
NOT_THERE = "\u2013"  # an en dash in place of a number


def clean(text, longest=300):
    """Text from a record or a file name as it may be shown."""
    text = UNPRINTABLE.sub("\ufffd", str(text))
    return text if len(text) <= longest else text[:longest - 1] + "\u2026"


# No measurement comes near; products and powers of what is below stay finite.
LARGEST = 1e60


def finite(value):
    """A number as a measurement may be, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if abs(value) < LARGEST else None  # NaN is not


def numbers_in(value):
    """Of a list each finite number, and None in place of what is none."""
    return [finite(item) for item in value] if isinstance(value, (list, array.array)) else []


@dataclasses.dataclass(frozen=True)
class Number:
    """A number as text, with the record it stands in. `hint` says why there is none."""
    text: str
    href: str = ""
    pointer: str = ""
    hint: str = ""


@dataclasses.dataclass
class Record:
    """One file that was read. `shown`: its path as people read it; `href`: relative to the page. `settings` and `repeat`: of a
    launch of a sweep, what makes its point differ from the others, and which launch of the point it is."""
    path: str
    shown: str
    href: str
    data: dict
    settings: dict = dataclasses.field(default_factory=dict)
    repeat: int = 0
    machine: object = None  # reporting.machines tells; None where the record does not
    what: str = ""  # of a comparison that the page made itself: what its sets measure

    @property
    def kind(self):
        return self.root.text("kind")

    @property
    def root(self):
        return View(self, "", self.data)

    @property
    def stem(self):
        return clean(os.path.splitext(os.path.basename(self.path))[0], 60)


class View:
    """A place in a record. Keys are paths below it, such as "communication/exposed_seconds"."""

    def __init__(self, record, pointer, data):
        self.record, self.pointer, self.data = record, pointer, data

    def raw(self, key):
        value = self.data
        for part in key.split("/") if key else ():
            if not isinstance(value, dict):
                return None
            value = value.get(part)
        return value

    def at(self, key):
        return f"{self.pointer}/{key}" if key else self.pointer

    def number(self, key):
        """A finite number, or None."""
        return finite(self.raw(key))

    def text(self, key, longest=300):
        value = self.raw(key)
        return clean(value, longest) if isinstance(value, str) else ""

    def true(self, key):
        return self.raw(key) is True

    def pair(self, key):
        """The two ends of an interval, or None."""
        value = self.numbers(key)
        return (value[0], value[1]) if len(value) == 2 and None not in value else None

    def numbers(self, key):
        return numbers_in(self.raw(key))

    def texts(self, key):
        value = self.raw(key)
        return [clean(item) for item in value if isinstance(item, str)] if isinstance(value, list) else []

    def view(self, key):
        value = self.raw(key)
        return View(self.record, self.at(key), value if isinstance(value, dict) else {})

    def views(self, key):
        """Of each object in a list."""
        value = self.raw(key)
        items = enumerate(value) if isinstance(value, list) else ()
        return [View(self.record, f"{self.at(key)}/{i}", item) for i, item in items if isinstance(item, dict)]

    def config(self, key):
        """The value of a configuration key, as text."""
        value = self.raw(f"config/{key}/value")
        return "" if value is None or isinstance(value, (dict, list)) else clean(value)

    def why_not(self, key):
        """The reason that the record gives for a missing value."""
        path = re.sub(r"(^|\.)\d+(?=\.|$)", "", self.at(key).strip("/").replace("/", ".")).strip(".")
        reasons = self.record.data.get("unavailable")
        reason = reasons.get(path) if isinstance(reasons, dict) else None
        return clean(reason) if isinstance(reason, str) else "not in the record"

    def cell(self, key, form=None):
        """The number as text with its place; without one a dash and the reason."""
        value = self.number(key)
        if value is None:
            return Number(NOT_THERE, self.record.href, self.at(key), self.why_not(key))
        return Number((form or four_digits)(value), self.record.href, self.at(key))

    def interval(self, key, form=None):
        pair = self.pair(key)
        if pair is None:
            return Number(NOT_THERE, self.record.href, self.at(key), self.why_not(key))
        form = form or four_digits
        return Number(f"{form(pair[0])} to {form(pair[1])}", self.record.href, self.at(key))

    def words(self, text, key=""):
        """Any text as a link to this place."""
        return Number(clean(text), self.record.href, self.at(key))


def link_from(folder, path):
    """The relative link from a page in `folder` to a file, percent-encoded."""
    place = os.path.join(os.path.realpath(os.path.dirname(path) or "."), os.path.basename(path))
    relative = os.path.relpath(place, os.path.realpath(folder))
    return urllib.parse.quote(os.fsencode(relative), safe="/")


def four_digits(value):
    """Four significant digits without an exponent: 139.6, 7.520, 12345."""
    if value == 0:
        return "0"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:.{min(digits, 12)}f}"
    return text if abs(value) < 1e15 else f"{value:.3e}"


def probability(value):
    return f"{value:.2g}"


def percent(value):
    """Of a fraction."""
    return f"{100 * value:.1f} %"


def signed_percent(value):
    """Of a number that is in percent already."""
    return f"{value:+.1f} %"


def milliseconds(value):
    return f"{four_digits(1e3 * value)} ms"


def exposed(value):
    """Seconds that communication adds to a step, which are never below 0."""
    return milliseconds(value) + (", noise" if value < 0 else "")


def whole(value):
    return f"{value:.0f}"


def scaled_bytes(value):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return ""
