"""Peak resident memory of this process, as src/platform/affinity.cpp takes it."""

import pathlib
import re
import resource


def reset_peak():
    """VmHWM starts anew (proc(5)). Where that is refused the peak is of the whole process."""
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def peak_bytes():
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return 1024 * int(found[1] if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
