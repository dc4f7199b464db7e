"""Checks a build folder on this machine's GPUs: GPU tests, a preflight with a rank a GPU, one bf16 ResNet50 run on one GPU; one
table. Exit codes are those of scripts/gpu_check.
"""

import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LOGS = SOURCE / "build" / "log"


def fail(message):
    print(f"scripts/gpu_check: {message}", file=sys.stderr)
    sys.exit(7)


def say(message):
    print(f"[gpu_check] {message}", file=sys.stderr, flush=True)


def first_gpu():
    """{"name", "driver", "memory", "count"}: of the first GPU, and how many there are; exit 7 where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        fail("no GPU: nvidia-smi is not installed, so there is no NVIDIA driver here")
    done = subprocess.run([program, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                          capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        fail(f"no GPU: nvidia-smi says: {(done.stdout + done.stderr).strip() or 'nothing'}")
    return {**dict(zip(("name", "driver", "memory"), (word.strip() for word in lines[0].split(",")))), "count": len(lines)}


def torch_folders(python):
    """(TORCH_ROOT, library folders) of the torch that `python` imports from."""
    script = ("import importlib.util, pathlib, sys; spec = importlib.util.find_spec('torch'); "
              "sys.exit('no torch') if spec is None else print(pathlib.Path(spec.origin).parent)")
    done = subprocess.run([python, "-c", script], capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{python} has no torch: {done.stderr.strip()}")
    root = pathlib.Path(done.stdout.strip())
    return root, [root / "lib", *sorted((root.parent / "nvidia").glob("*/lib"))]


def build(torch_root):
    environment = dict(os.environ)
    if torch_root is not None:
        environment["TORCH_ROOT"] = str(torch_root)
    done = subprocess.run([SOURCE / "scripts" / "setup", "--tests"], env=environment)
    if done.returncode != 0:
        fail("scripts/setup --tests failed, see above (offline: install the packages it names, or give --build)")
    return SOURCE / "build" / "release"


def run_tests(folder, environment):
    """{"passed", "failed", "skipped"} of `ctest -L gpu`."""
    junit = LOGS / "gpu_tests.xml"
    junit.unlink(missing_ok=True)
    subprocess.run(["ctest", "--test-dir", str(folder), "-L", "gpu", "--output-on-failure", "--output-junit", str(junit)],
                   env=environment, stdout=sys.stderr)
    if not junit.exists():
        fail(f"ctest wrote no result: {folder} holds no tests, or ctest is missing")
    states = [case.get("status") for case in ElementTree.parse(junit).getroot().iter("testcase")]
    passed, skipped = states.count("run"), states.count("notrun") + states.count("disabled")
    return {"passed": passed, "skipped": skipped, "failed": len(states) - passed - skipped}


def record_of(command, environment):
    """(record that the command prints or None, exit code)."""
    say(" ".join(command))
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        return json.loads(done.stdout), done.returncode
    except json.JSONDecodeError:
        return None, done.returncode


def run_preflight(folder, environment, gpus):
    """A rank for every visible GPU; LOGS/preflight.json keeps the record."""
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    ranks = gpus if visible is None else max(1, len([word for word in visible.split(",") if word.strip()]))
    launch = [] if ranks == 1 else ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--oversubscribe",
                                    "--bind-to", "none", "-n", str(ranks)]
    return record_of([*launch, str(folder / "bin" / "scalemark"), "preflight", "--device", "cuda", "--json", "--output",
                      str(LOGS / "preflight.json")], environment)


def run_resnet(folder, environment, arguments):
    """(record or None, exit code) of one bf16 ResNet50 run on one GPU."""
    command = [str(folder / "bin" / "scalemark"), "run", "--model", "resnet50", "--precision", "bf16", "--device", "cuda",
               "--batch_size", str(arguments.batch_size), "--num_batches", str(arguments.steps), "--json"]
    return record_of(command, environment)


def finite(value):
    return isinstance(value, (int, float)) and math.isfinite(value)


def preflight_rows(preflight, code):
    """The verdict, and a row for each check that failed or warned."""
    rows = [("preflight", f"exit {code}, verdict {(preflight or {}).get('verdict', 'no record')}")]
    for check in (preflight or {}).get("checks", []):
        if check["status"] in ("warn", "fail"):
            rows.append((f"  {check['status']}", f"{check['name']} {check['statistic']}: {check['message']}"))
    return rows


def print_table(gpu, tests, preflight, record, code):
    throughput = (record or {}).get("throughput") or {}
    loss = (record or {}).get("loss") or {}
    rows = [("GPU", f"{gpu['name']}, {gpu['memory']}"), ("driver", gpu["driver"]),
            ("GPU tests", f"{tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped"),
            *preflight_rows(*preflight),
            ("ResNet50 bf16", f"exit {code}, status {(record or {}).get('status', 'no record')}"),
            ("images/sec", f"{throughput['mean']:.1f}" if finite(throughput.get("mean")) else "-"),
            ("loss first, last", ", ".join(f"{loss[k]:.3f}" if finite(loss.get(k)) else "not finite" if loss else "-"
                                           for k in ("first", "last")))]
    for name, value in rows:
        print(f"{name:<18}{value}")
    return all(finite(loss.get(k)) for k in ("first", "last")) and finite(throughput.get("mean"))


def check_build(arguments):
    """scripts/gpu_check without --bundle; returns its exit code."""
    gpu = first_gpu()
    LOGS.mkdir(parents=True, exist_ok=True)
    environment, torch_root = dict(os.environ), None
    if arguments.python:
        torch_root, libraries = torch_folders(arguments.python)
        old = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = ":".join([*map(str, libraries), *([old] if old else [])])
    folder = arguments.build.resolve() if arguments.build else build(torch_root)
    if not (folder / "bin" / "scalemark").exists():
        fail(f"{folder}/bin/scalemark does not exist: give a finished build folder to --build")
    tests = run_tests(folder, environment)
    preflight = run_preflight(folder, environment, gpu["count"])
    record, code = run_resnet(folder, environment, arguments)
    healthy = print_table(gpu, tests, preflight, record, code)
    return 0 if healthy and code == 0 and preflight[1] == 0 and tests["failed"] == 0 and tests["passed"] > 0 else 4

