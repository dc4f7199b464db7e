"""What the PyTorch peers of lab/speed and scripts/gpu_check share: flags, the process group, the measured loop and its
JSON.

With --device cuda a process has one GPU: steps are queued without waiting for any, and timed by events. Under mpirun
(OMPI_COMM_WORLD_SIZE above 1) the ranks train with DistributedDataParallel over Gloo, or as --shard says. Rank 0 prints one
JSON object: units/sec of all ranks by the median of its own steps, step seconds, first and last loss, the largest
rank's peak resident memory in the measured steps, versions. Exit 7 where what a flag asks for is missing.
"""

import argparse
import datetime
import inspect
import json
import os
import statistics
import sys
import time

import process_memory
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from interleaving import InterleavedRank, steps_of_a_slice

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
    flags.add_argument("--bucket_mb", type=float, help="of DDP, MiB (default: its own)")
    flags.add_argument("--shard", choices=["none", "optimizer", "parameters"], default="none",
                       help="of several ranks: DDP; DDP with ZeroRedundancyOptimizer; FSDP2 (fully_shard), layer by layer")
    flags.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: one process on one GPU")
    flags.add_argument("--compile", action="store_true", help="torch.compile of network and loss")
    flags.add_argument("--compile_mode", default="default", choices=["default", "reduce-overhead", "max-autotune"],
                       help="reduce-overhead: with CUDA graphs")
    flags.add_argument("--ipex", action="store_true", help="optimise with Intel's extension for PyTorch")
    return flags


def sequence_parser(description, sizes, model, length):
    """Of a model of sequences; sizes: {name: {dimension: default}}."""
    flags = parser(description, batch_size=4)
    flags.add_argument("--model", choices=list(sizes), default=model)
    flags.add_argument("--sequence_length", type=int, default=length, help="tokens (default %(default)s)")
    for name in sizes[model]:
        flags.add_argument(f"--{name}", type=int, help="instead of the model's, for a quick try")
    return flags


def size_of(arguments, sizes):
    return {name: getattr(arguments, name) or value for name, value in sizes[arguments.model].items()}


def start(arguments):
    """Threads, seed and, with more than one rank, the process group: to be called before the model is made."""
    torch.set_flush_denormal(True)  # as scalemark does; threads that start later inherit it
    torch.set_num_threads(arguments.threads)
    if arguments.device == "cuda":
        if not torch.cuda.is_available():
            print("--device cuda: torch sees no GPU", file=sys.stderr)
            sys.exit(7)
        torch.backends.cudnn.benchmark = True  # as scalemark does
    torch.manual_seed(1234 + RANK)  # data and dropout of each rank; DDP gives all of them rank 0's weights
    if WORLD_SIZE > 1:
        hosts = os.environ.get("NETLAB_HOSTS")  # set by scripts/netlab, together with GLOO_SOCKET_IFNAME
        os.environ.setdefault("MASTER_ADDR", hosts.split(",")[0] if hosts else "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29500")
        if not hosts:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", rank=RANK, world_size=WORLD_SIZE, timeout=datetime.timedelta(minutes=5))


def distributed(model, wire_dtype, bucket_mb):
    # Buffers are the running statistics of BatchNorm, which training does not read: not worth a broadcast a step. Every
    # step uses the same parameters: DDP need not look for them.
    wrapped = DistributedDataParallel(model, broadcast_buffers=False, gradient_as_bucket_view=True, static_graph=True,
                                      bucket_cap_mb=bucket_mb)
    if wire_dtype == "bf16":
        wrapped.register_comm_hook(None, default_hooks.bf16_compress_hook)
    return wrapped


def settings_of(optimizer):
    """What another one of its kind is made with."""
    taken = inspect.signature(type(optimizer)).parameters
    return {name: value for name, value in optimizer.defaults.items() if name in taken}


def sharded(model, optimizer, arguments):
    """Both as FSDP2 and ZeroRedundancyOptimizer make them. Parameters travel in bf16 with --precision bf16, gradients in fp32."""
    if arguments.shard == "optimizer":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        return (distributed(model, arguments.wire_dtype, arguments.bucket_mb),
                ZeroRedundancyOptimizer(model.parameters(), optimizer_class=type(optimizer), **settings_of(optimizer)))
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    how = {"mesh": init_device_mesh("cpu", (WORLD_SIZE,)), **({"mp_policy": policy} if arguments.precision == "bf16" else {})}
    for weight in model.parameters():  # DDP gives all ranks those of rank 0; fully_shard does not
        dist.broadcast(weight.data, 0)
    for layer in model.layers:
        fully_shard(layer, **how)
    fully_shard(model, **how)
    return model, type(optimizer)(model.parameters(), **settings_of(optimizer))


