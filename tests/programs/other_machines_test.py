"""What is different on other people's machines: a script on stdin, variables of libraries, of launchers and of Python, a
temporary folder that is gone, a small /dev/shm, names and accounts that Open MPI cannot take, and what lies in folders of
results. Each works, or is said with its remedy.
"""

import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from support import SCALEMARK, SMALL, SOURCE, ProgramTest, main

RUN = ["run", "--model", "trivial", "--num_batches", "5", "--num_warmup_batches", "1", "--roofline=false", "--quiet"]
CURVES = SOURCE / "results/baselines"
GONE = "/tmp/scalemark-removed-by-an-epilog"


def may(*words):
    """Whether this machine lets us make what a test needs (namespaces want root)."""
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


class Stdin(ProgramTest):
    def test_a_script_on_stdin_runs_to_its_end(self):
        script = f"{SCALEMARK} {' '.join(RUN)} --ranks 2 >/dev/null\necho all of it\n"
        process = self.start("bash", stdin=subprocess.PIPE)
        out, err = process.communicate(script, timeout=120)
        self.assertEqual((process.returncode, out), (0, "all of it\n"), err)

    def test_a_loop_over_lines_measures_each(self):
        loop = f'while read -r model; do {SCALEMARK} run --ranks 2 --model "$model" {" ".join(RUN[3:])} >/dev/null; echo "$model"; done'
        process = self.start("bash", "-c", loop, stdin=subprocess.PIPE)
        out, err = process.communicate("trivial\ntrivial\ntrivial\n", timeout=180)
        self.assertEqual(out.split(), ["trivial"] * 3, err)


class JsonAlone(ProgramTest):
    def test_whatever_libraries_and_launchers_print(self):
        for variable in ("ONEDNN_VERBOSE=1", "MKL_VERBOSE=1", "OMPI_MCA_orte_tag_output=1", "OMPI_MCA_orte_timestamp_output=1",
                         "OMPI_MCA_orte_display_alloc=1"):
            for ranks in ([], ["--ranks", "2"]):
                with self.subTest(variable=variable, ranks=ranks):
                    name, value = variable.split("=")
                    out, _ = self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "2", "--quiet", "--json", *ranks,
                                              env=self.environment(**{name: value}))
                    self.assertEqual(json.loads(out)["status"], "ok")

    def test_what_a_library_prints_is_on_stderr(self):
        _, err = self.run_program(SCALEMARK, "run", "--model", "resnet18", "--image_size", "32", "--batch_size", "2", "--num_batches", "2",
                                  "--kernels", "torch", "--quiet", "--json", "--ranks", "2", env=self.environment(ONEDNN_VERBOSE="1"))
        self.assertIn("onednn_verbose", err)


class Processors(ProgramTest):
    """Kernels, layouts and parts of products are chosen for the processor; a library can be told that it is an older one."""

    FLAGS = {"AVX2": "avx2", "AVX512_CORE": "avx512bw", "AVX512_CORE_BF16": "avx512_bf16", "AVX512_CORE_AMX": "amx_bf16"}
    NETWORKS = (("resnet18", "fp32", 0.01, "--image_size", "64"), ("llama_tiny", "bf16", 0.05, "--sequence_length", "32"))

    def losses(self, network, precision, *flags, **variables):
        out, _ = self.run_program(SCALEMARK, "run", "--model", network, "--precision", precision, *flags, "--batch_size", "4",
                                  "--num_batches", "3", "--num_warmup_batches", "1", "--init_learning_rate", "0.001",
                                  "--roofline=false", "--quiet", "--json",
                                  env=self.environment(**variables))
        return json.loads(out)["loss"]["trace"]

    def test_losses_are_the_same_with_the_instructions_of_older_ones(self):
        has = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
        older = [{"ONEDNN_MAX_CPU_ISA": name} for name, flag in self.FLAGS.items() if flag in has]
        if not older:
            self.skipTest("no x86 with AVX2")
        for network, precision, tolerance, *flags in self.NETWORKS:
            newest = self.losses(network, precision, *flags)
            for variables in older:
                with self.subTest(network=network, **variables):
                    for loss, expected in zip(self.losses(network, precision, *flags, **variables), newest, strict=True):
                        self.assertAlmostEqual(loss / expected, 1, delta=tolerance)


