"""scalemark gate with real launches of builds."""

import json
import shutil
import signal
import subprocess
import sys
import unittest
import xml.etree.ElementTree as xml

from support import BINARY, PYTHON_HAS_TORCH, SCALEMARK, SOURCE, ProgramTest, main, mpirun

SETTINGS = {"model": "trivial", "batch_size": 4, "num_warmup_batches": 1, "num_batches": 20, "num_intra_threads": 1}


class GateTest(ProgramTest):
    def gate(self, *words, expect=0, **options):
        return self.run_program(SCALEMARK, "gate", *words, expect=expect, **options)


class Builds(GateTest):
    def plan(self, **members):
        (self.folder / "plan.json").write_text(json.dumps({"settings": SETTINGS, "launcher": "mpirun", **members}))
        return ["plan.json", "--base", BINARY, "--output", "out"]

    def entries(self, side):
        return [json.loads(line) for line in (self.folder / "out" / side / "journal.jsonl").read_text().splitlines()]

    def test_pairs_lie_side_by_side_in_random_order(self):
        words = [*self.plan(axes={"precision": ["fp32", "bf16"]}), "--new", SCALEMARK, "--pairs", "2", "--alpha", "0.3"]
        process = self.start(SCALEMARK, "gate", *words, "--alternate", "launches")
        out, err = process.communicate(timeout=120)
        verdict = self.read("out/verdict.json")
        self.assertEqual(process.returncode, verdict["exit_code"])
        self.assertEqual({"regressed": 1, "pass": 0, "inconclusive": 3}[verdict["verdict"]], process.returncode)
        self.assertEqual((verdict["repeats"], verdict["design"]["mode"], verdict["launches"]["launched"]), (2, "sequential pairs", 8))
        self.assertTrue(out.startswith(verdict["verdict"]), out)
        order = sorted((entry["started_at"], side, entry["repeat"], entry["settings"]["precision"])
                       for side in ("base", "new") for entry in self.entries(side))
        self.assertEqual([pair for _, _, pair, _ in order], sorted(pair for _, _, pair, _ in order))
        firsts = [[side for _, side, pair, point in order if (pair, point) == (k, precision)]
                  for k in (1, 2) for precision in ("fp32", "bf16")]
        self.assertEqual({tuple(sorted(sides)) for sides in firsts}, {("base", "new")})
        self.assertEqual({sides[0] for sides in firsts}, {"base", "new"})
        again, _ = self.run_program(SCALEMARK, "compare", "out/base", "out/new", "--paired", "--json")
        self.assertEqual([point["repeats"] for point in json.loads(again)["points"]], [2, 2])

    def wrapper(self, name, script):
        """A program that runs `script` and then scalemark."""
        self.write_program(f"{name}/scalemark", f'#!/bin/sh\n{script}\nexec {SCALEMARK} "$@"\n')
        return name

    def test_the_launches_of_a_pair_are_interleaved(self):
        settings = {**SETTINGS, "model": "smallnet", "num_batches": 100, "ranks": 2, "inject": "delay:milliseconds=2"}  # 0.2 s
        out, err = self.gate(*self.plan(settings=settings), "--new", SCALEMARK, "--pairs", "2", "--alpha", "0.3", "--threshold", "50",
                             "--delta", "50", expect=3)  # two pairs pass nothing
        self.assertIn("live at the same time and are interleaved", err)
        self.assertEqual(self.read("out/verdict.json")["launches"]["alternate"], "steps")
        words = [f"--{key}={value}" for key, value in settings.items() if key not in ("ranks", "inject")]
        self.run_program(*mpirun(2, SCALEMARK, "run", *words, "--output", "alone.json"))
        alone = self.read("alone.json")
        self.assertIsNone(alone["turns"])
        for side in ("base", "new"):
            for entry in self.entries(side):
                record = self.read(f"out/{side}/{entry['record']}")
                self.assertGreaterEqual(record["turns"]["count"], 3)
                self.assertGreater(record["turns"]["paused_seconds"], 0)
                self.assertEqual(len(record["step_seconds"]["samples"]), 100)
                self.assertGreater(record["wall_seconds"], 0.2)
                self.assertLess(record["wall_seconds"] + record["turns"]["paused_seconds"], entry["seconds"])
                self.assertEqual(record["loss"], alone["loss"])  # the same training

    def test_builds_that_can_not_be_interleaved_follow_each_other(self):
        old = self.wrapper("old", f'[ "$1" = --version ] && {SCALEMARK} --version | grep -v gate && exit')
        few = ["--new", BINARY, "--max_seconds", "1"]
        words = ["plan.json", "--base", old, "--output", "out", *few]
        self.plan()
        _, err = self.gate(*words, "--alternate", "steps", expect=2)
        self.assertIn("too old to be interleaved", err)
        _, err = self.gate(*words, expect=3)
        self.assertRegex(err, "follow each other, since build .* is too old to be interleaved")
        self.assertEqual(self.read("out/verdict.json")["launches"]["alternate"], "launches")

    def test_sums_that_go_on_into_the_next_step_are_not_interleaved(self):
        plan = self.plan(settings={**SETTINGS, "ranks": 2})
        _, err = self.gate(*plan, "--new_set", "overlap=step", "--alternate", "steps", expect=2)
        self.assertIn("what --overlap step leaves on its way", err)

    def test_ranks_that_lose_their_slices_give_no_verdict(self):
        deaf = self.wrapper("deaf", "unset SMK_INTERNAL_TURNS")
        self.plan()
        _, err = self.gate("plan.json", "--base", deaf, "--new", deaf, "--output", "out", expect=7)
        self.assertIn("--alternate launches", self.read("out/verdict.json")["reason"])
        self.assertEqual([entry["record"] for entry in self.entries("base")], [""])

    def test_a_rank_that_is_killed_in_its_slice(self):
        plan = self.plan(settings={**SETTINGS, "ranks": 2, "num_batches": 400, "inject": "delay:milliseconds=1"})
        self.gate(*plan, "--new_set", "inject=kill:rank=1:step=100", expect=4)
        verdict = self.read("out/verdict.json")
        self.assertEqual((verdict["status"], verdict["verdict"]), ("failed", None))
        self.assertIn("new, the only point, pair 1", verdict["reason"])

    def test_a_slowdown_is_found_and_reported_everywhere(self):
        words = [*self.plan(), "--new_set", "inject=delay:milliseconds=10", "--pairs", "7"]
        _, err = self.gate(*words, "--junit", "j.xml", "--summary", "s.md", "--annotations", expect=1)
        verdict = self.read("out/verdict.json")
        self.assertEqual((verdict["verdict"], verdict["repeats"], verdict["varied"]), ("regressed", 7, ["inject"]))
        self.assertAlmostEqual(verdict["p"], 2**-7)
        self.assertGreater(verdict["slowdown_percent"], 50)
        self.assertEqual([point["regressed"] for point in verdict["points"]], [True])
        suite = xml.parse(self.folder / "j.xml").getroot().find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("2", "2"))
        self.assertIn("slower than base", suite.find("testcase/failure").get("message"))
        self.assertIn("scalemark gate: regressed", (self.folder / "s.md").read_text())
        self.assertRegex(err, r"(?m)^::error title=scalemark gate::regressed: new is .*%0Aranks=1")
        # The same records once more, as two sets.
        _, err = self.gate("out/base", "out/new", "--paired", expect=2)
        self.assertIn("--varied inject", err)
        out, _ = self.gate("out/base", "out/new", "--paired", "--varied", "inject", "--json", expect=1)
        self.assertAlmostEqual(json.loads(out)["slowdown_percent"], verdict["slowdown_percent"])

    def test_an_interrupted_gate_goes_on(self):
        words = [*self.plan(settings={**SETTINGS, "inject": "delay:milliseconds=20"}), "--new", BINARY, "--pairs", "3", "--alpha", "0.2"]
        process = self.start(SCALEMARK, "gate", *words)
        journals = [self.folder / "out" / side / "journal.jsonl" for side in ("base", "new")]
        self.wait_until(lambda: all(journal.exists() and journal.read_text() for journal in journals))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4, out + err)
        verdict = self.read("out/verdict.json")
        self.assertEqual((verdict["status"], verdict["verdict"]), ("interrupted", None))
        self.assertIn("goes on", err)
        process = self.start(SCALEMARK, "gate", *words)
        process.communicate(timeout=90)
        self.assertEqual(self.read("out/verdict.json")["repeats"], 3)
        for side in ("base", "new"):
            done = [entry["repeat"] for entry in self.entries(side) if entry["status"] == "ok"]
            # The pair in which it was stopped begins again, also the side that had just ended.
            self.assertEqual(sorted(set(done)), [1, 2, 3])
            self.assertLessEqual(len(done), 4)

    def test_a_build_that_fails_ends_it_with_its_code(self):
        broken = self.wrapper("broken", '[ "$1" = run ] && set -- "$@" --inject nan_loss:step=1')
        out, err = self.gate(*self.plan(), "--new", broken, "--junit", "j.xml", "--annotations", expect=4)
        verdict = self.read("out/verdict.json")
        self.assertEqual((verdict["status"], verdict["verdict"]), ("failed", None))
        self.assertIn("new, the only point, pair 1", verdict["reason"])
        self.assertIn("no verdict (failed)", out)
        self.assertIn("::error", err)
        self.assertEqual(xml.parse(self.folder / "j.xml").getroot().find("testsuite").get("errors"), "1")

    def test_time_that_runs_out_is_inconclusive(self):
        self.gate(*self.plan(), "--new", BINARY, "--max_seconds", "1", expect=3)
        verdict = self.read("out/verdict.json")
        self.assertEqual((verdict["verdict"], verdict["repeats"], verdict["launches"]["stopped"]), ("inconclusive", 1, "max_seconds"))

    def test_a_folder_of_another_plan_is_not_gone_on_with(self):
        self.gate(*self.plan(), "--new", BINARY, "--max_seconds", "1", expect=3)
        _, err = self.gate(*self.plan(settings={**SETTINGS, "seed": 5}), "--new", BINARY, expect=2)
        self.assertIn("of another plan", err)

    def test_the_rules_of_a_gate_that_was_begun_stay(self):
        rules = {"--pairs": "3", "--alpha": "0.2", "--delta": "40", "--threshold": "40", "--point_delta": "60"}
        words = [*self.plan(), "--new", SCALEMARK]
        process = self.start(SCALEMARK, "gate", *words, "--max_seconds", "1", *(word for rule in rules.items() for word in rule))
        process.communicate(timeout=120)
        before = self.read("out/verdict.json")
        self.assertEqual(process.returncode, before["exit_code"])
        for flag, value in (("--alpha", "0.3"), ("--threshold", "1"), ("--delta", "45"), ("--pairs", "4"), ("--point_delta", "50")):
            _, err = self.gate(*words, *(word for rule in {**rules, flag: value}.items() for word in rule), expect=2)
            self.assertIn("its rules can't be changed", err)
        self.assertEqual(self.read("out/verdict.json"), before)

    def test_a_dry_run_prints_pairs(self):
        out, err = self.gate(*self.plan(), "--new_set", "seed=3", "--pairs", "7", "--dry_run")
        self.assertEqual(len(out.splitlines()), 14)
        self.assertEqual(sum("--seed=3" in line for line in out.splitlines()), 7)
        self.assertFalse((self.folder / "out").exists())

    def test_each_build_begins_one_of_two_pairs(self):
        out, _ = self.gate(*self.plan(axes={"precision": ["fp32", "bf16"]}), "--new_set", "seed=3", "--pairs", "8", "--dry_run")
        lines = out.splitlines()
        for precision in ("fp32", "bf16"):
            new_begins = ["--seed=3" in first for first in lines[::2] if f"--precision={precision}" in first]
            self.assertEqual(len(new_begins), 8)
            for first, second in zip(new_begins[::2], new_begins[1::2]):
                self.assertNotEqual(first, second, out)

    def test_builds_of_unlike_types_are_refused_before_a_launch(self):
        debug = self.wrapper("debug", f'[ "$1" = --version ] && {SCALEMARK} --version | sed "s/build_type .*/build_type Debug/" && exit')
        _, err = self.gate(*self.plan(), "--new", debug, expect=2)
        self.assertRegex(err, "--new: its build_type is Debug, that of --base .*build both alike")
        self.assertFalse((self.folder / "out").exists())

    def test_one_commit_by_two_names_is_refused_before_anything_is_built(self):
        commit = subprocess.run(["git", "-C", SOURCE, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
        _, err = self.gate("plan.json", "--base", "HEAD", "--new", commit[:20], "--output", "out", expect=2)
        self.assertIn("is the commit of --base", err)
        self.assertNotIn("building", err)

    def test_a_name_of_a_commit_of_another_repository_is_refused(self):
        for words in (["init", "-q"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "theirs"]):
            subprocess.run(["git", *words], cwd=self.folder, check=True)
        _, err = self.gate(*self.plan()[:1], "--base", "HEAD", "--new", SCALEMARK, "--output", "out", expect=2)
        self.assertRegex(err, rf'--base: "HEAD" would be a commit of scalemark itself, in {SOURCE}, .*--new_set \(model_file=')

    @unittest.skipUnless(PYTHON_HAS_TORCH, "without torch in Python no model file is made")
    def test_another_model_and_another_variable_are_judged(self):
        script = ("import torch, torch.nn as nn\n"
                  "for name, width in (('a.pt', 32), ('b.pt', 48)):\n"
                  "    torch.jit.save(torch.jit.script(nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.Linear(width, 10))), name)")
        self.run_program(sys.executable, "-c", script)
        plan = self.plan(settings={"model_file": "a.pt", "input_shape": "64", "batch_size": 4, "num_batches": 20, "num_warmup_batches": 1,
                                   "num_intra_threads": 1, "ranks": 2})
        for setting, differs in (("model_file=b.pt", "model_digest"), ("env.OMPI_MCA_btl=self,tcp", "env.OMPI_MCA_btl")):
            with self.subTest(setting=setting):
                process = self.start(SCALEMARK, "gate", *plan[:-1], f"out-{differs}", "--new_set", setting, "--pairs", "2",
                                     "--alpha", "0.3")
                out, err = process.communicate(timeout=200)
                self.assertIn(process.returncode, (0, 1, 3), err)
                verdict = self.read(f"out-{differs}/verdict.json")
                self.assertEqual((verdict["status"], verdict["repeats"]), ("ok", 2))
                self.assertNotIn("default", out)

    def test_what_is_no_build(self):
        for build, text in (("no-such-commit", "no commit"), (self.folder, "holds no scalemark")):
            _, err = self.gate(*self.plan(), "--new", build, expect=2)
            self.assertIn(text, err)


SETUP = f"""#!/bin/sh
# Stands for the set-up of a commit: this build, with what its file says.
[ "$(cat state)" = broken ] && exit 7
mkdir -p build/release/bin
[ "$(cat state)" = slow ] && slow="export LD_PRELOAD={BINARY}/bin/libfaulty_system.so SMK_TEST_SLOW_OPENMP=1000"
printf '#!/bin/sh\\n%s\\nexec {SCALEMARK} "$@"\\n' "$slow" >build/release/bin/scalemark
chmod +x build/release/bin/scalemark
"""


class Bisection(GateTest):
    # Of the fewest pairs that pass anything. Slow is about twice as slow: noise does not come near these bounds.
    RULES = "--pairs 5 --alpha 0.2 --threshold 20 --delta 40 --point_delta 40".split()

    def tree(self, states):
        """A repository with a commit a state, and its scalemark."""
        tree = self.folder / "tree"
        self.write_program("tree/scripts/setup", SETUP)
        for name in ("build_commit", "progress.sh", "compile_seconds"):
            shutil.copy(SOURCE / "scripts" / name, tree / "scripts")
        (tree / ".gitignore").write_text("/build\n")
        git = ["git", "-C", tree, "-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run([*git, "init", "--quiet"], check=True)
        for number, state in enumerate(states):
            (tree / "state").write_text(state)
            subprocess.run([*git, "add", "--all"], check=True)
            subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", f"{number} {state}"], check=True)
        shutil.copytree(BINARY / "bin", tree / "build/release/bin", ignore=lambda _, names: [name for name in names if name != "scalemark"])
        for path in BINARY.iterdir():
            if path.name not in ("bin", "setup.env"):
                (tree / "build/release" / path.name).symlink_to(path)
        # Most of a step is a sleep, which takes as long on a busy machine.
        settings = {**SETTINGS, "inject": "delay:milliseconds=10"}
        (self.folder / "plan.json").write_text(json.dumps({"settings": settings, "launcher": "mpirun"}))
        return tree / "build/release/bin/scalemark"

    def hashes(self):
        """Of the commits, the oldest first."""
        return subprocess.run(["git", "-C", self.folder / "tree", "rev-list", "--reverse", "HEAD"], check=True, capture_output=True,
                              text=True).stdout.split()

    def bisect(self, program, *words, expect):
        env = self.environment(XDG_CACHE_HOME=str(self.folder / "cache"))
        return self.run_program(program, "gate", "plan.json", "--bisect", *self.RULES, "--output", "out", *words, expect=expect,
                                env=env)

    def test_the_commit_is_named_and_what_can_not_be_built_left_out(self):
        program = self.tree(["fast", "broken", "fast", "slow"])
        hashes = self.hashes()
        words = ["--base", hashes[0], "--new", hashes[3], "--junit", "j.xml"]
        out, _ = self.bisect(program, *words, "--dry_run", expect=0)
        self.assertEqual([line.split('"')[1] for line in out.splitlines()][1], "1 broken")
        out, err = self.bisect(program, *words, expect=1)
        named = f'the first slow commit is {hashes[3][:12]} "3 slow": '
        verdict = self.read("out/verdict.json")
        self.assertTrue(verdict["notes"][0].startswith(named), verdict["notes"])
        self.assertIn(named, out)
        self.assertEqual(verdict["verdict"], "regressed")
        self.assertIn(f'{hashes[1][:12]} "1 broken" can\'t be told: left out', err)
        self.assertRegex((self.folder / "j.xml").read_text(), "<failure")
        folders = sorted(path.name for path in (self.folder / "out").iterdir() if path.is_dir())
        self.assertEqual(folders, sorted(f"{hashes[a][:12]}-{hashes[b][:12]}" for a, b in ((0, 3), (0, 2), (2, 3))))
        before = {path: path.read_bytes() for path in (self.folder / "out").glob("*/*/journal.jsonl")}
        self.bisect(program, *words, expect=1)  # goes on where it was, at the end
        self.assertEqual({path: path.read_bytes() for path in before}, before)

    def test_several_are_named_where_those_between_can_not_be_told(self):
        program = self.tree(["fast", "broken", "slow"])
        first, _, last = self.hashes()
        out, _ = self.bisect(program, "--base", first, "--new", last, expect=1)
        self.assertRegex(out, r'the first slow commit is one of these 2: \w+ "1 broken" \(can\'t be told\), \w+ "2 slow"')

    def test_what_is_not_slower_has_no_commit_to_name(self):
        program = self.tree(["fast", "broken", "fast"])
        first, _, last = self.hashes()
        self.bisect(program, "--base", first, "--new", last, expect=0)
        self.assertEqual(self.read("out/verdict.json")["verdict"], "pass")
        for words, naming in ((["--base", last, "--new", first], "is no commit before"),
                              (["--base", BINARY, "--new", last], "is no commit of a source tree"),
                              (["--base", first, "--new", last, "--new_set", "precision=bf16"], "leave out --bisect")):
            _, err = self.bisect(program, *words, expect=2)
            self.assertIn(naming, err)


if __name__ == "__main__":
    main()
