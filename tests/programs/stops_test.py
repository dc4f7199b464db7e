"""A stop is heard at any moment, and nothing is waited for longer than --timeout and 20 s, whoever is stopped or hangs."""

import json
import os
import pty
import signal
import subprocess
import time
import unittest

from support import SCALEMARK, SMALL, ProgramTest, main

LONG = [*SMALL, "--num_batches", "1000000"]
SCALE = ["scale", *LONG, "--ranks", "2", "--baseline=false", "--output", "s.json"]
# A step takes so long that nobody comes to its end.
ENDLESS = ["--inject", "delay:milliseconds=600000"]
PLAN = {"settings": {"model": "trivial", "batch_size": 4, "num_batches": 1000000}, "repeats": 5}


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None  # has ended


def launcher_program():
    """What mpirun is, or becomes: of Open MPI 4 and 5."""
    said = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=True).stdout
    return "orterun" if "Open MPI) 4" in said else "prterun"


def has_terminals():
    try:
        for end in os.openpty():
            os.close(end)
        return True
    except OSError:
        return False


class StopsTest(ProgramTest):
    def wait_for(self, program, number=1):
        def found():
            pids = self.processes(program)
            return pids if len(pids) >= number else None
        return self.wait_until(found, complaint=lambda: f"no {program}")

    def end_of(self, process, seconds):
        try:
            _, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail(f"hung: {process.communicate()}")
        return process.returncode, err


class AStop(StopsTest):
    def test_while_the_launcher_starts(self):
        for later in (0, 0.1):
            process = self.start(SCALEMARK, *SCALE, "--timeout", "60")
            self.wait_for(launcher_program())
            time.sleep(later)
            process.send_signal(signal.SIGTERM)
            code, err = self.end_of(process, 30)
            self.assertEqual(code, 4, err)
            self.assertEqual(self.read("s.json")["status"], "interrupted")

    def test_a_second_one_insists(self):
        process = self.start(SCALEMARK, *SCALE, *ENDLESS, "--timeout", "600")
        self.wait_for("scalemark-engine", 2)
        time.sleep(1)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        code, err = self.end_of(process, 30)
        self.assertEqual(code, 4, err)
        self.assertEqual(self.read("s.json")["status"], "interrupted")
        process = self.start(SCALEMARK, "run", *LONG, *ENDLESS)
        self.wait_for("scalemark-engine")
        time.sleep(2)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
        self.assertEqual(self.end_of(process, 10)[0], -signal.SIGINT)

    def test_nohup_and_the_background_keep_what_they_ignore(self):
        few = ["--num_batches", "40", "--inject", "delay:milliseconds=50"]
        for words in (["run", *SMALL, *few], ["scale", *SMALL, *few, "--ranks", "2", "--baseline=false", "--repeats", "1"]):
            with self.subTest(command=words[0]):
                process = self.start("sh", "-c", "trap '' HUP INT; exec \"$@\"", "sh", SCALEMARK, *words, "--output", "r.json")
                self.wait_for("scalemark-engine")
                time.sleep(1.5)
                for number in (signal.SIGHUP, signal.SIGINT):
                    process.send_signal(number)
                code, err = self.end_of(process, 60)
                self.assertEqual(code, 0, err)
                self.assertEqual(self.read("r.json")["status"], "ok")

    @unittest.skipUnless(has_terminals(), "no terminals can be made here (/dev/pts)")
    def test_a_terminal_that_is_lost(self):
        (self.folder / "plan.json").write_text(json.dumps(PLAN))
        commands = {"run": ["run", *LONG, "--output", "r.json"], "scale": SCALE, "infer": ["infer", *LONG, "--output", "r.json"],
                    "instances": ["instances", *LONG, "--instances", "1", "--output", "r.json"],
                    "gate": ["gate", "plan.json", "--base", SCALEMARK, "--new", SCALEMARK, "--output", "g"]}
        records = {"scale": "s.json", "gate": "g/verdict.json"}
        for name, words in commands.items():
            with self.subTest(command=name):
                pid, terminal = pty.fork()
                if pid == 0:
                    os.chdir(self.folder)
                    os.execve(SCALEMARK, [str(SCALEMARK), *map(str, words)], self.environment())
                self.wait_for("scalemark-engine")
                time.sleep(2)
                os.close(terminal)
                deadline = time.monotonic() + 40
                while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
                    time.sleep(0.1)
                if ended[0] == 0:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    self.fail("hung")
                self.assertEqual(os.waitstatus_to_exitcode(ended[1]), 4)
                self.assertEqual(self.read(records.get(name, "r.json"))["status"], "interrupted")


class Deadlines(StopsTest):
    """Side by side: each of them is mostly waiting."""
    TIMEOUT = 3

    def start_scale(self, name, *words):
        return self.start(SCALEMARK, "scale", *LONG, "--ranks", "2", "--baseline=false", "--timeout", self.TIMEOUT,
                          "--output", f"{name}.json", *words)

    def wait_for_child(self, parent, program, number=1):
        def found():
            pids = [pid for pid in self.processes(program) if parent_of(pid) == parent]
            return pids if len(pids) >= number else None
        return self.wait_until(found, complaint=lambda: f"no {program}")

    def end_within_the_promise(self, name, process, began):
        code, err = self.end_of(process, self.TIMEOUT + 25 - (time.monotonic() - began))
        return code, err, self.read(f"{name}.json")

    def test_nothing_is_waited_for_longer_than_the_timeout_and_20_s(self):
        began = {}

        def stop(name, pids):
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            began[name] = time.monotonic()
        at_start = self.start_scale("at_start")
        stop("at_start", self.wait_for_child(at_start.pid, launcher_program()))
        ranks = self.start_scale("ranks")
        launcher, = self.wait_for_child(ranks.pid, launcher_program())
        self.wait_for_line(ranks.stdout, "images/sec:")
        stop("ranks", self.wait_for_child(launcher, "scalemark-engine", 2))
        at_end = self.start_scale("at_end", "--num_batches", "200", "--repeats", "1")
        launcher = self.wait_for_child(at_end.pid, launcher_program())
        self.wait_until((self.folder / "at_end.json").exists)
        stop("at_end", launcher)

        for name, process in (("at_start", at_start), ("ranks", ranks)):
            code, err, record = self.end_within_the_promise(name, process, began[name])
            self.assertEqual(code, 5, err)
            self.assertIn("nothing was heard of rank 0", err)
            self.assertEqual(record["status"], "timeout")
            self.assertIn("nothing was heard of rank 0", record["reason"])
        code, err, record = self.end_within_the_promise("at_end", at_end, began["at_end"])
        self.assertEqual((code, record["status"]), (0, "ok"), err)


if __name__ == "__main__":
    main()
