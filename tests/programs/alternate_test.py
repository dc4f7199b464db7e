"""scalemark sweep with commands around its launches, and with levels that it launches side by side."""

import collections
import json
import os
import signal
import subprocess

from support import SCALEMARK, SOURCE, ProgramTest, main, schema_errors

SETTINGS = {"model": "trivial", "batch_size": 4, "num_warmup_batches": 1, "num_batches": 4, "num_intra_threads": 1}


def shell(script):
    return ["sh", "-c", script]


class AlternateTest(ProgramTest):
    def plan(self, **members):
        settings = {**SETTINGS, **members.pop("settings", {})}
        plan = {"settings": settings, "launcher": "mpirun", **members}
        self.assertEqual(schema_errors(plan, "sweep.schema.json"), [])
        (self.folder / "plan.json").write_text(json.dumps(plan))
        return [SCALEMARK, "sweep", "plan.json", "--output", "out"]

    def journal(self):
        entries = [json.loads(line) for line in (self.folder / "out/journal.jsonl").read_text().splitlines()]
        for entry in entries:
            self.assertEqual(schema_errors(entry), [])
        return entries

    def lines(self, name):
        return (self.folder / name).read_text().splitlines()

    def logs(self, moment):
        return [log.read_text() for log in (self.folder / "out/logs").glob(f"*.{moment}.log")]


class Commands(AlternateTest):
    def test_each_launch_has_its_own(self):
        self.run_program(*self.plan(points=[{"seed": 1}, {"seed": 2, "before": [shell("echo point >> trace")]}], repeats=2,
                                    before=[["touch", "here"], shell("echo before {ranks} {repeat} >> trace")],
                                    after=[shell("echo after {repeat} >> trace; ls here")]))
        self.assertEqual([e["status"] for e in self.journal()], ["ok"] * 4)
        expected = []
        for entry in self.journal():
            point = ["point"] if entry["settings"]["seed"] == 2 else []
            expected += [f"before 1 {entry['repeat']}", *point, f"after {entry['repeat']}"]
        self.assertEqual(self.lines("trace"), expected)
        self.assertEqual([log.splitlines()[-1] for log in self.logs("after")], ["here"] * 4)
        self.assertTrue(all(log.startswith("$ touch here\n$ sh -c ") for log in self.logs("before")))

    def test_without_those_before_there_is_no_launch(self):
        words = self.plan(points=[{"seed": 1, "before": [["false"], ["touch", "second"]]}, {"seed": 2}],
                          after=[shell("echo after >> trace")])
        out, err = self.run_program(*words, expect=7)
        entry = next(e for e in self.journal() if e["settings"]["seed"] == 1)
        self.assertEqual((entry["status"], entry["exit_code"], entry["record"], entry["seconds"]), ("failed", 7, "", 0))
        self.assertRegex(entry["reason"], r"before: false ended with status 1; see out/logs/\w+-1\.before\.log")
        self.assertIn(entry["reason"], err)
        self.assertFalse((self.folder / "second").exists())
        self.assertEqual(self.lines("trace"), ["after"] * 2)
        self.assertRegex(out, r"seed=2 +1 +0 ")
        self.run_program(*words, expect=7)
        self.assertEqual(len(self.journal()), 2)
        self.run_program(*words, "--retry_failed", expect=7)
        self.assertEqual(len(self.journal()), 3)

    def test_what_fails_after_a_launch_takes_it_out(self):
        out, _ = self.run_program(*self.plan(after=[["no-such-program"]]), expect=7)
        entry, = self.journal()
        self.assertEqual(entry["status"], "failed")
        self.assertIn("after: no-such-program cannot be started", entry["reason"])
        self.assertEqual(self.read(f"out/{entry['record']}")["status"], "ok")
        self.assertRegex(out, r"the only point +0 +1 ")
        _, err = self.run_program(SCALEMARK, "compare", "out", "out", expect=2)
        self.assertIn("1 record with status failed", err)

    def test_a_failed_launch_keeps_its_own_status(self):
        self.run_program(*self.plan(settings={"inject": "nan_loss:step=2"}, after=[["false"]]), expect=4)
        entry, = self.journal()
        self.assertEqual(entry["status"], "invalid")
        self.assertIn("after: false", entry["reason"])

    def test_a_command_has_a_limit(self):
        self.run_program(*self.plan(before=[["sleep", "1000"]], command_timeout=1), expect=5)
        entry, = self.journal()
        self.assertEqual(entry["status"], "timeout")
        self.assertIn("before: sleep 1000 took longer than 1 s (command_timeout)", entry["reason"])

    def test_a_stop_during_a_launch_leaves_nothing_undone(self):
        words = self.plan(settings={"inject": "delay:milliseconds=300"}, before=[shell("echo before >> trace")],
                          after=[shell("echo after >> trace")])
        process = self.start(*words)
        self.wait_until(lambda: any("images/sec:" in log.read_text() for log in (self.folder / "out/logs").glob("*-1.log"))
                        if (self.folder / "out/logs").exists() else False)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4)
        self.assertEqual([e["status"] for e in self.journal()], ["interrupted"])
        self.assertEqual(self.lines("trace"), ["before", "after"])

    def test_a_stop_before_a_launch_too(self):
        words = self.plan(before=[shell("echo before >> trace; [ -e go ] || sleep 60")], after=[shell("echo after >> trace")])
        process = self.start(*words)
        self.wait_until(lambda: (self.folder / "trace").exists() and (self.folder / "trace").read_text())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4)
        self.assertEqual([e["status"] for e in self.journal()], ["interrupted"])
        self.assertEqual(self.lines("trace"), ["before", "after"])
        (self.folder / "go").touch()
        self.run_program(*words)
        self.assertEqual([e["status"] for e in self.journal()], ["interrupted", "ok"])

    def test_a_dry_run_prints_them(self):
        words = self.plan(before=[["sh", "-c", "echo 'a b' > dry"]], after=[["rm", "dry"]])
        out, _ = self.run_program(*words, "--dry_run")
        before, launch, after = out.splitlines()
        self.assertIn("mpirun", launch)
        self.assertEqual(after, "rm dry")
        self.assertFalse((self.folder / "dry").exists())
        subprocess.run(["bash", "-c", before], check=True, cwd=self.folder)
        self.assertEqual(self.lines("dry"), ["a b"])

    def test_a_gate_refuses_them(self):
        self.plan(before=[["true"]])
        _, err = self.run_program(SCALEMARK, "gate", "plan.json", "--base", SCALEMARK, "--new", SCALEMARK, "--output", "g", expect=2)
        self.assertIn("belong to scalemark sweep", err)
        self.assertFalse((self.folder / "g").exists())