class Records(ProgramTest):
    def test_variables_that_change_the_arithmetic_are_recorded_and_named(self):
        self.run_program(SCALEMARK, *RUN, "--output", "plain.json")
        environment = self.read("plain.json")["environment"]
        self.assertNotIn("TCMALLOC_RELEASE_RATE", environment, "what scalemark itself sets says nothing")
        set_here = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "default", "MALLOC_ARENA_MAX": "1",
                    "TCMALLOC_RELEASE_RATE": "10"}
        self.run_program(SCALEMARK, *RUN, "--output", "with.json", env=self.environment(**set_here))
        environment = self.read("with.json")["environment"]
        out, _ = self.run_program(SCALEMARK, "compare", "plain.json", "with.json")
        for name, value in set_here.items():
            self.assertEqual(environment[name], value)
            self.assertRegex(out.replace("\n", " "), f"variables +differ.*{name}")

    def test_another_machine_that_hwloc_is_told_of_is_ignored(self):
        record = self.record_of(*RUN, "--label", "x")
        variables = self.environment(HWLOC_SYNTHETIC="NUMANode:4 Core:24 PU:1")
        out, err = self.run_program(SCALEMARK, *RUN, "--json", env=variables)
        other = json.loads(out)
        self.assertEqual(other["system"]["cores"], record["system"]["cores"])
        self.assertIn("HWLOC_SYNTHETIC", " ".join(other["warnings"]))
        _, err = self.run_program(SCALEMARK, *RUN, "--ranks", "2", "--json", env=variables)
        self.assertIn("HWLOC_SYNTHETIC", err)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one CPU")
    def test_the_cpus_are_those_of_all_threads(self):
        out, _ = self.run_program(SCALEMARK, "run", *SMALL, "--num_batches", "20", "--num_intra_threads", "2", "--quiet", "--json",
                                  env=self.environment(OMP_PROC_BIND="true", OMP_NUM_THREADS="2"))
        self.assertIn(",".join(json.loads(out)["ranks"][0]["cpus"].split("-")), "0,1", "both threads are bound to one CPU each")

    @unittest.skipUnless(may("unshare", "-m", "true"), "no mount namespace here")
    def test_the_transport_is_the_one_that_is_used(self):
        words = " ".join(map(str, [SCALEMARK, *RUN, "--ranks", "2", "--output", "small.json"]))
        self.run_program("unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size=1m tmpfs /dev/shm && exec {words}")
        record = self.read("small.json")
        self.assertEqual(record["communication"]["transport"], "tcp")
        self.assertIn("/dev/shm", " ".join(record["warnings"]))

    def test_a_log_decides_nothing_of_what_was_measured(self):
        for log in ([], ["--mllog", "log.txt"]):
            self.run_program(SCALEMARK, *RUN, "--inject", "nan_loss", "--output", "bad.json", *log, expect=4)
            record = self.read("bad.json")
            self.assertEqual(record["status"], "invalid", record["reason"])
            self.assertIn("not finite", record["reason"])
        self.assertIn("aborted", (self.folder / "log.txt").read_text())

    def test_a_trace_begins_at_0(self):
        self.run_program(SCALEMARK, "run", "--model", "transformer_tiny", "--batch_size", "2", "--num_batches", "3",
                         "--num_warmup_batches", "1", "--quiet", "--ranks", "2", "--overlap", "step", "--trace", "trace.json")
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        self.assertGreaterEqual(min(event["ts"] for event in events if "ts" in event), 0)


class Words(ProgramTest):
    def test_output_is_a_file_and_50_0_a_whole_number(self):
        _, err = self.run_program(SCALEMARK, *RUN, "--output", "-", expect=2)
        self.assertIn("--json writes the record to stdout", err)
        out, _ = self.run_program(SCALEMARK, "run", "--model", "trivial", "--num_batches", "5.0", "--quiet", "--json")
        self.assertEqual(json.loads(out)["steps"], 5)

    def test_the_label_is_a_column(self):
        self.run_program(SCALEMARK, *RUN, "--label", "green", "--output", "r.json")
        out, _ = self.run_program(SCALEMARK, "export", "r.json")
        [row] = csv.DictReader(io.StringIO(out))
        self.assertEqual(row["label"], "green")


