#!/usr/bin/env python3
"""Prints, as JSON, what of this machine decides whether anything else can work: driver, libraries that the loader does not
find, where libcuda and NVML lie, clocks and power limit, cores, memory, /dev/shm. It only reads. To be started by
the folder's `run`, as the programs are that it looks at.

Exit codes: 0 nothing is missing, 4 something is (under "complaint"), 7 no GPU.
"""

import argparse
import csv
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys

from loader import unresolved

QUERY = ("name uuid driver_version pci.bus_id memory.total memory.used clocks.sm clocks.mem clocks.max.sm clocks.max.mem "
         "clocks.applications.graphics power.limit power.default_limit power.draw temperature.gpu persistence_mode "
         "mig.mode.current compute_mode ecc.mode.current pcie.link.gen.max pcie.link.width.max "
         "clocks_event_reasons.active").split()
TOOLS = ("python3", "nvidia-smi", "compute-sanitizer", "ncu", "nsys", "nvcc", "cuobjdump", "ssh", "mpirun", "srun", "g++",
         "cmake")
VARIABLES = ("CUDA_", "NCCL_", "NVIDIA_", "LD_LIBRARY_PATH", "OMP_", "OMPI_", "TORCH_")


def asked(*words):
    """What a program says; why not, where it fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=8, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return None, str(problem)
    return (done.stdout, "") if done.returncode == 0 else (None, (done.stdout + done.stderr).strip()[:300])


def gpus():
    """([{field: text}], why there are none)."""
    known = list(QUERY)
    while known:
        said, why = asked("nvidia-smi", f"--query-gpu={','.join(known)}", "--format=csv,noheader")
        if said is not None:
            return [dict(zip(known, map(str.strip, row))) for row in csv.reader(said.splitlines())], ""
        unknown = [field for field in known if f'"{field}"' in why]  # of another driver
        if not unknown:
            return [], f"nvidia-smi: {why}"
        known.remove(unknown[0])
    return [], "nvidia-smi knows none of the fields"


def loaded_from(name):
    """Where the loader found the library; None and why where it did not."""
    try:
        ctypes.CDLL(name)
    except OSError as problem:
        return None, str(problem)
    places = {line.split()[-1] for line in open("/proc/self/maps", encoding="utf-8") if name.split(".so")[0] + "." in line}
    return sorted(places), ""


def cuda_devices():
    """As CUDA's driver counts them, also where there is no nvidia-smi."""
    try:
        driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    except OSError:
        return 0
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def machine():
    memory = dict(line.split(":") for line in open("/proc/meminfo", encoding="utf-8"))
    shm = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    release = pathlib.Path("/etc/os-release")
    names = dict(line.split("=", 1) for line in release.read_text().splitlines() if "=" in line) if release.exists() else {}
    cpus = [line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")]
    return {"system": names.get("PRETTY_NAME", "").strip('"'), "kernel": pathlib.Path("/proc/version").read_text().strip(),
            "glibc": os.confstr("CS_GNU_LIBC_VERSION"), "python": sys.version.split()[0], "user": os.geteuid(),
            "cpu": cpus[0] if cpus else None, "cpus": os.cpu_count(), "cpus_allowed": len(os.sched_getaffinity(0)),
            "memory": memory["MemTotal"].strip(), "memory_available": memory["MemAvailable"].strip(),
            "dev_shm_bytes": shm and shm.f_frsize * shm.f_blocks, "dev_shm_free": shm and shm.f_frsize * shm.f_bavail,
            "tmp_free": shutil.disk_usage("/tmp").free, "tools": {tool: shutil.which(tool) for tool in TOOLS},
            "variables": {name: value for name, value in os.environ.items() if name.startswith(VARIABLES)}}


def changed_files(bundle, manifest):
    """Those that did not come through the transport as they were."""
    return [file["path"] for file in manifest["files"]
            if not (bundle / file["path"]).is_file() or (bundle / file["path"]).stat().st_size != file["bytes"]]


def missing_libraries(bundle, manifest):
    """{file: [name]} of the programs and of the libraries that these do not need."""
    found = {}
    for file in manifest["files"]:
        if file["group"] in ("front door", "engines", "GPU tests") or file["path"].endswith(".so"):
            if names := unresolved(bundle / file["path"]):
                found[file["path"]] = names
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=pathlib.Path, help="the folder of scripts/gpu_bundle")
    bundle = parser.parse_args().bundle.resolve()
    manifest = json.loads((bundle / "manifest.json").read_text())
    (cards, why), devices = gpus(), cuda_devices()
    places = {name: loaded_from(name) for name in ("libcuda.so.1", "libnvidia-ml.so.1")}
    facts = {"card": f"{cards[0].get('name')}, driver {cards[0].get('driver_version')}" if cards else "",
             "gpus": cards, "no_nvidia_smi": why, "cuda_devices": devices, "machine": machine(), "changed_files": changed_files(bundle, manifest),
             "not_found": missing_libraries(bundle, manifest), "build": manifest["build"],
             "libraries": {name: place or reason for name, (place, reason) in places.items()},
             "gpu_users": asked("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader")[0]}
    complaints = [text for text, wrong in (
        ("files that differ from the manifest", facts["changed_files"]), ("libraries that are not found", facts["not_found"]),
        *((f"{name} does not load", devices and place is None) for name, (place, _) in places.items())) if wrong]
    if complaints:
        facts["complaint"] = "; ".join(complaints)
    print(json.dumps(facts, indent=1))
    sys.exit(4 if complaints else 0 if cards or devices else 7)


if __name__ == "__main__":
    main()