class EachHost(AlternateTest):
    """On this host alone; on two of them: netlab_test.py, slurm_test.py."""

    def test_once_a_host_whatever_the_number_of_ranks(self):
        self.run_program(*self.plan(axes={"ranks": [1, 2]}, values={"what": "unset"}, before=[{"each_host": shell("echo {what} {ranks} >> trace")}],
                                    after=[{"each_host": shell("echo after $HERE >> trace")}], settings={"env.HERE": "set"}),
                         "--value", "what=a='b, c'")
        expected = []
        for entry in self.journal():
            self.assertEqual(entry["values"], {"what": "a='b, c'"})
            expected += [f"a=b, c {entry['settings']['ranks']}", "after set"]
        self.assertEqual(self.lines("trace"), expected)
        for log in self.logs("before") + self.logs("after"):
            self.assertRegex(log, rf"\A\$ .*mpirun.*\nscalemark: on {os.uname().nodename}: status 0\n\Z")

    def test_its_failure_names_the_host_and_costs_the_launch(self):
        host = os.uname().nodename
        self.run_program(*self.plan(before=[["true"], {"each_host": shell("echo why; exit 3")}, ["touch", "next"]]), expect=7)
        entry, = self.journal()
        self.assertRegex(entry["reason"], rf"before: sh -c 'echo why; exit 3' on {host} ended with status 3; see out/logs/\w+-1\.before\.log")
        self.assertEqual(entry["record"], "")
        self.assertFalse((self.folder / "next").exists())
        self.run_program(*self.plan(before=[{"each_host": ["no-such-program"]}], after=[["touch", "after"]]), expect=7)
        self.assertIn(f"no-such-program on {host} cannot be started", self.journal()[-1]["reason"])
        self.assertTrue((self.folder / "after").exists())
        self.run_program(*self.plan(before=[{"each_host": ["sleep", "1000"]}], command_timeout=3), expect=5)
        self.assertIn("sleep 1000 on each host took longer than 3 s (command_timeout)", self.journal()[-1]["reason"])

    def test_a_host_that_cannot_be_reached(self):
        (self.folder / "hosts").write_text("localhost\nno-such-host.invalid\n")
        words = self.plan(settings={"ranks": 2, "ranks_per_node": 1}, hostfile="hosts", before=[{"each_host": ["true"]}])
        self.run_program(*words, env=self.environment(OMPI_MCA_plm_rsh_agent="false"), expect=7)
        self.assertRegex(self.journal()[0]["reason"], "before: true on each host ended with status")

    def test_without_a_launcher_nothing_is_begun(self):
        words = self.plan(before=[["touch", "begun"], {"each_host": ["true"]}], after=[["touch", "after"]])
        path = self.folder / "bin"
        path.mkdir()
        for name in ("touch", "sh", "env"):
            (path / name).symlink_to(f"/usr/bin/{name}")
        _, err = self.run_program(*words, env=self.environment(PATH=path), expect=7)
        self.assertIn("mpirun is not in PATH", err)
        self.assertEqual([(self.folder / name).exists() for name in ("begun", "after")], [False, False])

    def test_a_stop_waits_for_what_undoes_it(self):
        words = self.plan(after=[{"each_host": shell("echo up >> trace; sleep 2; echo done >> trace")}], repeats=2)
        process = self.start(*words)
        self.wait_until(lambda: (self.folder / "trace").exists() and self.lines("trace"))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4)
        self.assertEqual(self.lines("trace"), ["up", "done"])

    def test_a_dry_run_prints_what_a_shell_runs(self):
        (self.folder / "hosts").write_text("n0\nn1\n")
        words = self.plan(before=[{"each_host": shell("echo 'a b' > dry")}], settings={"ranks": 2, "ranks_per_node": 1})
        out, _ = self.run_program(*words, "--dry_run", "--hostfile", "hosts")
        before, launch = out.splitlines()
        self.assertIn("--host n0:1,n1:1 ", before)
        self.assertIn("--host n0:1,n1:1 ", launch)
        before = self.run_program(*self.plan(before=[{"each_host": shell("echo 'a b' > dry")}]), "--dry_run")[0].splitlines()[0]
        self.assertFalse((self.folder / "dry").exists())
        subprocess.run(["bash", "-c", before], check=True, cwd=self.folder, capture_output=True, env=self.environment())
        self.assertEqual(self.lines("dry"), ["a b"])

    def test_a_container_is_not_entered_for_it(self):
        plan = self.plan(before=[{"each_host": ["true"]}], container="image", container_runtime="enter {image}")
        before, launch = self.run_program(*plan, "--dry_run")[0].splitlines()
        self.assertNotIn("enter image", before)
        self.assertIn("enter image", launch)


