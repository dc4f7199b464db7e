"""A limit on the size of files (ulimit -f): nothing dies of it or stays behind, and what can't be written is exit 6."""

import json
import resource

from support import SCALEMARK, SMALL, ProgramTest, main, mpirun

WORDS = [*SMALL, "--num_batches", "3"]
KIB = 1024


def limited(most_bytes):
    """What stays behind, should that happen, may not take the machine's memory."""
    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    return limit


class FileSizeLimit(ProgramTest):
    def refused(self, kib, *words):
        _, err = self.run_program(*words, expect=6, preexec_fn=limited(kib * KIB))
        self.assertIn(f"the file size limit (ulimit -f) is {kib} KiB", err)
        self.assertIn("raise it", err)
        self.assertEqual(self.processes_left(), [])
        self.assertEqual([path.name for path in self.folder.glob("*r.json*")], [])

    def test_a_record_that_has_no_room(self):
        for kib in (0, 1, 16):
            with self.subTest(kib):
                self.refused(kib, SCALEMARK, "run", *WORDS, "--output", "r.json")

    def test_a_record_that_has_room(self):
        self.run_program(SCALEMARK, "run", *WORDS, "--output", "r.json", preexec_fn=limited(1500 * KIB))
        self.assertEqual(self.read("r.json")["status"], "ok")

    def test_a_rank_alone_writes_no_file_that_was_not_asked_for(self):
        out, _ = self.run_program(SCALEMARK, "run", *WORDS, "--json", preexec_fn=limited(0))
        self.assertEqual(json.loads(out)["status"], "ok")

    def test_streams_that_are_files(self):
        """The record on stdout has no room; nor have messages, which nobody asked for."""
        for words, code in ((["--json"], 6), (["--output", "r.json"], 6), ([], 0)):
            for _ in range(3):  # once in several starts a daemon stayed behind
                with self.subTest(words), open(self.folder / "out", "w") as out, open(self.folder / "err", "w") as err:
                    process = self.start(SCALEMARK, "run", *WORDS, *words, preexec_fn=limited(0), stdout=out, stderr=err)
                    self.assertEqual(process.wait(timeout=60), code)
                    self.assertEqual(self.processes_left(), [])

    def test_ranks_share_memory_in_files(self):
        for kib in (0, 1, 16, 1500, 4096):
            with self.subTest(kib):
                self.refused(kib, SCALEMARK, "run", "--ranks", "2", *WORDS, "--output", "r.json")
        self.refused(1500, SCALEMARK, "scale", "--ranks", "1,2", *WORDS, "--output", "r.json")
        self.run_program(SCALEMARK, "run", "--ranks", "2", *WORDS, "--output", "r.json", preexec_fn=limited(5120 * KIB))
        self.assertEqual(self.read("r.json")["communication"]["transport"], "vader")

    def test_ranks_of_a_users_own_launch(self):
        """Open MPI would go on without shared memory, and the record would say otherwise."""
        self.refused(1500, *mpirun(2, "prlimit", f"--fsize={1500 * KIB}", SCALEMARK, "run", *WORDS))

    def test_launches_of_plans(self):
        (self.folder / "plan.json").write_text(json.dumps({"settings": {"model": "trivial", "num_batches": 3}, "launcher": "mpirun"}))
        self.refused(1500, SCALEMARK, "sweep", "plan.json", "--output", "s")
        self.refused(16, SCALEMARK, "instances", *WORDS, "--instances", "1", "--output", "r.json")


if __name__ == "__main__":
    main()