class Launching(ProgramTest):
    def test_a_temporary_folder_that_is_gone_is_named(self):
        for words in ([*RUN, "--ranks", "2"], ["scale", *RUN[1:], "--ranks", "1,2", "--repeats", "1"],
                      ["instances", *RUN[1:], "--repeats", "1"], ["clean", "--dry_run"]):
            with self.subTest(command=words[0]):
                _, err = self.run_program(SCALEMARK, *words, expect=7, env=self.environment(TMPDIR=GONE))
                self.assertIn(f"TMPDIR is {GONE}", err)

    def test_another_mpis_mpirun_is_named(self):
        other = self.write_program("bin/mpirun", '#!/bin/sh\n[ "$1" = --version ] && echo "HYDRA build details:" && exit 0\n'
                                                 'echo "unrecognized argument" >&2; exit 255\n')
        _, err = self.run_program(SCALEMARK, *RUN, "--ranks", "2", expect=7,
                                  env=self.environment(PATH=f"{other.parent}:{os.environ['PATH']}"))
        self.assertIn('the first mpirun in PATH says of itself "HYDRA build details:"', err)

    def test_a_shell_of_srun_starts_ranks(self):
        stale = {"SLURM_STEP_ID": "0", "SLURM_STEPID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "1", "SLURM_NPROCS": "1",
                 "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
        out, _ = self.run_program(SCALEMARK, *RUN, "--ranks", "2", "--json", env=self.environment(**stale))
        self.assertEqual(json.loads(out)["world_size"], 2)

    @unittest.skipUnless(may("unshare", "-u", "true"), "no namespace for a host name here")
    def test_a_host_name_may_have_an_underscore(self):
        words = " ".join(map(str, [SCALEMARK, *RUN, "--ranks", "2", "--output", "named.json"]))
        self.run_program("unshare", "-u", "sh", "-c", f"printf gpu_node_01 > /proc/sys/kernel/hostname && exec {words}")
        self.assertEqual(self.read("named.json")["ranks"][1]["host"], "gpu_node_01")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "only root may become another user")
    def test_a_user_needs_neither_account_nor_home(self):
        self.folder.chmod(0o777)
        if not may("setpriv", "--reuid", "123456", "--clear-groups", "test", "-x", SCALEMARK):
            self.skipTest("the program is not readable for others")
        self.run_program("setpriv", "--reuid", "123456", "--regid", "123456", "--clear-groups", "env", "-i", "PATH=/usr/bin:/bin",
                         SCALEMARK, *RUN, "--ranks", "2", "--output", self.folder / "nobody.json")
        self.assertEqual(self.read("nobody.json")["world_size"], 2)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "only root may become another user")
class OthersFolders(ProgramTest):
    """A folder in which all may make files, such as /tmp, and what another user has put there for us."""

    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        self.shared = self.folder / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o1777)

    def as_another(self, script):
        self.run_program("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", script)

    def test_no_script_of_theirs_is_run(self):
        place = self.shared / "opt/bin"
        place.mkdir(parents=True)
        shutil.copy(SCALEMARK, place)
        self.as_another("mkdir -p shared/scripts shared/configs; printf '#!/bin/sh\ntouch ran; exit 2\n' >shared/scripts/build_commit;"
                        "cp shared/scripts/build_commit shared/scripts/report; chmod 755 shared/scripts/*")
        _, err = self.run_program(place / "scalemark", "gate", SOURCE / "configs/ci.json", "--base", "buidl", "--new", "HEAD", "--output", "g",
                                  expect=2)
        self.assertIn("commits are built in a clone", err)
        _, err = self.run_program(place / "scalemark", "report", CURVES, expect=7)
        self.assertIn("install again", err)
        self.assertFalse((self.folder / "ran").exists())

    def test_no_link_or_file_of_theirs_is_written_through(self):
        victim = self.folder / "victim"
        victim.write_text("mine")
        self.as_another(f"ln -s {victim} shared/link.json; echo theirs >shared/file.json; ln -s {victim} shared/.new.json.tmp")
        for name, said in (("link.json", "another user's symbolic link"), ("file.json", "another user's file")):
            with self.subTest(name=name):
                _, err = self.run_program(SCALEMARK, *RUN, "--output", self.shared / name, expect=6)
                self.assertIn(said, err)
        self.run_program(SCALEMARK, *RUN, "--output", self.shared / "new.json")
        self.assertEqual(self.read(self.shared / "new.json")["status"], "ok")
        (self.shared / "own.json").symlink_to(self.folder / "real.json")
        self.run_program(SCALEMARK, *RUN, "--output", self.shared / "own.json")
        self.assertEqual(self.read("real.json")["status"], "ok")
        self.assertEqual(victim.read_text(), "mine")


