"""Ranks in containers. No container runtime is needed: stand_in_container.sh stands for one, through the same words before
the program as any other. Without root's rights for that everything here is skipped.
"""

import hashlib
import json
import os
import shlex
import subprocess
import unittest

from support import BINARY, SCALEMARK, SMALL, SOURCE, ProgramTest, environment, main, mpirun

INSIDE = "/opt/scalemark/bin/scalemark"
ENTER = SOURCE / "tests/programs/stand_in_container.sh"
RUNTIME = f"{ENTER} {{image}} {{cwd}}"
SHORT = [*SMALL, "--num_batches", "3"]


def stand_in():
    """Variables of the stand-in."""
    return {"TREES": ":".join(sorted({str(SOURCE), os.path.realpath(SOURCE / ".venv")})), "BUILD": str(BINARY)}


def missing():
    """Why there can be no stand-in here; empty where there can."""
    made = subprocess.run(["unshare", "-m", "mount", "--make-rprivate", "/"], capture_output=True, text=True, check=False)
    return made.stderr


def setUpModule():
    if reason := missing():
        raise unittest.SkipTest(f"no mounts, which stand for a container here: {reason}")


class ContainerTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.image = str(self.folder / "image")
        os.mkdir(self.image)
        self.container = ["--container", "image", "--container_runtime", RUNTIME, "--container_program", INSIDE]

    def environment(self, **more):
        return environment(SCALEMARK_LABEL=self.tag, SCALEMARK_DEVICE="cpu", **stand_in(), **more)

    def assert_inside(self, record, mpi="outside"):
        self.assertEqual((record["status"], record["system"]["virtualisation"]), ("ok", "container"))
        self.assertEqual(record["system"]["container"]["mpi"], mpi)

    def inside(self, name):
        record = self.read(name)
        self.assert_inside(record)
        return record


class Launches(ContainerTest):
    def test_two_ranks_run_inside_and_their_launcher_outside(self):
        self.run_program(SCALEMARK, "run", "--ranks", "2", "--launcher", "mpirun", *self.container, *SHORT, "--output", "r.json")
        record = self.inside("r.json")
        self.assertEqual((record["world_size"], record["communication"]["communicator"]), (2, "mpi"))
        self.assertEqual(record["system"]["container"], {"image": self.image, "runtime": RUNTIME, "digest": None, "mpi": "outside"})
        self.assertEqual(record["unavailable"]["system.container.digest"], "the image is a folder")
        self.run_program(SCALEMARK, "run", "--ranks", "2", "--launcher", "mpirun", *SHORT, "--output", "out.json")
        self.assertNotEqual((self.read("out.json")["system"]["container"] or {}).get("mpi"), "outside")

    def test_a_sweep_of_two_points(self):
        plan = {"settings": {"model": "smallnet", "batch_size": 4, "num_batches": 3, "num_warmup_batches": 1, "num_intra_threads": 1},
                "axes": {"ranks": [1, 2]}, "launcher": "mpirun",
                "container": "image", "container_runtime": RUNTIME, "container_program": INSIDE}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        out, _ = self.run_program(SCALEMARK, "sweep", "plan.json", "--dry_run")
        self.assertEqual(out.count(f" {ENTER} {self.image} {self.folder} {INSIDE} run "), 2)
        self.run_program(SCALEMARK, "sweep", "plan.json", "--output", "out")
        entries = [json.loads(line) for line in (self.folder / "out/journal.jsonl").read_text().splitlines()]
        self.assertEqual(sorted(self.inside(f"out/{entry['record']}")["world_size"] for entry in entries), [1, 2])

    def test_the_image_may_be_what_a_sweep_compares(self):
        (self.folder / "plan.json").write_text(json.dumps(
            {"axes": {"container": ["a.sif", "b.sif"]}, "settings": {"container_runtime": "apptainer"}, "launcher": "mpirun"}))
        out, _ = self.run_program(SCALEMARK, "sweep", "plan.json", "--dry_run")
        self.assertEqual(len(out.splitlines()), 2)

    def test_a_curve(self):
        self.run_program(SCALEMARK, "scale", "--ranks", "1,2", "--repeats", "1", "--launcher", "mpirun", *self.container, *SHORT, "--output", "s.json")
        self.assertEqual([point["ranks"] for point in self.inside("s.json")["points"]], [1, 2])

    def test_instances_with_and_without_a_launcher(self):
        cpus = sorted(os.sched_getaffinity(0))
        for words in ([], ["--ranks", "2", "--launcher", "mpirun"]):
            self.run_program(SCALEMARK, "instances", *words, "--slots", f"{cpus[0]}", *self.container, *SHORT, "--repeats", "1", "--output", "i.json")
            record = self.read("i.json")
            self.inside(record["points"][0]["repeats"][0]["instances"][0]["path"])

    def test_a_gate_of_builds_takes_their_programs_of_the_host(self):
        (self.folder / "plan.json").write_text('{"settings": {"model": "smallnet"}}')
        out, _ = self.run_program(SCALEMARK, "gate", "plan.json", "--base", BINARY, "--new", BINARY, "--new_set", "seed=2", "--pairs", "8",
                                  *self.container[:4], "--dry_run")
        self.assertIn(f"{ENTER} {self.image} {self.folder} {SCALEMARK} run", out)

    def test_mpi_inside_is_told_from_mpi_outside(self):
        self.run_program(ENTER, self.image, self.folder, INSIDE, "run", "--ranks", "2", "--launcher", "mpirun", *SHORT,
                         "--output", "r.json")
        self.assert_inside(self.read("r.json"), "inside")


