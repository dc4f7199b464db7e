"""What the PyTorch peers of scripts/speed share: flags, the process group, the measured loop and its JSON.

Under mpirun (OMPI_COMM_WORLD_SIZE above 1) the ranks train with DistributedDataParallel over Gloo. Rank 0 prints one
JSON object: units/sec of all ranks by the median of its own steps, step seconds, first and last loss, versions.
"""

import argparse
import datetime
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", 0))
WORLD_SIZE = int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1))


def parser(description, batch_size):
    flags = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="bf16: autocast")
    flags.add_argument("--batch_size", type=int, default=batch_size, help="samples per rank")
    flags.add_argument("--threads", type=int, default=2, help="compute threads per rank")
    flags.add_argument("--steps", type=int, default=10, help="measured steps")
    flags.add_argument("--warmup", type=int, default=3, help="steps before them")
    flags.add_argument("--wire_dtype", choices=["fp32", "bf16"], default="fp32",
                       help="of gradients on the network; bf16: DDP's bf16_compress_hook")
    return flags


def start(arguments):
    """Threads, seed and, with more than one rank, the process group: to be called before the model is made."""
    torch.set_flush_denormal(True)  # as scalemark does; threads that start later inherit it
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1234 + RANK)  # data and dropout of each rank; DDP gives all of them rank 0's weights
    if WORLD_SIZE > 1:
        hosts = os.environ.get("NETLAB_HOSTS")  # set by scripts/netlab, together with GLOO_SOCKET_IFNAME
        os.environ.setdefault("MASTER_ADDR", hosts.split(",")[0] if hosts else "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29500")
        if not hosts:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", rank=RANK, world_size=WORLD_SIZE, timeout=datetime.timedelta(minutes=5))


def distributed(model, wire_dtype):
    # Buffers are the running statistics of BatchNorm, which training does not read: not worth a broadcast a step.
    wrapped = DistributedDataParallel(model, broadcast_buffers=False, gradient_as_bucket_view=True)
    if wire_dtype == "bf16":
        wrapped.register_comm_hook(None, default_hooks.bf16_compress_hook)
    return wrapped


def run(arguments, model, optimizer, loss_of, units_per_step, unit):
    """Trains and prints. loss_of(model): one forward pass of this rank's batch; units_per_step: of this rank."""
    parameters = sum(p.numel() for p in model.parameters())
    if WORLD_SIZE > 1:
        model = distributed(model, arguments.wire_dtype)
    seconds, losses = [], []
    for _ in range(arguments.warmup + arguments.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=arguments.precision == "bf16"):
            loss = loss_of(model)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    seconds = seconds[arguments.warmup:]
    if WORLD_SIZE > 1:
        dist.destroy_process_group()
    if RANK == 0:
        print(json.dumps({
            "unit": unit,
            "throughput": WORLD_SIZE * units_per_step / statistics.median(seconds),
            "step_seconds": seconds,
            "loss": {"first": losses[0], "last": losses[-1]},
            "parameters": parameters,
            "world_size": WORLD_SIZE,
            "versions": {"torch": torch.__version__, "python": sys.version.split()[0]},
        }))
