"""The steps of a first visit: whether anything works, then how fast, then the rest; in the order of what they tell."""

import dataclasses

import readers
from steps import Row, Step

# NCCL takes two ranks of one GPU when their hosts seem to be two (SMK_INTERNAL_SHARED_GPU sets NCCL_HOSTID of each): they
# meet over sockets of the loopback interface.
PAIR = (("SMK_INTERNAL_SHARED_GPU", "1"), ("NCCL_SOCKET_IFNAME", "lo"), ("NCCL_DEBUG", "INFO"),
        ("NCCL_DEBUG_FILE", "nccl.%p.txt"))


def rows(place):
    return (facts(place), start(place), gpu_tests(place), resnets(place), pair(place), eager_resnet(place),
            eager_sequences(place), traces(place), the_rest(place), memcheck(place))


def facts(place):
    device = place.on_gpu_only(Step(
        "cudnn_properties", 8, place.run(*place.script("scripts/gpu/cudnn_properties.py", "--output", "device_properties.json")),
        "the card as cuDNN knows it: which graphs have a plan", read=readers.json_of))
    return Row("facts", 15, "why all else may fail", (
        Step("facts", 12, place.run(*place.script("scripts/gpu/facts.py", place.bundle)), "driver, libraries, clocks, cores",
             expect=(0,) if place.on_gpu else (0, 7), read=readers.json_of), device))


def start(place):
    trivial = ("--model", "trivial", "--num_batches", 5, "--num_warmup_batches", 1)
    return Row("start", 30, "it loads and steps", (
        Step("version", 5, place.run("scalemark", "--version"), "the build", read=readers.text),
        place.training("trivial", 25, *trivial, learns="engine, device, record"),
        place.on_gpu_only(place.training("trivial_nccl", 12, *trivial, "--communicator", "nccl", learns="NCCL starts")),
        place.training("trivial_mpi", 12, *trivial, "--communicator", "mpi", learns="staged through the host")))


def gpu_tests(place):
    return Row("GPU tests", 100, "gradients, streams, NVML", tuple(
        place.tests(name, 45, "gradients, streams, NVML", name) for name in place.programs() if name.endswith("_gpu_test")))


def resnets(place):
    def one(precision, batch):
        step = place.training(f"resnet50_{precision}", 25, *place.resnet(precision, batch), *place.steps(30, 5),
                              learns="record, loss, speed")
        if precision == "tf32" and not place.on_gpu:  # a CPU has none
            step = dataclasses.replace(step, expect=(7,), read=None)
        return step

    return Row("ResNet50", 70, "records, loss falls, speed", (
        one("bf16", 256), one("fp16", 256), one("tf32", 256), one("fp32", 64)))


def pair(place):
    two = ("--ranks", 2)
    small = ("--model", "smallnet", "--batch_size", 8, "--num_batches", 20, "--num_warmup_batches", 2)
    faulty = (*small[:4], "--num_batches", 2000, "--num_warmup_batches", 2)

    def one(name, limit, words, learns, expect=(0,), read=readers.record):
        return Step(name, limit, words, learns, expect, read, PAIR)

    return Row("two NCCL ranks on one GPU", 60, "real NCCL: order, data, exit codes 4 and 5", (
        one("pair_allreduce", 15, place.measured("run", *two, *small), "allreduce of gradients, data check"),
        one("pair_allgather", 15, place.measured(
            "run", *two, "--model", "transformer_tiny", "--batch_size", 4, "--length_distribution", "uniform",
            "--embedding_gradients", "sparse", "--num_batches", 10, "--num_warmup_batches", 2),
            "unequal allgather of embedding rows"),
        *pair_programs(place),
        one("pair_killed", 15, place.measured("run", *two, *faulty, "--inject", "kill:rank=1:step=5"),
            "a rank is killed: exit code 4", (4,), readers.failed_record),
        one("pair_stopped", 28, place.measured("run", *two, *faulty, "--inject", "stop:rank=1:step=5", "--timeout", 12),
            "a rank stops: exit code 5", (5,), readers.failed_record),
        one("pair_collectives", 15, place.measured(
            "preflight", *two, "--seconds", 0.2, "--sizes", "8,65536,1048576", "--scratch_mb", 1),
            "every collective with its data check", (0, 4), readers.any_record)))


