"""Command line of scripts/report: folders in, the path of the page on stdout."""
import argparse
import collections
import datetime
import os
import shlex
import sys
import tempfile
import urllib.parse

OK, USAGE, FAILED, RESULT, ENVIRONMENT = 0, 2, 4, 6, 7



def tell(text):
    print(f"scalemark report: {text}", file=sys.stderr)


def parse(words):
    parser = argparse.ArgumentParser(prog="scalemark report", description="One HTML page with plots and a verdict in words, from "
                                     "records and folders of records. Exit codes: 0 ok, 2 usage or no such path, 6 nothing "
                                     "readable or not writable, 7 matplotlib, Jinja2 or the program is missing.")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a record, or a folder with records")
    parser.add_argument("--program", metavar="PATH", help="scalemark, which judges the records; default: that of this tree, or of PATH")
    parser.add_argument("--output", metavar="FILE.html", help="default: report.html in the first folder; plots go to FILE_plots/")
    parser.add_argument("--standalone", action="store_true", help="one file alone, to be mailed: key facts of the records in the page, "
                        "no link to a file, no FILE_plots/")
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
    from reporting.collection import counted
    others = collections.Counter(file.status for file in files if file.status != "read")
    return counted(collections.Counter(record.kind for record in kept)), ", ".join(f"{n} {status}" for status, n in others.items())


def of_interest(files):
    """Those that were not read first; of those that were, no more than a table holds."""
    from reporting.figures import MOST_ROWS
    others = sorted((file for file in files if file.status != "read"), key=lambda file: file.status)
    read = [file for file in files if file.status == "read"]
    return others + read[:max(0, MOST_ROWS - len(others))]


def compared(program, folder, page_folder, read):
    """The collection, to which the program adds comparisons of sets of one plan, with records in `folder`; and why it did not, as
    [(what, why)]."""
    from reporting import sets
    from reporting.collection import collect
    records, files, launches = read
    collection = collect(records)
    found = sets.plans(launches, records, collection)
    if not found:
        return collection, []
    made, more, failed = sets.comparisons(program, found, folder, page_folder)
    records += made
    files += more
    return collect(records), failed


def content(asked, program, album, folder, read):
    """What render() takes. `folder`: for records that the page makes itself."""
    from reporting.facts import facts_of, stand_alone
    from reporting.glance import glance, grouped
    from reporting.machines import assign
    from reporting.measured import cards
    from reporting.notices import notices
    from reporting.record import clean
    from reporting.sections import sections
    from reporting.verdict import verdict

    records, files, launches = read
    kinds, others = summary(records, files)
    machines = assign(records)
    collection, failed = compared(program, folder, os.path.dirname(os.path.abspath(asked.output)), read)
    if asked.standalone:
        stand_alone(records, files, launches)
    findings, unread = verdict(program, collection, records)
    for path, why in unread:
        tell(f"not judged: {path}: {why}")
    measured, further = cards(collection)
    return {"title": ", ".join(clean(path, 80) for path in asked.paths[:4]), "kinds": kinds, "others": others, "measured": measured,
            "further": further, "machines": machines if len(machines) > 1 else [], "glance": glance(collection, findings),
            "groups": grouped(findings), "notices": notices(collection, files, launches, failed), "sections": sections(album, collection),
            "files": files, "shown_files": of_interest(files), "facts": [facts_of(record) for record in records] if asked.standalone else [],
            "made_at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")}


def write(asked):
    """Reads, lets the program judge, draws and writes; the exit code."""
    from reporting.figures import Album  # matplotlib is imported late: its absence has its own exit code
    from reporting.files import read_paths
    from reporting.page import render, write_whole
    from reporting.record import clean
    from reporting.verdict import NoProgram, find_program

    folder = os.path.dirname(os.path.abspath(asked.output))
    read = records, files, _ = read_paths(asked.paths, folder)
    kinds, others = summary(records, files)
    if not records:
        tell(f"no record of scalemark can be read in {', '.join(map(clean, asked.paths))}: {others or 'no *.json file'}")
        for file in files[:10]:
            tell(f"  {file.shown}: {file.what}")
        return RESULT
    stem = os.path.splitext(os.path.basename(asked.output))[0]
    album = Album(os.path.join(folder, stem + "_plots"), urllib.parse.quote(os.fsencode(stem + "_plots")), not asked.standalone)
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="scalemark-report-") as scratch:
            made = content(asked, asked.program or find_program(), album, scratch if asked.standalone else album.folder, read)
        write_whole(asked.output, render(**made))
    except NoProgram as error:
        tell(clean(error))
        return ENVIRONMENT
    except OSError as error:
        tell(f"{clean(error.filename or asked.output)} cannot be written: {error.strerror}")
        return RESULT
    where = "the page" if asked.standalone else clean(album.folder)
    tell(f"{kinds}" + (f"; not shown: {others}" if others else "") + f"; {album.count} plots in {where}")
    print(asked.output)
    return OK


def main(words):
    asked = parse(words)
    for path in asked.paths:
        if not os.path.exists(path):
            tell(f"{path!r} does not exist; give a record or a folder with records")
            return USAGE
    asked.output = output_of(asked)
    if not asked.output.endswith((".html", ".htm")):
        tell(f"--output {asked.output!r}: the name must end in .html")
        return USAGE
    if sys.version_info < (3, 9):
        tell(f"{sys.executable} is Python {sys.version.split()[0]}, and 3.9 is needed: name another one, SCALEMARK_PYTHON=/path/to/python")
        return ENVIRONMENT
    if missing := missing_packages():
        tell(f"{' and '.join(missing)} missing in {sys.executable}: run scripts/setup, or\n  {sys.executable} -m pip install "
             f"{shlex.join(missing)}\nor name a Python that has them: SCALEMARK_PYTHON=/path/to/python")
        return ENVIRONMENT
    return write(asked)