def with_extension(model, optimizer, precision):
    """Both as Intel's extension makes them. Exit 7 where it is missing or does not fit this torch."""
    try:
        import intel_extension_for_pytorch as ipex
    except (Exception, SystemExit) as problem:  # noqa: BLE001: a version that does not fit ends the program in its own ways
        print(f"intel_extension_for_pytorch with torch {torch.__version__}: {problem!r}", file=sys.stderr)
        sys.exit(7)
    return ipex.optimize(model, optimizer=optimizer, dtype=torch.bfloat16 if precision == "bf16" else torch.float32)


def largest_of_ranks(number):
    if WORLD_SIZE == 1:
        return number
    shared = torch.tensor(number)
    dist.all_reduce(shared, dist.ReduceOp.MAX)
    return shared.item()


def steps_until_others(warm_up):
    """Of this job's slices, the same on all ranks. warm_up: seconds of steps."""
    step = statistics.median(warm_up[1:] or warm_up or [1.0])  # the first makes buffers, or compiles
    return steps_of_a_slice(largest_of_ranks(step), WORLD_SIZE)


def train_on_gpu(arguments, model, optimizer, loss_of, batch):
    """As train(), with the GPU's seconds and its peak memory in the measured steps; nothing waits for it before the end."""
    marks, losses = [torch.cuda.Event(enable_timing=True) for _ in range(arguments.warmup + arguments.steps + 1)], []
    for step, mark in enumerate(marks[:-1]):
        if step == arguments.warmup:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        mark.record()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=arguments.precision == "bf16"):
            loss = loss_of(model, *batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())  # a CUDA graph writes the next one to the same place
    marks[-1].record()
    torch.cuda.synchronize()
    seconds = [begin.elapsed_time(end) * 1e-3 for begin, end in zip(marks, marks[1:])]
    return seconds, [loss.item() for loss in losses], torch.cuda.max_memory_allocated()


def train(arguments, model, optimizer, loss_of, batch):
    """(seconds, loss) of every step, and this rank's peak resident memory in the measured ones."""
    seconds, losses, line, of_slice = [], [], InterleavedRank(), 1
    for step in range(arguments.warmup + arguments.steps):
        if step == arguments.warmup:
            of_slice = steps_until_others(seconds)
            process_memory.reset_peak()
        if step >= arguments.warmup and (step - arguments.warmup) % of_slice == 0:
            line.wait()
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=arguments.precision == "bf16"):
            loss = loss_of(model, *batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    peak = process_memory.peak_bytes()
    line.end()
    return seconds, losses, peak


def run(arguments, model, optimizer, loss_of, batch, units_per_step, unit):
    """Trains and prints. loss_of(model, *batch): one forward pass of this rank; units_per_step: of this rank."""
    parameters = sum(p.numel() for p in model.parameters())
    if arguments.ipex:
        model, optimizer = with_extension(model, optimizer, arguments.precision)
    if WORLD_SIZE > 1 and arguments.shard == "none":
        model = distributed(model, arguments.wire_dtype, arguments.bucket_mb)
    elif WORLD_SIZE > 1:
        model, optimizer = sharded(model, optimizer, arguments)
    if arguments.compile:
        loss_of = torch.compile(loss_of, mode=arguments.compile_mode)
    measure = train_on_gpu if arguments.device == "cuda" else train
    seconds, losses, peak = measure(arguments, model, optimizer, loss_of, batch)
    seconds, peak = seconds[arguments.warmup:], largest_of_ranks(peak)
    if WORLD_SIZE > 1:
        dist.barrier()
    if RANK == 0:
        print(json.dumps({
            "unit": unit,
            "throughput": WORLD_SIZE * units_per_step / statistics.median(seconds),
            "step_seconds": seconds,
            "loss": {"first": losses[0], "last": losses[-1]},
            "peak_gpu_bytes" if arguments.device == "cuda" else "peak_rss_bytes": peak,
            "parameters": parameters,
            "world_size": WORLD_SIZE,
            "versions": {"torch": torch.__version__, "python": sys.version.split()[0]},
        }), flush=True)
    if WORLD_SIZE > 1:
        os._exit(0)  # the end of Gloo's threads aborts a process now and then
