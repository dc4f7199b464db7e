"""All findings of the page, which the program tells: `scalemark report --findings`."""
import json
import os
import shutil
import subprocess

from reporting.finding import finding_of
from reporting.record import clean

HERE = os.path.dirname(os.path.abspath(__file__))


class NoProgram(Exception):
    """The program cannot be asked; the text says why."""


def find_program():
    """Of the tree that this script is of: ./scalemark of a source tree, PREFIX/bin/scalemark of PREFIX/share/scalemark; or
    that of PATH."""
    root = os.path.dirname(os.path.dirname(HERE))
    for path in (os.path.join(root, "scalemark"), os.path.join(root, "..", "..", "bin", "scalemark")):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return shutil.which("scalemark") or ""


def is_utf8(text):
    try:
        text.encode()
    except UnicodeEncodeError:  # JSON holds no other name
        return False
    return True


def ask(program, records):
    """Its answer on these files."""
    if not program:
        raise NoProgram("the program scalemark, which judges the records, is not found: run scripts/setup, or scalemark report")
    files = [{"path": record.path, "settings": record.settings} for record in records if is_utf8(record.path)]
    try:
        done = subprocess.run([program, "report", "--findings", "-"], input=json.dumps(files), capture_output=True, encoding="utf-8",
                              check=False)
        if done.returncode == 0:
            return json.loads(done.stdout)
    except (OSError, ValueError) as error:
        raise NoProgram(f"{program} cannot judge the records: {error}") from error
    raise NoProgram(f"{program} cannot judge the records: {clean(done.stderr.strip()) or f'exit code {done.returncode}'}")


def verdict(program, collection, records):
    """(findings, [(path, what was wrong)] of the records that the program could not read)."""
    answer = ask(program, records)
    hrefs = {record.data["id"]: record.href for record in records}
    curves = {curve.root.text("id"): curve.name for curve in collection.curves}
    stems = {record.data["id"]: record.stem for record in records if record.kind in ("verdict", "history", "projection")}
    findings = []
    for made in answer["findings"]:
        of, about = made.get("of"), clean(made["about"], 120) if isinstance(made.get("about"), str) else ""
        about = curves[of] if of in curves else f"{about}: {stems[of]}" if about in ("gate", "history", "projection") else about
        label = answer["rules"].get(made.get("rule"), "") if isinstance(made.get("rule"), str) else ""
        findings.append(finding_of(made, about, hrefs, label))
    unread = [(clean(file["path"]), clean(file["why"])) for file in answer["unread"]]
    return [finding for finding in findings if finding is not None], unread
