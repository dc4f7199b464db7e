"""What is around the step: the largest batch under a real memory limit, checkpoints, input from the host."""

import os
import shutil
import subprocess
import time
import unittest

from limits import little_memory
from support import PYTHON_HAS_TORCH, SCALEMARK, SMALL, ProgramTest, main, mpirun

WHOLE = ["--num_batches", "6", "--num_warmup_batches", "1", "--display_every", "3"]
GIB = 1 << 30


def limited(data_bytes):
    """A prefix: RLIMIT_DATA, as a job scheduler sets it."""
    return ["prlimit", f"--data={data_bytes}"]


class LargestBatch(ProgramTest):
    def check(self, record, unit_batch):
        search = record["batch_size_search"]
        found = record["batch_size_per_rank"]
        self.assertEqual(search["requested"], "max")
        self.assertEqual(search["limited_by"], "memory")
        self.assertEqual(record["config"]["batch_size"], {"value": found, "origin": "command_line"})
        self.assertEqual(unit_batch, found)
        fits = [t["batch_size"] for t in search["tried"] if t["fits"]]
        fails = [t["batch_size"] for t in search["tried"] if not t["fits"]]
        self.assertEqual(max(fits), found)
        self.assertGreater(found, 4)
        self.assertLessEqual(min(fails) - found, max(1, min(fails) // 16))
        self.assertGreater(search["limit_bytes"], 0)

    def test_run_under_a_data_limit(self):
        for model, flags in (("smallnet", ["--image_size", "128"]),
                             ("transformer_tiny", ["--sequence_length", "32"])):
            with self.subTest(model=model):
                words = [*limited(GIB), SCALEMARK, "run", "--model", model, *flags, "--batch_size", "max",
                         "--num_batches", "2", "--num_warmup_batches", "0", "--output", "r.json"]
                _, err = self.run_program(*words)
                record = self.read("r.json")
                self.assertEqual(record["status"], "ok")
                self.check(record, record["global_batch_size"])
                self.assertLess(record["batch_size_search"]["limit_bytes"], GIB)
                self.assertIn(f"batch size max: {record['batch_size_per_rank']}", err)
                self.assertNotIn("large alloc", err)

    def test_two_ranks_take_one_number_and_a_file_may_ask(self):
        (self.folder / "c.json").write_text('{"batch_size": "max", "image_size": 128}')
        self.run_program(*limited(GIB), *mpirun(2, SCALEMARK, "run", "--model", "smallnet", "--config", "c.json",
                         "--num_batches", "2", "--num_warmup_batches", "0", "--output", "r.json"))
        record = self.read("r.json")
        self.assertEqual(record["config"]["batch_size"]["origin"], "file")
        self.assertEqual(record["global_batch_size"], 2 * record["batch_size_per_rank"])
        self.assertEqual(record["batch_size_search"]["limited_by"], "memory")

    def test_all_points_of_a_curve_have_the_same(self):
        self.run_program(*limited(GIB), SCALEMARK, "scale", "--model", "smallnet", "--image_size", "128", "--batch_size",
                         "max", "--ranks", "1,2", "--repeats", "1", "--num_batches", "2", "--num_warmup_batches", "0",
                         "--output", "s.json")
        batches = {self.read(path)["batch_size_per_rank"] for path in (self.folder / "s.runs").glob("*.json")}
        self.assertEqual(len(batches), 1)
        self.assertEqual(self.read("s.json")["config"]["batch_size"]["value"], batches.pop())

    def test_infer(self):
        self.run_program(*limited(GIB), SCALEMARK, "infer", "--model", "smallnet", "--image_size", "128", "--batch_size",
                         "max", "--num_batches", "2", "--num_warmup_batches", "0", "--output", "i.json")
        record = self.read("i.json")
        self.check(record, record["units_per_query"])

    def test_a_cgroup_is_a_limit_too(self):
        with little_memory(GIB) as (enter, most_charged):
            self.run_program(SCALEMARK, "run", "--model", "smallnet", "--image_size", "128", "--batch_size", "max",
                             "--num_batches", "2", "--num_warmup_batches", "0", "--output", "r.json", preexec_fn=enter)
            # Not the resident set: pages of libraries that others have read before are not this group's.
            self.assertTrue(GIB / 4 < most_charged() <= GIB)
        record = self.read("r.json")
        self.check(record, record["global_batch_size"])
        self.assertLess(record["batch_size_search"]["limit_bytes"], GIB)

    def test_refusals_name_the_remedy(self):
        for flags, text in ((["--scaling", "strong", "--global_batch_size", "8"], "weak scaling"),
                            (["--micro_batch_size", "2"], "leave out --micro_batch_size"),
                            (["--dry_run"], "give a number")):
            _, err = self.run_program(SCALEMARK, "run", "--model", "smallnet", "--batch_size", "max", *flags, expect=2)
            self.assertIn(text, err)


class Checkpoints(ProgramTest):
    WORDS = ["--checkpoint_every", "2", "--checkpoint_dir", "c", "--output", "r.json"]

    @unittest.skipUnless(PYTHON_HAS_TORCH, "no torch in this Python to read it with")
    def test_the_last_one_stays_where_a_folder_was_given(self):
        import torch

        _, err = self.run_program(*mpirun(2, SCALEMARK, "run", *SMALL, "--num_batches", "7", *self.WORDS))
        record = self.read("r.json")
        checkpoint = record["checkpoint"]
        self.assertEqual((checkpoint["every"], checkpoint["count"]), (2, 3))
        files = sorted(path.name for path in (self.folder / "c").glob("*.pt"))
        self.assertEqual(files, ["checkpoint-00000007.pt"])  # 1 warm-up step and 6 of the 7
        path = self.folder / "c" / files[0]
        self.assertEqual(checkpoint["bytes"], path.stat().st_size)
        module = torch.jit.load(str(path))
        self.assertEqual(sum(p.numel() for p in module.parameters()), record["parameters"])
        self.assertEqual(module.training_state.steps, 7)
        # What the record projects follows from its own numbers.
        rate = checkpoint["bytes_per_second"]
        mean = checkpoint["write_seconds"]["mean"]
        self.assertAlmostEqual(rate, checkpoint["bytes"] / mean, delta=1e-6 * rate)
        self.assertAlmostEqual(checkpoint["step_overhead_fraction"], 3 * mean / record["wall_seconds"], places=9)
        step = (record["wall_seconds"] - 3 * mean) / 7
        rows = {(row["storage_bytes_per_second"], row["interval_steps"]): row["overhead_fraction"] for row in checkpoint["projected"]}
        self.assertEqual(len(rows), 16)
        for (storage, interval), fraction in rows.items():
            write = checkpoint["bytes"] / storage
            self.assertAlmostEqual(fraction, write / (interval * step + write), places=9)
        self.assertEqual({storage for storage, _ in rows}, {rate, 0.2e9, 1e9, 8e9})
        self.assertIn("checkpoints: 3 of ", err)

    def test_without_a_folder_nothing_is_left(self):
        env = self.environment(TMPDIR=str(self.folder))
        self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "6", "--checkpoint_every", "2", "--output", "r.json", env=env)
        self.assertEqual(self.read("r.json")["checkpoint"]["count"], 3)
        self.assertEqual(list(self.folder.glob("scalemark-checkpoints-*")), [])

    def test_a_curve_writes_them_at_every_point(self):
        self.run_program(SCALEMARK, "scale", *SMALL, "--num_batches", "4", "--ranks", "1,2", "--repeats", "1", "--checkpoint_every", "2",
                         "--checkpoint_dir", "c", "--output", "s.json")
        for path in (self.folder / "s.runs").glob("*.json"):
            self.assertEqual(self.read(path)["checkpoint"]["count"], 2)
        self.assertEqual([path.name for path in (self.folder / "c").glob("*.pt")], ["checkpoint-00000005.pt"])

    def test_a_folder_that_cannot_be_made_is_exit_6_before_the_clock(self):
        (self.folder / "c").write_text("a file")
        _, err = self.run_program(*mpirun(2, SCALEMARK, "run", *SMALL, *self.WORDS), expect=6)
        self.assertIn("checkpoint c", err)
        self.assertIn("--checkpoint_dir", err)

    def small_disk(self, size):
        if os.geteuid() != 0:
            self.skipTest("needs root to mount a small file system")
        disk = self.folder / "c"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True).returncode != 0:
            self.skipTest("cannot mount here")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", disk], stderr=subprocess.DEVNULL))
        return disk

    def test_a_disk_too_small_for_three_is_exit_6_before_the_clock(self):
        self.small_disk("1m")
        out, err = self.run_program(SCALEMARK, "run", *SMALL, *self.WORDS, expect=6)
        self.assertIn("three checkpoints take", err)
        self.assertNotIn("images/sec:", out)

    def fill(self, disk, process):
        """Takes every byte that becomes free while the process runs."""
        filler = os.open(disk / "filler", os.O_WRONLY | os.O_CREAT)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            try:
                os.write(filler, b"x" * 4096)
            except OSError:
                time.sleep(0.001)
        os.close(filler)

    def test_a_disk_that_fills_up_later_is_exit_6_with_a_failed_record(self):
        for ranks in (1, 2):
            with self.subTest(ranks=ranks):
                shutil.rmtree(self.folder / "c", ignore_errors=True)
                disk = self.small_disk("4m")
                process = self.start(*mpirun(ranks, SCALEMARK, "run", *SMALL, "--num_batches", "1000000", "--checkpoint_every", "20",
                                             "--checkpoint_dir", disk, "--output", "r.json"))
                self.wait_until(lambda: list(disk.glob("*.pt")))
                self.fill(disk, process)
                _, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 6, err)
                self.assertIn("No space left", err)
                record = self.read("r.json")
                self.assertEqual(record["status"], "failed")
                self.assertIn("checkpoint-", record["reason"])
                for path in disk.glob("*.pt"):
                    self.assertGreater(path.stat().st_size, 0)
                self.assertEqual(list(disk.glob(".checkpoint-*.tmp")) if ranks == 1 else [], [])
                subprocess.run(["umount", "-l", disk])
                (self.folder / "r.json").unlink()