def pair_programs(place):
    """Of the tests, where the folder has them: they make ranks share a GPU themselves."""
    launch = ("mpirun", "-n", 2, "--oversubscribe", "--bind-to", "none")
    steps = (
        place.tests("pair_tests", 20, "order, unequal allgather, data", *launch, "comm_gpu_ranks_test"),
        place.on_gpu_only(Step("pair_throw", 12, place.run(*launch, "gpu_fault_rank", "nccl", "throw", 30),
                               "a rank fails alone: exit code 4, and the cause is said", (4,), readers.last_words)))
    return tuple(step for step, program in zip(steps, ("comm_gpu_ranks_test", "gpu_fault_rank")) if program in place.programs())


def eager_resnet(place):
    ours = (*place.resnet(), *place.steps(30, 5))
    theirs = (*place.peer_resnet(), *place.peer_steps(30, 5))
    return Row("ResNet50 bf16 and PyTorch eager", 60, "ratio", tuple(
        step for turn in (1, 2) for step in (
            place.training(f"resnet50_ours_{turn}", 22, *ours, learns="ratio"),
            place.peer(f"resnet50_eager_{turn}", 22, "pytorch_resnet.py", *theirs, learns="ratio"))))


def eager_sequences(place):
    return Row("Transformer-big, BERT-large and PyTorch eager", 80, "ratio", (
        place.training("transformer_ours", 25, *place.transformer(), *place.steps(20, 4), learns="ratio"),
        place.peer("transformer_eager", 25, "pytorch_transformer.py", *place.peer_transformer(), *place.peer_steps(20, 4),
                   learns="ratio"),
        place.training("bert_ours", 25, *place.bert(), *place.steps(20, 4), learns="ratio"),
        place.peer("bert_eager", 25, "pytorch_bert.py", *place.peer_bert(), *place.peer_steps(20, 4), learns="ratio")))


def traces(place):
    """A run of two steps, and two more that are recorded."""
    def one(name, flags):
        return Step(name, 15, place.measured("run", *flags, "--num_batches", 2, "--num_warmup_batches", 1, "--noroofline",
                                             "--trace", "trace.json", "--trace_steps", 2),
                    "kernels by time, launches, idle share", read=readers.trace_with_kernels if place.on_gpu else readers.trace)

    return Row("kernels", 25, "what to speed up", (
        one("trace_resnet50", place.resnet()), one("trace_transformer", place.transformer()), one("trace_bert", place.bert())))


def the_rest(place):
    """Faults and what the rows above have not met."""
    small = ("--num_batches", 5, "--num_warmup_batches", 1)
    return Row("the rest", 70, "the rest of the CUDA path", (
        place.on_gpu_only(Step(  # 1,048,576 tokens: logits alone are 137 GB
            "out_of_memory", 20, place.measured("run", *place.transformer(tokens=1 << 20), *small),
            "exit code 4 with the GPU's bytes", (4,), readers.failed_record)),
        place.on_gpu_only(place.training("batch_max", 30, "--model", "bert_large", *place.precision(),
                                         "--sequence_length", 128, "--batch_size", "max", *small, learns="the largest batch is found")),
        place.on_gpu_only(Step("device_fault", 15, place.measured(
            "run", "--model", "smallnet", "--batch_size", 8, "--inject", "device_fault:step=3", *small),
            "an illegal access: exit code 4 with a record", (4,), readers.failed_record)),
        Step("energy", 15, place.measured("run", *place.resnet(), *place.steps(40, 5), "--window_seconds", 1),
             "joules, clocks, watts", read=readers.energy if place.on_gpu else readers.record),
        Step("infer", 15, place.measured("infer", *place.resnet(), *place.steps(30, 5)), "folded inference",
             read=readers.record),
        place.training("input_host", 15, *place.resnet(), *place.steps(20, 5), "--input", "host", learns="copies in the clock"),
        place.training("c10d", 15, *place.resnet(), *place.steps(10, 3), "--reducer", "c10d", learns="PyTorch's reducer"),
        Step("pinning", 8, place.measured("preflight", "--pinning"), "where the rank runs", (0,), readers.any_record),
        Step("preflight", 25, place.measured("preflight", "--seconds", 0.3, "--scratch_mb", 16), "GEMM, copies, clocks", (0,),
             readers.any_record)))


def memcheck(place):
    return Row("compute-sanitizer", 45, "silent errors", (
        place.sanitized("memcheck_smallnet", 25, "memcheck", *place.smallnet(2)),
        place.sanitized("memcheck_comm", 25, "memcheck", "comm_gpu_test")))
