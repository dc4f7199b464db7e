"""The steps of a second visit, after what the first has found was mended: what failed, then settings and peers in turn on
the same card."""

import first_visit
import readers
from steps import Row, Step

GRAPHS = ("--compile", "--compile_mode", "reduce-overhead")  # CUDA graphs
WATTS = ("--window_seconds", 1)  # clocks, watts and temperature by the second; joules are in every record


def rows(place, before=None):
    """before: the summary of the first visit."""
    workloads = (("resnet50", place.resnet(), "pytorch_resnet.py", place.peer_resnet()),
                 ("transformer", place.transformer(), "pytorch_transformer.py", place.peer_transformer()),
                 ("bert", place.bert(), "pytorch_bert.py", place.peer_bert()))
    return (first_visit.facts(place), again(place, before), *(in_turn(place, *workload) for workload in workloads), sizes(place),
            inference(place), side_by_side(place), racecheck(place), tuned(place))


def again(place, before):
    """What was not as expected or had no time."""
    known = {step.name: step for row in first_visit.rows(place)[1:] for step in row.steps}
    wanted = [step["step"] for step in (before or {}).get("steps", [])
              if step["verdict"] == "not as expected" or (step["verdict"] == "skipped" and "left" in step.get("why", ""))]
    steps = tuple(known[name] for name in wanted if name in known)
    return Row("again", 60, "what failed before", steps or (
        Step("again", 1, skip="--after names no summary" if before is None else "everything was as expected"),))


def plain(place):
    """PyTorch's operators in place of ours, by the name that this build has."""
    return ("--kernels", "torch") if place.has_flag("kernels") else ("--fused", "off")


def in_turn(place, name, ours, script, theirs):
    """Ours, with PyTorch's operators in place of our kernels (plain), with the Triton kernels, and with a CUDA graph; PyTorch
    eager and compiled."""
    def run(subject, *flags):
        return place.training(f"{name}_{subject}", 16, *ours, *place.steps(20, 4), *WATTS, *flags, learns="speed, losses, watts")

    def peer(subject, limit, *flags):
        return place.peer(f"{name}_{subject}", limit, script, *theirs, *place.peer_steps(20, 4), *flags, learns="ratio")

    return Row(f"{name} in turn", 100, "ratios; what our kernels gain; losses bit-equal or how far apart", (
        run("ours_1"), peer("eager_1", 20), place.on_gpu_only(peer("compiled", 75, *GRAPHS)), run("plain", *plain(place)),
        place.on_gpu_only(run("triton", "--kernels", "triton")), place.on_gpu_only(run("graph", "--cuda_graph", "on")),
        run("ours_2"), peer("eager_2", 20)))


def sizes(place):
    small = ("resnet50_of_16", 16, *place.resnet(batch=16), *place.steps(40, 8))  # in which launches are the limit
    return Row("sizes", 70, "batch, tokens, sequence length; what a CUDA graph gains where steps are short", (
        place.training(*small),
        place.on_gpu_only(place.training("resnet50_of_16_graph", *small[1:], "--cuda_graph", "on")),
        place.training("resnet50_of_1024", 16, *place.resnet(batch=1024), *place.steps(15, 3), *WATTS),
        place.training("transformer_of_25600", 16, *place.transformer(tokens=25600), *place.steps(15, 3), *WATTS),
        place.training("bert_of_length_512", 16, *place.bert(batch=32, length=512), *place.steps(15, 3), *WATTS)))


def inference(place):
    theirs = ("--device", place.device, *place.precision(), "--batch_size", 1, "--image_size", 224 if place.on_gpu else 32,
              "--steps", 200 if place.on_gpu else 1, "--warmup", 20 if place.on_gpu else 1)
    batch = (*place.resnet(), *place.steps(30, 5))
    return Row("inference", 70, "what folding gains; latency of batch 1", (
        Step("infer_ours", 14, place.measured("infer", *batch), "throughput", read=readers.record),
        Step("infer_plain", 14, place.measured("infer", *batch, *plain(place)), "throughput", read=readers.record),
        Step("inference_ours", 14, place.measured("infer", *place.resnet(batch=1), "--mode", "single_stream", *place.steps(300, 20)),
             "latency", read=readers.record),
        place.peer("inference_eager", 14, "pytorch_inference.py", *theirs, learns="latency"),
        place.on_gpu_only(place.peer("inference_compiled", 40, "pytorch_inference.py", *theirs, *GRAPHS, learns="latency"))))


def side_by_side(place):
    """A GPU is one slot: one instance on one GPU, on several cards one on each."""
    slots = ("--slots", "gpu") if place.on_gpu else ("--instances", "1,2")
    words = place.scalemark("instances", *slots, *place.resnet(), "--num_batches", 100000, "--max_seconds", 2, "--repeats", 1,
                            "--output", "record.json")
    return Row("instances", 40, "jobs on one GPU", (Step("instances", 40, words, "instances on one GPU", read=readers.any_record),))


def racecheck(place):
    return Row("racecheck", 45, "races within our kernels", (
        place.sanitized("racecheck_smallnet", 45, "racecheck", *place.smallnet(1)),))


def tuned(place):
    return Row("max-autotune", 120, "the fastest PyTorch", (place.on_gpu_only(place.peer(
        "resnet50_max_autotune", 120, "pytorch_resnet.py", *place.peer_resnet(), *place.peer_steps(20, 4), "--compile",
        "--compile_mode", "max-autotune", learns="ratio")),))
