"""The fault table's row of a rank with half of a CPU: the record names it. Nothing else may run meanwhile, or the other rank has
half of a CPU too."""

import os
import unittest

from limits import half_a_cpu
from support import SCALEMARK, ProgramTest, main, mpirun


OTHERS = 0.1  # CPUs from which on other processes may slow the other rank as much


class SlowRank(ProgramTest):
    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "two ranks need a core each to be compared")
    def test_21_a_rank_with_half_a_cpu_is_the_straggler(self):
        words = ["run", "--model", "smallnet", "--batch_size", "64", "--num_intra_threads", "1", "--num_batches", "150",
                 "--num_warmup_batches", "2", "--output", "r.json", "--overwrite"]
        for _ in range(3):
            with half_a_cpu() as tasks:
                slowed = ["sh", "-c", f'test "$OMPI_COMM_WORLD_RANK" = 1 && echo $$ >{tasks}; exec "$@"', "sh"]
                _, err = self.run_program(*mpirun(2, *slowed, SCALEMARK, *words))
            record = self.read("r.json")
            stragglers = [rank["straggler"] for rank in record["ranks"]]
            others = (record["noise"]["foreign"] or {"cpus": 0})["cpus"]
            if stragglers == [False, True]:
                break  # else something slowed the other rank too: a process, or another guest that no counter of steal tells
        else:
            if others >= OTHERS:
                self.skipTest(f"other processes took {others:.1f} CPUs")
        self.assertEqual(stragglers, [False, True])
        self.assertRegex(err, "rank 1.*straggler|straggler.*rank 1")
        [finding] = [finding for finding in record["findings"] if finding["rule"] == "straggler"]
        host = record["ranks"][1]["host"]
        quiet = others < OTHERS  # beside other processes a slow rank is a note
        self.assertIn(f"A straggler: rank 1 on {host} holds the others up." if quiet else f"ank 1 on {host}", finding["what"])
        self.assertEqual({number["pointer"] for number in finding["numbers"] if number["sentence"] == "what"},
                         {"/ranks/1/rank", "/ranks/1/host"})
        last = err.splitlines()
        last = " ".join(line.strip() for line in last[last.index(f"{finding['what']} (a hint)") + 1:])  # long ones are wrapped
        self.assertTrue(last.startswith(f"why: {finding['why']}"), last)
        self.assertIn(f"try: {finding['try'][-1]}", last)


if __name__ == "__main__":
    main()