class CheckpointWriters(ProgramTest):
    WORDS = [*SMALL, "--num_batches", "4", "--checkpoint_every", "2", "--checkpoint_dir", "c", "--output", "r.json"]

    def test_every_rank_or_one_of_a_node_writes_a_file_of_its_own(self):
        for writers, names in (("rank", ["checkpoint-00000005-rank0.pt", "checkpoint-00000005-rank1.pt"]),
                               ("node", ["checkpoint-00000005-rank0.pt"])):
            with self.subTest(writers=writers):
                shutil.rmtree(self.folder / "c", ignore_errors=True)
                _, err = self.run_program(*mpirun(2, SCALEMARK, "run", *self.WORDS, "--checkpoint_writers", writers))
                checkpoint = self.read("r.json")["checkpoint"]
                self.assertEqual(sorted(path.name for path in (self.folder / "c").iterdir()), names)
                sizes = {(self.folder / "c" / name).stat().st_size for name in names}
                self.assertEqual((checkpoint["writers"], checkpoint["files"], checkpoint["count"]), (writers, len(names), 2))
                self.assertEqual({checkpoint["bytes"]}, sizes)
                self.assertEqual(checkpoint["total_bytes"], len(names) * checkpoint["bytes"])
                self.assertEqual([node["files"] for node in checkpoint["nodes"]], [len(names)])  # one machine
                # The slowest file of each checkpoint counts, so all together are no faster than the sum of each.
                rates = checkpoint["file_bytes_per_second"]
                self.assertLessEqual(checkpoint["bytes_per_second"], rates["min"] * (1 + 1e-9))
                self.assertIn("checkpoints: 2 of ", err)

    def test_what_it_costs_on_the_storage_that_was_stated(self):
        self.run_program(*mpirun(2, SCALEMARK, "run", *self.WORDS, "--checkpoint_writers", "rank", "--storage_gbit", "20",
                                 "--storage_node_gbit", "0.5"))
        record = self.read("r.json")
        checkpoint = record["checkpoint"]
        storage = checkpoint["storage"]
        self.assertEqual((storage["bytes_per_second"], storage["node_bytes_per_second"]), (2.5e9, 6.25e7))
        self.assertEqual(storage["limited_by"], "node")
        self.assertAlmostEqual(storage["seconds"], checkpoint["total_bytes"] / 6.25e7)
        step = (record["wall_seconds"] - 2 * checkpoint["write_seconds"]["mean"]) / 4
        self.assertAlmostEqual(storage["overhead_fraction"], storage["seconds"] / (2 * step + storage["seconds"]))

    def test_one_rank_that_cannot_write_ends_all_with_exit_6(self):
        # What is in the way of rank 1's second checkpoint, and of its lock.
        for obstacle, measured in ((".checkpoint-00000005-rank1.pt.tmp/x", True), (".scalemark-checkpoints-rank1.lock/x", False)):
            with self.subTest(obstacle=obstacle):
                shutil.rmtree(self.folder / "c", ignore_errors=True)
                (self.folder / "c" / obstacle).mkdir(parents=True)
                _, err = self.run_program(*mpirun(2, SCALEMARK, "run", *self.WORDS, "--checkpoint_writers", "rank"), expect=6)
                self.assertIn("rank 1: checkpoint c", err)
                if measured:
                    record = self.read("r.json")
                    self.assertEqual(record["status"], "failed")
                    self.assertIn("rank 1: checkpoint c/checkpoint-00000005-rank1.pt", record["reason"])
                    self.assertTrue((self.folder / "c/checkpoint-00000005-rank0.pt").exists())
                    (self.folder / "r.json").unlink()
                self.assertFalse((self.folder / "r.json").exists())

    def test_two_runs_do_not_share_a_folder(self):
        first = self.start(*mpirun(2, SCALEMARK, "run", *SMALL, "--num_batches", "1000000", "--checkpoint_every", "50",
                                   "--checkpoint_dir", "c", "--checkpoint_writers", "rank"))
        self.wait_until(lambda: list((self.folder / "c").glob("*-rank1.pt")))
        _, err = self.run_program(SCALEMARK, "run", *self.WORDS, expect=6)
        self.assertIn("another run writes its checkpoints there", err)
        first.terminate()
        first.communicate(timeout=60)