class Images(ContainerTest):
    NAME = "it's; $(touch broken) \"image\" `touch broken` {cwd}.sif"

    def run_with(self, image, *words, runtime="env IMAGE={image}", **options):
        return self.run_program(SCALEMARK, "run", "--ranks", "1", "--launcher", "mpirun", "--container", image, "--container_runtime", runtime,
                                "--container_program", SCALEMARK, *SHORT, *words, **options)

    def test_a_file_is_known_by_its_digest_and_its_name_is_one_word(self):
        (self.folder / self.NAME).write_bytes(b"an image")
        self.run_with(self.NAME, "--output", "r.json")
        container = self.read("r.json")["system"]["container"]
        self.assertEqual(container["image"], str(self.folder / self.NAME))
        self.assertEqual(container["digest"], hashlib.sha256(b"an image").hexdigest())
        self.assertFalse((self.folder / "broken").exists())
        _, err = self.run_with(self.NAME, "--dry_run")
        printed = err.splitlines()[-1].split("would start: ")[1]
        self.assertIn(f"IMAGE={self.folder / self.NAME}", shlex.split(printed))

    def test_a_name_may_say_its_digest(self):
        digest = "0123456789abcdef" * 4
        for name, expected in ((f"registry.example/team/scalemark@sha256:{digest}", digest), ("docker://scalemark:1", None)):
            self.run_with(name, "--output", "r.json")
            record = self.read("r.json")
            self.assertEqual((record["system"]["container"]["image"], record["system"]["container"]["digest"]), (name, expected))
        self.assertIn("@sha256:", record["unavailable"]["system.container.digest"])


class Words(ContainerTest):
    def words(self, *flags, expect=0):
        return self.run_program(SCALEMARK, "run", "--ranks", "2", *flags, "--dry_run", expect=expect)[1]

    def test_of_every_runtime(self):
        folder = self.folder
        for runtime in ("apptainer", "singularity"):
            self.assertIn(f" {runtime} exec --bind {folder} --pwd {folder} a.sif scalemark run",
                          self.words("--launcher", "mpirun", "--container", "a.sif", "--container_runtime", runtime, "--output", "r.json"))
        self.assertRegex(self.words("--launcher", "srun", "--container", "team/image:1"),
                         f"srun .*--container-image=team/image:1 --container-mounts=/tmp:/tmp,{folder}:{folder} --container-workdir={folder} scalemark")

    def test_wrong_input_is_exit_2(self):
        for words, text in ((["--container", "-x"], "begins with"), (["--container", "a", "--container_runtime", "podman run"], "{image}"),
                            (["--container_runtime", "apptainer"], "give --container"),
                            (["--container", "a", "--container_runtime", "pyxis", "--launcher", "mpirun"], "srun")):
            with self.subTest(words=words):
                self.assertIn(text, self.words(*words, expect=2))
        _, err = self.run_program(SCALEMARK, "run", "--container", "a.sif", *SHORT, expect=2)
        self.assertIn("give --ranks N", err)
        _, err = self.run_program(*mpirun(1, SCALEMARK, "run", "--container", "a.sif", *SHORT), expect=2)
        self.assertIn("apptainer exec IMAGE", err)

    def test_a_runtime_that_is_not_there_is_exit_7(self):
        _, err = self.run_program(SCALEMARK, "run", "--ranks", "1", "--launcher", "mpirun", "--container", "a.sif",
                                  "--container_runtime", "no_such_runtime {image}", *SHORT, expect=7)
        self.assertIn("no_such_runtime is not in PATH", err)


if __name__ == "__main__":
    main()
