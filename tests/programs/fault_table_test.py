"""The fault table under a user's own mpirun (fault_table.py; slurm_test.py is the same under srun), and the rows that need no
launcher: the wall clock, a container without rights. The slow rank is in slow_rank_test.py, which runs alone."""

import ctypes
import json
import pathlib
import struct
import time
import unittest

from fault_table import FaultTable
from support import SCALEMARK, SMALL, STEADY, ProgramTest, main, mpirun, problems_of

FAKETIME = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


class UnderMpirun(FaultTable, ProgramTest):
    LAUNCHER = "mpirun"

    def ranks(self, number, *words):
        return mpirun(number, *words)


class Machine(ProgramTest):
    @unittest.skipUnless(FAKETIME, "no libfaketime: apt-get install libfaketime")
    def test_20_the_wall_clock_steps_back_by_an_hour(self):
        clock = self.folder / "clock"
        clock.write_text("+1h")
        env = {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": clock, "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        words = mpirun(2, "env", *(f"{name}={value}" for name, value in env.items()), SCALEMARK, "run", *SMALL, "--num_batches", "300",
                       "--inject", "delay:milliseconds=10", "--timeout", "30", "--output", "r.json")
        before = time.time()
        process = self.start(*words)
        self.wait_for_line(process.stdout, "images/sec:")
        clock.write_text("-1h")
        _, err = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0, err)
        record = json.loads((self.folder / "r.json").read_text())
        record["noise"]["communication_cpu_seconds"] = 0  # libfaketime moves CPU clocks too, as no kernel does
        self.assertEqual(problems_of(record), [])
        started = time.mktime(time.strptime(record["started_at"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
        self.assertGreater(started, before + 3000)  # the clock was the faked one
        self.assertLess(record["wall_seconds"], time.time() - before)
        self.assertGreater(record["wall_seconds"], 3)
        self.assertLess(record["step_seconds"]["p99"], 5)
        self.assertGreater(record["step_seconds"]["p50"], 0.009)

    def test_24_a_container_without_rights(self):
        """No binding, no NUMA policy, no performance counters, no ptrace, no /dev/shm of its own size: EPERM from the kernel."""
        self.run_program(*mpirun(2, SCALEMARK, "run", *SMALL, "--num_batches", "20", *STEADY, "--output", "r.json"), preexec_fn=forbid)
        record = self.read("r.json")
        self.assertEqual(record["status"], "ok")
        self.assertGreater(record["throughput"]["mean"], 0)


# System calls of x86-64 that a container's filter usually refuses.
FORBIDDEN = {"sched_setaffinity": 203, "mbind": 237, "set_mempolicy": 238, "get_mempolicy": 239, "migrate_pages": 256,
             "move_pages": 279, "perf_event_open": 298, "ptrace": 101, "process_vm_readv": 310}


def forbid():
    """A seccomp filter that answers EPERM, for this process and all that it starts."""
    def instruction(code, yes, no, value):
        return struct.pack("HBBI", code, yes, no, value)
    load, equal, answer = 0x20, 0x15, 0x06
    code = instruction(load, 0, 0, 0)
    numbers = list(FORBIDDEN.values())
    for i, number in enumerate(numbers):
        code += instruction(equal, len(numbers) - i, 0, number)
    code += instruction(answer, 0, 0, 0x7FFF0000) + instruction(answer, 0, 0, 0x00050000 | 1)  # allow, EPERM
    buffer = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    main()