class Values(AlternateTest):
    def test_a_sweep_goes_on_with_the_same_ones_alone(self):
        words = self.plan(values={"device": "eth0", "go": "false"}, before=[["{go}"], ["echo", "{device}"]], repeats=2)
        self.run_program(*words, expect=7)  # which leaves no figure of eth0
        words += ["--value", "go=true", "--retry_failed"]
        self.run_program(*words, "--value", "device=ib0")
        _, err = self.run_program(*words, expect=2)
        self.assertIn("out holds launches with --value device=ib0, and now it is eth0", err)
        _, err = self.run_program(*words, "--value", "device=ib0")
        self.assertIn("2 launches are done", err)

    def test_wrong_ones_are_refused_with_what_is_right(self):
        words = self.plan(values={"device": "eth0"}, before=[["echo", "{device}"]])
        for value, says in (("devise=ib0", "did you mean device?"), ("device", "no NAME=TEXT"), ("device=", "/values/device"),
                            ("x=1", "it has device")):
            _, err = self.run_program(*words, "--value", value, expect=2)
            self.assertIn(says, err)
        self.assertFalse((self.folder / "out").exists())
        _, err = self.run_program(SCALEMARK, "sweep", SOURCE / "configs/sweeps/smoke.json", "--value", "device=ib0", "--dry_run", expect=2)
        self.assertIn("it has none", err)


