"""From the arguments of scripts/gpu_check --bundle to a visit, where the folder, torch and a GPU are there."""

import json
import os
import pathlib
import subprocess
import sys

from commands import Place
from visit import table_of, visit

MINUTES = {1: 9, 2: 5}


class Missing(Exception):
    """Without it there is no visit; the message says what it is."""


def torch_of(python):
    script = "import importlib.util as util; spec = util.find_spec('torch'); print(spec.origin if spec else '')"
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    origin = done.stdout.strip()
    if not origin:
        raise Missing(f"{python} has no torch ({done.stderr.strip() or 'not installed'}): give --python or --torch")
    return pathlib.Path(origin).parent


def checked(words):
    """What a program says that must work before anything else."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(done.stderr.strip() or f"{words[-1]}: exit code {done.returncode}")
    return done.stdout


def visit_of(arguments):
    """The exit code. Raises Missing."""
    bundle, python = arguments.bundle.resolve(), arguments.python or sys.executable
    if not (bundle / "manifest.json").exists():
        raise Missing(f"{bundle} holds no manifest.json: give the folder that scripts/gpu_bundle made")
    os.environ["SCALEMARK_TORCH"] = str(arguments.torch or os.environ.get("SCALEMARK_TORCH") or torch_of(python))
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    help_text = checked([bundle / "run", "scalemark", "help", "run", "all"])  # also says where torch is another one
    place = Place(bundle, python, arguments.device, help_text)
    if arguments.after and not arguments.after.is_file():
        raise Missing(f"--after {arguments.after} does not exist")
    summary = visit(place, arguments.visit, arguments.minutes or MINUTES[arguments.visit], arguments.output, arguments.after,
                    json.loads((bundle / "manifest.json").read_text())["build"],
                    lambda text: print(f"[gpu_check] {text}", file=sys.stderr, flush=True))
    print(table_of(summary), end="")
    if summary["state"] == "no GPU":
        raise Missing("no GPU: neither nvidia-smi nor CUDA's driver finds one")
    expected = all(step["verdict"] != "not as expected" for step in summary["steps"])
    return 0 if expected and summary["state"] == "complete" else 4