class HostInput(ProgramTest):
    def test_losses_are_those_of_the_device_and_the_record_says_where_batches_came_from(self):
        records = {}
        for place in ("device", "host"):
            _, err = self.run_program(*mpirun(2, SCALEMARK, "run", *SMALL, "--num_batches", "20", "--data", "learnable",
                                              "--input", place, "--output", "r.json"))
            records[place] = self.read("r.json")
        self.assertEqual(records["host"]["loss"]["trace"], records["device"]["loss"]["trace"])
        self.assertEqual(records["device"]["input"], {"place": "device", "bytes_per_step": 0, "copy_seconds": 0, "wait_seconds": 0})
        host = records["host"]["input"]
        self.assertEqual(host["place"], "host")
        self.assertEqual(host["bytes_per_step"], 4 * (3 * 32 * 32 * 4 + 8))
        self.assertGreater(host["copy_seconds"], 0)
        self.assertGreater(host["wait_seconds"], 0)
        self.assertLess(host["wait_seconds"], records["host"]["wall_seconds"])
        self.assertIn("from host memory", err)

    def test_memory_of_weights_optimizer_and_batches(self):
        self.run_program(SCALEMARK, "run", *SMALL, *WHOLE, "--precision", "bf16", "--optimizer", "adam", "--output", "r.json")
        record = self.read("r.json")
        memory = record["memory"]
        padded = memory["gradient_buffer_bytes"]
        self.assertGreaterEqual(padded, 4 * record["parameters"])
        self.assertEqual(memory["weight_bytes"], padded + padded // 2)
        self.assertEqual(memory["optimizer_state_bytes"], 2 * padded)
        self.assertEqual(memory["batch_bytes"], 4 * (3 * 32 * 32 * 2 + 8))
        self.assertGreater(memory["peak_rss_bytes"], memory["weight_bytes"])


if __name__ == "__main__":
    main()
