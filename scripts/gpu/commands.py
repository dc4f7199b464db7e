"""The command lines of a visit's steps: full sizes on a GPU, tiny ones of the same form with --device cpu."""

import dataclasses
import pathlib
import shutil

import readers
from steps import Step


@dataclasses.dataclass(frozen=True)
class Place:
    """bundle: the folder of scripts/gpu_bundle. python: that has torch. help_text: of `scalemark help run all`."""

    bundle: pathlib.Path
    python: str
    device: str
    help_text: str = ""

    @property
    def on_gpu(self):
        return self.device == "cuda"

    def run(self, *words):
        """A program of the folder."""
        return (self.bundle / "run", *words)

    def scalemark(self, command, *flags):
        return self.run("scalemark", command, "--device", self.device, *flags)

    def measured(self, command, *flags):
        """With its record in the step's folder."""
        return self.scalemark(command, *flags, "--output", "record.json")

    def script(self, path, *words):
        return (self.python, self.bundle / path, *words)

    def has_flag(self, name):
        return f"--{name} " in self.help_text

    def programs(self):
        return sorted(path.name for path in (self.bundle / "bin").iterdir())

    def on_gpu_only(self, step):
        """The step, or on the CPU a skipped one."""
        return step if self.on_gpu else dataclasses.replace(step, words=(), skip="needs a GPU")

    # Workloads: flags of scalemark, and the same of the peers.

    def steps(self, measured, warmup):
        return ("--num_batches", measured if self.on_gpu else 2, "--num_warmup_batches", warmup if self.on_gpu else 1)

    def precision(self, wanted="bf16"):
        """A CPU may have no native bf16 and fp16, and takes seconds a step then; it has no tf32, which is exit code 7."""
        return ("--precision", wanted if self.on_gpu or wanted == "tf32" else "fp32")

    def resnet(self, precision="bf16", batch=256):
        if self.on_gpu:
            return ("--model", "resnet50", *self.precision(precision), "--batch_size", batch)
        return ("--model", "smallnet", *self.precision(precision), "--batch_size", 2)

    def transformer(self, tokens=10240, length=64):
        if self.on_gpu:
            return ("--model", "transformer_big", *self.precision(), "--batch_size", tokens // length,
                    "--sequence_length", length)
        return ("--model", "transformer_tiny", *self.precision(), "--batch_size", 2, "--sequence_length", 8)

    def bert(self, batch=64, length=128):
        if self.on_gpu:
            return ("--model", "bert_large", *self.precision(), "--batch_size", batch, "--sequence_length", length)
        return ("--model", "bert_tiny", *self.precision(), "--batch_size", 2, "--sequence_length", 16)

    def peer_steps(self, measured, warmup):
        return ("--device", self.device, "--steps", measured if self.on_gpu else 1, "--warmup", warmup if self.on_gpu else 1)

    def peer_resnet(self, batch=256, image_size=224):
        size = (batch, image_size) if self.on_gpu else (2, 64)
        return (*self.precision(), "--batch_size", size[0], "--image_size", size[1])

    def peer_transformer(self, tokens=10240, length=64):
        if self.on_gpu:
            return (*self.precision(), "--batch_size", tokens // length, "--sequence_length", length)
        return (*self.precision(), "--batch_size", 2, "--sequence_length", 8, "--layers", 1, "--width", 32, "--heads", 2,
                "--ffn", 64, "--vocabulary", 50)

    def peer_bert(self, batch=64, length=128):
        if self.on_gpu:
            return (*self.precision(), "--batch_size", batch, "--sequence_length", length)
        return (*self.precision(), "--batch_size", 2, "--sequence_length", 16, "--layers", 1, "--width", 32, "--heads", 2,
                "--vocabulary", 50)

    def smallnet(self, steps):
        """Of the engine itself: nothing else is to be looked at."""
        return (self.bundle / "libexec/scalemark-engine", "run", "--device", self.device, "--model", "smallnet", "--batch_size", 4,
                "--num_batches", steps, "--num_warmup_batches", 1, "--noroofline")

    # Steps that several rows have.

    def training(self, name, limit, *flags, learns="", **more):
        return Step(name, limit, self.measured("run", *flags), learns, read=readers.record, **more)

    def peer(self, name, limit, script, *flags, learns="", **more):
        return Step(name, limit, self.script(f"lab/peers/{script}", *flags), learns, read=readers.peer, **more)

    def tests(self, name, limit, learns, *words):
        """A GoogleTest program; without colours, which mpirun's terminal would get."""
        return Step(name, limit, self.run(*words), learns, read=readers.tests_on_gpu if self.on_gpu else readers.tests,
                    variables=(("GTEST_COLOR", "no"),))

    def sanitized(self, name, limit, tool, *program):
        sanitizer = shutil.which("compute-sanitizer")
        words = self.run(sanitizer or "compute-sanitizer", "--tool", tool, "--target-processes", "all", "--error-exitcode", "9",
                         *program)
        step = Step(name, limit, words, f"{tool}: errors that end nothing by themselves", read=readers.sanitizer)
        return self.on_gpu_only(step if sanitizer else dataclasses.replace(
            step, words=(), skip="there is no compute-sanitizer"))
