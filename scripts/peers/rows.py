"""The rows of scripts/speed: what each trains or infers, on how many ranks, and the exact command of every subject.

Commands are relative to the repository root and need no variables of their own: `scripts/speed --list` prints them.
"""

import dataclasses
import os
import pathlib
import shutil
import socket
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHARED_MEMORY, NETLAB = "shared memory", "netlab 1gbit"


class Unavailable(Exception):
    """This machine lacks what a row needs."""


@dataclasses.dataclass(frozen=True)
class Subject:
    """One way to compute a row. against: the subjects that its speed is divided by. ours: computed by scalemark."""

    name: str
    flags: tuple = ()
    tcmalloc: bool = False
    against: tuple = ()
    ours: bool = False


def _ours(name="scalemark", flags=(), against=()):
    return Subject(name, flags, against=against, ours=True)


ONE_PROCESS = (_ours(against=("pytorch", "pytorch+tcmalloc")),
               Subject("pytorch"), Subject("pytorch+tcmalloc", tcmalloc=True))
INFERENCE = (_ours(against=("pytorch", "pytorch+tcmalloc", "compiled+tcmalloc")),
             Subject("pytorch"), Subject("pytorch+tcmalloc", tcmalloc=True),
             Subject("compiled+tcmalloc", ("--compile",), tcmalloc=True))
TWO_RANKS = (_ours(against=("ddp", "ddp+tcmalloc")),
             Subject("ddp"), Subject("ddp+tcmalloc", tcmalloc=True))
# Divided only by what sends gradients of the same type.
TWO_HOSTS = (_ours(flags=("--overlap", "none"), against=("ddp+tcmalloc",)),
             _ours("scalemark overlap", ("--overlap", "backward"), ("ddp+tcmalloc",)),
             _ours("scalemark overlap bf16 wire", ("--overlap", "backward", "--wire_dtype", "bf16"),
                   ("ddp bf16 wire+tcmalloc",)),
             Subject("ddp+tcmalloc", tcmalloc=True),
             Subject("ddp bf16 wire+tcmalloc", ("--wire_dtype", "bf16"), tcmalloc=True))
# One program: LibTorch's Reducer with our buckets, and with those of DistributedDataParallel.
REDUCERS = (_ours(against=("c10d", "c10d 25 MiB")),
            _ours("c10d", ("--reducer", "c10d")),
            _ours("c10d 25 MiB", ("--reducer", "c10d", "--bucket_mb", "25")))


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    model: str
    precision: str
    batch_size: int  # samples per rank
    subjects: tuple = ONE_PROCESS
    ranks: int = 1
    threads: int = 2  # per rank
    network: str | None = None
    image_size: int | None = 224
    sequence_length: int | None = None
    inference: bool = False

    @property
    def unit(self):
        return "images/sec" if self.sequence_length is None else "tokens/sec"


def _two(**facts):
    return {"ranks": 2, "threads": 1, **facts}


_SHARED = _two(subjects=TWO_RANKS, network=SHARED_MEMORY)
_HOSTS = _two(subjects=TWO_HOSTS, network=NETLAB)
_REDUCERS = _two(subjects=REDUCERS, network=SHARED_MEMORY)
_TOKENS = {"image_size": None, "sequence_length": 64}
ROWS = {row.name: row for row in (
    Row("resnet50 fp32", "resnet50", "fp32", 16),
    Row("resnet50 bf16", "resnet50", "bf16", 16),
    Row("resnet50 fp32 inference", "resnet50", "fp32", 16, INFERENCE, inference=True),
    Row("resnet50 bf16 inference", "resnet50", "bf16", 16, INFERENCE, inference=True),
    Row("transformer_big fp32", "transformer_big", "fp32", 4, **_TOKENS),
    Row("transformer_big bf16", "transformer_big", "bf16", 4, **_TOKENS),
    Row("resnet50 fp32 2 ranks", "resnet50", "fp32", 8, **_SHARED),
    Row("resnet50 bf16 2 ranks", "resnet50", "bf16", 8, **_SHARED),
    Row("resnet50 bf16 reducers", "resnet50", "bf16", 4, **_REDUCERS),
    Row("transformer_base fp32 reducers", "transformer_base", "fp32", 4, **_REDUCERS, **_TOKENS),
    Row("resnet50 bf16 1gbit", "resnet50", "bf16", 4, **_HOSTS),
    Row("transformer_base bf16 1gbit", "transformer_base", "bf16", 8, **_HOSTS, **_TOKENS),
)}


def tcmalloc_path():
    """The loader's name of tcmalloc_minimal; set-up installs it."""
    known = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    for line in known.splitlines():
        if line.strip().startswith("libtcmalloc_minimal.so.4 "):
            return line.split(" => ")[1]
    raise Unavailable("libtcmalloc_minimal.so.4 is missing: run scripts/setup")


def check_machine(row):
    """Raises Unavailable, with the remedy, where the row cannot run here."""
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
        variables = [f"OMP_NUM_THREADS={row.threads}"]
        if row.ranks > 1:
            variables.append(f"MASTER_PORT={_free_port()}")
        if subject.tcmalloc:
            variables.append(f"LD_PRELOAD={tcmalloc_path()}")
        if row.inference:
            peer = ["scripts/peers/pytorch_inference.py"]
        elif row.sequence_length is None:
            peer = ["scripts/peers/pytorch_resnet.py"]
        else:
            peer = ["scripts/peers/pytorch_transformer.py", "--model", row.model]
        words = ["env", *variables, python, *peer, *arithmetic, "--threads", row.threads, "--steps", steps,
                 "--warmup", warmup, *subject.flags]
    return [str(word) for word in (*_launcher(row), *words)]
