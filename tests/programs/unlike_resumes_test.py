"""Going on with what an earlier command has measured: only under the same variables, on the same machine, and whatever it
was that ended it, however often.
"""

import json
import os
import shutil
import signal
import unittest

from support import SCALEMARK, ProgramTest, main

SETTINGS = {"model": "trivial", "batch_size": 4, "num_warmup_batches": 1, "num_batches": 4, "num_intra_threads": 1}
TINY = ["--model", "trivial", "--batch_size", "4", "--num_batches", "4", "--num_warmup_batches", "1", "--roofline=false"]


def shell(script):
    return ["sh", "-c", script]


class ResumeTest(ProgramTest):
    def plan(self, **members):
        plan = {"settings": SETTINGS, "launcher": "mpirun", **members}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        return [SCALEMARK, "sweep", "plan.json", "--output", "out"]

    def journal(self, folder="out"):
        return [json.loads(line) for line in (self.folder / folder / "journal.jsonl").read_text().splitlines()]

    def counted(self):
        """The last entry of each launch."""
        last = {(entry["point"], entry["repeat"]): entry for entry in self.journal()}
        return list(last.values())


class Variables(ResumeTest):
    def test_a_sweep_is_refused_under_others(self):
        words = self.plan(points=[{"seed": 1, "after": [["sh", "-c", "[ -e go ]"]]}, {"seed": 2}])
        self.run_program(*words, env=self.environment(OMPI_MCA_btl="self,tcp"), expect=7)
        (self.folder / "go").touch()
        _, err = self.run_program(*words, "--retry_failed", expect=2)
        self.assertIn("started with OMPI_MCA_btl=self,tcp, and now it is OMPI_MCA_btl unset", err)
        _, err = self.run_program(*words, "--retry_failed", env=self.environment(OMPI_MCA_btl="self,tcp", OMP_PROC_BIND="true"), expect=2)
        self.assertIn("OMP_PROC_BIND unset, and now it is OMP_PROC_BIND=true", err)
        # Another job, and what is no setting of a library, change nothing.
        self.run_program(*words, "--retry_failed", env=self.environment(OMPI_MCA_btl="self,tcp", SLURM_CPUS_PER_TASK="1", EDITOR="ed"))
        self.assertEqual([entry["status"] for entry in self.counted()], ["ok"] * 2)

    def test_a_gate_too(self):
        self.plan()
        words = [SCALEMARK, "gate", "plan.json", "--base", SCALEMARK, "--new", SCALEMARK, "--output", "g", "--pairs", "8",
                 "--new_set", "seed=2"]
        process = self.start(*words, env=self.environment(OMPI_MCA_btl="self,tcp"))
        self.wait_until(lambda: (self.folder / "g/new/journal.jsonl").exists() and self.journal("g/new"))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        _, err = self.run_program(*words, expect=2)
        self.assertIn("OMPI_MCA_btl unset", err)


class Machines(ResumeTest):
    def test_a_launch_on_another_one_does_not_count(self):
        words = self.plan(repeats=2, before=[shell("[ {repeat} = 1 ] || [ -e go ]")])
        self.run_program(*words, expect=7)
        kept = next(self.folder / "out" / entry["record"] for entry in self.journal() if entry["status"] == "ok")
        record = json.loads(kept.read_text())
        here = record["system"]["cpu_model"]
        record["system"]["cpu_model"] = "Another 9000"
        kept.write_text(json.dumps(record))
        (self.folder / "go").touch()
        _, err = self.run_program(*words, "--retry_failed", expect=2)
        self.assertIn(f'has cpu_model "{here}", where runs/', err)
        self.assertIn('has "Another 9000": their figures do not belong together', err)
        self.assertEqual([entry["status"] for entry in self.counted() if entry["repeat"] == 2], ["interrupted"])
        record["system"]["cpu_model"] = here
        kept.write_text(json.dumps(record))
        self.run_program(*words)
        self.assertEqual([entry["status"] for entry in self.counted()], ["ok"] * 2)


