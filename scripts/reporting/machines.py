"""Whose numbers they are: machines, told apart by host, processor, device and link, so that sets of two never share a row or a
colour."""
import collections
import dataclasses

from reporting.figures import MARKERS, SERIES
from reporting.record import clean

# Interfaces of containers, virtual machines and loops, which come and go and join no machines.
NOT_LINKS = ("veth", "docker", "br-", "virbr", "ifb", "lo", "cali", "flannel", "cni", "tun", "tap")
GLYPHS = "●■▲◆▼✚"  # as MARKERS
MOST = len(SERIES)  # that colours tell apart


@dataclasses.dataclass
class Machine:
    """`label`: the shortest words that tell it from the others; empty where it is the only one."""
    host: str
    processor: str
    device: str
    link: str
    number: int = 0
    label: str = ""

    @property
    def colour(self):
        return SERIES[self.number % MOST]

    @property
    def marker(self):
        return MARKERS[self.number % MOST]

    @property
    def glyph(self):
        return GLYPHS[self.number % MOST]

    @property
    def series(self):
        """Name of its colour in templates/report.css."""
        return f"s{self.number % MOST + 1}"


def gigabits(mbps):
    return f"{mbps / 1000:g} Gbit/s"


def links(root):
    """RDMA devices, else the interfaces that are up: "eth0 10 Gbit/s"."""
    found = [" ".join(filter(None, (device.text("name", 30), device.text("rate", 40)))) for device in root.views("system/rdma")]
    if not found:
        for nic in root.views("system/nics"):
            name, speed = nic.text("name", 30), nic.number("speed_mbps")
            if nic.text("state") == "up" and not name.startswith(NOT_LINKS):
                unknown = f"({nic.text('driver', 30) or 'speed unknown'})"
                found.append(f"{name} {gigabits(speed) if speed and speed > 0 else unknown}")
    return ", ".join(found[:4])


def device(root):
    """"CPU", or the GPU by its name, which a curve knows of its system alone."""
    name = root.text("device_name", 80) or root.config("device")
    if name in ("", "auto", "cuda"):
        name = next((gpu.text("name", 80) for gpu in root.views("system/gpus") if gpu.text("name")), "cpu" if name != "cuda" else "GPU")
    return "CPU" if name == "cpu" else clean(name, 80)


def told_by(root):
    """(host, processor, device, link) of a record; None where it does not tell a host."""
    if host := root.text("system/host", 60):
        return host, root.text("system/cpu_model", 80), device(root), links(root)
    if host := root.text("measured_on/host", 60):  # of a study, which tells no link
        return host, root.text("measured_on/cpu_model", 80), root.text("measured_on/gpu", 80) or "CPU", None
    return None


def label_all(machines):
    """By its host; where hosts are called alike, by what else differs."""
    alike = collections.Counter(machine.host for machine in machines)
    for machine in machines:
        namesakes = [other for other in machines if other.host == machine.host]
        words = [getattr(machine, part) or f"unknown {part}" for part in ("processor", "device", "link")
                 if len({getattr(other, part) for other in namesakes}) > 1]
        machine.label = "" if len(machines) == 1 else machine.host if alike[machine.host] == 1 else f"{machine.host}, {', '.join(words)}"


def assign(records):
    """Tells each record its machine; the machines in the order of their first records."""
    machines = {}
    told = [(record, told_by(record.root)) for record in records]
    for record, key in sorted(told, key=lambda pair: pair[1] is not None and pair[1][3] is None):  # those without a link last
        if key is None:
            continue
        if key[3] is None:
            key = next((other for other in machines if other[:3] == key[:3]), (*key[:3], ""))
        record.machine = machines.setdefault(key, Machine(*key))
    found = list(dict.fromkeys(id(record.machine) for record in records if record.machine))
    ordered = sorted(machines.values(), key=lambda machine: found.index(id(machine)))
    for number, machine in enumerate(ordered):
        machine.number = number
    label_all(ordered)
    return ordered


def placed(words, root):
    """A name, and where there are several machines the one that it was measured on."""
    machine = root.record.machine
    return f"{words}, on {machine.label}" if machine and machine.label else words


def by_machine(roots):
    """[(machine or None, its roots)], in the order of the machines."""
    groups = {}
    for root in roots:
        groups.setdefault(id(root.record.machine), (root.record.machine, []))[1].append(root)
    return sorted(groups.values(), key=lambda group: group[0].number if group[0] else MOST ** 9)