class Credentials(ProgramTest):
    WORDS = ["docker://user:hunter2secret@reg.example/x:1", "--env=PASSWORD=hunter2secret", "--token hunter2secret"]

    def test_of_containers_are_not_recorded(self):
        runtime = self.write_program("runtime.sh", '#!/bin/sh\nshift 4; exec "$@"\n')
        self.run_program(SCALEMARK, *RUN, "--ranks", "1", "--container", self.WORDS[0], "--container_runtime", f"{runtime} {self.WORDS[1]} {self.WORDS[2]} {{image}}",
                         "--container_program", SCALEMARK, "--output", "c.json")
        record = self.read("c.json")
        self.assertNotIn("hunter2", json.dumps(record))
        self.assertEqual(record["config"]["container"]["value"], "docker://***@reg.example/x:1")
        self.assertEqual(record["system"]["container"]["image"], "docker://***@reg.example/x:1")

    def test_of_commands_before_launches_are_not_logged(self):
        plan = {"settings": {"model": "trivial", "num_batches": 3, "num_warmup_batches": 1}, "repeats": 1, "launcher": "mpirun",
                "before": [["sh", "-c", "exit 0", "--password=hunter2secret"]],
                "after": [["sh", "-c", "exit 1", self.WORDS[0]]]}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        _, err = self.run_program(SCALEMARK, "sweep", "plan.json", "--output", "out", expect=7)
        self.assertIn("docker://***@reg.example", err)
        self.assertNotIn("hunter2", err)
        for path in (self.folder / "out").rglob("*"):
            if path.is_file():
                self.assertNotIn("hunter2", path.read_text(), path)


class Folders(ProgramTest):
    def setUp(self):
        super().setUp()
        for label, name in (("a", "none"), ("b", "backward")):
            (self.folder / label).mkdir()
            shutil.copy(CURVES / f"resnet50-1gbit-{name}.json", self.folder / label)
        self.compare = [SCALEMARK, "compare", "a", "b", "--varied", "overlap"]

    def rows(self):
        _, err = self.run_program(SCALEMARK, "export", "a", "--output", "table.csv")
        return len((self.folder / "table.csv").read_text().splitlines()) - 1, err

    def test_what_editors_and_snapshots_hide_is_passed_by(self):
        rows, _ = self.rows()
        hidden = self.folder / "a/.ipynb_checkpoints"
        hidden.mkdir()
        shutil.copy(CURVES / "resnet50-1gbit-none.json", hidden / "resnet50-1gbit-none-checkpoint.json")
        self.assertEqual(self.rows(), (rows, ""))
        self.run_program(*self.compare)

    def test_what_cannot_be_read_is_named_and_ends_nothing(self):
        rows, _ = self.rows()
        left = self.folder / "a/.scalemark-AbCdEf"
        left.mkdir()
        (left / "partial.json").write_text('{"finished": [], "record": null, "path": null}')
        (self.folder / "a/latest.json").symlink_to("gone.json")
        count, err = self.rows()
        self.assertEqual(count, rows)
        self.assertIn("a link to nothing", err)
        self.assertIn("scalemark clean", err)
        out, _ = self.run_program(*self.compare)
        self.assertIn("a link to nothing", out)


class Report(ProgramTest):
    def test_pythons_own_variables_and_styles_are_not_ours(self):
        self.run_program(SCALEMARK, *RUN, "--output", "r.json")
        (self.folder / "evil").mkdir()
        (self.folder / "evil/json.py").write_text('raise SystemExit("the json module of another Python")')
        style = self.folder / "matplotlibrc"
        style.write_text("text.usetex: True\n")
        for variables in ({"PYTHONPATH": str(self.folder / "evil")}, {"PYTHONHOME": "/opt/conda"}, {"MATPLOTLIBRC": str(style)}):
            with self.subTest(**variables):
                self.run_program(SCALEMARK, "report", "r.json", "--output", "page.html", env=self.environment(**variables))


if __name__ == "__main__":
    main()
