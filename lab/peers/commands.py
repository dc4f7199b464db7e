"""The exact command of every subject of a row, and what this machine lacks for it.

Commands are relative to the repository root and need no variables of their own: `lab/speed --list` prints them.
"""

import os
import pathlib
import shutil
import socket
import subprocess

from machine import native_bf16
from rows import NETLAB

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PEERS = {"resnet50": "pytorch_resnet.py", "transformer_base": "pytorch_transformer.py",
         "transformer_big": "pytorch_transformer.py", "bert_base": "pytorch_bert.py", "bert_large": "pytorch_bert.py",
         "gpt2": "pytorch_decoder.py", "llama_125m": "pytorch_decoder.py"}


class Unavailable(Exception):
    """This machine lacks what a row needs."""


def tcmalloc_path():
    """The loader's name of tcmalloc_minimal; set-up installs it."""
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    for line in known.splitlines():
        if line.strip().startswith("libtcmalloc_minimal.so.4 "):
            return line.split(" => ")[1]
    raise Unavailable("libtcmalloc_minimal.so.4 is missing: run scripts/setup")


def check_machine(row):
    """Raises Unavailable, with the remedy, where the row cannot run here."""
    if row.precision == "bf16" and not native_bf16():
        raise Unavailable("no native bf16 instructions: /proc/cpuinfo names none of avx512_bf16, amx_bf16 and bf16")
    if row.ranks > 1 and shutil.which("mpirun") is None:
        raise Unavailable("mpirun is missing: run scripts/setup")
    if (cores := len(os.sched_getaffinity(0))) < row.ranks:
        raise Unavailable(f"{row.ranks} ranks need a core each, and this process may use {cores}")
    if row.network == NETLAB:
        if not (SOURCE / "scripts" / "netlab").exists():
            raise Unavailable("scripts/netlab is missing")
        if os.geteuid() != 0:
            raise Unavailable("scripts/netlab makes network namespaces: run as root")
        for tool in ("ip", "tc"):
            if shutil.which(tool) is None:
                raise Unavailable(f"scripts/netlab needs {tool}: install iproute2")


def _free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _launcher(row):
    if row.ranks == 1:
        return []
    words = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "-n", str(row.ranks),
             "--map-by", "core", "--bind-to", "core"]
    if row.network == NETLAB:  # one rank a host, for a host has one core
        return ["scripts/netlab", "--hosts", str(row.ranks), "--rate", "1gbit", "--cores_per_host", "1", "--", *words]
    return words


def _variables(row, subject):
    """Of a peer's environment."""
    yield f"OMP_NUM_THREADS={row.threads}"
    if row.ranks > 1:
        yield f"MASTER_PORT={_free_port()}"
    if subject.tcmalloc:
        yield f"LD_PRELOAD={tcmalloc_path()}"
        yield "THP_MEM_ALLOC_ENABLE=1"  # huge pages, as scalemark


def command(row, subject, steps, warmup, scalemark, python):
    """argv of one fresh measurement, to be started in the repository root. Raises Unavailable."""
    size = ["--image_size", row.image_size] if row.sequence_length is None else [
        "--sequence_length", row.sequence_length]
    arithmetic = ["--precision", row.precision, "--batch_size", row.batch_size, *size]
    if subject.ours:
        words = [scalemark, "infer" if row.inference else "run", "--model", row.model, "--device", "cpu", *arithmetic,
                 "--num_intra_threads", row.threads, "--num_batches", steps, "--num_warmup_batches", warmup,
                 *subject.flags, "--json"]
    else:
        script = "pytorch_inference.py" if row.inference else PEERS[row.model]
        model = [] if row.sequence_length is None else ["--model", row.model]
        words = ["env", *_variables(row, subject), python, f"lab/peers/{script}", *model, *arithmetic,
                 "--threads", row.threads, "--steps", steps, "--warmup", warmup, *subject.flags]
    return [str(word) for word in (*_launcher(row), *words)]
