"""The rows of lab/speed: what each trains or infers, on how many ranks, by whom, and the goals of its ratios."""

import dataclasses

SHARED_MEMORY, NETLAB = "shared memory", "netlab 1gbit"


@dataclasses.dataclass(frozen=True)
class Subject:
    """One way to compute a row. ours: by scalemark. optional: where it fails, the row goes on without it."""

    name: str
    flags: tuple = ()
    tcmalloc: bool = False
    ours: bool = False
    optional: bool = False


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Speed of a subject divided by that of the fastest of its peers. goal: the least ratio."""

    subject: str
    peers: tuple
    goal: float | None = None


def _ours(name="scalemark", flags=()):
    return Subject(name, flags, ours=True)


# PyTorch as installed, and as tuned for a CPU.
TRAINING = (_ours(), Subject("pytorch"), Subject("pytorch+tcmalloc", tcmalloc=True),
            Subject("compiled+tcmalloc", ("--compile",), tcmalloc=True, optional=True),
            Subject("ipex+tcmalloc", ("--ipex",), tcmalloc=True, optional=True))
INFERENCE = (_ours(), Subject("pytorch"), Subject("pytorch+tcmalloc", tcmalloc=True),
             Subject("compiled+tcmalloc", ("--compile",), tcmalloc=True))
TWO_RANKS = (_ours(), Subject("ddp"), Subject("ddp+tcmalloc", tcmalloc=True))
# As PyTorch divides training: the optimizer's state by ZeroRedundancyOptimizer, or everything by FSDP2.
SHARDED = (_ours("scalemark none"), _ours("scalemark optimizer", ("--shard", "optimizer")),
           _ours("scalemark parameters", ("--shard", "parameters")),
           Subject("ddp+tcmalloc", tcmalloc=True),
           Subject("zero1+tcmalloc", ("--shard", "optimizer"), tcmalloc=True),
           Subject("fsdp2+tcmalloc", ("--shard", "parameters"), tcmalloc=True))
# DDP with its own buckets of 25 MiB, and with those of scalemark's size, which suit a slow link better.
TWO_HOSTS = (_ours("scalemark none", ("--overlap", "none")),
             _ours("scalemark backward", ("--overlap", "backward")),
             _ours("scalemark step", ("--overlap", "step")),
             _ours("scalemark backward bf16 wire", ("--overlap", "backward", "--wire_dtype", "bf16")),
             _ours("scalemark step bf16 wire", ("--overlap", "step", "--wire_dtype", "bf16")),
             *(Subject(f"ddp{wire}{buckets}+tcmalloc", (*wire_flags, *bucket_flags), tcmalloc=True)
               for wire, wire_flags in (("", ()), (" bf16 wire", ("--wire_dtype", "bf16")))
               for buckets, bucket_flags in (("", ()), (" 8 MiB", ("--bucket_mb", "8")))))
# One program: LibTorch's Reducer with our buckets, and with those of DistributedDataParallel.
REDUCERS = (_ours(), _ours("c10d", ("--reducer", "c10d")),
            _ours("c10d 25 MiB", ("--reducer", "c10d", "--bucket_mb", "25")))


def _names(subjects):
    """Of those that are not ours."""
    return tuple(subject.name for subject in subjects if not subject.ours)


def against_pytorch(stock, fastest):
    return (Comparison("scalemark", ("pytorch",), stock), Comparison("scalemark", _names(TRAINING), fastest))


def against_compiled(goal):
    return (Comparison("scalemark", ("pytorch",)), Comparison("scalemark", ("pytorch+tcmalloc",)),
            Comparison("scalemark", ("compiled+tcmalloc",), goal))


def against_ddp(goal):
    return (Comparison("scalemark", _names(TWO_RANKS), goal),)


def among_shards(optimizer, parameters):
    return (Comparison("scalemark none", ("ddp+tcmalloc",)),
            Comparison("scalemark optimizer", ("zero1+tcmalloc",), optimizer),
            Comparison("scalemark parameters", ("fsdp2+tcmalloc",), parameters))


def between_hosts(backward, step, backward_bf16_wire, step_bf16_wire):
    """Divided only by what sends gradients of the same type."""
    peers = _names(TWO_HOSTS)
    bf16_wire = tuple(name for name in peers if "bf16 wire" in name)
    plain = tuple(name for name in peers if name not in bf16_wire)
    return (Comparison("scalemark none", plain),
            Comparison("scalemark backward", plain, backward), Comparison("scalemark step", plain, step),
            Comparison("scalemark backward bf16 wire", bf16_wire, backward_bf16_wire),
            Comparison("scalemark step bf16 wire", bf16_wire, step_bf16_wire))


BETWEEN_REDUCERS = tuple(Comparison("scalemark", (peer,)) for peer in ("c10d", "c10d 25 MiB"))


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    model: str
    precision: str
    batch_size: int  # samples per rank
    comparisons: tuple
    subjects: tuple = TRAINING
    ranks: int = 1
    threads: int = 2  # per rank
    network: str | None = None
    image_size: int | None = 224
    sequence_length: int | None = None
    inference: bool = False

    @property
    def interleaved(self):
        """Not between hosts: what a step leaves on its way would go on in the slices of others, for nothing. Nor where the
        processes of all subjects together take more memory than a machine may have, 30 GB."""
        return self.network != NETLAB and self.subjects is not SHARDED

    @property
    def unit(self):
        if self.sequence_length is None:
            return "images/sec"
        return "sequences/sec" if self.model.startswith("bert") else "tokens/sec"


def _two(**facts):
    return {"ranks": 2, "threads": 1, **facts}


_INFERENCE = {"subjects": INFERENCE, "inference": True}
_SHARED = _two(subjects=TWO_RANKS, network=SHARED_MEMORY)
_HOSTS = _two(subjects=TWO_HOSTS, network=NETLAB)
_SHARDS = _two(subjects=SHARDED, network=SHARED_MEMORY)
_SHARDS_BETWEEN_HOSTS = _two(subjects=SHARDED, network=NETLAB)
_REDUCERS = _two(subjects=REDUCERS, network=SHARED_MEMORY)
_TOKENS = {"image_size": None, "sequence_length": 64}
_SENTENCES = {"image_size": None, "sequence_length": 128}
_TEXT = {"image_size": None, "sequence_length": 256}
_IMAGES_BETWEEN_HOSTS = between_hosts(1.05, 1.25, 1.10, 1.20)
ROWS = {row.name: row for row in (
    Row("resnet50 fp32", "resnet50", "fp32", 16, against_pytorch(1.15, 1.03)),
    Row("resnet50 bf16", "resnet50", "bf16", 16, against_pytorch(1.15, 1.10)),
    Row("transformer_big fp32", "transformer_big", "fp32", 4, against_pytorch(1.45, 1.12), **_TOKENS),
    Row("transformer_big bf16", "transformer_big", "bf16", 4, against_pytorch(1.50, 1.25), **_TOKENS),
    Row("bert_large fp32", "bert_large", "fp32", 4, against_pytorch(1.30, 1.20), **_SENTENCES),
    Row("bert_large bf16", "bert_large", "bf16", 4, against_pytorch(1.30, 1.20), **_SENTENCES),
    Row("gpt2 bf16", "gpt2", "bf16", 4, against_pytorch(None, 1.40), **_TEXT),
    Row("llama_125m bf16", "llama_125m", "bf16", 4, against_pytorch(None, 1.40), **_TEXT),
    Row("gpt2 bf16 shards", "gpt2", "bf16", 4, among_shards(1.25, 1.25), **_SHARDS, **_TEXT),
    Row("llama_125m bf16 shards", "llama_125m", "bf16", 4, among_shards(1.25, 1.25), **_SHARDS, **_TEXT),
    Row("llama_125m bf16 shards 1gbit", "llama_125m", "bf16", 4, among_shards(None, None), **_SHARDS_BETWEEN_HOSTS,
        **_TEXT),
    Row("resnet50 fp32 inference", "resnet50", "fp32", 16, against_compiled(1.05), **_INFERENCE),
    Row("resnet50 bf16 inference", "resnet50", "bf16", 16, against_compiled(1.08), **_INFERENCE),
    Row("resnet50 fp32 2 ranks", "resnet50", "fp32", 8, against_ddp(1.10), **_SHARED),
    Row("resnet50 bf16 2 ranks", "resnet50", "bf16", 8, against_ddp(1.10), **_SHARED),
    Row("resnet50 bf16 reducers", "resnet50", "bf16", 4, BETWEEN_REDUCERS, **_REDUCERS),
    Row("transformer_base fp32 reducers", "transformer_base", "fp32", 4, BETWEEN_REDUCERS, **_REDUCERS, **_TOKENS),
    Row("resnet50 fp32 1gbit", "resnet50", "fp32", 4, _IMAGES_BETWEEN_HOSTS, **_HOSTS),
    Row("resnet50 bf16 1gbit", "resnet50", "bf16", 4, _IMAGES_BETWEEN_HOSTS, **_HOSTS),
    Row("transformer_base bf16 1gbit", "transformer_base", "bf16", 8, between_hosts(None, None, None, None), **_HOSTS,
        **_TOKENS),
    Row("transformer_big bf16 1gbit", "transformer_big", "bf16", 8, between_hosts(1.10, 1.20, 1.10, 1.20), **_HOSTS,
        **_TOKENS),
)}
