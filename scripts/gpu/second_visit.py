"""The steps of a second visit, after what the first has found was mended: what failed, then settings and peers in turn on
the same card."""

import dataclasses
import shutil

import first_visit
import readers
from steps import Row, Step

AGAIN_SECONDS = 60
GRAPHS = ("--compile", "--compile_mode", "reduce-overhead")  # CUDA graphs
WATTS = ("--window_seconds", 1)  # clocks, watts and temperature by the second, and joules with every record


def rows(place, before=None):
    """before: the summary of the first visit."""
    return (facts(place), again(place, before), fused(place), sizes(place), inference(place), compiled(place), side_by_side(place),
            racecheck(place))


def facts(place):
    return dataclasses.replace(first_visit.facts(place), name="facts")


def again(place, before):
    """What was not as expected or had no time."""
    known = {step.name: step for row in first_visit.rows(place) for step in row.steps}
    wanted = [step["step"] for step in (before or {}).get("steps", [])
              if step["verdict"] == "not as expected" or (step["verdict"] == "skipped" and "left" in step.get("why", ""))]
    steps = tuple(known[name] for name in wanted if name in known and name not in ("facts", "cudnn_properties"))
    return Row("again", AGAIN_SECONDS, "what failed before", steps or (
        Step("again", 1, skip="--after names no summary" if before is None else "everything was as expected"),))


def switch(place):
    """The flag that chooses our kernels or PyTorch's, by the name that this build has."""
    return ("--kernels", "scalemark", "torch") if place.has_flag("kernels") else ("--fused", "on", "off")


def fused(place):
    """The same steps with our kernels and PyTorch's: losses and speed."""
    flag, ours, theirs = switch(place)
    steps = [place.training(f"{model}_{flag[2:]}_{word}", 14, *flags, *place.steps(30, 5), flag, word, *WATTS,
                            learns="losses alike; speed")
             for model, flags in (("resnet50", place.resnet()), ("transformer", place.transformer()), ("bert", place.bert()))
             for word in (ours, theirs)]
    for word in ("on", "off"):
        step = place.training(f"resnet50_graph_{word}", 14, *place.resnet(), *place.steps(30, 5), "--cuda_graph", word, *WATTS,
                              learns="losses alike; speed")
        steps.append(step if place.has_flag("cuda_graph") else
                     dataclasses.replace(step, words=(), skip="this build has no --cuda_graph"))
    return Row("fused on and off", 70, "losses bit-equal or how far apart; what our kernels gain", tuple(steps))


def sizes(place):
    return Row("sizes", 50, "batch, tokens, sequence length", (
        place.training("resnet50_1024", 16, *place.resnet(batch=1024), *place.steps(15, 3), *WATTS),
        place.training("transformer_25600", 16, *place.transformer(tokens=25600), *place.steps(15, 3), *WATTS),
        place.training("bert_512", 16, *place.bert(batch=32, length=512), *place.steps(15, 3), *WATTS)))


def inference(place):
    one = place.resnet(batch=1)
    theirs = ("--device", place.device, *place.precision(), "--batch_size", 1, "--image_size", 224 if place.on_gpu else 32,
              "--steps", 200 if place.on_gpu else 1, "--warmup", 20 if place.on_gpu else 1)
    return Row("inference of batch 1", 40, "latency", (
        Step("infer_1", 14, place.measured("infer", *one, "--mode", "single_stream", *place.steps(300, 20)), "latency",
             read=readers.record),
        place.peer("infer_1_eager", 14, "pytorch_inference.py", *theirs, learns="latency"),
        place.on_gpu_only(place.peer("infer_1_compiled", 25, "pytorch_inference.py", *theirs, *GRAPHS,
                                     learns="latency with CUDA graphs"))))


def compiled(place):
    """Ours, eager and torch.compile with CUDA graphs in turn; max-autotune once, of ResNet50."""
    workloads = (
        ("resnet50", place.resnet(), "pytorch_resnet.py", place.peer_resnet()),
        ("transformer", place.transformer(), "pytorch_transformer.py", place.peer_transformer()),
        ("bert", place.bert(), "pytorch_bert.py", place.peer_bert()))
    steps = []
    for name, ours, script, theirs in workloads:
        steps += [place.training(f"{name}_turn_ours", 14, *ours, *place.steps(20, 4), *WATTS, learns="ratio"),
                  place.peer(f"{name}_turn_eager", 14, script, *theirs, *place.peer_steps(20, 4), learns="ratio"),
                  place.on_gpu_only(place.peer(f"{name}_turn_compiled", 60, script, *theirs, *place.peer_steps(20, 4), *GRAPHS,
                                               learns="ratio")),
                  place.training(f"{name}_turn_ours_2", 14, *ours, *place.steps(20, 4), *WATTS, learns="ratio")]
    tuned = place.on_gpu_only(place.peer("resnet50_max_autotune", 120, "pytorch_resnet.py", *place.peer_resnet(),
                                         *place.peer_steps(20, 4), "--compile", "--compile_mode", "max-autotune", learns="ratio"))
    return Row("eager and torch.compile", 240, "ratio", (*steps, tuned))


def side_by_side(place):
    """A GPU is one slot: of several cards each has an instance."""
    small = (*place.resnet(), "--num_batches", 100000, "--max_seconds", 2, "--repeats", 1)
    slots = ("--slots", "gpu") if place.on_gpu else ("--instances", "1,2")
    step = Step("instances", 40, place.scalemark("instances", *slots, *small, "--output", "record.json"),
                "instances on one GPU", read=readers.any_record)
    return Row("instances", 40, "jobs on one GPU", (step,))


def racecheck(place):
    tool = shutil.which("compute-sanitizer")
    small = place.scalemark("run", "--model", "smallnet", "--batch_size", 4, "--num_batches", 1, "--num_warmup_batches", 1,
                            "--noroofline")[1:]
    return Row("racecheck", 45, "races within our kernels", (place.sanitized("racecheck_smallnet", 45, "racecheck", tool, *small),))
