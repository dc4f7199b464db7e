"""Limits of the machine that suites make for their processes."""

import contextlib
import os
import pathlib
import time
import unittest
import uuid


def remove_group(group):
    """What has just ended may still be in it for a moment."""
    for _ in range(100):
        try:
            return group.rmdir()
        except OSError:
            time.sleep(0.05)
    return group.rmdir()


@contextlib.contextmanager
def little_memory(most_bytes):
    """What a child calls (preexec_fn) to share so much memory with all that it starts; most bytes that were charged."""
    group = pathlib.Path("/sys/fs/cgroup/memory") / f"scalemark-test-{uuid.uuid4()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(most_bytes))
    except OSError as error:
        raise unittest.SkipTest("no memory cgroup of version 1 that this user may make") from error
    try:
        yield (lambda: (group / "cgroup.procs").write_text(str(os.getpid())),
               lambda: int((group / "memory.max_usage_in_bytes").read_text()))
    finally:
        remove_group(group)


@contextlib.contextmanager
def half_a_cpu():
    """The file that a process writes its number into to get half of the time of one CPU."""
    root = pathlib.Path("/sys/fs/cgroup")
    v2 = (root / "cgroup.controllers").exists()
    group = (root if v2 else root / "cpu") / f"scalemark-test-{uuid.uuid4()}"
    try:
        group.mkdir()
        if v2:
            (group / "cpu.max").write_text("50000 100000")
        else:
            (group / "cpu.cfs_period_us").write_text("100000")
            (group / "cpu.cfs_quota_us").write_text("50000")
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        raise unittest.SkipTest(f"no CPU quota can be made here: {error}") from error
    try:
        yield group / ("cgroup.procs" if v2 else "tasks")
    finally:
        remove_group(group)
