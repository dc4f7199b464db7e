"""The jobs of docs/ci: what they may do, and their scripts, as they stand, in small repositories with real builds. What only a
service has is made here: its variables, `su` without another account, and for the comment a `gh` that keeps what it is sent.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import yaml

from support import BINARY, PYTHON_HAS_TORCH, SCALEMARK, SOURCE, ProgramTest, main

FOLDER = SOURCE / "docs/ci"
GITHUB = ("github.yml", "scalemark_github.yml", "github_comment.yml")
GITLAB = ("gitlab.yml", "scalemark_gitlab.yml")
# Launches of a second, of which a step takes as long as the next one.
SMALL = {"batch_size": 4, "num_batches": 20, "num_warmup_batches": 1, "num_intra_threads": 1, "inject": "delay:milliseconds=5"}
MODELS = """
import sys, torch, torch.nn as nn
for name, width in zip(sys.argv[1::2], map(int, sys.argv[2::2])):
    torch.jit.save(torch.jit.script(nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))), name)
"""
GH = """#!/usr/bin/env python3
import json, os, subprocess, sys
words = sys.argv[1:]
fields = [words[i + 1] for i, word in enumerate(words) if word in ("-f", "-F")]
path = next(word for word in words if word.startswith("repos/"))
with open("calls", "a") as calls:
    print(json.dumps([path, fields, "PATCH" in words]), file=calls)
if path.endswith("/zip"):
    sys.stdout.buffer.write(open("artifact.zip", "rb").read())
elif any(field.startswith("body=@") for field in fields):
    os.replace("comment.md", "sent.md")
else:
    answer = json.load(open("answers.json"))[path.split("?")[0].split("/")[-1]]
    subprocess.run(["jq", "-r", words[words.index("--jq") + 1]], input=json.dumps(answer), text=True, check=True)
