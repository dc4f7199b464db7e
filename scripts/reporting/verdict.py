"""All findings of the page, which the program tells: `scalemark report --findings`."""
import json
import os
import shutil
import subprocess

from reporting import sets, study_verdict
from reporting.finding import finding_of
from reporting.machines import by_machine, placed
from reporting.plots_compare import comparison_word
from reporting.record import clean

# Where there is a gate, its answer is what the page was made for, and then a comparison.
FIRST = ("verdict", "comparison", "study")

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


def about_words(made, of_record, curves, stems):
    """The curve by its name; what else has its file or its machine to be told by."""
    of, about = made.get("of"), clean(made["about"], 120) if isinstance(made.get("about"), str) else ""
    if of in curves:
        return curves[of]
    if about in ("gate", "history", "projection") and of in stems:
        return f"{about}: {stems[of]}"
    if (one := of_record.get(of)) and one.what:
        return comparison_word(one.root)
    numbers = made.get("numbers") if isinstance(made.get("numbers"), list) else []
    told = [of_record.get(number.get("record")) for number in numbers if isinstance(number, dict) and
            isinstance(number.get("record"), str)]
    one = of_record.get(of) or next(filter(None, told), None)
    return placed(about, one.root) if one and one.machine else about


def verdict(program, collection, records):
    """(findings, [(path, what was wrong)] of the records that the program could not read). The program is asked of one machine at a
    time, so that runs of one are not counted among those of another. What a study found is said in three words (study_verdict)."""
    hrefs = {record.data["id"]: record.href for record in records}
    of_record = {record.data["id"]: record for record in records}
    curves = {curve.root.text("id"): curve.name for curve in collection.curves}
    stems = {record.data["id"]: record.stem for record in records if record.kind in ("verdict", "history", "projection")}
    found, unread = [(FIRST.index("study"), finding) for finding in study_verdict.findings(collection)], []
    found += [(FIRST.index("comparison"), sets.unshown(root)) for root in collection.of("comparison") if root.record.what]
    for _, of in by_machine([record.root for record in records]):
        answer = ask(program, [root.record for root in of])
        unread += [(clean(file["path"]), clean(file["why"])) for file in answer["unread"]]
        for made in answer["findings"]:
            rule, one = made.get("rule"), of_record.get(made.get("of"))
            if not isinstance(rule, str) or rule == "study" or rule == "straggler" and one and one.what:
                continue  # ranks of two machines are not each other's stragglers
            about = about_words(made, of_record, curves, stems)
            place = FIRST.index(one.kind) if one and one.kind in FIRST else len(FIRST)
            found.append((place, finding_of(made, about, hrefs, answer["rules"].get(rule, ""))))
    return [finding for _, finding in sorted(found, key=lambda pair: pair[0]) if finding is not None], unread
