#!/usr/bin/env python3
"""Completes the installation that becomes a wheel: beside the programs the libraries that neither the machine nor torch nor
Open MPI has, run paths relative to each file, and in the metadata the licences and the list of what it carries.

    complete.py BUILD PREFIX METADATA
"""

import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "scripts" / "gpu"))
import bundle  # noqa: E402

# Open MPI is a package of its own; every distribution of glibc has libudev, and an older one serves hwloc too.
OF_ENVIRONMENT = re.compile(r"^lib(mpi|udev)\.so")
HEADERS = ["libfmt-dev", "nlohmann-json3-dev", "libcxxopts-dev", "libgloo-dev", "libssl-dev"]  # compiled in; Boost's licence asks for nothing


def carried(programs):
    """{soname: place of the file}, of what the programs need and what that needs."""
    loader, found, waiting = bundle.Loader(), {}, list(programs)
    while waiting:
        user = waiting.pop()
        for name in bundle.needed(user):
            if name not in found and not any(known.match(name) for known in (bundle.OF_THE_MACHINE, bundle.OF_TORCH, OF_ENVIRONMENT)):
                found[name] = loader.find(name, user)
                waiting.append(found[name])
    return found


def write_licences(libraries, folder):
    """Debian's copyright files of what is carried and of the headers that are compiled in."""
    folder.mkdir(parents=True, exist_ok=True)
    places = {spelling for path in libraries for spelling in (str(path), str(path.resolve()), str(path.resolve()).removeprefix("/usr"))}
    said = subprocess.run(["dpkg", "-S", *sorted(places)], capture_output=True, text=True, check=False).stdout
    packages = {re.split("[:,]", line)[0] for line in said.splitlines()}
    for package in sorted(packages | set(HEADERS)):
        text = pathlib.Path("/usr/share/doc") / package / "copyright"
        if text.exists():
            (folder / f"{package}.txt").write_bytes(text.read_bytes())
        elif package in packages:
            raise bundle.Unusable(f"{text} is missing: the licence of a library that the wheel carries")


def main():
    build, prefix, metadata = map(pathlib.Path, sys.argv[1:])
    programs = [prefix / "bin/scalemark", *(prefix / "libexec").iterdir()]
    # The loader is asked about the originals: the installed ones do not find torch any more.
    originals = [build / program.relative_to(prefix) for program in programs]
    libraries = carried(originals)
    for name, place in libraries.items():
        bundle.place(place, prefix / "lib/scalemark" / name, "$ORIGIN")
    for program in programs:
        bundle.set_run_path(program, "$ORIGIN/../lib/scalemark")
    write_licences(libraries.values(), metadata / "licenses")
    (metadata / "sboms").mkdir(parents=True, exist_ok=True)
    bundle.output_of(SOURCE / ".venv/bin/python", SOURCE / "scripts/packaging/sbom", "--output", metadata / "sboms/scalemark.spdx.json",
                     *originals, *libraries.values())


if __name__ == "__main__":
    try:
        main()
    except bundle.Unusable as problem:
        sys.exit(f"scripts/wheel: {problem}")
