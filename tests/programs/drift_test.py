"""A machine that gets slower while a run is measured."""

import pathlib
import time

from limits import half_a_cpu
from support import SCALEMARK, SMALL, ProgramTest, main


class Drift(ProgramTest):
    def slowed_run(self):
        """After a third of the run the process gets half of a CPU; the drift, and what was said."""
        with half_a_cpu() as group:
            # No sleeping in the steps: what is taken away must be felt.
            process = self.start(SCALEMARK, "run", *SMALL, "--num_batches", "1000000", "--max_seconds", "9",
                                 "--window_seconds", "1", "--output", "r.json")
            self.wait_for_line(process.stdout, "images/sec")
            time.sleep(3.5)
            for thread in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
                group.write_text(thread.name)
            _, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0, err)
        record = self.read("r.json")
        drift = record["windows"]["drift"]
        found = [finding["what"] for finding in record["findings"] if finding["rule"] == "drift"]
        changed = drift["verdict"] in ("slower", "faster")
        self.assertEqual(found, [f"The run became {drift['verdict']} while it went on."] if changed else [])
        return drift, err

    def test_a_machine_that_gets_slower_is_said_so(self):
        """A level that changes once is autocorrelated, so where others disturb the run too it need not be shown each time."""
        for _ in range(3):
            drift, err = self.slowed_run()
            if drift["verdict"] == "slower":
                break
            self.assertEqual(drift["verdict"], "not shown", drift)
        self.assertEqual(drift["verdict"], "slower", drift)
        self.assertLess(drift["change"], -0.2)
        self.assertIn("the throughput fell by", err)


if __name__ == "__main__":
    main()
