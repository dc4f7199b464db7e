#!/usr/bin/env python3
"""ResNet50 inference in plain PyTorch, a peer that lab/speed compares with.

Eval mode, inference_mode, channels_last, a synthetic batch made once; eager, or with --compile torch.compile with
freezing (which folds batch normalisation and fuses through oneDNN). bf16: --bf16 weights casts weights and input once,
--bf16 autocast casts as it goes. Prints one JSON object: images/sec by the median step, step seconds, peak
resident memory in the measured steps, versions.
"""

import argparse
import json
import statistics
import sys
import time

import process_memory
import pytorch_resnet
import torch
from interleaving import InterleavedRank, steps_of_a_slice


def parse_arguments():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    flags.add_argument("--bf16", choices=["weights", "autocast"], default="weights", help="how bf16 is computed")
    flags.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    flags.add_argument("--compile", action="store_true", help="torch.compile with freezing")
    flags.add_argument("--compile_mode", default="default", choices=["default", "reduce-overhead", "max-autotune"],
                       help="reduce-overhead: with CUDA graphs")
    for name, default, text in (("batch_size", 16, "images"), ("image_size", 224, "pixels"), ("threads", 2, "compute threads"),
                                ("steps", 10, "measured steps"), ("warmup", 3, "steps before them")):
        flags.add_argument(f"--{name}", type=int, default=default, help=f"{text} (default %(default)s)")
    return flags.parse_args()


def make_network(arguments):
    """(network, images, autocast or not)."""
    torch.manual_seed(1234)
    model = pytorch_resnet.resnet50(1000).eval().to(arguments.device)
    images = torch.randn(arguments.batch_size, 3, arguments.image_size, arguments.image_size, device=arguments.device)
    if arguments.precision == "bf16" and arguments.bf16 == "weights":
        model, images = model.to(torch.bfloat16), images.to(torch.bfloat16)
    model, images = (thing.to(memory_format=torch.channels_last) for thing in (model, images))
    if arguments.compile:
        from torch._inductor import config as inductor  # slow to import, and needed here alone

        inductor.freezing = True
        model = torch.compile(model, mode=arguments.compile_mode)
    return model, images, arguments.precision == "bf16" and arguments.bf16 == "autocast"


def main():
    arguments = parse_arguments()
    torch.set_flush_denormal(True)  # as scalemark does; threads that start later inherit it
    torch.set_num_threads(arguments.threads)
    if on_gpu := arguments.device == "cuda":
        if not torch.cuda.is_available():
            print("--device cuda: torch sees no GPU", file=sys.stderr)
            sys.exit(7)
        torch.backends.cudnn.benchmark = True
    model, images, autocast = make_network(arguments)
    parameters = sum(p.numel() for p in model.parameters())
    seconds, line, of_slice = [], InterleavedRank(), 1
    with torch.inference_mode(), torch.autocast(arguments.device, dtype=torch.bfloat16, enabled=autocast):
        for step in range(arguments.warmup + arguments.steps):
            if step == arguments.warmup:
                of_slice = steps_of_a_slice(statistics.median(seconds[1:] or seconds or [1.0]), ranks=1)
                process_memory.reset_peak()
            if step >= arguments.warmup and (step - arguments.warmup) % of_slice == 0:
                line.wait()
            begin = time.perf_counter()
            model(images)
            if on_gpu:
                torch.cuda.synchronize()  # a query has its answer then
            seconds.append(time.perf_counter() - begin)
    peak = process_memory.peak_bytes()
    line.end()
    seconds = seconds[arguments.warmup:]
    print(json.dumps({"unit": "images/sec", "throughput": arguments.batch_size / statistics.median(seconds),
                      "step_seconds": seconds, "parameters": parameters, "world_size": 1,
                      "peak_rss_bytes": peak,
                      "versions": {"torch": torch.__version__, "python": sys.version.split()[0]}}))


if __name__ == "__main__":
    main()
