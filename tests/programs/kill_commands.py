"""The commands of the kill matrix (kill_matrix.py): tiny jobs, how far one is by its events, and what its results must count."""

import dataclasses
import json
import re

from support import BINARY, SCALEMARK

# So long that a signal finds them, and that ranks whose mpirun was told to end are killed, which is a second later.
SETTINGS = {"model": "trivial", "batch_size": 4, "num_warmup_batches": 10, "num_batches": 60, "inject": "delay:milliseconds=30",
            "roofline": False}
STEPS = [f"--{key}={json.dumps(value).strip(chr(34))}" for key, value in SETTINGS.items()]
# With ranks that do not end by themselves within a step of a stopped peer; the others leave that to --timeout.
PATIENT, HASTY = 20, 5


@dataclasses.dataclass
class Command:
    """`launch`: the one that is hit, and what says on stderr that it begins; nothing where there is but one."""
    words: list
    runs: int  # in the final record, and in `scalemark export`
    launch: str = ""
    warm_up: str = '"event":"start"'
    processes: tuple = ("front door", "mpirun", "rank 0", "last rank")
    phases: tuple = ("start", "warm-up", "step", "record")
    plan: dict = None
    codes: tuple = (0,)  # of a call that comes to its end
    retry: str = ""  # measures again what has failed
    pairs: bool = False  # a pair of launches counts whole
    idle: str = ""  # takes no part in that launch: it hears of a stop at its next one
    final: str = ""  # what the front door writes at the end: where there is none, ranks write it

    def prepare(self, folder, timeout):
        """Writes the plan; the words of the call."""
        if self.plan:
            text = json.dumps(self.plan).replace('"TIMEOUT"', str(timeout))
            (folder / "plan.json").write_text(text)
            return [SCALEMARK, *self.words]
        return [SCALEMARK, *self.words, "--timeout", timeout]


def swept(**more):
    settings = {**SETTINGS, "num_intra_threads": 1, "ranks": 2, "timeout": "TIMEOUT"}
    return {"settings": settings, "launcher": "mpirun", **more}


def study():
    profile = {"evidence": "effect", "shows": "Nothing.", "differs": "everything", "ranks": 2}
    plan = swept(axes={"seed": [1, 2]})
    return {"$schema": "study_plan.schema.json", "title": "A study", "publication": "Nobody.", "published_on": "no machine.",
            "not_stated": ["all"], "profiles": {"laptop": profile, "full": profile},
            "figures": [{"name": "rate", "published": {"value": 1, "unit": "images/sec"}, "laptop": {"step": "two", "of": "throughput"}}],
            "steps": [{"name": "one", "about": "a sweep", "plan": plan, "laptop": {"run": "sweep", "minutes": 0.1}},
                      {"name": "two", "about": "a sweep", "plan": {**plan, "axes": {"seed": [3]}},
                       "laptop": {"run": "sweep", "minutes": 0.1}}]}


BETWEEN = ("start", "warm-up", "step", "record", "between")
# Two pairs pass nothing, whatever they show.
GATE = ["gate", "plan.json", "--base", BINARY, "--new_set", "seed=5", "--pairs=2", "--alpha=0.3", "--threshold=50", "--delta=50",
        "--allow_failed=2", "--output", "out"]
LEVELS = [{"level": "a"}, {"level": "b"}]
COMMANDS = {
    "run": Command(["run", "--ranks=2", *STEPS, "--output", "out/r.json"], 1),
    "infer": Command(["infer", "--ranks=2", *STEPS, "--output", "out/r.json"], 1),
    # Two rounds of two runs; the last is hit.
    "scale": Command(["scale", "--ranks=1,2", "--repeats=2", "--baseline=false", *STEPS, "--output", "out/r.json"], 4,
                     launch=r'"run_begin".*"number":4', warm_up='"event":"run_begin"', phases=BETWEEN, idle="last rank"),
    "sweep": Command(["sweep", "plan.json", "--output", "out"], 3, launch=r"\[2/3\]", plan=swept(axes={"seed": [1, 2, 3]}),
                     phases=BETWEEN, retry="--retry_failed"),
    "alternate": Command(["sweep", "plan.json", "--output", "out"], 4, launch=r"\[4/4\]", phases=BETWEEN, retry="--retry_failed",
                         plan=swept(repeats=2, alternate=LEVELS), pairs=True),
    "gate": Command(GATE, 4, launch=r"\[2/2\]", plan=swept(), phases=BETWEEN, codes=(0, 1, 3), pairs=True,
                    final=".verdict.json.tmp"),
    "gate, launches": Command([*GATE, "--alternate", "launches"], 4, launch=r"\[2/2\]", plan=swept(), phases=BETWEEN, codes=(0, 1, 3),
                              final=".verdict.json.tmp"),
    # By this seed the two together are the second of three launches.
    "instances": Command(["instances", "--device=cpu", "--slots=0;1", "--repeats=1", "--seed=2", *STEPS, "--output", "out/r.json"], 4,
                         launch=r"\[2/3\]", processes=("front door", "rank 0", "last rank"), phases=BETWEEN,
                         final=".r.json.tmp"),
    "instances of 2": Command(["instances", "--device=cpu", "--slots=0;1", "--ranks=2", "--repeats=1", "--seed=2", *STEPS, "--output",
                               "out/r.json"], 4, launch=r"\[2/3\]", phases=BETWEEN, final=".r.json.tmp"),
    "study": Command(["study", "./plan.json", "--output", "out"], 3, launch=r"\[2/2\] seed", plan=study(), phases=BETWEEN,
                     processes=("front door", "step", "mpirun", "rank 0", "last rank"), final=".study.json.tmp"),
    "preflight": Command(["preflight", "--ranks=2", "--output", "out/r.json"], 0, phases=("start", "record"),
                         codes=(0, 4)),  # its verdict is that of the machine
}


def entries_of(folder):
    """The last journal entry of every launch, by its journal's folder, point and repeat."""
    found = {}
    for journal in sorted(folder.rglob("journal.jsonl")):
        for line in journal.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                entry = json.loads(line)
                found[journal.parent, entry["point"], entry["repeat"]] = entry
    return found


def is_done(path):
    return path.exists() and json.loads(path.read_text())["status"] == "ok"


def kept(command, folder):
    """The ids, by path, of records that a next call must keep."""
    by_group = {}
    for (place, point, repeat), entry in entries_of(folder).items():
        if entry["status"] == "ok":
            group = (repeat,) if command.pairs else (place, point, repeat)
            by_group.setdefault(group, []).append(place / entry["record"])
    if not is_done(folder / "r.json"):
        for path in filter(is_done, folder.glob("*.runs/ranks*-round*.json")):  # of a curve: whole rounds
            by_group.setdefault(("round", re.search(r"round(\d+)", path.name)[1]), []).append(path)
    whole = [group for key, group in by_group.items() if len(group) == (2 if command.pairs or key[0] == "round" else 1)]
    return {path: json.loads(path.read_text())["id"] for group in whole for path in group}


def runs_in_record(folder):
    """How many runs the final records say that there are: those of a curve, of instances, of a verdict; else of the journals."""
    if (journalled := entries_of(folder)):
        return sum(entry["status"] == "ok" for entry in journalled.values())
    path = folder / "r.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    if record.get("kind") == "scaling":
        return sum(len(point["repeats"]) for point in record["points"])
    if record.get("kind") == "instances":
        parts = (*record["points"], *record["alone"])  # one instance at once is slot 0 alone
        return len({instance["path"] for part in parts for repeat in part["repeats"] for instance in repeat["instances"]})
    return 1 if record.get("kind") in ("run", "inference") else 0