class Levels(AlternateTest):
    LEVELS = [{"level": "slow", "before": [shell("echo {level} {repeat} >> trace")], "set": {"inject": "delay:milliseconds=20"}},
              {"level": "fast", "before": [shell("echo {level} {repeat} >> trace")]}]

    def pairs(self, entries=None):
        """Labels of launches that follow each other, pair by pair; each pair is of one point and repeat."""
        entries = entries or self.journal()
        for first, second in zip(entries[::2], entries[1::2]):
            self.assertEqual((first["repeat"], first["settings"]["seed"]), (second["repeat"], second["settings"]["seed"]))
        labels = [e["settings"]["alternate"] for e in entries]
        return list(zip(labels[::2], labels[1::2]))

    def test_levels_are_launched_side_by_side_and_compared_as_pairs(self):
        out, _ = self.run_program(*self.plan(axes={"seed": [7]}, alternate=self.LEVELS, repeats=6, default={"alternate": "slow"}))
        pairs = collections.Counter(self.pairs())
        self.assertEqual(set(pairs), {("slow", "fast"), ("fast", "slow")})
        self.assertEqual(sum(pairs.values()), 6)
        self.assertEqual(self.lines("trace"), [f"{e['settings']['alternate']} {e['repeat']}" for e in self.journal()])
        self.assertRegex(out, r"seed=7 alternate=fast +6 +0 ")
        record = self.record_of("compare", "--paired", "--by", "alternate=slow,fast", "--varied", "inject", "out")
        point, = record["points"]
        self.assertEqual((point["design"], point["repeats"], point["verdict"]), ("paired", 6, "faster"))
        _, err = self.run_program(SCALEMARK, "compare", "out", "--by", "alternate", expect=2)
        self.assertIn("--varied inject", err)

    def test_a_pair_that_was_interrupted_is_launched_again_as_a_pair(self):
        levels = [{"level": label, "before": [shell("echo {level} >> trace; [ $(wc -l < trace) != 2 ] || sleep 60")]}
                  for label in ("a", "b")]
        words = self.plan(axes={"seed": [1]}, alternate=levels, repeats=2)
        process = self.start(*words)
        self.wait_until(lambda: (self.folder / "trace").exists() and len(self.lines("trace")) == 2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual([e["status"] for e in self.journal()], ["ok", "interrupted"])
        _, err = self.run_program(*words)
        self.assertNotIn("are done", err)
        entries = self.journal()[2:]
        self.assertEqual([(e["repeat"], e["status"]) for e in entries],
                         [(1, "interrupted"), (1, "ok"), (1, "ok"), (2, "ok"), (2, "ok")])
        self.assertEqual(entries[0]["reason"], "measured again, with those that it is compared to")
        self.assertTrue(all(sorted(pair) == ["a", "b"] for pair in self.pairs(entries[1:])))
        _, err = self.run_program(*words)
        self.assertIn("4 launches are done", err)
        self.assertEqual(len(self.journal()), 7)

    def test_shipped_plans_switch_what_they_compare(self):
        """With stand-ins for the programs that take root, a NIC or a GPU."""
        for name in ("ethtool", "nvidia-smi", "sleep"):
            self.write_program(f"bin/{name}", f'#!/bin/sh\necho "{name} $*" >> "{self.folder}/said"\n')
        env = self.environment(PATH=f"{self.folder}/bin:{os.environ['PATH']}")
        switches = {"link_rate": ("speed 25000", "speed 10000"), "nic_offload": ("tso on", "tso off"),
                    "gpu_clocks": ("--reset-gpu-clocks", "--lock-gpu-clocks")}
        for name, said_of_each in switches.items():
            plan = json.loads((SOURCE / f"configs/sweeps/{name}.json").read_text())
            words = self.plan(**{**plan, "settings": SETTINGS, "axes": {"ranks": [1]}, "repeats": 1})
            values = ["--value", "clock=900"] if name == "gpu_clocks" else ["--value=device=ib7"]
            self.run_program(*words[:-1], name, *values, env=env)
            levels = [json.loads(line)["settings"]["alternate"] for line in self.lines(f"{name}/journal.jsonl")]
            self.assertEqual(sorted(levels), sorted(level["level"] for level in plan["alternate"]))
            said = self.lines("said")
            (self.folder / "said").unlink()
            for word in (*said_of_each, values[-1].split("=")[-1]):
                self.assertTrue(any(word in line for line in said), said)
            self.assertFalse(any("eth0" in line or "1200" in line for line in said), said)

    def test_the_shipped_plan_of_links_alternates(self):
        out, err = self.run_program(SCALEMARK, "sweep", SOURCE / "configs/sweeps/links.json", "--launcher", "mpirun", "--dry_run")
        rates = [word for line in out.splitlines() if "rsh n0 " in line for word in line.split() if word.endswith("gbit")]
        self.assertEqual(set(rates), {"1gbit", "4gbit"})
        self.assertTrue(all(sorted(pair) == ["1gbit", "4gbit"] for pair in zip(rates[::2], rates[1::2])), rates)


if __name__ == "__main__":
    main()
