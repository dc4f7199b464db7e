"""What lab/speed reads of the machine: native bf16, and the load of others while nothing of it runs.

The limits are those by which scalemark warns of a run (src/result/foreign_load.cpp, noise_summary.hpp).
"""

import dataclasses
import os
import pathlib
import re
import time

USUAL_CPUS = 0.1  # daemons, kernel threads
USUAL_FRACTION = 0.01  # of a large host
LEAST_CPU_SECONDS = 0.15  # ticks are 10 ms, of every CPU
NOTABLE_STEAL = 0.01  # of all CPU time
LOOKS = 5  # a short disturbance is waited for
LEAST_MEMORY = 0.03  # free, of all: below it programs and files are read from disk again and again


def native_bf16(cpuinfo=None):
    """As `precision_native` of a record (src/platform/affinity.cpp)."""
    text = pathlib.Path("/proc/cpuinfo").read_text() if cpuinfo is None else cpuinfo
    flags = re.search(r"^(?:flags|Features)\s*:(.*)", text, re.MULTILINE)
    return bool(flags) and not {"avx512_bf16", "amx_bf16", "bf16"}.isdisjoint(flags[1].split())


def short_of_memory(meminfo=None):
    text = pathlib.Path("/proc/meminfo").read_text() if meminfo is None else meminfo
    total, available = (int(re.search(rf"^{name}:\s*(\d+)", text, re.MULTILINE)[1]) for name in ("MemTotal", "MemAvailable"))
    return available < LEAST_MEMORY * total


@dataclasses.dataclass(frozen=True)
class CpuSeconds:
    """Of all CPUs since boot."""

    busy: float
    steal: float
    total: float


def cpu_seconds(stat=None):
    """From the first line of /proc/stat: user nice system idle iowait irq softirq steal; guest times are in user."""
    text = pathlib.Path("/proc/stat").read_text() if stat is None else stat
    parts = [float(word) / os.sysconf("SC_CLK_TCK") for word in text.splitlines()[0].split()[1:9]]
    return CpuSeconds(busy=sum(parts[:3]), steal=parts[7], total=sum(parts))


@dataclasses.dataclass(frozen=True)
class Load:
    """cpus: mean number that others used. steal: share of all CPU time that the hypervisor took."""

    cpus: float
    of_cpus: int
    steal: float
    seconds: float

    @property
    def quiet(self):
        usual = max(USUAL_CPUS, USUAL_FRACTION * self.of_cpus)
        return (self.cpus <= usual or self.cpus * self.seconds <= LEAST_CPU_SECONDS) and self.steal <= NOTABLE_STEAL

    def words(self):
        return f"others used {self.cpus:.1f} of {self.of_cpus} CPUs, the hypervisor {100 * self.steal:.1f} %"


def steal_between(before, after):
    """Share of all CPU time; the kernel counts in ticks, and a short time may have none."""
    total = after.total - before.total
    return max(0.0, after.steal - before.steal) / total if total > 0 else 0.0


def load_between(before, after, seconds, of_cpus):
    return Load(max(0.0, after.busy - before.busy) / seconds, of_cpus, steal_between(before, after), seconds)


def load_of_others(seconds):
    """While nothing of ours runs; the first quiet one of a few looks, or the last."""
    for _ in range(LOOKS):
        before, begin = cpu_seconds(), time.monotonic()
        time.sleep(seconds)
        load = load_between(before, cpu_seconds(), time.monotonic() - begin, os.cpu_count())
        if load.quiet:
            break
    return load
