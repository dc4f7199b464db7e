"""What the loader of this machine finds of an ELF file's needs; needs no program but the loader itself."""

import glob
import re
import subprocess


def loader_path():
    """Of glibc's loader, by which a library can be asked as a program can."""
    found = sorted(glob.glob("/lib64/ld-linux-*.so.*") + glob.glob("/lib/ld-linux-*.so.*"))
    return found[0] if found else None


def traced(path, before=()):
    """{name: place or None} of all that the loader would load. before: the words of a program that sets variables."""
    words = [*before, "env", "LD_TRACE_LOADED_OBJECTS=1", loader_path(), path]  # --list ends at the first that is missing
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    found = re.findall(r"^\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?$", done.stdout, re.MULTILINE)
    return {name: None if place == "not found" else place for name, place in found}


def unresolved(path, before=()):
    return [name for name, place in traced(path, before).items() if place is None]
