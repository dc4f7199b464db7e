"""What the steps of a visit say together: how fast ours are compared with a peer's on the same card, and how far the losses of
two settings are apart.

A step's name is WORKLOAD_SUBJECT or WORKLOAD_SUBJECT_NUMBER, as in resnet50_eager_2; several of a subject alternated.
"""

import re
import statistics

OURS, PEERS, SETTINGS = "ours", ("eager", "compiled"), ("plain", "triton", "graph")


def named(steps):
    """{workload: {subject: [what its steps found]}} of the steps that went as expected."""
    found = {}
    for step in steps:
        name = re.fullmatch(rf"(\w+?)_({'|'.join((OURS, *PEERS, *SETTINGS))})(_\d+)?", step["step"])
        if name and step["verdict"] == "as expected":
            found.setdefault(name[1], {}).setdefault(name[2], []).append(step["found"])
    return found


def ratios(steps):
    """[{"name", "peer", "ours", "theirs", "ratio"}]: medians over the rounds, units per second."""
    lines = []
    for workload, subjects in named(steps).items():
        speeds = {subject: statistics.median(one["throughput"] for one in found) for subject, found in subjects.items()
                  if all(one.get("throughput") for one in found)}
        lines += [{"name": workload, "peer": peer, "ours": speeds[OURS], "theirs": speed, "ratio": speeds[OURS] / speed}
                  for peer, speed in speeds.items() if peer != OURS and OURS in speeds]
    return lines


def losses(steps):
    """[{"name", "setting", "steps", "largest_relative_difference"}]: of ours and of the same steps in another setting; 0 is
    bit-equal."""
    lines = []
    for workload, subjects in named(steps).items():
        ours = subjects.get(OURS, [{}])[0].get("loss_trace") or []
        for setting in SETTINGS:
            theirs = subjects.get(setting, [{}])[0].get("loss_trace") or []
            pairs = [(a, b) for a, b in zip(ours, theirs) if a is not None and b is not None]
            if pairs:
                lines.append({"name": workload, "setting": setting, "steps": len(pairs), "largest_relative_difference": max(
                    abs(a - b) / max(abs(a), abs(b), 1e-30) for a, b in pairs)})
    return lines


def words_of(summary):
    """Lines of the table."""
    return [f"{one['name']}: {one['ours']:.4g} / {one['theirs']:.4g} of {one['peer']} = {one['ratio']:.3f}"
            for one in summary["ratios"]] + [
                f"{one['name']}, {one['setting']}: losses of {one['steps']} steps " + (
                    "are bit-equal" if one["largest_relative_difference"] == 0 else
                    f"differ by at most {one['largest_relative_difference']:.2g} of their value") for one in summary["losses"]]
