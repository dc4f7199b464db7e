"""lab/speed: intervals, verdicts and looks at the machine by exact small values, rows and their commands, and whole
rows with stand-ins for the programs.

What needs real processes of scalemark and the peers is in peers_test.py.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "lab" / "peers"), str(SOURCE / "tests" / "programs")]
import machine  # noqa: E402
import measuring  # noqa: E402
import processes  # noqa: E402
import ratios  # noqa: E402
import interleaving  # noqa: E402
from rows import NETLAB, ROWS, SHARED_MEMORY, Comparison  # noqa: E402
from support import problems_of  # noqa: E402


class MedianInterval(unittest.TestCase):
    def test_five_values_cannot_cover_95_percent(self):
        self.assertIsNone(ratios.median_interval([1, 2, 3, 4, 5]))

    def test_seven_values_give_the_extremes(self):
        self.assertEqual(ratios.median_interval([3, 1, 2, 7, 6, 5, 4]), (1, 7, 1 - 2 / 2**7))

    def test_nine_values_leave_out_one_at_each_end(self):  # 1 - 2 (1 + 9) / 512
        self.assertEqual(ratios.median_interval(list(range(9))), (1, 7, 1 - 20 / 512))

    def test_it_covers_the_median_of_the_values(self):
        low, high, coverage = ratios.median_interval([0.9, 1.3, 1.1, 1.0, 1.2, 1.15, 1.05, 1.25])
        self.assertTrue(low <= 1.125 <= high)
        self.assertGreaterEqual(coverage, 0.95)


class Rounds(unittest.TestCase):
    def test_every_subject_takes_every_place(self):
        orders = [measuring.rotated(("a", "b", "c"), index) for index in range(6)]
        for place in range(3):
            self.assertEqual(sorted(order[place] for order in orders), ["a", "a", "b", "b", "c", "c"])

    def test_ratios_are_paired_by_round(self):
        ratio = ratios.paired_ratio("ours", "theirs", [{"ours": 2 * k, "theirs": k} for k in (1, 5, 3, 9, 7, 2)])
        self.assertEqual((ratio["median"], ratio["interval"]), (2, [2, 2]))


def ratio(median, low, high, goal=1.1, quantity=ratios.SPEED):
    return {"median": median, "interval": [low, high], "goal": goal, "quantity": quantity}


class Verdicts(unittest.TestCase):
    def test_of_speed(self):
        for found, quiet, verdict in ((ratio(1.10, 1.01, 1.2), True, "holds"), (ratio(1.09, 1.05, 1.2), True, "falls short"),
                                      (ratio(1.2, 0.99, 1.3), True, "not shown"), (ratio(1.2, 1.1, 1.3), False, "not shown"),
                                      (ratio(1.2, 1.1, 1.3), None, "not shown"),
                                      ({"median": 1.2, "interval": None}, True, "not shown")):
            self.assertEqual(ratios.speed_verdict(found, 1.1, quiet)[0], verdict, (found, quiet))

    def test_of_memory(self):
        for found, verdict in ((ratio(0.9, 0.8, 1.0), "holds"), (ratio(1.01, 0.9, 1.1), "falls short"),
                               (ratio(0.99, 0.9, 1.1), "not shown")):
            self.assertEqual(ratios.memory_verdict(found)[0], verdict)

    def test_the_peer_is_the_fastest_over_all_rounds(self):
        speeds = [{"ours": 3, "a": 1, "b": 2}, {"ours": 3, "a": 9, "b": 2}, {"ours": 3, "a": 1, "b": 2}]
        found = ratios.ratios_of(Comparison("ours", ("a", "b", "left out"), 1.1), speeds, speeds, True)
        self.assertEqual([(r["quantity"], r["peer"], r["median"]) for r in found], [("speed", "b", 1.5), ("peak memory", "b", 1.5)])
        self.assertEqual(len(ratios.ratios_of(Comparison("ours", ("a",)), speeds, speeds, True)), 1)

    def test_rounds_end_with_narrow_intervals(self):
        adaptive = measuring.Settings(rounds=None, half_width=1, max_rounds=8, steps=1, warmup=0, quiet_seconds=0, alternate="steps")
        fixed = measuring.Settings(rounds=2, half_width=1, max_rounds=8, steps=1, warmup=0, quiet_seconds=0, alternate="launches")
        narrow, wide = ratio(1, 0.991, 1.009), ratio(1, 0.98, 1.01)
        memory, without = ratio(1, 0.5, 2, quantity=ratios.MEMORY), ratio(1, 0.5, 2, goal=None)
        for found, count, settings, reason in (
                ([narrow], 5, adaptive, None), ([narrow, memory, without], 6, adaptive, "half_width"),
                ([narrow, wide], 7, adaptive, None), ([wide], 8, adaptive, "max_rounds"),
                ([without], 6, adaptive, "no_goal"), ([wide], 1, fixed, None), ([wide], 2, fixed, "rounds")):
            self.assertEqual(ratios.why_stop(found, count, settings), reason, (found, count))


    def test_hosts_take_no_turns(self):
        settings = measuring.Settings(rounds=1, half_width=1, max_rounds=8, steps=1, warmup=0, quiet_seconds=0, alternate="steps")
        ways = {row.network: measuring.RowMeasurement(row, settings, None, None).alternate for row in ROWS.values()}
        self.assertEqual(ways, {None: "steps", SHARED_MEMORY: "steps", NETLAB: "launches"})


class Machine(unittest.TestCase):
    def test_load_of_others(self):
        stat = "cpu  {} 0 0 1000 50 0 0 {} 9 9\ncpu0 1 1\n"
        before = machine.cpu_seconds(stat.format(100, 0))
        for busy, steal, quiet in ((100, 0, True), (115, 0, True), (150, 0, False), (100, 20, False)):
            load = machine.load_between(before, machine.cpu_seconds(stat.format(busy, steal)), 1, 2)
            self.assertEqual(load.quiet, quiet, load)

    def test_native_bf16(self):
        for flags, native in (("flags\t\t: fpu avx2\n", False), ("flags\t: fpu amx_bf16 avx\n", True), ("Features\t: asimd bf16\n", True),
                              ("flags\t: avx512_bf16x\n", False), ("", False)):
            self.assertEqual(machine.native_bf16("processor: 0\n" + flags), native, flags)


class Memory(unittest.TestCase):
    def test_little_is_free(self):
        for available, short in ((1000, False), (20, True)):
            self.assertEqual(machine.short_of_memory(f"MemTotal: 1000 kB\nMemFree: 5 kB\nMemAvailable: {available} kB\n"), short)

    def test_a_row_that_does_not_fit_ends(self):
        """In place of processes that read their programs from disk again and again, for hours."""
        subject = ROWS["resnet50 fp32"].subjects[0]
        with unittest.mock.patch.object(processes, "short_of_memory", return_value=True):
            with self.assertRaisesRegex(processes.Failed, "1 processes .* --alternate launches"):
                list(processes.interleaved([(subject, ["sleep", "1000"])], 1))
        self.assertEqual(subprocess.run(["pgrep", "-P", str(os.getpid()), "sleep"]).returncode, 1)


class Turns(unittest.TestCase):
    """Jobs as threads with a real line each."""

    def orders(self, steps_of_jobs, ranks=1, gone=()):
        """Which job computed, step by step."""
        order, lock = [], threading.Lock()

        def measure(line, job, steps):
            for _ in range(steps):
                line.wait()
                with lock:
                    order.append(job)
            line.end()

        with tempfile.TemporaryDirectory() as folder:
            giver = interleaving.Interleaver(folder, [ranks] * len(steps_of_jobs))
            threads = []
            for job, steps in enumerate(steps_of_jobs):
                if job in gone:
                    giver.gone(job)
                    continue
                with unittest.mock.patch.dict(os.environ, giver.environment(job)):
                    lines = [interleaving.InterleavedRank() for _ in range(ranks)]
                threads += [threading.Thread(target=measure, args=(line, job, steps)) for line in lines]
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                giver.update()
            giver.close()
        return order

    def test_go_there_and_back(self):
        self.assertEqual(self.orders([4, 4, 4]), [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0])

    def test_of_a_job_that_has_ended_go_to_the_others(self):
        self.assertEqual(self.orders([1, 3]), [0, 1, 1, 1])

    def test_need_no_job_that_is_gone(self):
        self.assertEqual(self.orders([2, 9, 2], gone=[1]), [0, 2, 2, 0])

    def test_are_of_all_ranks_of_a_job(self):
        self.assertEqual(self.orders([2, 2], ranks=2), [0, 0, 1, 1, 1, 1, 0, 0])

    def test_are_as_long_as_scalemarks(self):
        self.assertEqual([interleaving.steps_of_a_slice(*case) for case in ((4.0, 1), (4.0, 2), (0.02, 1), (0.05, 1))], [1, 2, 3, 1])


class SpeedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "speed.json"

    def run_speed(self, *words, expect):
        done = subprocess.run([SOURCE / "lab" / "speed", "--quiet_seconds", "0", *words, "--output", self.file],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def program(self, name, script):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path


class Rows(SpeedTest):

    def test_list_gives_every_command_of_every_row(self):
        printed = self.run_speed("--list", expect=0).stdout
        for row in ROWS.values():
            self.assertIn(row.name, printed)
        for words in ("--model transformer_big --device cpu --precision bf16 --batch_size 4 --sequence_length 64",
                      "infer --model resnet50 --device cpu --precision bf16", "pytorch_inference.py --precision bf16",
                      "--overlap backward --wire_dtype bf16 --json", "scripts/netlab --hosts 2 --rate 1gbit"):
            self.assertIn(words, printed)

    def test_a_subject_is_divided_by_others_of_its_row(self):
        for row in ROWS.values():
            subjects = {subject.name: subject for subject in row.subjects}
            self.assertEqual(len(subjects), len(row.subjects))
            for comparison in row.comparisons:
                self.assertTrue(subjects[comparison.subject].ours, row.name)
                self.assertLessEqual(set(comparison.peers), set(subjects) - {comparison.subject})
                self.assertFalse(all(subjects[peer].optional for peer in comparison.peers))

    def test_a_failed_process_is_exit_4_and_a_missing_tool_skips_the_row(self):
        for code, status, expect in ((1, "failed", 4), (7, "skipped", 7)):
            program = self.program("scalemark", f"echo the reason >&2; exit {code}")
            done = self.run_speed("--rows", "resnet50 fp32,transformer_big fp32", "--scalemark", program, "--python",
                                  sys.executable, expect=expect)
            for row in ("resnet50 fp32", "transformer_big fp32"):
                self.assertIn(f"{row} {status}", done.stderr)
            self.assertIn("the reason", done.stderr)
            self.assertFalse(self.file.exists())

    def test_unknown_rows_are_exit_2(self):
        self.assertIn("resnet50 bf16 1gbit", self.run_speed("--rows", "resnet51", expect=2).stderr)

    def test_bounds_of_numbers_are_exit_2(self):
        for flag, value in (("--max_rounds", "5"), ("--half_width", "0"), ("--half_width", "nan"), ("--rounds", "0"),
                            ("--quiet_seconds", "-1")):
            self.assertIn(flag, self.run_speed(flag, value, expect=2).stderr)


class WholeRows(SpeedTest):
    """With stand-ins that print what scalemark and a peer print."""

    def speed(self, *words, row="resnet50 fp32", **of_record):
        record = {"throughput": {"median": 12.0, "mean": 11.0}, "memory": {"peak_rss_bytes": 2**30},
                  "build": {"version": "1"}, **of_record}
        said = {"throughput": 10.0, "peak_rss_bytes": 2**31, "versions": {"torch": "2"}}
        ours = self.program("scalemark", f"echo '{json.dumps(record)}'")
        peer = self.program("python", f"""case "$*" in *--compile*) echo no compiler >&2; exit 1;; *--ipex*) exit 7;; esac
                                          echo '{json.dumps(said)}'""")
        done = self.run_speed("--rows", row, "--scalemark", ours, "--python", peer, *words, expect=0)
        report = json.loads(self.file.read_text())
        self.assertEqual(problems_of(report), [])
        return report, done.stdout

    def test_rounds_until_the_intervals_are_narrow(self):
        report, printed = self.speed()
        row, = report["rows"]
        self.assertEqual((row["stopped"], len(row["rounds"])), ({"reason": "half_width", "half_width_percent": 0}, 6))
        self.assertEqual([(r["quantity"], r["median"], r["goal"], r["verdict"]) for r in row["ratios"]],
                         [("speed", 1.2, 1.15, "not shown"), ("peak memory", 0.5, 1, "holds"),
                          ("speed", 1.2, 1.03, "not shown"), ("peak memory", 0.5, 1, "holds")])
        self.assertIsNone(row["machine"]["quiet"])
        self.assertIn("at most 1.00", printed)

    def test_the_row_goes_on_without_what_is_optional(self):
        report, printed = self.speed("--rounds", "2", "--markdown")
        row, = report["rows"]
        self.assertEqual(set(row["left_out"]), {"compiled+tcmalloc", "ipex+tcmalloc"})
        self.assertEqual((set(row["rounds"][0]), row["stopped"]["reason"]),
                         ({"scalemark", "pytorch", "pytorch+tcmalloc"}, "rounds"))
        self.assertIn("resnet50 fp32 without compiled+tcmalloc: ", printed)
        self.assertIn("no compiler", printed)

    def test_shares_of_the_rate_of_matrix_products(self):
        report, printed = self.speed("--rounds", "2", achieved_flops=22e9, roofline={"gemm_flops": 48e9})  # 2 GFLOP a unit
        row, = report["rows"]
        self.assertEqual(row["gemm_peak"]["flops"], 48e9)
        self.assertAlmostEqual(row["gemm_peak"]["shares"]["scalemark"], 0.5)
        self.assertAlmostEqual(row["gemm_peak"]["shares"]["pytorch"], 20 / 48)
        self.assertIn("12.00 (1.00 GiB, 50 %)", printed)

    def test_without_a_measured_rate_there_are_no_shares(self):
        report, printed = self.speed("--rounds", "2", achieved_flops=22e9, roofline={"gemm_flops": None})
        self.assertIsNone(report["rows"][0]["gemm_peak"])
        self.assertIn("12.00 (1.00 GiB)", printed)

    def test_launches_one_after_the_other(self):
        report, _ = self.speed("--rounds", "1", "--alternate", "launches")
        self.assertEqual((report["settings"]["alternate"], set(report["rows"][0]["left_out"])),
                         ("launches", {"compiled+tcmalloc", "ipex+tcmalloc"}))

    def test_another_size_has_no_goals(self):
        report, _ = self.speed("--image_size", "32")
        row, = report["rows"]
        self.assertEqual([(r["goal"], r["verdict"]) for r in row["ratios"]], 2 * [(None, None)])
        self.assertEqual((len(row["rounds"]), row["stopped"]["reason"]), (6, "no_goal"))

    @unittest.skipIf(machine.native_bf16(), "this processor has native bf16 instructions")
    def test_bf16_is_skipped_without_its_instructions(self):
        report, printed = self.speed("--rounds", "1", row="resnet50 fp32,resnet50 bf16")
        self.assertEqual([goal["goal"] for goal in report["missing"][0]["goals"]], [1.15, 1.1])
        self.assertIn("resnet50 bf16 skipped: no native bf16 instructions", printed)

    def test_a_look_at_the_machine_before_each_round_and_after_the_last(self):
        report, _ = self.speed("--rounds", "2", "--quiet_seconds", "0.05")
        seen = report["rows"][0]["machine"]
        self.assertEqual((len(seen["looks"]), seen["quiet"]), (3, all(look["quiet"] for look in seen["looks"])))


if __name__ == "__main__":
    unittest.main()
