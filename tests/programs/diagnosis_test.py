"""Causes that are made on purpose, and what a record and the console then say: the link, a small batch, the host, noise, and what
changed between two sets. A rank that is slow is in slow_rank_test.py, a machine that gets slower in drift_test.py.

Nothing is asserted of what is not made here: on a busy machine other findings may stand beside.
"""

import os
import subprocess
import sys
import unittest

from support import SCALEMARK, SMALL, SOURCE, ProgramTest, main, mpirun

NETLAB = SOURCE / "scripts" / "netlab"
CPUS = sorted(os.sched_getaffinity(0))


class Findings(ProgramTest):
    def found(self, record, rule):
        """The finding of a rule, whose numbers stand where they say."""
        rules = {finding["rule"]: finding for finding in record["findings"]}
        self.assertIn(rule, rules)
        finding = rules[rule]
        for number in finding["numbers"]:
            sentence = finding[number["sentence"]]
            self.assertEqual(sentence[number["begin"]:number["begin"] + len(number["text"])], number["text"])
            if number["record"] == record["id"] and number["name"] == number["pointer"].rsplit("/", 1)[1]:
                value = record
                for key in number["pointer"].strip("/").split("/"):
                    value = value[int(key)] if isinstance(value, list) else value[key]
                self.assertEqual(value, number["value"])
        return finding

    def assert_told(self, said, finding):
        """What, and below it why and what to try; lines are broken where they are long."""
        words = " ".join(said.split())
        sure = "a hint" if finding["sure"] == "hint" else finding["sure"]
        tries = "".join(f" try: {one}" for one in finding["try"])
        self.assertIn(f"{finding['what']} ({sure}) why: {finding['why']}{tries}", words)


class Curves(Findings):
    def test_a_slow_link_and_a_batch_too_small_to_hide_it(self):
        """The gradients of smallnet take far longer over 5 Mbit/s than a step of one sample."""
        tried = subprocess.run([NETLAB, "--", "true"], capture_output=True, text=True, check=False)
        if tried.returncode == 7:
            raise unittest.SkipTest(f"no lab here: {tried.stderr}")
        out, err = self.run_program(NETLAB, "--rate", "5mbit", "--", SCALEMARK, "scale", "--model", "smallnet", "--batch_size", "1",
                                    "--num_batches", "3", "--num_warmup_batches", "1", "--ranks", "1,2", "--repeats", "2",
                                    "--output", "s.json")
        record = self.read("s.json")
        self.assertEqual(record["findings"][0]["rule"], "scales")
        link = self.found(record, "link")
        self.assertEqual((link["tone"], link["about"]), ("bad", "smallnet fp32 weak, scalemark kernels"))
        [share] = [number for number in link["numbers"] if number["name"] == "exposed_share"]
        self.assertGreater(share["value"], 0.5)
        batch = self.found(record, "small_batch")
        runs = {self.read(f"s.runs/{path.name}")["id"] for path in self.folder.glob("s.runs/ranks2-*.json") if "none" not in path.name}
        self.assertLessEqual({number["record"] for number in batch["numbers"]}, runs)
        for finding in link, batch:
            self.assert_told(out + err, finding)
        out, _ = self.run_program(SCALEMARK, "report", "--findings", "s.json")
        self.assertIn("The link: ranks wait for gradients.", out)

    def test_ranks_that_share_a_core_are_the_host(self):
        """Eight ranks on one core compute together what one alone does, also without communication. Eight, so that it holds too where
        others want this core: beside N of them one rank gets 1 / (1 + N) of it and eight get 8 / (8 + N), far from eight times that."""
        pinned = ["taskset", "-c", str(CPUS[0])]
        for _ in range(4):  # a baseline that others slowed down below the measurement tells nothing of the host
            out, err = self.run_program(*pinned, *mpirun(8, SCALEMARK, "scale", "--model", "smallnet", "--batch_size", 32, "--num_batches",
                                                         10, "--num_warmup_batches", 2, "--ranks", "1,8", "--repeats", 2, "--output",
                                                         "s.json", "--overwrite"))
            record = self.read("s.json")
            if "baseline" not in {finding["rule"] for finding in record["findings"]}:
                break
        host = self.found(record, "host")
        [kept] = [number for number in host["numbers"] if number["name"] == "kept"]
        self.assertLess(kept["value"], 0.95)
        self.assert_told(out + err, host)

    def test_rounds_that_differ_are_noise(self):
        """In the second round others want every CPU four times over."""
        process = self.start(*mpirun(2, SCALEMARK, "scale", *SMALL, "--num_batches", 10, "--ranks", "1,2", "--repeats", 2,
                                     "--output", "s.json"), stderr=subprocess.STDOUT)
        self.wait_for_line(process.stdout, "[3/6]")  # of a round: one rank, two, and two without communication
        for _ in range(4 * len(CPUS)):
            other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            self.addCleanup(other.wait)
            self.addCleanup(other.kill)
        said, _ = process.communicate(timeout=240)
        self.assertEqual(process.returncode, 0, said)
        noise = self.found(self.read("s.json"), "noise")
        self.assertEqual(noise["tone"], "note")
        self.assert_told(said, noise)


class TwoSets(Findings):
    def test_compare_and_gate_name_what_changed(self):
        """Both ranks of the first set sleep in each step; of the second one rank alone, for which the other waits."""
        for name, sleep in (("base", "delay:milliseconds=500"), ("new", "delay:rank=1:milliseconds=500")):
            (self.folder / name).mkdir()
            for launch in range(4):
                self.run_program(*mpirun(2, SCALEMARK, "run", *SMALL, "--num_batches", 4, "--inject", sleep, "--output",
                                         f"{name}/{launch}.json"))
        for words, code in ((["compare"], 0), (["gate"], None)):
            process = self.start(SCALEMARK, *words, "base", "new", "--varied", "inject", "--output", "both.json")
            out, err = process.communicate(timeout=60)
            if code is not None:
                self.assertEqual(process.returncode, code, err)
            record = self.read("both.json")
            link = self.found(record, "link")
            self.assertEqual((link["tone"], link["about"]), ("bad", "new against base"))
            self.assertRegex(link["what"], r"^Exposed communication grew from [\d.]+ % to [\d.]+ % of a step at 2 ranks: link\.$")
            self.assertEqual({number["name"] for number in link["numbers"]}, {"base_share", "share"})
            straggler = self.found(record, "straggler")
            self.assertIn("in 4 of 4 launches of new", straggler["why"])
            for finding in link, straggler:
                self.assertIn(f"changed: {finding['what']}", out)


if __name__ == "__main__":
    main()