class Levels(ResumeTest):
    """Levels that are compared, of which each launch waits for the file `go` before it, so that it can be ended there."""

    LEVELS = [{"level": level, "before": [shell("echo {level} >> trace; n=$(wc -l < trace); [ -e go$n ] || exec sleep 60")]} for level in "ab"]

    def go(self, number):
        (self.folder / f"go{number}").touch()

    def end_in(self, number, signal_number):
        """Starts the sweep and ends it in the launch of that number, counted over all calls."""
        process = self.start(*self.words)
        self.wait_until(lambda: (self.folder / "trace").exists() and len((self.folder / "trace").read_text().splitlines()) == number)
        process.send_signal(signal_number)
        process.communicate(timeout=60)
        self.assertNotIn(process.returncode, (0, 6))

    def test_ended_in_the_second_and_then_in_the_first(self):
        for how in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=how.name):
                self.words = self.plan(alternate=self.LEVELS, repeats=2)
                self.go(1)
                self.end_in(2, how)  # the first is done
                self.end_in(3, how)  # which is the first once more
                self.end_in(4, how)
                for number in range(5, 9):
                    self.go(number)
                self.run_program(*self.words)
                counted = self.counted()
                self.assertEqual([entry["status"] for entry in counted], ["ok"] * 4)
                self.assertEqual(len({entry["record"] for entry in counted}), 4)
                self.run_program(*self.words)
                self.assertEqual(len((self.folder / "trace").read_text().splitlines()), 8)
                for path in (*self.folder.glob("go*"), self.folder / "trace"):
                    path.unlink()
                os.rename(self.folder / "out", self.folder / f"out-{how.name}")


class Curves(ResumeTest):
    def test_the_runs_of_a_round_that_was_broken_off_go(self):
        words = [SCALEMARK, "scale", *TINY, "--ranks", "1,2", "--repeats", "2", "--baseline=false", "--num_batches", "60",
                 "--inject", "delay:milliseconds=20", "--output", "s.json"]
        process = self.start(*words)
        self.wait_until(lambda: list(self.folder.glob("s.runs/ranks1-round1-*.json")))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4)
        self.run_program(*words)
        named = {repeat["path"] for point in self.read("s.json")["points"] for repeat in point["repeats"]}
        self.assertEqual(named, {f"s.runs/{path.name}" for path in self.folder.glob("s.runs/*.json")})


class Gates(ResumeTest):
    def test_one_that_is_stopped_in_every_pair_goes_on(self):
        """Each look judges its own pairs, once."""
        self.plan(settings={**SETTINGS, "num_batches": 60, "inject": "delay:milliseconds=5"})
        words = [SCALEMARK, "gate", "plan.json", "--base", SCALEMARK, "--new", SCALEMARK, "--new_set", "seed=2", "--output", "g",
                 "--pairs", "5", "--alpha", "0.2", "--delta", "50"]
        looks, code = [], 4
        for _ in range(6):
            process = self.start(*words)
            for line in process.stderr:
                looks += [line] if "no verdict yet" in line else []
                if line.startswith("[2/"):
                    process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
            code = process.returncode
            if code != 4:
                break
        self.assertIn(code, (0, 1, 3))
        self.assertEqual(len(looks), len(set(looks)), looks)
        self.assertEqual(self.read("g/verdict.json")["status"], "ok")


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two CPUs")
class Instances(ResumeTest):
    def setUp(self):
        super().setUp()
        cpus = sorted(os.sched_getaffinity(0))
        self.words = [SCALEMARK, "instances", "--device", "cpu", "--slots", f"{cpus[0]};{cpus[-1]}", "--repeats", "2", *TINY,
                      "--output", "i.json"]

    def end_after(self, launches, how):
        process = self.start(*self.words)
        self.wait_for_line(process.stderr, f"[{launches + 1}/")
        process.send_signal(how)
        process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)

    def check(self, kept):
        _, err = self.run_program(*self.words)
        self.assertIn(f"{kept} launches of an earlier command are done", err)
        record = self.read("i.json")
        self.assertEqual(record["status"], "ok")
        named = {job["path"] for part in (*record["points"], *record["alone"]) for launch in part["repeats"] for job in launch["instances"]}
        there = {f"i.runs/{path.name}" for path in (self.folder / "i.runs").iterdir()}
        self.assertEqual(named, {path for path in there if "/." not in path})  # scalemark clean removes what is hidden
        self.assertEqual(len(named), 8)  # two slots alone and both together, twice
        out, _ = self.run_program(SCALEMARK, "export", ".")
        self.assertEqual(sum(",launch,run," in line for line in out.splitlines()), 8)

    def test_they_go_on_where_they_were(self):
        for how in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=how.name):
                self.end_after(3, how)
                self.check(3)
                shutil.rmtree(self.folder / "i.runs")
                (self.folder / "i.json").unlink()

    def test_finished_ones_are_measured_anew(self):
        words = [*self.words, "--repeats", "1"]
        self.run_program(*words)
        first = self.read("i.json")["id"]
        _, err = self.run_program(*words)
        self.assertNotIn("earlier command", err)
        self.assertNotEqual(self.read("i.json")["id"], first)

    def test_not_under_other_variables(self):
        self.words += ["--repeats", "1"]
        self.end_after(2, signal.SIGKILL)
        _, err = self.run_program(*self.words, env=self.environment(OMP_PROC_BIND="true"))
        self.assertIn("under other variables is measured again", err)
        self.assertEqual(self.read("i.json")["status"], "ok")


if __name__ == "__main__":
    main()
