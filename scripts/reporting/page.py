"""The page: one HTML file without scripts that loads nothing."""
import os
import re
import tempfile

import jinja2
import markupsafe

from reporting.record import Number

TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")


def parts(value):
    """A cell or a sentence as a list of text and Number."""
    return value if isinstance(value, list) else [value]


def is_sentence(value):
    """Among numbers, a cell that may be broken."""
    return sum(len(part if isinstance(part, str) else part.text) for part in parts(value)) > 32


def flags(text):
    """Names of flags are not broken at their dashes."""
    return markupsafe.Markup("").join(
        markupsafe.Markup('<span class="flag">{}</span>').format(word) if word.startswith("--") else markupsafe.escape(word)
        for word in re.split(r"(--[a-z_]+)", text))


def environment():
    made = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined,
                              trim_blocks=True, lstrip_blocks=True)
    made.filters["parts"] = parts
    made.filters["flags"] = flags
    made.tests["sentence"] = is_sentence
    made.tests["linked"] = lambda value: isinstance(value, Number) and bool(value.href)
    return made


def render(**content):
    with open(os.path.join(TEMPLATES, "report.css"), encoding="utf-8") as file:
        style = markupsafe.Markup(file.read())
    # A drawing was parsed as XML and written again (figures.inline): text within it is escaped.
    drawing = markupsafe.Markup
    return environment().get_template("report.html").render(style=style, drawing=drawing, **content)


def write_whole(path, text):
    """All of it or nothing: a reader never sees half a page."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".report-", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
