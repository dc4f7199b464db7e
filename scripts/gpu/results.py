"""Files of a visit, complete after every step: at most 8, so that a visit that is cut off still has all up to there."""

import json
import os
import pathlib
import shutil
import zipfile

from steps import held_signals

MOST_ARCHIVE_BYTES = 14 << 20
PROPERTIES = "device_properties.json"  # what cuDNN says of the card


def replace(path, text):
    """Whoever looks, or is cut off, finds the old file or the new one."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    os.replace(new, path)


class Archive:
    """A zip file that grows by whole files, to at most MOST_ARCHIVE_BYTES."""

    def __init__(self, path):
        self.path = path

    def add(self, paths, within):
        """Names of the files that would make it too large, which are left out. within: a folder above them."""
        new, left_out = self.path.with_name(self.path.name + ".new"), []
        for path in paths:
            if self.path.exists():
                shutil.copy(self.path, new)
            with zipfile.ZipFile(new, "a", zipfile.ZIP_DEFLATED) as archive:
                archive.write(path, path.relative_to(within))
            if new.stat().st_size > MOST_ARCHIVE_BYTES:
                new.unlink()
                left_out.append(path.name)
            else:
                os.replace(new, self.path)
        return left_out


class Results:
    """summary.json, table.txt, device_properties.json, logs.zip (output and records of every step), traces.zip."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.logs, self.traces = Archive(self.folder / "logs.zip"), Archive(self.folder / "traces.zip")

    def clear(self):
        for name in ("summary.json", "table.txt", PROPERTIES, "logs.zip", "traces.zip"):
            (self.folder / name).unlink(missing_ok=True)

    def write(self, summary, table):
        with held_signals():
            replace(self.folder / "summary.json", json.dumps(summary, indent=1) + "\n")
            replace(self.folder / "table.txt", table)

    def keep(self, folder, work):
        """The files of a finished step, in `folder` below `work`. Returns the names of those that did not fit."""
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        traces = [path for path in files if path.name.startswith("trace")]
        with held_signals():
            for path in files:
                if path.name == PROPERTIES:
                    replace(self.folder / PROPERTIES, path.read_text())
            left_out = self.logs.add([path for path in files if path not in traces], work)
            return left_out + (self.traces.add(traces, work) if traces else [])
