"""Command line of scripts/report: folders in, the path of the page on stdout."""
import argparse
import collections
import datetime
import os
import shlex
import sys
import urllib.parse

OK, USAGE, FAILED, RESULT, ENVIRONMENT = 0, 2, 4, 6, 7


# One of a kind, several of it.
NAMES = {"study": ("study", "studies"), "run": ("run", "runs"), "scaling": ("curve", "curves"), "inference": ("inference", "inferences"),
         "instances": ("set of jobs side by side", "sets of jobs side by side"), "comparison": ("comparison", "comparisons"),
         "verdict": ("gate", "gates"), "history": ("history", "histories"), "projection": ("projection", "projections"),
         "preflight": ("preflight", "preflights"), "baseline": ("baseline", "baselines")}


def tell(text):
    print(f"scalemark report: {text}", file=sys.stderr)


def parse(words):
    parser = argparse.ArgumentParser(prog="scalemark report", description="One HTML page with plots and a verdict in words, from "
                                     "records and folders of records. Exit codes: 0 ok, 2 usage or no such path, 6 nothing "
                                     "readable or not writable, 7 matplotlib, Jinja2 or the program is missing.")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a record, or a folder with records")
    parser.add_argument("--program", metavar="PATH", help="scalemark, which judges the records; default: that of this tree, or of PATH")
    parser.add_argument("--output", metavar="FILE.html", help="default: report.html in the first folder; plots go to FILE_plots/")
    return parser.parse_args(words)


def output_of(asked):
    """The page's path: beside the records unless asked otherwise."""
    if asked.output:
        return asked.output
    first = asked.paths[0]
    return os.path.join(first if os.path.isdir(first) else os.path.dirname(first) or ".", "report.html")


def missing_packages():
    """Of those that draw and write: words for pip."""
    missing = []
    try:
        import matplotlib
        if getattr(matplotlib, "__version_info__", (0,))[:2] < (3, 7):
            missing.append("matplotlib>=3.7")
    except ImportError:
        missing.append("matplotlib")
    try:
        import jinja2  # noqa: F401
    except ImportError:
        missing.append("Jinja2")
    return missing


def summary(kept, files):
    """"12 run, 3 scaling; 1 damaged"."""
    kinds = collections.Counter(record.kind for record in kept)
    others = collections.Counter(file.status for file in files if file.status != "read")
    return ", ".join(f"{count} {NAMES[kind][count > 1]}" for kind, count in sorted(kinds.items(), key=lambda item: list(NAMES).index(item[0]))), ", ".join(f"{n} {status}" for status, n in others.items())


def write(paths, output, program):
    """Reads, lets the program judge, draws and writes; the exit code."""
    from reporting.collection import collect  # matplotlib is imported late: its absence has its own exit code
    from reporting.figures import Album
    from reporting.files import read_paths
    from reporting.glance import glance, grouped
    from reporting.notices import notices
    from reporting.page import render, write_whole
    from reporting.record import clean
    from reporting.sections import sections
    from reporting.verdict import NoProgram, find_program, verdict

    folder = os.path.dirname(os.path.abspath(output))
    records, files, launches = read_paths(paths, folder)
    kinds, others = summary(records, files)
    if not records:
        tell(f"no record of scalemark can be read in {', '.join(map(clean, paths))}" + (f": {others}" if others else ": no *.json file"))
        for file in files[:10]:
            tell(f"  {file.shown}: {file.what}")
        return RESULT
    stem = os.path.splitext(os.path.basename(output))[0]
    album = Album(os.path.join(folder, stem + "_plots"), urllib.parse.quote(os.fsencode(stem + "_plots")))
    collected = collect(records)
    try:
        findings, unread = verdict(program or find_program(), collected, records)
    except NoProgram as error:
        tell(clean(error))
        return ENVIRONMENT
    for path, why in unread:
        tell(f"not judged: {path}: {why}")
    try:
        os.makedirs(folder, exist_ok=True)
        text = render(title=", ".join(clean(path, 80) for path in paths[:4]), glance=glance(collected, findings),
                      groups=grouped(findings), notices=notices(collected, files, launches), sections=sections(album, collected), files=files, kinds=kinds, others=others,
                      made_at=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"))
        write_whole(output, text)
    except OSError as error:
        tell(f"{clean(error.filename or output)} cannot be written: {error.strerror}")
        return RESULT
    tell(f"{kinds}" + (f"; not shown: {others}" if others else "") + f"; {album.count} plots in {clean(album.folder)}")
    print(output)
    return OK


def main(words):
    asked = parse(words)
    for path in asked.paths:
        if not os.path.exists(path):
            tell(f"{path!r} does not exist; give a record or a folder with records")
            return USAGE
    output = output_of(asked)
    if not output.endswith((".html", ".htm")):
        tell(f"--output {output!r}: the name must end in .html")
        return USAGE
    if sys.version_info < (3, 9):
        tell(f"{sys.executable} is Python {sys.version.split()[0]}, and 3.9 is needed: name another one, SCALEMARK_PYTHON=/path/to/python")
        return ENVIRONMENT
    if missing := missing_packages():
        tell(f"{' and '.join(missing)} missing in {sys.executable}: run scripts/setup, or\n  {sys.executable} -m pip install "
             f"{shlex.join(missing)}\nor name a Python that has them: SCALEMARK_PYTHON=/path/to/python")
        return ENVIRONMENT
    return write(asked.paths, output, asked.program)
