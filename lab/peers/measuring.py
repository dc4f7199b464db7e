"""A row measured in rounds: one fresh process (or mpirun) of every subject, until its ratios are known well enough."""

import dataclasses
import shlex
import statistics

from commands import Unavailable, check_machine, command
from machine import cpu_seconds, load_of_others, steal_between
from processes import Measured, interleaved, one_after_the_other
from ratios import ratios_of, why_stop, widest_percent


@dataclasses.dataclass(frozen=True)
class Settings:
    """rounds: None is as many as it takes until half_width (percent), at most max_rounds. quiet_seconds: 0 is no look.
    alternate: "steps" (interleaved) or "launches"."""

    rounds: int | None
    half_width: float
    max_rounds: int
    steps: int
    warmup: int
    quiet_seconds: float
    alternate: str


def rotated(subjects, index):
    """Each subject is first, second, ... equally often over as many rounds as there are subjects."""
    start = index % len(subjects)
    return subjects[start:] + subjects[:start]


class RowMeasurement:
    """command_of(row, subject): argv. say(text): of every round."""

    def __init__(self, row, settings, command_of, say):
        self.row, self.settings, self.command_of, self.say = row, settings, command_of, say
        self.alternate = settings.alternate if row.interleaved else "launches"
        self.subjects = row.subjects
        self.rounds, self.loads = [], []
        self.commands, self.left_out = {}, {}

    def result(self):
        """The row's entry in the result file. Raises Unavailable and Failed."""
        check_machine(self.row)
        reason = None
        while reason is None:
            self.look()
            self.add_round()
            reason = why_stop(self.ratios(), len(self.rounds), self.settings)
        self.look()
        return self.entry(reason)

    def look(self):
        if self.settings.quiet_seconds > 0:
            self.loads.append(load_of_others(self.settings.quiet_seconds))

    def add_round(self):
        before, found = cpu_seconds(), {}
        for subject, outcome in self.processes(self.known_commands()):
            if isinstance(outcome, Measured):
                found[subject.name] = outcome
            elif subject.optional:
                self.leave_out(subject, outcome)
            else:
                raise outcome
        self.rounds.append({name: found[name] for name in self.names()})
        self.add_steal(before)
        text = ", ".join(f"{name} {found[name].speed:.2f}" for name in self.names())
        self.say(f"{self.row.name}, round {len(self.rounds)}: {text} {self.row.unit}")

    def known_commands(self):
        """[(subject, argv)] in the order of this round."""
        known = []
        for subject in rotated(self.subjects, len(self.rounds)):
            try:
                argv = self.command_of(self.row, subject)
                self.commands.setdefault(subject.name, shlex.join(argv))
                known.append((subject, argv))
            except Unavailable as problem:
                if not subject.optional:
                    raise
                self.leave_out(subject, problem)
        return known

    def processes(self, commands):
        if self.alternate == "steps":
            return interleaved(commands, self.row.ranks)
        return one_after_the_other(commands)

    def leave_out(self, subject, problem):
        """From the rounds before, too."""
        self.left_out[subject.name] = str(problem)
        self.say(f"{self.row.name} goes on without {subject.name}: {problem}")
        self.subjects = tuple(other for other in self.subjects if other != subject)
        for found in self.rounds:
            found.pop(subject.name, None)

    def add_steal(self, before):
        """What the hypervisor took during the round counts like what it took while nothing ran."""
        if self.loads:
            steal = steal_between(before, cpu_seconds())
            self.loads[-1] = dataclasses.replace(self.loads[-1], steal=max(steal, self.loads[-1].steal))

    def names(self):
        return [subject.name for subject in self.subjects]

    def numbers(self, quantity):
        return [{name: getattr(one, quantity) for name, one in found.items()} for found in self.rounds]

    def quiet(self):
        return all(load.quiet for load in self.loads) if self.loads else None

    def ratios(self):
        speeds, memory = self.numbers("speed"), self.numbers("peak_rss_bytes")
        return [ratio for comparison in self.row.comparisons
                for ratio in ratios_of(comparison, speeds, memory, self.quiet())]

    def machine(self):
        """quiet: at every look; null without one. worst: of the busiest look, in words."""
        worst = max(self.loads, key=lambda load: (not load.quiet, load.cpus), default=None)
        return {"quiet": self.quiet(), "worst": worst and worst.words(),
                "looks": [{"foreign_cpus": load.cpus, "steal": load.steal, "quiet": load.quiet} for load in self.loads]}

    def gemm_peak(self):
        """{"flops": this machine's rate of matrix products, the median of what the processes of scalemark measured; "shares":
        {name: of it, what the model's FLOPs of that subject take}}; null where none measured it."""
        ours = [one for found in self.rounds for one in found.values() if one.flops_per_unit and one.gemm_flops]
        if not ours:
            return None
        peak = statistics.median(one.gemm_flops for one in ours)
        return {"flops": peak, "shares": {name: statistics.median(found[name].speed for found in self.rounds) *
                                          ours[0].flops_per_unit / peak for name in self.names()}}

    def entry(self, reason):
        row, names, speeds, ratios = self.row, self.names(), self.numbers("speed"), self.ratios()
        return {"row": row.name, "model": row.model, "precision": row.precision, "unit": row.unit, "ranks": row.ranks,
                "threads_per_rank": row.threads, "batch_size_per_rank": row.batch_size, "image_size": row.image_size,
                "sequence_length": row.sequence_length, "network": row.network, "alternate": self.alternate,
                "commands": {name: self.commands[name] for name in names},
                "median": {name: statistics.median(one[name] for one in speeds) for name in names},
                "gemm_peak": self.gemm_peak(),
                "ratios": ratios, "rounds": speeds, "peak_rss_bytes": self.numbers("peak_rss_bytes"),
                "stopped": {"reason": reason, "half_width_percent": widest_percent(ratios)},
                "machine": self.machine(), "left_out": self.left_out,
                "builds": {name: self.rounds[-1][name].build for name in names}}


def measured_row(row, settings, scalemark, python, say):
    """The row's entry in the result file. Raises Unavailable and Failed."""
    def command_of(one, subject):
        return command(one, subject, settings.steps, settings.warmup, scalemark, python)

    return RowMeasurement(row, settings, command_of, say).result()
