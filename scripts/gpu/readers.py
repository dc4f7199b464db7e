"""What to note of the files that a step leaves in its folder: a dictionary whose "complaint" says what is not as it should
be."""

import json
import math
import re

import kernels


def load(path):
    """The JSON of a file; None where there is none."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def out(folder):
    return (folder / "out.txt").read_text(errors="replace")


def finite(value):
    return isinstance(value, (int, float)) and math.isfinite(value)


def numbers(record):
    """Of a run or an inference."""
    throughput, loss = record.get("throughput") or {}, record.get("loss") or {}
    memory, energy = record.get("memory") or {}, record.get("energy") or {}
    latency = record.get("latency_seconds") or {}
    found = {"status": record.get("status"), "reason": record.get("reason"), "unit": record.get("unit"),
             "throughput": throughput.get("median") or throughput.get("mean"), "mean": throughput.get("mean"),
             "batch_size": record.get("batch_size_per_rank"), "loss_first": loss.get("first"), "loss_last": loss.get("last"),
             "loss_trace": loss.get("trace"),
             "peak_gpu_bytes": memory.get("peak_gpu_bytes"), "joules_per_sample": energy.get("joules_per_sample"),
             "latency_p50": latency.get("p50"), "latency_p99": latency.get("p99"), "gpu": gpu_series(record), "warnings": record.get("warnings")}
    return {name: value for name, value in found.items() if value not in (None, [], "")}


def gpu_series(record):
    """Clock, power and temperature by the second, with --window_seconds; None without a GPU."""
    series = ((record.get("windows") or {}).get("series")) or []
    kept = {name: [one.get(name) for one in series] for name in ("gpu_mhz", "gpu_watts", "gpu_celsius")}
    return kept if any(value is not None for values in kept.values() for value in values) else None


def record(folder):
    """The record of a measurement that must have gone well."""
    whole = load(folder / "record.json")
    if whole is None:
        return {"complaint": "no record"}
    found = numbers(whole)
    if whole.get("status") != "ok":
        found["complaint"] = f"status {whole.get('status')}"
    elif whole.get("kind") == "run" and not all(finite(found.get(name)) for name in ("throughput", "loss_first", "loss_last")):
        found["complaint"] = "a number of throughput or loss is missing or not finite"
    return found


def energy(folder):
    found = record(folder)
    source = ((load(folder / "record.json") or {}).get("energy") or {}).get("source")
    found["source"] = source
    if "complaint" not in found and not (finite(found.get("joules_per_sample")) and "nvml" in (source or "")):
        found["complaint"] = "no joules of the GPU (NVML)"
    return found


def failed_record(folder):
    """After a fault: a record that says so."""
    whole = load(folder / "record.json")
    if whole is None:
        return {"complaint": "no record"}
    found = numbers(whole)
    if whole.get("status") == "ok":
        found["complaint"] = "status ok after a fault"
    return found


def wrong_elements(whole):
    """Of all collectives that a preflight has checked."""
    if isinstance(whole, dict):
        return (whole.get("wrong_elements") or 0) + sum(map(wrong_elements, whole.values()))
    return sum(map(wrong_elements, whole)) if isinstance(whole, list) else 0


def any_record(folder):
    """The verdict and the checks of a preflight; the status of what else has one. Slow is no complaint, wrong data is."""
    whole = load(folder / "record.json")
    if whole is None:
        return {"complaint": "no record"}
    bad = [f"{check['status']}: {check['name']}: {check['message']}" for check in whole.get("checks", [])
           if check["status"] in ("warn", "fail")]
    found = {"status": whole.get("status"), "verdict": whole.get("verdict"), "checks": bad}
    if wrong := wrong_elements(whole):
        found["complaint"] = f"{wrong} wrong elements"
    elif whole.get("status") != "ok":
        found["complaint"] = f"status {whole.get('status')}"
    return found


def tests(folder):
    """GoogleTest's own summary."""
    text = out(folder)

    def count(word):
        found = re.search(rf"^\[  {word} *\] (\d+) tests?", text, re.MULTILINE)
        return int(found[1]) if found else 0

    names = re.findall(r"^\[  FAILED  \] ([\w/]+\.[\w/]+)", text, re.MULTILINE)
    found = {"passed": count("PASSED"), "skipped": count("SKIPPED"), "failed": sorted(set(names))}
    if found["failed"]:
        found["complaint"] = f"failed: {', '.join(found['failed'])}"
    elif found["passed"] == 0 and found["skipped"] == 0:
        found["complaint"] = "no test ran"
    return found


def tests_on_gpu(folder):
    """The same where none may be skipped."""
    found = tests(folder)
    if "complaint" not in found and found["skipped"] > 0:
        found["complaint"] = f"{found['skipped']} skipped"
    return found


def peer(folder):
    try:
        said = json.loads(out(folder))
    except ValueError:
        return {"complaint": "the peer printed no JSON"}
    return {name: said[name] for name in ("throughput", "unit", "peak_gpu_bytes", "versions", "loss") if name in said}


def sanitizer(folder):
    text = out(folder) + (folder / "err.txt").read_text(errors="replace")
    found = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors|hazards)", text)
    if not found:
        return {"complaint": "the sanitizer printed no summary"}
    errors = sum(map(int, found))
    return {"errors": errors, **({"complaint": f"{errors} errors"} if errors else {})}


def trace(folder):
    try:
        return kernels.read_trace(folder / "trace.json")
    except (OSError, ValueError, KeyError, TypeError) as problem:
        return {"complaint": f"no trace that can be read: {problem!r}"}


def trace_with_kernels(folder):
    found = trace(folder)
    if "complaint" not in found and "launches" not in found:
        found["complaint"] = found["kernels"]
    return found


def text(folder):
    return {"said": out(folder).strip()[:400]}


def last_words(folder):
    return {"said": (folder / "err.txt").read_text(errors="replace").strip()[-400:]}


def json_of(folder):
    """What the step printed as JSON."""
    try:
        return json.loads(out(folder))
    except ValueError:
        return {"complaint": "printed no JSON"}
