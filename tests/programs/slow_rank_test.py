"""The fault table's row of a rank with half of a CPU: the record names it. Nothing else may run meanwhile, or the other rank has
half of a CPU too."""

import os
import unittest

from limits import half_a_cpu
from support import SCALEMARK, ProgramTest, main, mpirun


class SlowRank(ProgramTest):
    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "two ranks need a core each to be compared")
    def test_21_a_rank_with_half_a_cpu_is_the_straggler(self):
        words = ["run", "--model", "smallnet", "--batch_size", "64", "--num_intra_threads", "1", "--num_batches", "150",
                 "--num_warmup_batches", "2", "--output", "r.json"]
        with half_a_cpu() as tasks:
            slowed = ["sh", "-c", f'test "$OMPI_COMM_WORLD_RANK" = 1 && echo $$ >{tasks}; exec "$@"', "sh"]
            _, err = self.run_program(*mpirun(2, *slowed, SCALEMARK, *words))
        record = self.read("r.json")
        self.assertEqual([rank["straggler"] for rank in record["ranks"]], [False, True])
        self.assertRegex(err, "rank 1.*straggler|straggler.*rank 1")


if __name__ == "__main__":
    main()
