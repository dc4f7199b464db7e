"""Finds and reads the files of folders. Nothing that a file holds ends the report: what is damaged, of others or of
another version is listed with what was wrong.
"""
import array
import dataclasses
import hashlib
import json
import os
import sys

from reporting.record import Record, clean, finite, link_from

# What `scalemark` writes and the report shows; of what scripts write it says only that it is there.
KINDS = ("run", "scaling", "inference", "instances", "comparison", "verdict", "history", "projection", "preflight",
         "baseline", "study")
STUDIES = ("speed", "gate_study", "published_curve")
SCHEMA_VERSION = 1
LARGEST_BYTES = 64 << 20
MOST_FILES = 100000
# Of many records these parts are the same.
REPEATED = ("config", "system", "environment", "build", "unavailable", "noise")


@dataclasses.dataclass
class File:
    """`status`: "read", "damaged", "foreign", "other version", "copy", "a trace" or "of a study"."""
    shown: str
    href: str
    status: str
    what: str


def json_files(path):
    """A file itself; of a folder every *.json below it, in the order of their names."""
    if not os.path.isdir(path):
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not name.endswith(("_plots", "~")))
        for name in sorted(names):
            if name.endswith(".json") and not name.startswith("."):
                yield os.path.join(folder, name)


def refuse_constant(word):
    raise ValueError(f"{word} is not JSON")


def read_json(path):
    """Its content; ValueError or OSError says what is wrong."""
    if not os.path.isfile(path):
        raise ValueError("not a regular file")
    size = os.path.getsize(path)
    if size > LARGEST_BYTES:
        raise ValueError(f"{size >> 20} MiB: larger than any record")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if not text.strip():
        raise ValueError("the file is empty")
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


class Compact:
    """Makes what was read small: equal parts of records are one object, long lists of numbers are arrays."""

    def __init__(self):
        self.parts = {}

    def of(self, content):
        whole = {sys.intern(key): self.packed(value) for key, value in content.items() if key not in REPEATED}
        for key in REPEATED:
            if key in content:
                digest = hashlib.sha1(json.dumps(content[key]).encode("utf-8", "surrogatepass")).digest()
                whole[key] = self.parts.setdefault(digest, content[key])
        return whole

    def packed(self, value):
        if isinstance(value, dict):
            return {sys.intern(key): self.packed(item) for key, item in value.items()}
        if not isinstance(value, list):
            return value
        if len(value) > 8 and all(type(item) is float for item in value):  # NaN is none of JSON
            return array.array("d", value)
        return [self.packed(item) for item in value]


def is_trace(path):
    """Of --trace: it may be larger than any record, and begins with this key."""
    with open(path, "rb") as file:
        return b'"traceEvents"' in file.read(100)


def classified(content):
    """(status, what) of JSON that was read."""
    if not isinstance(content, dict) or not isinstance(content.get("kind"), str):
        return "foreign", "JSON without a kind: no record of scalemark"
    kind = content["kind"]
    if kind in STUDIES:
        return "of a study", kind
    if kind not in KINDS:
        return "foreign", f"kind {clean(kind, 40)}: no record of scalemark"
    version = content.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        return "other version", f"schema_version {clean(version, 40)}, and this report reads {SCHEMA_VERSION}"
    if not isinstance(content.get("id"), str) or not isinstance(content.get("status"), str):
        return "damaged", "a record without id or status"
    return "read", kind


# What a sweep keeps beside its records.
PLANS = ("planned.json",)
PLAN_ENDING = ".plan.json"  # of a step of a study


@dataclasses.dataclass
class Launch:
    """A line of a sweep's journal. `record`: its real path; empty where the launch left none. `point`: of the plan, the same
    in every sweep of it."""
    record: str
    settings: dict
    status: str
    reason: str
    href: str
    folder: str
    point: str
    repeat: int


def journal(folder, page_folder):
    """(launches, the file's entry) of a folder's journal.jsonl; a line that is damaged is told and passed by."""
    path = os.path.join(folder, "journal.jsonl")
    launches, bad, href = [], 0, link_from(page_folder, path)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    entry = json.loads(line)
                    record = os.path.realpath(os.path.join(folder, entry["record"])) if entry["record"] else ""
                    settings = {clean(key, 40): clean(value, 60) for key, value in dict(entry["settings"]).items()}
                    launches.append(Launch(record, settings, clean(entry["status"], 20), clean(entry["reason"]), href, folder,
                                           clean(entry.get("point", ""), 80), int(finite(entry.get("repeat")) or 0)))
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                    bad += 1
    except OSError as error:
        return [], File(clean(path), href, "damaged", clean(error.strerror))
    status, what = ("damaged", f"{bad} lines of the journal") if bad else ("read", f"journal of {len(launches)} launches")
    return launches, File(clean(path), href, status, what)


def journals(paths, page_folder):
    """Of every sweep among the folders and below them."""
    folders = {os.path.realpath(folder): folder for path in paths if os.path.isdir(path)
               for folder, _, names in os.walk(path) if "journal.jsonl" in names}
    return [journal(folder, page_folder) for folder in folders.values()]


def read_one(path, ids):
    """(content, status, what) of a file; `ids`: of the records before it."""
    try:
        if os.path.isfile(path) and is_trace(path):
            return None, "a trace", "of --trace: open it in Perfetto"
        content = read_json(path)
        status, what = classified(content)
    except (OSError, ValueError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        return None, "damaged", clean(error.strerror if isinstance(error, OSError) else error)
    if status == "read" and content["id"] in ids:
        return None, "copy", f"the same record as {ids[content['id']]}"
    return content, status, what


def read_paths(paths, page_folder):
    """(records, files, launches): each file once, though it may lie in several of the folders; a copy of a record once."""
    launches, files = [], []
    for some, entry in journals(paths, page_folder):
        launches += some
        files.append(entry)
    launched = {launch.record: launch for launch in launches if launch.record}
    records, seen, ids, compact = [], set(), {}, Compact()
    for path in (path for given in paths for path in json_files(given)):
        real = os.path.realpath(path)
        if real in seen or os.path.basename(path) in PLANS or path.endswith(PLAN_ENDING):
            continue
        if len(seen) == MOST_FILES:
            files.append(File(clean(path), link_from(page_folder, path), "left out", f"more than {MOST_FILES} files"))
            break
        seen.add(real)
        content, status, what = read_one(path, ids)
        files.append(File(clean(path), link_from(page_folder, path), status, what))
        if status == "read":
            ids[content["id"]] = clean(path)
            record = Record(path, clean(path), link_from(page_folder, path), compact.of(content))
            if launch := launched.get(real):
                record.settings, record.repeat = launch.settings, launch.repeat
            records.append(record)
    return records, files, launches
