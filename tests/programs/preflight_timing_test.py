"""scalemark preflight names a rank with half of a CPU and a link that is slower than it was. Nothing else may run meanwhile."""

import json
import re
import shlex
import subprocess

from limits import half_a_cpu
from preflight_test import CORES, GENEROUS, PREFLIGHT, PreflightTest, checks
from support import SCALEMARK, SOURCE, main, mpirun

NETLAB = SOURCE / "scripts" / "netlab"


class Slowed(PreflightTest):
    def test_a_rank_with_half_a_cpu_is_named(self):
        if CORES < 2:
            self.skipTest("two ranks need a core each to be compared")
        words = [*PREFLIGHT, "--seconds", "2", "--output", "r.json"]  # blocks of several periods of the quota
        for _ in range(3):  # others who use the whole CPU of the faster rank meanwhile make it as slow
            with half_a_cpu() as tasks:
                slowed = ["bash", "-c", f"echo $$ >{tasks} && exec {shlex.join(map(str, words))}"]
                process = self.start(*mpirun(1, *words), ":", "-n", "1", *slowed)
                out, _ = process.communicate(timeout=240)
            record = self.read("r.json")
            quanta = [check for check in checks(record, "fail") if check["name"] == "noise_quantum"]
            if quanta:
                break
        self.assertEqual((process.returncode, record["verdict"]), (4, "fail"), out)
        [quantum] = quanta
        self.assertEqual(quantum["rank"], 1)
        self.assertLess(quantum["value"], 0.75)
        self.assertRegex(out, r"fail: gemm\.\w+ flops: (other processes used .* meanwhile; )?rank 1 on \S+: .*of the better rank")

    def test_a_slower_link_fails_the_rules_of_the_faster(self):
        tried = subprocess.run([NETLAB, "--", "true"], capture_output=True, text=True, check=False)
        if tried.returncode == 7:
            self.skipTest(f"no lab here: {tried.stderr}")

        def preflight(rate, *words, **options):
            return self.run_program(NETLAB, "--hosts", "2", "--rate", rate, "--", "mpirun", "-n", "2", "-x", "SCALEMARK_LABEL",
                                    SCALEMARK, "preflight", "--seconds", "0.2", "--scratch_mb", "1", "--sizes", "4096,2097152", *words,
                                    **options)

        # Open MPI sends both ways at once or one after the other, by chance: half the rate, over the same link. The links
        # differ by ten.
        preflight("1gbit", *self.rules(GENEROUS), "--make_rules", "made.json", "--rules_margin", "0.7")
        made = json.loads((self.folder / "made.json").read_text())
        links = self.rules({"rules": [rule for rule in made["rules"] if re.match(r"collective\..*\.2097152$", rule["check"])]})
        preflight("1gbit", *links)
        out, _ = preflight("100mbit", *links, "--output", "r.json", expect=4)
        record = self.read("r.json")
        self.assertEqual(record["collectives"]["transport"], "tcp")
        self.assertEqual(len(checks(record, "fail")), 5, out)  # each collective, and both allreduces
        self.assertIn("fail: collective.allreduce.scalemark.2097152 busbw:", out)


if __name__ == "__main__":
    main()
