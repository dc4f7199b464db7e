#!/usr/bin/env python3
"""Completes the installation that becomes a wheel: beside the programs the libraries that neither the machine nor torch nor
Open MPI has, run paths relative to each file, and in the metadata the licences and the list of what it carries.

    complete.py BUILD PREFIX METADATA
"""

import json
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "scripts" / "gpu"))
import bundle  # noqa: E402

# Open MPI is a package of its own; every distribution of glibc has libudev, and an older one serves hwloc too.
OF_ENVIRONMENT = re.compile(r"^lib(mpi|udev)\.so")


def write_licences(parts, folder):
    """Debian's copyright files of what the list of parts contains, and of what it says is compiled in: of Boost, whose licence
    asks nothing of programs, the text would be 2 MB."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {package["SPDXID"]: package["name"] for package in parts["packages"]}
    for relation in parts["relationships"]:
        kind, name = relation["relationshipType"], names[relation["relatedSpdxElement"]]
        if kind not in ("CONTAINS", "STATIC_LINK") or name.startswith("libboost"):
            continue
        text = pathlib.Path("/usr/share/doc") / name / "copyright"
        if text.exists():
            (folder / f"{name}.txt").write_bytes(text.read_bytes())
        elif kind == "CONTAINS":
            raise bundle.Unusable(f"{text} is missing: the licence of a library that the wheel carries")


def main():
    build, prefix, metadata = map(pathlib.Path, sys.argv[1:])
    programs = [prefix / "bin/scalemark", *(prefix / "libexec").iterdir()]
    # The loader is asked about the originals: the installed ones do not find torch any more.
    originals = [build / program.relative_to(prefix) for program in programs]
    libraries = bundle.Loader().carried(originals, [bundle.OF_THE_MACHINE, bundle.OF_TORCH, OF_ENVIRONMENT])
    for name, place in libraries.items():
        bundle.place(place, prefix / "lib/scalemark" / name, "$ORIGIN")
    for program in programs:
        bundle.set_run_path(program, "$ORIGIN/../lib/scalemark")
    parts = metadata / "sboms/scalemark.spdx.json"
    parts.parent.mkdir(parents=True, exist_ok=True)
    bundle.output_of(SOURCE / ".venv/bin/python", SOURCE / "scripts/packaging/sbom", "--output", parts, *originals, *libraries.values())
    write_licences(json.loads(parts.read_text()), metadata / "licenses")


if __name__ == "__main__":
    try:
        main()
    except bundle.Unusable as problem:
        sys.exit(f"scripts/wheel: {problem}")
