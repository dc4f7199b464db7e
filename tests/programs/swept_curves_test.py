"""scalemark scale --from: curves of a sweep, whose repeats are fresh launches."""

import atexit
import functools
import json
import math
import pathlib
import shutil
import signal
import statistics
import subprocess
import tempfile

from made_records import rescale
from support import SCALEMARK, SOURCE, ProgramTest, environment, main, mpirun

PLAN = {"settings": {"batch_size": 4, "num_warmup_batches": 1, "num_batches": 5, "num_intra_threads": 1, "cpus_per_rank": 1},
        "axes": {"model": ["trivial", "smallnet"]},
        "points": [{"ranks": 1, "communicator": "auto"}, {"ranks": 2, "communicator": "auto"},
                   {"ranks": 2, "communicator": "none"}],
        "repeats": 3, "launcher": "mpirun"}


def measure(folder, plan):
    (folder / "plan.json").write_text(json.dumps(plan))
    subprocess.run([SCALEMARK, "sweep", "plan.json", "--output", "sweep"], cwd=folder, env=environment(), check=True,
                   timeout=240, capture_output=True)
    return folder / "sweep"


@functools.cache
def measured():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="scalemark-curves-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return measure(folder, PLAN)


def log_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class SweptCurves(ProgramTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(measured(), self.folder / "sweep")

    def journal(self):
        return [json.loads(line) for line in (self.folder / "sweep/journal.jsonl").read_text().splitlines()]

    def change(self, entry_change=lambda entry: entry, record_change=lambda entry, record: None):
        """Rewrites the sweep; what is no entry any more leaves the journal."""
        entries = []
        for entry in self.journal():
            path = self.folder / "sweep" / entry["record"]
            record = json.loads(path.read_text())
            record_change(entry, record)
            path.write_text(json.dumps(record))
            if entry := entry_change(entry):
                entries.append(json.dumps(entry) + "\n")
        (self.folder / "sweep/journal.jsonl").write_text("".join(entries))

    def scale(self, *words, **options):
        return self.run_program(SCALEMARK, "scale", "--from", "sweep", *words, **options)


    def measure_again(self, output):
        """Curves of a sweep that is the same but for the ids of its records, and the last digits, as of one that is measured."""
        shutil.copytree(self.folder / "sweep", self.folder / "again")
        for path in (self.folder / "again/runs").iterdir():
            record = json.loads(path.read_text())
            record["id"] = ("2" if record["id"][0] == "1" else "1") + record["id"][1:]
            rescale(record, 1 + 1e-7)
            path.write_text(json.dumps(record))
        self.run_program(SCALEMARK, "scale", "--from", "again", "--output", output)


class Records(SweptCurves):
    def test_a_record_for_every_curve_and_its_table(self):
        out, err = self.scale("--output", "curves/c.json")
        self.assertEqual(sorted(path.name for path in (self.folder / "curves").iterdir()), ["c-smallnet.json", "c-trivial.json"])
        curve = self.read("curves/c-trivial.json")
        self.assertEqual((curve["kind"], curve["status"], curve["repeat_unit"], curve["settings"]),
                         ("scaling", "ok", "launch", {"communicator": "auto", "model": "trivial"}))
        self.assertNotIn("incomplete", str(curve["warnings"]))
        one, two = curve["points"]
        rates = {}
        for point in (one, two):
            for repeat in point["repeats"]:
                run = self.read(f"curves/{repeat['path']}")
                self.assertEqual((run["id"], run["created_at"], run["model"], run["world_size"]),
                                 (repeat["run"], repeat["created_at"], "trivial", point["ranks"]))
                self.assertEqual(repeat["baseline"], run["communication"]["communicator"] == "none" and point["ranks"] > 1)
                self.assertAlmostEqual(repeat["throughput"], run["throughput"]["mean"])
                rates[point["ranks"], repeat["baseline"], repeat["repeat"]] = repeat["throughput"]
        self.assertEqual(sorted(rates), [(1, False, k) for k in (1, 2, 3)] + [(2, b, k) for b in (False, True) for k in (1, 2, 3)])
        ratios = [rates[2, False, k] / rates[1, False, k] for k in (1, 2, 3)]
        low, high = two["speedup_ci95"]
        self.assertAlmostEqual(math.sqrt(low * high), log_mean(ratios))
        half = 4.30265 * math.sqrt(sum(math.log(r / log_mean(ratios)) ** 2 for r in ratios) / 2 / 3)
        self.assertAlmostEqual(math.log(high / low) / 2, half, delta=1e-4 * half)
        self.assertEqual(two["exposed_method"], "baseline")
        # All units over all seconds; launches of as many units each: the harmonic mean.
        alone = statistics.harmonic_mean([rates[2, True, k] for k in (1, 2, 3)])
        self.assertAlmostEqual(two["baseline_throughput"] / alone, 1, places=6)
        self.assertRegex(out, r"Weak scaling of trivial, fp32.*\n\nranks +images/sec +speedup +efficiency")
        self.assertIn("3 fresh launches of each point", out)
        self.assertIn("paired by repeat", out)
        self.assertNotIn("in one launch", out)
        self.assertRegex(out, r"Curves side by side, images/sec\n\nranks +trivial +smallnet +smallnet over trivial\n +1 ")
        self.assertEqual(err.count("record: "), 2)

    def test_by_node_and_to_a_solution_as_json(self):
        out, _ = self.scale("--json", "--resource", "node", "--solution_steps", "100")
        curves = json.loads(out)
        self.assertEqual(len(curves), 2)
        for curve in curves:
            two = curve["points"][1]
            self.assertEqual((curve["resource"], two["resources"]), ("node", 1))
            self.assertAlmostEqual(two["efficiency"], two["speedup"])
            self.assertGreater(two["time_to_solution_seconds"], 0)
            self.assertIsNone(two["repeats"][0]["path"])

    def test_what_reads_curves_reads_launches(self):
        self.scale("--output", "c.json")
        _, err = self.run_program(SCALEMARK, "compare", "sweep", "c-trivial.json", expect=2)
        self.assertIn("a copy is no second measurement", err)
        _, err = self.run_program(SCALEMARK, "project", "c-trivial.json", "--ranks", "4", "--output", "p.json")
        self.assertEqual(self.read("p.json")["curve"]["kind"], "launches")
        self.measure_again("d.json")
        self.run_program(SCALEMARK, "compare", "c-trivial.json", "d-trivial.json", "--output", "r.json")
        for point in self.read("r.json")["points"]:
            self.assertEqual((point["repeat_unit"], point["base_repeats"], point["repeats"]), ("launch", 3, 3))
        out, _ = self.run_program(SCALEMARK, "gate", "c-trivial.json", "d-trivial.json", expect=3)
        self.assertIn("inconclusive", out)

    def test_flags_of_a_measurement_are_refused(self):
        _, err = self.scale("--repeats", "4", expect=2)
        self.assertIn("--repeats: scale --from shows", err)
        _, err = self.run_program(SCALEMARK, "scale", "--from", ".", expect=2)
        self.assertIn("journal.jsonl", err)


class Misbehaving(SweptCurves):
    def test_a_failed_launch_is_said_and_its_repeat_has_no_pair(self):
        def fail(entry):
            if entry["settings"]["ranks"] == 2 and entry["settings"]["model"] == "trivial" and entry["repeat"] == 2 \
                    and entry["settings"]["communicator"] == "auto":
                entry.update(status="failed", exit_code=4, reason="rank 1 was lost")
            return entry
        self.change(fail)
        out, err = self.scale("--output", "c.json")
        words = r"incomplete: ranks=2 communicator=auto model=trivial: repeat 2 failed \(rank 1 was lost\)"
        self.assertRegex(err, words)
        self.assertRegex(out, "warning: " + words)
        curve = self.read("c-trivial.json")
        self.assertEqual([r["repeat"] for r in curve["points"][1]["repeats"] if not r["baseline"]], [1, 3])
        self.assertEqual([r["repeat"] for r in curve["points"][0]["repeats"]], [1, 2, 3])
        self.assertNotIn("incomplete", str(self.read("c-smallnet.json")["warnings"]))
        self.assertIn("2 to 3 fresh launches", out)

    def test_a_curve_with_a_failed_launch_does_not_pass_a_gate(self):
        self.measure_again("base.json")
        entries = self.journal()
        self.change(lambda entry: dict(entry, status="failed", exit_code=4, reason="rank 1 was lost")
                    if entry == entries[0] else entry)
        model = entries[0]["settings"]["model"]
        self.scale("--output", "new.json")
        self.assertEqual(self.read(f"new-{model}.json")["failed_launches"], 1)
        self.assertEqual(self.read(f"base-{model}.json")["failed_launches"], 0)
        _, err = self.run_program(SCALEMARK, "gate", f"base-{model}.json", f"new-{model}.json", expect=4)
        self.assertIn("1 launch of new-%s did not end well (1 record with status failed, of a curve)" % model, err)
        self.run_program(SCALEMARK, "gate", f"base-{model}.json", f"new-{model}.json", "--allow_failed", "1", expect=3)

    def test_copies_are_no_launches(self):
        ids = {}

        def copy(entry, record):
            record["id"] = ids.setdefault(json.dumps(entry["settings"]), record["id"])
        self.change(record_change=copy)
        _, err = self.scale(expect=2)
        self.assertIn("a copy is no second measurement", err)

    def test_two_builds_make_two_curves(self):
        builds = {1: "0123456789ab", 2: "ba9876543210", 3: "ba9876543210"}

        def rebuild(entry):
            return entry | {"revision": builds[entry["repeat"]]}
        self.change(rebuild, lambda entry, record: record["build"].update(revision=builds[entry["repeat"]]))
        (self.folder / "sweep/planned.json").unlink()
        self.scale("--output", "c.json")
        for revision, repeats in (("0123456789ab", 1), ("ba9876543210", 2)):
            curve = self.read(f"c-trivial-revision={revision}.json")
            self.assertEqual(curve["build"]["revision"], revision)
            self.assertEqual([len(point["repeats"]) for point in curve["points"]], [repeats, 2 * repeats])

    def test_weak_and_strong_are_not_mixed(self):
        def strong(entry, record):
            if entry["settings"]["ranks"] == 2:
                record["config"]["scaling"]["value"] = record["scaling"] = "strong"
        self.change(record_change=strong)
        _, err = self.scale(expect=2)
        self.assertIn("launches of 1 rank alone", err)
        self.assertIn("no launches of two rank counts", err)

    def test_rounds_are_no_launches_of_a_curve(self):
        rounds = json.loads((SOURCE / "results/baselines/resnet50-1gbit-none.json").read_text())
        self.change(record_change=lambda entry, record: (record.clear(), record.update(rounds)))
        _, err = self.scale(expect=2)
        self.assertIn("kind scaling", err)

    def test_a_lost_record_is_exit_6(self):
        next((self.folder / "sweep/runs").iterdir()).unlink()
        _, err = self.scale(expect=6)
        self.assertIn("--repair", err)


class Unfinished(ProgramTest):
    def test_an_interrupted_sweep_has_its_curve_and_what_is_missing(self):
        plan = PLAN | {"axes": {"ranks": [1, 2]}, "points": [{"model": "trivial"}], "repeats": 4}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        process = self.start(SCALEMARK, "sweep", "plan.json", "--output", "sweep")
        self.wait_for_line(process.stderr, "[6/8]")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        _, err = self.run_program(SCALEMARK, "scale", "--from", "sweep", "--output", "c.json")
        curve = self.read("c.json")
        self.assertIn("repeat 4 not measured yet", " ".join(curve["warnings"]))
        self.assertIn("incomplete: ", err)
        self.assertGreaterEqual(sum(len(point["repeats"]) for point in curve["points"]), 5)
        self.run_program(SCALEMARK, "sweep", "plan.json", "--output", "sweep")
        _, err = self.run_program(SCALEMARK, "scale", "--from", "sweep", "--output", "c.json")
        curve = self.read("c.json")
        self.assertEqual([len(point["repeats"]) for point in curve["points"]], [4, 4])
        self.assertNotIn("incomplete", err + str(curve["warnings"]))


class Launched(ProgramTest):
    WORDS = ["scale", "--model", "trivial", "--batch_size", "4", "--num_warmup_batches", "1", "--num_batches", "5",
             "--launcher", "mpirun", "--ranks", "1,2", "--repeats", "2", "--repeat_unit", "launch"]

    def test_one_command_launches_and_shows_the_curves(self):
        words = [SCALEMARK, *self.WORDS, "--precision", "fp32,bf16", "--output", "c.json"]
        process = self.start(*words)
        self.wait_for_line(process.stderr, "[5/12]")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4)
        out, err = self.run_program(*words)  # goes on
        self.assertRegex(err, r"6 points x 2 repeats in c\.sweep; [45] launches are done")
        for precision in ("fp32", "bf16"):
            curve = self.read(f"c-{precision}.json")
            self.assertEqual((curve["status"], curve["repeat_unit"], curve["settings"]),
                             ("ok", "launch", {"precision": precision}))
            one, two = curve["points"]
            self.assertEqual(([r["baseline"] for r in one["repeats"]], [r["baseline"] for r in two["repeats"]]),
                             ([False] * 2, [False] * 2 + [True] * 2))
            for repeat in two["repeats"]:
                run = self.read(repeat["path"])
                self.assertEqual((run["precision"], run["world_size"]), (precision, 2))
        self.assertIn("bf16 over fp32", out)
        out, err = self.run_program(*words, "--repeats", "1", "--num_batches", "6", "--json")  # another plan in the same folder
        self.assertEqual([len(curve["points"][1]["repeats"]) for curve in json.loads(out)], [2, 2])
        self.assertTrue(all(curve["config"]["num_batches"]["value"] == 6 for curve in json.loads(out)))

    def test_a_dry_run_prints_the_launches(self):
        out, _ = self.run_program(SCALEMARK, *self.WORDS, "--dry_run")
        self.assertEqual(len(out.splitlines()), 6)
        self.assertTrue(all(line.startswith("mpirun") for line in out.splitlines()))
        self.assertEqual(sum("--communicator=none" in line for line in out.splitlines()), 2)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_what_only_rounds_have_is_refused(self):
        _, err = self.run_program(SCALEMARK, *self.WORDS, "--batch_size", "max", expect=2)
        self.assertIn("--batch_size max is of rounds", err)
        _, err = self.run_program(*mpirun(2, SCALEMARK, *self.WORDS), expect=2)
        self.assertIn("launches its ranks itself", err)

    def test_launches_that_all_fail_leave_their_exit_code(self):
        _, err = self.run_program(SCALEMARK, *self.WORDS, "--inject", "nan_loss:step=2", "--output", "c.json", expect=4)
        self.assertIn("no curve", err)
        self.assertFalse((self.folder / "c.json").exists())


if __name__ == "__main__":
    main()
