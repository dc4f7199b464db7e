"""A machine that others use while scalemark measures: who reads the numbers is told, everywhere.

What is not asserted is that nobody is named: other suites run beside this one, and are foreign load.
"""

import json
import os
import re
import signal
import subprocess
import sys

from support import SCALEMARK, SMALL, ProgramTest, main

CPUS = len(os.sched_getaffinity(0))
LONG = [*SMALL, "--num_batches", "1000000", "--max_seconds", "1.5"]
OTHERS = r"other processes used (\d+\.\d) of \d+ CPUs"


class BusyMachine(ProgramTest):
    def setUp(self):
        super().setUp()
        self.others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(CPUS)]
        for process in self.others:
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)

    def used(self, text):
        """What the first such sentence says."""
        self.assertRegex(text, OTHERS)
        return float(re.search(OTHERS, text).group(1))

    def test_a_run_an_inference_and_a_curve_say_so_on_the_console_and_in_the_record(self):
        for command in (["run"], ["infer"], ["scale", "--ranks", "1", "--repeats", "2"]):
            with self.subTest(command[0]):
                record = f"{command[0]}.json"
                out, err = self.run_program(SCALEMARK, *command, *LONG, "--output", record)
                self.assertGreater(self.used(out + err), 0.3)
                self.assertGreater(self.used(" ".join(self.read(record)["warnings"])), 0.3)
        foreign = self.read("run.json")["noise"]["foreign"]
        self.assertGreater(foreign["cpus"], 0.3)
        self.assertLessEqual(foreign["cpus"], foreign["of_cpus"])
        self.assertGreater(foreign["seconds"], 1.5)

    def test_compare_and_gate_count_the_launches(self):
        for name in ("a", "b"):
            (self.folder / name).mkdir()
            for launch in range(2):
                self.run_program(SCALEMARK, "run", *LONG, "--output", f"{name}/{launch}.json")
        for command in (["compare"], ["gate"]):
            said = self.run_program(SCALEMARK, *command, "a", "b", "--output", "both.json", expect=3 if command == ["gate"] else 0)
            self.assertRegex(" ".join(said), r"2 of 2 launches of a were measured on a busy machine: " + OTHERS)
            self.assertRegex(" ".join(self.read("both.json")["notes"]), r"2 of 2 launches of b were measured on a busy machine")

    def test_preflight_has_a_rule_and_names_it_first_in_what_failed_beside(self):
        rules = {"rules": [{"check": "noise", "statistic": "foreign_cpus", "max": 0.2, "level": "warn"},
                           {"check": "gemm.fp32", "statistic": "flops", "min": 1e18, "level": "fail"}]}
        (self.folder / "rules.json").write_text(json.dumps(rules))
        self.run_program(SCALEMARK, "preflight", "--seconds", "0.5", "--sizes", "8", "--scratch_mb", "1", "--rules", "rules.json",
                         "--output", "p.json", expect=4)
        checks = {check["name"]: check for check in self.read("p.json")["checks"]}
        self.assertEqual(checks["noise"]["status"], "warn")
        self.assertRegex(checks["gemm.fp32"]["message"], "^" + OTHERS)

    def test_waiting_for_an_idle_machine_ends_in_a_warning(self):
        _, err = self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "5", "--wait_for_idle", "2.5", "--output", "r.json")
        self.assertIn("waiting up to 2.5 s for an idle machine: other processes used", err)
        self.assertIn("did not become idle in 2.5 s", err)
        self.assertIn("did not become idle in 2.5 s", " ".join(self.read("r.json")["warnings"]))

    def test_waiting_ends_with_a_stop(self):
        with self.start(SCALEMARK, "run", *SMALL, "--wait_for_idle", "600", "--output", "r.json") as run:
            self.wait_for_line(run.stderr, "waiting up to 600 s for an idle machine")
            run.send_signal(signal.SIGTERM)
            run.communicate(timeout=60)
        self.assertEqual(self.read("r.json")["status"], "interrupted")


if __name__ == "__main__":
    main()
