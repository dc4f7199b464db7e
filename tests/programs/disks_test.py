"""Disks that are full, or fill up: what was measured is kept, and what goes on can go on."""

import json
import subprocess
import time

from support import SCALEMARK, SMALL, ProgramTest, main

PLAN = {"settings": {"model": "trivial", "batch_size": 4, "num_warmup_batches": 1, "num_batches": 3},
        "axes": {"precision": ["fp32", "bf16"]}, "repeats": 2, "launcher": "mpirun"}
SLOW = [*SMALL, "--num_batches", "20", "--inject", "delay:milliseconds=100"]


class DisksTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", self.disk], capture_output=True).returncode != 0:
            self.skipTest("needs the right to mount a file system")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", self.disk]))
        (self.folder / "plan.json").write_text(json.dumps(PLAN))

    def fill(self):
        try:
            with open(self.disk / "filler", "ab", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)
        except OSError:
            pass

    def free(self):
        (self.disk / "filler").unlink()

    def goes_on(self, words, journals, expect=0):
        """Stops with 6 as soon as the disk is full, and goes on when it is not: each launch once."""
        process = self.start(SCALEMARK, *words)
        self.wait_until(lambda: all(journal.exists() and journal.read_text() for journal in journals))
        self.fill()
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 6, err)
        self.assertIn("the same command goes on", err)
        done = [len(journal.read_text().splitlines()) for journal in journals]
        self.free()
        self.run_program(SCALEMARK, *words, expect=expect)
        for journal, before in zip(journals, done):
            entries = [json.loads(line) for line in journal.read_text().splitlines()]
            self.assertGreater(len(entries), before)
            self.assertEqual({entry["status"] for entry in entries}, {"ok"})
            launches = [(entry["point"], entry["repeat"]) for entry in entries]
            self.assertEqual(len(set(launches)), len(launches))

    def test_a_sweep(self):
        self.goes_on(["sweep", "plan.json", "--output", self.disk / "s"], [self.disk / "s/journal.jsonl"])

    def test_a_gate(self):
        # Steps of which each takes as long as the other: what else the machine does is no regression.
        steady = {**PLAN["settings"], "inject": "delay:milliseconds=20"}
        (self.folder / "plan.json").write_text(json.dumps({**PLAN, "settings": steady, "axes": {}}))
        for alternate in ("steps", "launches"):
            with self.subTest(alternate=alternate):
                self.goes_on(["gate", "plan.json", "--base", SCALEMARK, "--new", SCALEMARK, "--output", self.disk / alternate,
                              "--pairs", "8", "--delta", "50", "--point_delta", "90", "--alternate", alternate],
                             [self.disk / alternate / side / "journal.jsonl" for side in ("base", "new")])

    def test_instances(self):
        process = self.start(SCALEMARK, "instances", *SLOW, "--instances", "1", "--repeats", "50", "--output", self.disk / "i.json")
        self.wait_until(lambda: list(self.disk.glob("i.runs/*.json")))
        self.fill()
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 6, err)
        self.assertEqual(self.read("disk/i.json")["status"], "failed")

    def test_a_run_that_was_finished_is_kept(self):
        for words in (["run", *SLOW], ["scale", *SLOW, "--ranks", "1", "--repeats", "1"]):
            process = self.start(SCALEMARK, *words, "--json", "--output", self.disk / "r.json")
            self.wait_until(lambda: list(self.disk.glob(".r.json.tmp")))
            time.sleep(1)
            self.fill()
            out, err = process.communicate(timeout=60)
            record = json.loads(out)
            self.assertEqual(self.read("disk/r.json"), record)
            if words[0] == "run":
                self.assertEqual((process.returncode, record["status"]), (0, "ok"), err)
            else:  # the records of its runs have no room
                self.assertEqual((process.returncode, record["status"]), (6, "failed"), err)
                self.assertIn("No space left", record["reason"])
                self.assertEqual(len(record["points"][0]["repeats"]), 1)
            self.free()

    def test_the_folder_of_temporary_files(self):
        """Full: what ranks hand over lies beside the result."""
        self.fill()
        self.run_program(SCALEMARK, "scale", *SLOW, "--ranks", "1,2", "--repeats", "1", "--output", "s.json", "--inject",
                         "kill:rank=1:step=10", env=self.environment(TMPDIR=str(self.disk), OMPI_MCA_orte_tmpdir_base="/tmp"),
                         expect=4)
        record = self.read("s.json")
        self.assertEqual(record["status"], "failed")
        self.assertEqual([point["ranks"] for point in record["points"]], [1, 2])  # as rank 0 has handed over


if __name__ == "__main__":
    main()
