"""A machine whose NVIDIA driver shows GPUs and whose CUDA has none: the library of tests/platform/driver for NVML."""

import os
import unittest

from support import BINARY, SCALEMARK, SMALL, ProgramTest, main

GPUS = [f"GPU-0000000{gpu}-1111-2222-3333-444444444444" for gpu in range(2)]
SLICES = [f"MIG-00000001-1111-2222-3333-55555555555{slice}" for slice in (1, 2)]


@unittest.skipIf(os.path.exists("/dev/nvidiactl"), "this machine has a driver of its own")
class NvidiaDriver(ProgramTest):
    def environment(self, **more):
        """`more`: what the driver says, without FAKE_NVML_."""
        own = {f"FAKE_NVML_{name}": value for name, value in more.items()}
        folders = [str(BINARY / "tests/platform/driver/current"), os.environ.get("LD_LIBRARY_PATH", "")]
        return super().environment(LD_LIBRARY_PATH=":".join(filter(None, folders)), **own)

    def test_a_run_records_the_gpus_and_says_why_it_uses_none(self):
        out, err = self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "3", "--output", "r.json",
                                    env=self.environment(GPUS="2"))
        record = self.read("r.json")
        self.assertEqual(record["device"], "cpu", out)
        self.assertEqual(record["system"]["gpu_driver"], "580.65.06")
        self.assertEqual([gpu["uuid"] for gpu in record["system"]["gpus"]], GPUS)
        self.assertEqual(record["system"]["gpus"][0]["memory_bytes"], 80 << 30)
        self.assertRegex(err, "2 NVIDIA GPUs of this machine are not used: ")
        self.assertTrue([words for words in record["warnings"] if "2 NVIDIA GPUs" in words], record["warnings"])

    def test_what_the_driver_does_not_tell_is_null_with_its_reason(self):
        for said, errors in (({"system.gpu_driver": "Driver/library version mismatch"}, "nvmlInit_v2=18"),
                             ({"system.gpus.memory_bytes": "does not tell", "system.gpus.name": "does not tell"},
                              "nvmlDeviceGetMemoryInfo=15,nvmlDeviceGetName=999")):
            self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "3", "--output", "r.json",
                             env=self.environment(ERRORS=errors))
            record = self.read("r.json")
            for key, reason in said.items():
                self.assertIn(reason, record["unavailable"][key])

    def test_preflight_passes_by_a_gpu_that_is_lost(self):
        self.run_program(SCALEMARK, "preflight", "--pinning", "--output", "p.json",
                         env=self.environment(ERRORS="nvmlDeviceGetUUID=15"))
        system = self.read("p.json")["system"]
        self.assertEqual((system["gpu_driver"], system["gpus"]), ("580.65.06", []))

    def test_asked_for_a_gpu_it_says_that_cuda_has_none(self):
        _, err = self.run_program(SCALEMARK, "run", *SMALL, "--device", "cuda", env=self.environment(), expect=7)
        self.assertIn("--device cuda", err)

    def slots(self, *words, expect=0, **says):
        out, err = self.run_program(SCALEMARK, "instances", *SMALL, "--dry_run", "--slots", *words, expect=expect,
                                    env=self.environment(GPUS="2", **says))
        return out + err

    def test_slots_are_gpus_and_slices(self):
        out = self.slots("gpu", SLICES="2")
        self.assertIn(f"slot 0: {GPUS[0]} with CPU", out)
        self.assertNotIn(GPUS[1], out, "in MIG mode CUDA does not see it")
        out = self.slots("mig", SLICES="2")
        for slot, uuid in enumerate(SLICES):
            self.assertIn(f"slot {slot}: {uuid} with CPU", out)
        self.assertIn("no visible GPU is in MIG mode with slices", self.slots("mig", expect=7))

    def test_no_slot_is_a_gpu_that_is_lost(self):
        out = self.slots("gpu", ERRORS="nvmlDeviceGetUUID:0=15")
        self.assertIn(f"slot 0: {GPUS[1]} with CPU", out)
        self.assertNotIn("slot 1", out)
        self.assertIn("GPU 0: GPU is lost", self.slots("gpu", expect=7, ERRORS="nvmlDeviceGetUUID=15"))


if __name__ == "__main__":
    main()
