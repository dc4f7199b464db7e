"""scalemark instances: real processes on disjoint cores, started together; failures, stops, and wrong input."""

import json
import os
import pathlib
import re
import signal
import time
import unittest
import uuid

from support import SCALEMARK, ProgramTest, main, mpirun

SMALL = ["--model", "smallnet", "--batch_size", "4", "--num_warmup_batches", "1", "--repeats", "1"]
ENDLESS = [*SMALL, "--num_batches", "1000000", "--max_seconds", "600"]
TIMED = [*SMALL, "--num_batches", "1000000", "--max_seconds", "1.5"]
BRIEF = [*SMALL, "--num_batches", "1000000", "--max_seconds", "0.3"]
CPUS = sorted(os.sched_getaffinity(0))
BOTH_FIRST = "1"  # of an order in which the launch of both comes before those of one alone
TWO = [*"--device cpu --slots".split(), f"{CPUS[0]};{CPUS[-1]}"]
HALVES = [CPUS[:len(CPUS) // 2], CPUS[len(CPUS) // 2:]]
OF_RANKS = [*"--device cpu --launcher mpirun --slots".split(), ";".join(",".join(map(str, half)) for half in HALVES)]


@unittest.skipIf(len(CPUS) < 2, "needs two CPUs")
class InstancesTest(ProgramTest):
    def instances(self, *words, slots=TWO, **options):
        return self.run_program(SCALEMARK, "instances", *slots, *words, **options)

    def children(self, record):
        """Run records of a record's points and slots alone, by their path."""
        found = {}
        for part in (*record["points"], *record["alone"]):
            for repeat in part["repeats"]:
                for instance in repeat["instances"]:
                    if instance["path"]:
                        found[instance["path"]] = self.read(instance["path"])
        return found

    def engines(self):
        """Process ids of the engines that were started, by slot."""
        found = {}
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode().split("\0")
                tagged = self.tag.encode() in (path.parent / "environ").read_bytes()
            except (OSError, UnicodeDecodeError):
                continue
            slot = next((re.search(r"-slot(\d+)\.json$", word) for word in words if word.startswith("--output=")), None)
            if tagged and slot:
                found[int(slot[1])] = int(path.parent.name)
        return found

    def wait_until_they_measure(self, launch, count):
        """The instances of the launch whose logs begin with `launch`."""
        logs = self.folder / "i.runs"
        self.wait_until(lambda: sum("images/sec:" in log.read_text() for log in logs.glob(f"{launch}-*.log")) == count)


class Measuring(InstancesTest):
    def test_two_trainings_on_disjoint_cores_begin_together(self):
        out, err = self.instances(*TIMED, "--output", "i.json")
        record = self.read("i.json")
        self.assertEqual((record["kind"], record["status"], record["job"], record["unit"]), ("instances", "ok", "run", "images/sec"))
        self.assertEqual([slot["cpus"] for slot in record["slots"]], [str(CPUS[0]), str(CPUS[-1])])
        self.assertEqual([point["instances"] for point in record["points"]], [1, 2])
        children = self.children(record)
        self.assertEqual(len(children), 4)  # each slot alone, both together
        for name, child in children.items():
            rank, = child["ranks"]
            slot = int(re.search(r"slot(\d)", name)[1])
            self.assertEqual((child["kind"], child["status"], rank["cpus"]), ("run", "ok", record["slots"][slot]["cpus"]))
            self.assertEqual(rank["affinity_requested"], "slot " + rank["cpus"])
        self.assertEqual(len({child["config_hash"] for child in children.values()}), 1)
        both = record["points"][1]
        self.assertGreater(both["overlap"], record["least_overlap"])
        self.assertTrue(both["overlaps_enough"])
        repeat, = both["repeats"]
        windows = [instance["window_seconds"] for instance in repeat["instances"]]
        self.assertEqual(min(start for start, _ in windows), 0)
        span = max(end for _, end in windows)
        self.assertAlmostEqual(both["cumulative"]["mean"], sum(i["units"] for i in repeat["instances"]) / span)
        self.assertAlmostEqual(both["speedup"], both["cumulative"]["mean"] / record["alone"][0]["throughput"])
        for instance in both["per_instance"]:
            self.assertAlmostEqual(instance["ratio"], instance["throughput"] / record["alone"][instance["slot"]]["throughput"])
        self.assertRegex(out, r"\n +2 +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+\n")
        self.assertIn("[3/3]", err)
        self.assertEqual(list((self.folder / "i.runs").glob("*.log")), [])

    def test_inference_has_latencies_alone_and_with_neighbours(self):
        out, _ = self.instances("--job", "infer", "--model", "smallnet", "--mode", "single_stream", "--repeats", "2",
                                "--num_batches", "1000000", "--max_seconds", "1", "--json")
        record = json.loads(out)  # nothing else on stdout
        self.assertEqual((record["job"], record["config"]["mode"]["value"]), ("infer", "single_stream"))
        self.assertEqual(len(record["points"][1]["repeats"]), 2)
        self.assertIsNotNone(record["points"][1]["cumulative"]["ci95"])
        for instance in record["points"][1]["per_instance"]:
            for latency in (instance["latency_seconds"], instance["alone_latency_seconds"]):
                self.assertLessEqual(0, latency["p50"])
                self.assertLessEqual(latency["p50"], latency["p90"])
                self.assertLessEqual(latency["p90"], latency["p99"])
        path = record["points"][1]["repeats"][0]["instances"][0]["path"]
        self.assertIsNone(path)
        self.assertIn("--output", record["unavailable"]["points.repeats.instances.path"])

    def test_windows_that_do_not_overlap_are_flagged(self):
        out, _ = self.instances(*SMALL, "--num_batches", "20", "--inject", "delay:rank=1:milliseconds=100", "--instances", "2",
                                "--output", "i.json")
        point, = self.read("i.json")["points"]
        self.assertEqual((point["status"], point["overlaps_enough"]), ("ok", False))
        self.assertIn("warning: 2 instances: the measured windows overlap", out)

    def test_a_second_measurement_replaces_the_files_of_the_first(self):
        words = [*SMALL, "--num_batches", "3", "--instances", "1", "--output", "i.json"]
        self.instances(*words)
        first = set((self.folder / "i.runs").iterdir())
        self.instances(*words)
        second = set((self.folder / "i.runs").iterdir())
        self.assertEqual((len(first), len(second), first & second), (1, 1, set()))
        self.assertEqual(len(self.children(self.read("i.json"))), 1)

    def test_shares_of_the_cores_and_a_dry_run(self):
        out, err = self.instances("--model", "trivial", "--instances", "1,2", "--dry_run", "--output", "i.json", slots=["--device", "cpu"])
        self.assertRegex(out, r"slot 0: CPUs? [\d,-]+\n +\S+scalemark run .*--output=RECORD.json\nslot 1: ")
        self.assertIn("9 launches", err)
        self.assertEqual(list(self.folder.iterdir()), [])


class SeveralRanks(InstancesTest):
    """Two launchers at a time on one machine, none of which may begin at core 0."""

    def test_jobs_of_ranks_run_side_by_side_on_exactly_their_cpus(self):
        for ranks in (2, 4) if len(HALVES[0]) > 1 else (2,):  # more ranks than CPUs, and where there are enough, a share each
            with self.subTest(ranks=ranks):
                self.instances("--ranks", ranks, *TIMED, "--output", "i.json", slots=OF_RANKS)
                record = self.read("i.json")
                self.assertEqual((record["status"], record["ranks_per_instance"]), ("ok", ranks))
                self.assertEqual(len(children := self.children(record)), 4)
                for name, child in children.items():
                    slot = int(re.search(r"slot(\d)", name)[1])
                    self.assertEqual((child["world_size"], child["communication"]["communicator"]), (ranks, "mpi"))
                    self.assert_on(child["ranks"], HALVES[slot])
                both = record["points"][1]
                self.assertGreater(both["overlap"], 0.5)
                repeat, = both["repeats"]
                span = max(instance["window_seconds"][1] for instance in repeat["instances"])
                self.assertAlmostEqual(both["cumulative"]["mean"], sum(i["units"] for i in repeat["instances"]) / span)

    def assert_on(self, ranks, cpus):
        """Equal shares, where there are as many CPUs as ranks; else all of them."""
        got = [list(map(int, rank["cpus"].split(","))) if "-" not in rank["cpus"] else None for rank in ranks]
        for rank, own in zip(ranks, got):
            self.assertEqual(rank["affinity_requested"], "slot " + rank["cpus"])
            if own:
                self.assertLessEqual(set(own), set(cpus))
        if len(cpus) < len(ranks):
            self.assertEqual(got, [list(cpus)] * len(ranks))
        elif all(got):
            self.assertEqual(len({cpu for own in got for cpu in own}), sum(map(len, got)))

    def test_inference_of_ranks(self):
        self.instances("--job", "infer", "--ranks", "2", "--model", "smallnet", "--repeats", "1", "--num_batches", "1000000",
                       "--max_seconds", "1", "--instances", "2", "--output", "i.json", slots=OF_RANKS)
        self.assertEqual({child["world_size"] for child in self.children(self.read("i.json")).values()}, {2})

    def test_a_killed_rank_ends_its_job_and_the_neighbour(self):
        self.instances("--ranks", "2", *BRIEF, "--inject", "kill:rank=1:step=5", "--instances", "2", "--output", "i.json", slots=OF_RANKS,
                       expect=4)
        record = self.read("i.json")
        self.assertEqual([part["status"] for part in record["alone"]], ["ok", "failed"])
        self.assertRegex(record["points"][0]["reason"], r"the instance on slot 1 .*signal 9")

    def test_ctrl_c_reaches_all_ranks(self):
        process = self.start(SCALEMARK, "instances", *OF_RANKS, "--ranks", "2", *ENDLESS, "--seed", BOTH_FIRST, "--output", "i.json")
        self.wait_until_they_measure("2-instances", 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4, err)
        self.assertEqual(self.read("i.json")["status"], "interrupted")

    def measured_again(self, name):
        """The record under other ids; what tells the same to the last digit is a copy."""
        new_ids = re.sub(r'"(id|run)": "[^"]*"', lambda key: f'"{key[1]}": "{uuid.uuid4()}"', (self.folder / name).read_text())
        record = json.loads(new_ids)
        for point in record["points"]:
            for repeat in point["repeats"]:
                repeat["throughput"] *= 1 + 1e-9
        return record

    def test_compare_refuses_other_numbers_of_ranks(self):
        for name, ranks in (("1", 1), ("2", 2)):
            self.instances(*(["--ranks", ranks] if ranks > 1 else []), *BRIEF, "--instances", "2", "--output", f"{name}.json", slots=OF_RANKS)
        (self.folder / "again.json").write_text(json.dumps(self.measured_again("2.json")))
        self.run_program(SCALEMARK, "compare", "2.json", "again.json")
        _, err = self.run_program(SCALEMARK, "compare", "1.json", "2.json", expect=2)
        self.assertIn("ranks_per_instance", err)
        old = self.measured_again("1.json")
        del old["ranks_per_instance"]
        old["schema_revision"] = 4
        for slot in old["slots"]:
            del slot["places"]
        (self.folder / "old.json").write_text(json.dumps(old))
        self.run_program(SCALEMARK, "compare", "old.json", "1.json")
        _, err = self.run_program(SCALEMARK, "compare", "old.json", "2.json", expect=2)
        self.assertIn("ranks_per_instance", err)


class Failures(InstancesTest):
    def test_a_killed_instance_is_named_and_the_rest_goes_on(self):
        out, _ = self.instances(*BRIEF, "--inject", "kill:rank=1:step=5", "--output", "i.json", expect=4)
        record = self.read("i.json")
        self.assertEqual((record["status"], record["alone"][0]["status"], record["alone"][1]["status"]), ("failed", "ok", "failed"))
        point = record["points"][1]
        self.assertEqual(point["status"], "failed")
        for text in ("slot 1", f"CPU {CPUS[-1]}", "signal 9", "log ends"):
            self.assertIn(text, point["reason"])
        self.assertIsNotNone(record["points"][0]["cumulative"])
        log = point["repeats"][0]["instances"][1]["log"]
        self.assertTrue((self.folder / log).is_file())
        self.assertIn("2 instances: failed", out)

    def test_kill_9_from_outside_ends_the_neighbour(self):
        process = self.start(SCALEMARK, "instances", *TWO, *ENDLESS, "--seed", BOTH_FIRST, "--output", "i.json")
        self.wait_for_line(process.stderr, "[1/3] 2 instances")
        self.wait_until_they_measure("2-instances", 2)
        found = self.engines()
        os.kill(found[0], signal.SIGKILL)
        self.wait_for_line(process.stderr, "[2/3] slot")
        self.assertNotIn(found[1], self.engines().values())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        point = self.read("i.json")["points"][1]
        self.assertEqual(point["status"], "failed")
        self.assertRegex(point["reason"], r"slot 0 \(.*killed by signal 9")

    def test_a_hanging_instance_meets_the_limit_of_the_launch(self):
        start = time.monotonic()
        self.instances(*BRIEF, "--inject", "stop:rank=1:step=3", "--launch_timeout", "10", "--output", "i.json", expect=5)
        self.assertLess(time.monotonic() - start, 60)
        record = self.read("i.json")
        self.assertEqual((record["points"][1]["status"], record["alone"][0]["status"]), ("timeout", "ok"))
        self.assertIn("the instance on slot 1", record["points"][1]["reason"])
        self.assertNotIn("slot 0", record["points"][1]["reason"])

    def test_one_that_was_stopped_is_named_at_the_timeout(self):
        process = self.start(SCALEMARK, "instances", *TWO, *ENDLESS, "--timeout", "3", "--seed", BOTH_FIRST, "--output", "i.json")
        self.wait_for_line(process.stderr, "[1/3] 2 instances")
        self.wait_until_they_measure("2-instances", 2)
        os.kill(self.engines()[1], signal.SIGSTOP)
        self.wait_for_line(process.stderr, "[2/3] slot")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        point = self.read("i.json")["points"][1]
        self.assertEqual(point["status"], "timeout")
        self.assertRegex(point["reason"], r"slot 1 \(.*nothing was heard")

    def test_an_instance_that_never_comes_to_the_start_is_told_from_those_that_wait(self):
        self.instances(*BRIEF, "--inject", "stop:rank=1:step=0", "--launch_timeout", "10", "--output", "i.json", expect=5)
        reason = self.read("i.json")["points"][1]["reason"]
        self.assertRegex(reason, r"slot 0 \([^)]*\) \(waiting for the others\), the instance on slot 1 \([^)]*\)$")

    def test_a_deadline_of_the_instance_itself(self):
        self.instances(*SMALL, "--num_batches", "5", "--timeout", "4", "--inject", "delay:rank=0:step=3:milliseconds=60000",
                       "--instances", "2", "--output", "i.json", expect=5)
        point, = self.read("i.json")["points"]
        self.assertEqual(point["status"], "timeout")
        self.assertIn("slot 0", point["reason"])

    def test_numbers_that_are_not_finite_are_no_result(self):
        self.instances(*SMALL, "--num_batches", "5", "--inject", "nan_loss:rank=1:step=2", "--output", "i.json", expect=4)
        record = self.read("i.json")
        self.assertEqual((record["points"][1]["status"], record["status"]), ("invalid", "invalid"))
        self.assertIn("not finite", record["points"][1]["reason"])

    def test_ctrl_c_stops_all_and_keeps_what_was_complete(self):
        process = self.start(SCALEMARK, "instances", *TWO, *SMALL, "--num_batches", "200", "--inject", "delay:milliseconds=10",
                             "--output", "i.json")
        launch = self.wait_for_line(process.stderr, "[3/3]")
        self.wait_until_they_measure(*(("2-instances", 2) if "2 instances" in launch else ("alone", 1)))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4, err)
        record = self.read("i.json")
        self.assertEqual((record["status"], record["reason"]), ("interrupted", "stopped from outside"))
        statuses = [part["status"] for part in (*record["alone"], record["points"][1])]
        self.assertEqual(sorted(statuses), ["interrupted", "ok", "ok"])

    def test_the_instances_do_not_outlive_a_killed_supervisor(self):
        process = self.start(SCALEMARK, "instances", *TWO, *ENDLESS, "--seed", BOTH_FIRST, "--output", "i.json")
        self.wait_until_they_measure("2-instances", 2)
        process.kill()
        process.communicate(timeout=30)
        self.wait_until(lambda: not self.engines(), 30)


class WrongInput(InstancesTest):
    def test_is_exit_2_and_nothing_starts(self):
        cpu, other = CPUS[0], CPUS[-1]
        layouts = ((f"{cpu};{cpu}", "CPU"), (f"{cpu};;{other}", "empty"), ("", "empty"), ("9999", "not among those"),
                   ("GPU-1", "--device is cpu"), ("all", "neither"))
        for layout, text in layouts:
            with self.subTest(layout=layout):
                _, err = self.instances("--output", "i.json", slots=["--device", "cpu", "--slots", layout], expect=2)
                self.assertIn(text, err)
        for words, text in ((["--instances", "3"], "2 slots"), (["--ranks", "1,2"], "one number"), (["--ranks_per_node", "1"], "--slots"), (["--instances", "2,1"], "must ascend"), (["--job", "scale"], "run, infer"),
                            (["--slot", "0"], "--slots"), (["--model", "resnet51"], "resnet50"), (["--batch_size", "max"], "number"),
                            (["--job", "infer", "--momentum", "0.5"], "scalemark run")):
            with self.subTest(words=words):
                _, err = self.instances(*words, "--output", "i.json", expect=2)
                self.assertIn(text, err)
        _, err = self.run_program(*mpirun(2, SCALEMARK, "instances", *TWO), expect=2)
        self.assertIn("start it once", err)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_devices_that_are_not_there_are_exit_7(self):
        for layout in ("GPU-12345678-1234-1234-1234-123456789012", "MIG-12345678-1234-1234-1234-123456789012"):
            _, err = self.instances(slots=["--slots", f"{CPUS[0]};{layout}"], expect=7)
            self.assertIn(layout, err)

    def test_a_result_that_cannot_be_written_is_exit_6(self):
        (self.folder / "i.json").mkdir()
        self.instances(*BRIEF, "--output", "i.json", expect=6)

    def test_help_is_grouped(self):
        out, _ = self.run_program(SCALEMARK, "instances", "--help", "all")
        for text in (" Instances options:", "--slots", " Model and batch options:", "--optimizer", "Exit codes"):
            self.assertIn(text, out)


if __name__ == "__main__":
    main()
