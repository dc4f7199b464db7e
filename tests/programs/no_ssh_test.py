"""A machine without ssh and rsh, as containers often are: all that runs on it alone works."""

import json
import shutil
import unittest

from support import SCALEMARK, SMALL, ProgramTest, main

WORDS = [*SMALL, "--num_batches", "3"]
PLAN = {"settings": {"model": "trivial", "batch_size": 4, "num_warmup_batches": 1, "num_batches": 3, "inject": "delay:milliseconds=5"},
        "axes": {"ranks": [1, 2]}, "repeats": 1, "launcher": "mpirun"}


class WithoutSsh(ProgramTest):
    def setUp(self):
        super().setUp()
        self.path = self.path_without_ssh()

    def environment(self, **more):
        """Slurm's variables would have Open MPI start its daemons by srun."""
        kept = super().environment(**{"PATH": self.path, **more})
        return {name: value for name, value in kept.items() if not name.startswith("SLURM_")}

    def test_a_rank_alone(self):
        record = self.record_of("run", *WORDS)
        self.assertEqual(record["status"], "ok")
        self.assertEqual({name: record["environment"].get(name) for name in
                          ("OMPI_MCA_ess_singleton_isolated", "OMPI_MCA_orte_create_session_dirs", "OMPI_MCA_plm")},
                         {"OMPI_MCA_ess_singleton_isolated": "1", "OMPI_MCA_orte_create_session_dirs": "0", "OMPI_MCA_plm": None})

    def test_ranks_that_we_launch(self):
        for command in ("run", "infer"):
            record = self.record_of(command, "--ranks", "2", *WORDS)
            self.assertEqual((record["status"], record["world_size"]), ("ok", 2))
            self.assertEqual(record["environment"]["OMPI_MCA_plm"], "^rsh")
            self.assertNotIn("OMPI_MCA_ess_singleton_isolated", record["environment"])
        self.record_of("scale", "--ranks", "1,2", "--repeats", "1", *WORDS)
        self.run_program(SCALEMARK, "preflight", "--ranks", "2", "--pinning", "--output", "p.json")
        self.assertEqual(len(self.read("p.json")["ranks"]), 2)

    def test_launches_of_plans(self):
        (self.folder / "plan.json").write_text(json.dumps(PLAN))
        self.run_program(SCALEMARK, "sweep", "plan.json", "--output", "s")
        entries = [json.loads(line) for line in (self.folder / "s/journal.jsonl").read_text().splitlines()]
        self.assertEqual([entry["status"] for entry in entries], ["ok", "ok"])
        (self.folder / "plan.json").write_text(json.dumps({**PLAN, "axes": {}}))
        self.run_program(SCALEMARK, "gate", "plan.json", "--base", SCALEMARK, "--new", SCALEMARK, "--output", "g", "--pairs", "8",
                         "--delta", "50", "--point_delta", "90")

    def test_instances(self):
        for ranks in ([], ["--ranks", "2"]):
            with self.subTest(ranks):
                self.run_program(SCALEMARK, "instances", *WORDS, *ranks, "--instances", "1", "--repeats", "1", "--output", "i.json")
                self.assertEqual(self.read("i.json")["status"], "ok")

    def test_what_the_user_has_set_stands(self):
        for name, value in (("OMPI_MCA_plm", "isolated"), ("OMPI_MCA_plm_rsh_agent", shutil.which("true"))):
            with self.subTest(name):
                self.run_program(SCALEMARK, "run", "--ranks", "2", *WORDS, "--output", "r.json", env=self.environment(**{name: value}))
                recorded = self.read("r.json")["environment"]
                self.assertEqual({key: recorded[key] for key in recorded if "plm" in key}, {name: value})

    def test_other_hosts(self):
        hosts = self.folder / "hosts"
        words = ["run", "--ranks", "2", *WORDS, "--hostfile", hosts]
        hosts.write_text("localhost slots=2\n")
        self.run_program(SCALEMARK, *words)
        for names in ("far.example\n", "localhost slots=1\nfar.example slots=1\n"):
            hosts.write_text(names)
            _, err = self.run_program(SCALEMARK, *words, expect=7)
            self.assertRegex(err, "ssh or rsh, and neither is in PATH: install .*OMPI_MCA_plm_rsh_agent")

    def test_the_plan_shows_a_command_that_works(self):
        _, err = self.run_program(SCALEMARK, "run", "--ranks", "2", *WORDS, "--dry_run")
        self.assertIn("would start: env 'OMPI_MCA_plm=^rsh' mpirun", err)


class AloneWithSsh(ProgramTest):
    def measuring(self, **variables):
        process = self.start(SCALEMARK, "run", *SMALL, "--num_batches", "1000000", env=self.environment(**variables))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.wait_for_line(process.stdout, "images/sec: ")
        return process

    def test_it_starts_nobody(self):
        process = self.measuring()
        self.assertEqual(self.processes_left(), [process.pid])

    @unittest.skipUnless(shutil.which("ssh") or shutil.which("rsh"), "Open MPI's daemon does not start without ssh")
    def test_unless_its_user_wants_a_daemon(self):
        process = self.measuring(OMPI_MCA_ess_singleton_isolated="0")
        self.assertEqual(len(self.processes("orted")), 1)
        process.terminate()


if __name__ == "__main__":
    main()