"""


def load(name):
    return yaml.safe_load((FOLDER / name).read_text())


def steps(name):
    job, = load(name)["jobs"].values()
    return job["steps"]


def inner(line):
    """What another account runs: the script in `su gate -c 'SCRIPT'`."""
    words = shlex.split(line)
    return words[3] if words[:3] == ["su", "gate", "-c"] else None


def scripts():
    """(file, script) of all jobs."""
    for name in GITHUB:
        for step in steps(name):
            if "run" in step:
                yield name, step["run"]
    for name in GITLAB:
        for job in load(name).values():
            for line in (*job.get("before_script", ()), *job.get("script", ())):
                yield name, line
                if inner(line):
                    yield name, inner(line)


class Files(unittest.TestCase):
    def test_every_file_is_looked_at(self):
        self.assertEqual({path.name for path in FOLDER.iterdir()}, {*GITHUB, *GITLAB, "README.md", "speed.json"})
        linked = re.findall(r"\]\((\w+\.\w+)\)", (FOLDER / "README.md").read_text())
        self.assertEqual(sorted(set(linked)), sorted({*GITHUB, *GITLAB, "speed.json"}))

    def test_every_script_parses(self):
        checker = ["shellcheck", "--shell=bash", "--exclude=SC2016", "-"] if shutil.which("shellcheck") else ["bash", "-n"]
        for name, script in scripts():
            with self.subTest(file=name, script=script[:60]):
                done = subprocess.run(checker, input=script, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_who_runs_code_of_others_may_only_read(self):
        for name in GITHUB:
            with self.subTest(name):
                text, workflow = (FOLDER / name).read_text(), load(name)
                self.assertEqual(workflow["permissions"], {})
                self.assertNotIn("secrets.", text)
                (job,), triggers = workflow["jobs"].values(), workflow[True]  # `on` is a truth of YAML 1.1
                for step in job["steps"]:
                    self.assertNotIn("${{", step.get("run", ""))
                    self.assertFalse(step.get("with", {}).get("persist-credentials", "checkout" in step.get("uses", "")))
                if name == "github_comment.yml":
                    self.assertEqual(list(triggers), ["workflow_run"])
                    self.assertEqual(triggers["workflow_run"]["workflows"], [load("github.yml")["name"]])
                    self.assertEqual(job["permissions"], {"actions": "read", "pull-requests": "write"})
                    self.assertEqual([list(step) for step in job["steps"]], [["name", "run", "env"]])
                else:
                    self.assertEqual(sorted(map(str, triggers)), ["pull_request", "push", "schedule"])
                    self.assertEqual(job["permissions"], {"contents": "read"})
                    for step in job["steps"]:
                        if step.get("with", {}).get("path") == "history" or step.get("name") == "History":
                            self.assertIn("github.event_name != 'pull_request'", step["if"])

    def test_root_installs_a_fixed_list_and_all_that_is_fetched_is_pinned(self):
        packages = re.search(r"^readonly PACKAGES=\(([^)]*)\)", (SOURCE / "scripts/setup").read_text(), re.MULTILINE)[1].split()
        for name in (*GITHUB[:2], *GITLAB):
            with self.subTest(name):
                text = (FOLDER / name).read_text()
                listed = re.search(r"install -y --no-install-recommends git ccache( jq)?(.*?) python3-venv\n", text, re.DOTALL)
                self.assertEqual([*listed[2].replace("\\", "").split(), "python3-venv"], packages)
                self.assertEqual(listed[1] is None, name.startswith("scalemark_"))
                self.assertNotRegex(text, r"sudo[^\n]*(scripts|scalemark)")
        for name in (*GITHUB, *GITLAB):
            for pinned in re.findall(r"^ +(?:- uses|image): *(.*)", (FOLDER / name).read_text(), re.MULTILINE):
                with self.subTest(name, pinned=pinned):
                    self.assertRegex(pinned, r"^[\w/-]+@([0-9a-f]{40}|sha256:[0-9a-f]{64}) # \S")
        bases = {digest for path in (*(f"docs/ci/{name}" for name in GITLAB), "scripts/packaging/Containerfile",
                                     "scripts/packaging/scalemark.def")
                 for digest in re.findall(r"debian@(sha256:[0-9a-f]{64})", (SOURCE / path).read_text())}
        self.assertEqual(len(bases), 1, bases)

    def test_files_of_one_service_set_up_alike(self):
        """What a reader of both would take for a difference is none."""
        heads = [{key: value for key, value in load(name).items() if key != "jobs"} for name in GITHUB[:2]]
        self.assertEqual(*heads)


class Jobs(ProgramTest):
    def setUp(self):
        super().setUp()
        self.repository = self.folder / "repository"
        self.repository.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.write_program("tools/su", '#!/bin/bash\n[[ $1 == gate && $2 == -c ]] && exec bash -c "$3"\n')
        self.write_program("tools/gh", GH)
        self.variables = {"PATH": f"{self.folder}/tools:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md")}

    def git(self, *words):
        done = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=self.repository,
                              check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, when=1_700_000_000):
        self.git("add", "--all", "--force", "speed.json", "model.pt")
        os.environ["GIT_COMMITTER_DATE"] = f"{when} +0000"
        self.addCleanup(os.environ.pop, "GIT_COMMITTER_DATE", None)
        self.git("commit", "--quiet", "--allow-empty", "--message", "another")

    def step(self, file, name, expect=0, whole=True, **variables):
        """Runs a step of a workflow as GitHub does; its stdout. A gate that is not `whole` ends after some pairs."""
        script, = (step["run"] for step in steps(file) if step.get("name") == name)
        (self.folder / "step.sh").write_text(script if whole else self.shorter(script))
        return self.script("bash", "-e", self.folder / "step.sh", expect=expect, **variables)

    def job(self, file, name, expect=0, whole=True, **variables):
        """Runs the script of a job of GitLab, not what root does before."""
        line, = load(file)[name]["script"]
        line = line if whole else self.shorter(line)
        return self.script("bash", "-c", f"set -eo pipefail\n{line}", expect=expect, **variables)

    def shorter(self, script):
        self.assertIn("--max_seconds 2400", script)
        return script.replace("--max_seconds 2400", "--max_seconds 6")

    def script(self, *words, expect, **variables):
        process = subprocess.Popen(list(map(str, words)), cwd=self.repository, env=self.environment(**self.variables, **variables),
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=300)
        self.assertIn(process.returncode, expect if isinstance(expect, tuple) else (expect,), f"{out}\n{err}")
        return out

    def gate_left(self, verdict):
        """What a gate leaves in its folder."""
        record = json.loads((self.repository / "gate/verdict.json").read_text())
        self.assertIn("</html>", (self.repository / "gate/report.html").read_text())
        self.assertIn("<testsuite", (self.repository / "gate/junit.xml").read_text())
        self.assertEqual(record["verdict"], verdict)
        return record

    def sets(self):
        return sorted(path.name for path in (self.repository / "history").glob("*/*"))


@unittest.skipUnless(PYTHON_HAS_TORCH, "without torch in Python no model file is made")
class ChangesOfUsers(Jobs):
    @classmethod
    def setUpClass(cls):
        cls.models = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="scalemark-models-")))
        subprocess.run([sys.executable, "-c", MODELS, "quick.pt", "16", "slow.pt", "16384"], check=True, cwd=cls.models)

    def setUp(self):
        super().setUp()
        checkout = self.repository / "scalemark/build"
        checkout.mkdir(parents=True)
        (checkout / "release").symlink_to(BINARY)
        (checkout.parent / "scalemark").symlink_to(SCALEMARK)

    def change(self, model, repeats=2, **settings):
        """The repository as it stands after a change: the plan of docs/ci, small, and a model."""
        plan = json.loads((FOLDER / "speed.json").read_text())
        self.assertEqual(plan["repeats"], 5)
        plan |= {"settings": {**plan["settings"], "input_shape": "64", **SMALL, **settings}, "axes": {"ranks": [1]}, "repeats": repeats}
        (self.repository / "speed.json").write_text(json.dumps(plan))
        shutil.copy(self.models / model, self.repository / "model.pt")

    def pull_request(self, model, **settings):
        """HEAD merges it into the commit before, as GitHub checks it out."""
        self.change("quick.pt")
        self.commit()
        base = self.git("rev-parse", "HEAD")
        self.git("switch", "--quiet", "--create", "change")
        self.change(model, **settings)
        self.commit()
        self.git("switch", "--quiet", "main")
        self.git("merge", "--quiet", "--no-ff", "--no-edit", "change")
        return base

    def test_the_plan_is_one(self):
        self.change("quick.pt")
        shutil.copy(FOLDER / "speed.json", self.repository)
        out = self.script(SCALEMARK, "sweep", "speed.json", "--output", "out", "--dry_run", expect=0)
        self.assertEqual(out.count("--model_file=model.pt"), 10)

    def test_a_slower_model_fails(self):
        self.pull_request("slow.pt")
        out = self.step("github.yml", "Gate", expect=1)
        self.assertTrue(out.startswith("regressed"), out)
        self.gate_left("regressed")
        self.assertTrue(out.startswith((self.repository / "gate/verdict.txt").read_text()), out)
        self.assertIn("regressed", (self.folder / "summary.md").read_text())

    def test_another_variable_is_what_is_compared(self):
        base = self.pull_request("quick.pt", **{"env.OMPI_MCA_btl": "self,tcp", "optimizer": "sgd"})
        self.job("gitlab.yml", "scalemark-gate", expect=3, whole=False, CI_MERGE_REQUEST_DIFF_BASE_SHA=base)
        self.gate_left("inconclusive")
        entry = json.loads((self.repository / "gate/new/journal.jsonl").read_text().splitlines()[0])
        run = json.loads((self.repository / "gate/new" / entry["record"]).read_text())
        self.assertEqual(run["config"]["optimizer"]["value"], "sgd")
        self.assertEqual(run["environment"]["OMPI_MCA_btl"], "self,tcp")

    def test_the_same_of_github(self):
        self.pull_request("quick.pt", **{"env.NCCL_ALGO": "Ring"})
        self.step("github.yml", "Gate", whole=False)
        self.gate_left("inconclusive")
        self.assertEqual((self.repository / "changed.txt").read_text(), "env.NCCL_ALGO=Ring\n")

    def test_nothing_to_compare_with_and_a_plan_that_is_none(self):
        (self.repository / "model.pt").write_text("")
        (self.repository / "speed.json").write_text("{}")
        self.commit()
        base = self.git("rev-parse", "HEAD")
        (self.repository / "speed.json").write_text("{")
        self.commit()
        self.step("github.yml", "Gate", expect=tuple(range(2, 6)))
        shutil.rmtree(self.repository / "base")
        self.job("gitlab.yml", "scalemark-gate", expect=tuple(range(2, 6)), CI_MERGE_REQUEST_DIFF_BASE_SHA=base)
        self.git("rm", "--quiet", "speed.json")
        self.git("commit", "--quiet", "--message", "none")
        base = self.git("rev-parse", "HEAD")
        self.change("quick.pt")
        self.commit()
        shutil.rmtree(self.repository / "base")
        self.assertIn("::notice::", self.step("github.yml", "Gate"))
        shutil.rmtree(self.repository / "base")
        self.assertIn("is new", self.job("gitlab.yml", "scalemark-gate", CI_MERGE_REQUEST_DIFF_BASE_SHA=base))

    def test_a_row_of_commits_is_judged_from_the_sixth_on(self):
        for number in range(6):
            self.change("quick.pt")
            self.commit(1_700_000_000 + number)
            self.step("github.yml", "History", expect=0 if number < 5 else (0, 1))
            self.assertEqual(len(self.sets()), number + 1)
            self.assertEqual((self.repository / "gate/history.json").exists(), number == 5)
        self.change("slow.pt")
        self.commit(1_700_000_006)
        for _ in range(2):  # the second time nothing is launched
            out = self.step("github.yml", "History", expect=1)
            self.assertRegex(out, r"newest set \d+-\w+: regressed")
            self.assertEqual(self.sets()[-1], f"1700000006-{self.git('rev-parse', '--short=12', 'HEAD')}")
        self.assertEqual(len(self.sets()), 7)
        self.assertIn("2 runs, 1 history", (self.repository / "gate/report.html").read_text())
        # A launch that fails leaves no set, and of many the 60 newest stay.
        (self.repository / "model.pt").write_text("no model")
        self.commit(1_700_000_007)
        self.step("github.yml", "History", expect=tuple(range(2, 8)))
        self.assertEqual(len(self.sets()), 7)
        machine, = (self.repository / "history").iterdir()
        for number in range(60):
            (machine / f"16{number:08}-a").mkdir()
        self.change("quick.pt")
        self.commit(1_700_000_008)
        self.step("github.yml", "History", expect=tuple(range(1, 8)))  # most sets are empty
        self.assertEqual(len(self.sets()), 60)
        self.assertTrue(self.sets()[-1].startswith("1700000008-"))

    def test_the_same_of_gitlab(self):
        self.change("quick.pt", repeats=1)
        self.commit()
        self.assertIn("1 commits", self.job("gitlab.yml", "scalemark-history"))
        made, = (self.repository / "history").glob("*/*")
        for number in range(5):  # commits that are alike, to the launch
            shutil.copytree(made, made.with_name(f"16{number:08}-a"))
        self.job("gitlab.yml", "scalemark-history", expect=(0, 1, 2, 3))
        self.assertEqual(len(self.sets()), 6)


class OwnCommits(Jobs):
    def setUp(self):
        super().setUp()
        plan = json.loads((SOURCE / "configs/ci.json").read_text())
        self.assertEqual(plan["repeats"], 5)
        plan |= {"settings": {**plan["settings"], **SMALL, "model": "trivial"}, "points": [{"ranks": 1}], "repeats": 1}
        for folder in ("configs", "build"):
            (self.repository / folder).mkdir()
        (self.repository / "configs/ci.json").write_text(json.dumps(plan))
        (self.repository / "build/release").symlink_to(BINARY)
        (self.repository / "scalemark").symlink_to(SCALEMARK)
        self.git("commit", "--quiet", "--allow-empty", "--message", "own")

    def test_gates(self):
        self.step("scalemark_github.yml", "Gate", whole=False, BASE=str(BINARY))
        record = self.gate_left("inconclusive")
        self.assertIn(record["verdict"], (self.repository / "gate/verdict.txt").read_text())
        shutil.rmtree(self.repository / "gate")
        self.job("scalemark_gitlab.yml", "scalemark-gate", expect=3, whole=False, CI_MERGE_REQUEST_DIFF_BASE_SHA=str(BINARY))
        self.gate_left("inconclusive")
        self.assertTrue((self.repository / "gate/summary.md").exists())

    def test_histories(self):
        self.step("scalemark_github.yml", "History")
        self.assertEqual((self.repository / "gate/verdict.txt").read_text(), "1 commits\n")
        self.assertIn("1 commits", self.job("scalemark_gitlab.yml", "scalemark-history"))
        self.assertEqual(len(self.sets()), 1)

    def test_the_commit_of_which_a_build_is_kept(self):
        self.git("commit", "--quiet", "--allow-empty", "--message", "two")
        for revision in ("HEAD^1", "HEAD"):
            output = self.folder / "output"
            output.unlink(missing_ok=True)
            self.step("scalemark_github.yml", "Commit to keep the build of", KEPT=revision, GITHUB_OUTPUT=str(output))
            self.assertEqual(output.read_text(), f"kept={self.git('rev-parse', revision)}\n")


class Comments(Jobs):
    OWNER, BRANCH, SHA = "someone", "fix$(id)", "b" * 40

    def comment(self, text, pulls=None, comments=(), artifacts=({"id": 7, "size_in_bytes": 900},), file="verdict.txt", expect=0):
        """What is sent below the pull request, or None; what GitHub is asked."""
        for name in ("sent.md", "calls"):
            (self.repository / name).unlink(missing_ok=True)
        with zipfile.ZipFile(self.repository / "artifact.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(file, text)
        pulls = [{"number": 5, "head": {"sha": self.SHA}}] if pulls is None else pulls
        (self.repository / "answers.json").write_text(json.dumps(
            {"pulls": pulls, "artifacts": {"artifacts": list(artifacts)}, "comments": list(comments)}))
        self.step("github_comment.yml", "Comment", expect=expect, GITHUB_REPOSITORY="us/ours", OWNER=self.OWNER, BRANCH=self.BRANCH,
                  SHA=self.SHA, RUN="3", URL="https://example.org/runs/3", GH_TOKEN="none")
        calls = [json.loads(line) for line in (self.repository / "calls").read_text().splitlines()]
        sent = self.repository / "sent.md"
        return sent.read_text() if sent.exists() else None, calls

    def test_a_verdict_is_written_and_the_older_one_replaced(self):
        body, calls = self.comment("pass: new is as fast\n\n  point  base\n", pulls=[
            {"number": 4, "head": {"sha": "a" * 40}}, {"number": 5, "head": {"sha": self.SHA}}])
        self.assertEqual(body, f"<!-- scalemark -->\n[scalemark](https://example.org/runs/3) of {self.SHA}:\n\n"
                               "    pass: new is as fast\n    \n      point  base\n")
        self.assertEqual(calls[0], ["repos/us/ours/pulls", ["state=open", "head=someone:fix$(id)"], False])
        self.assertEqual(calls[-1], ["repos/us/ours/issues/5/comments", ["body=@comment.md"], False])
        ours = {"id": 12, "user": {"login": "github-actions[bot]"}, "body": "<!-- scalemark -->\nold"}
        of_others = [{**ours, "id": 10, "user": {"login": "someone"}}, {**ours, "id": 11, "body": "of another workflow"}]
        _, calls = self.comment("pass", comments=[*of_others, ours])
        self.assertEqual(calls[-1], ["repos/us/ours/issues/comments/12", ["body=@comment.md"], True])
        _, calls = self.comment("pass", comments=of_others)
        self.assertEqual(calls[-1][0], "repos/us/ours/issues/5/comments")

    def test_nothing_is_written_without_a_pull_request_or_a_verdict(self):
        for others in ({"pulls": []}, {"pulls": [{"number": 4, "head": {"sha": "a" * 40}}]}, {"artifacts": []},
                       {"artifacts": [{"id": 7, "size_in_bytes": 10**9}]}):
            with self.subTest(others):
                self.assertIsNone(self.comment("pass", **others)[0])

    def test_hostile_verdicts_stay_text(self):
        hostile = ("```\n@everyone [click](https://example.org) <img src=x>\r# title\x1b[31m\u202e\n<!-- scalemark -->\n"
                   "$(touch hacked) `touch hacked` ${{ github.token }}\n")
        for text in (hostile, "\n" * 10**6, "a" * 10**6, "\t@everyone\n" * 10**5):
            with self.subTest(text[:20]):
                body, _ = self.comment(text)
                self.assertLess(len(body), 65536)
                head, lines = body.split("\n\n", 1)
                self.assertEqual(len(head.splitlines()), 2)
                for line in lines.split("\n"):
                    self.assertRegex(line, r"^(    [ -~]*)?$")
        self.assertFalse((self.repository / "hacked").exists())
        self.assertFalse((self.repository / "verdict.txt").exists())  # nothing is unpacked
        body, _ = self.comment("elsewhere", file="../verdict.txt")
        self.assertNotIn("elsewhere", body)


if __name__ == "__main__":
    main()
