"""scripts/build_commit: a kept build a commit, by that commit's own set-up, and nothing written in the clone. Here that set-up
only writes files: a real one takes minutes, and .ci/gate runs it."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
SETUP = """#!/usr/bin/env bash
set -e
mkdir -p build/release/bin
echo "of commit $(git log -1 --format=%s) with ${TORCH_ROOT:-nothing}" >build/release/bin/scalemark
chmod +x build/release/bin/scalemark
echo once >>build/times
echo "set-up talks"
[[ -z $BREAK ]] || exit 7
"""


def digests(folder):
    """Of all that lies in the folder, links and modes too."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (path.lstat().st_mode, hashlib.sha256(content).hexdigest())
    return found


class BuildCommit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.clone, self.cache = self.folder / "clone", self.folder / "cache"
        (self.clone / "scripts").mkdir(parents=True)
        for name in ("build_commit", "progress.sh", "compile_seconds"):
            shutil.copy(SCRIPTS / name, self.clone / "scripts")
        (self.clone / "scripts/setup").write_text(SETUP)
        (self.clone / "scripts/setup").chmod(0o755)
        (self.clone / ".gitignore").write_text("/.venv\n/build\n")
        self.git("init", "--quiet")
        for subject in ("one", "two"):
            self.git("add", "--all")
            self.git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "-m", subject)

    def git(self, *words):
        subprocess.run(["git", "-C", self.clone, *words], check=True, capture_output=True, text=True)

    def call(self, *words, expect=0, clone=None, **variables):
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.cache), "BREAK": "", **variables}
        done = subprocess.run([(clone or self.clone) / "scripts/build_commit", *words], env=environment, check=False,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done

    def build(self, commit, **more):
        return pathlib.Path(self.call(commit, **more).stdout.strip())

    def times_built(self, program):
        return len((program.parents[2] / "times").read_text().splitlines())

    def test_a_build_is_kept_for_every_commit(self):
        for commit, subject in (("HEAD~1", "one"), ("HEAD", "two"), ("HEAD~1", "one")):
            with self.subTest(commit):
                program = self.build(commit)
                self.assertEqual(program.read_text(), f"of commit {subject} with nothing\n")
                self.assertEqual(self.times_built(program), 1)
        self.assertEqual(len(list((self.cache / "scalemark/commits").glob("*/scripts"))), 2)
        self.call("--remove")
        self.assertFalse((self.cache / "scalemark/commits").exists())

    def test_nothing_is_written_in_the_clone(self):
        (self.clone / "scripts/progress.sh").touch()  # git status would write the index anew
        before = digests(self.clone)
        self.build("HEAD~1")
        self.build("HEAD", GIT_DIR=str(self.clone / ".git"), GIT_INDEX_FILE=str(self.clone / ".git/index"))  # as in a hook
        self.call("--remove")
        self.assertEqual(digests(self.clone), before)

    def test_a_build_that_was_broken_off_or_changed_is_not_kept(self):
        self.call("HEAD", expect=7, BREAK="yes")
        program = self.build("HEAD")
        self.assertEqual(self.times_built(program), 1)  # anew, not on top of the broken one
        tree = program.parents[3]
        for path, text in (("scripts/setup", SETUP + "# changed"), ("new_source", "")):
            (tree / path).write_text(text)
            self.build("HEAD")
            self.assertEqual((tree / "scripts/setup").read_text(), SETUP)
            self.assertFalse((tree / "new_source").exists())

    def test_a_cache_of_a_ci_holds_where_the_clone_lies_in_the_same_place(self):
        program = self.build("HEAD~1")
        archive, elsewhere = self.folder / "cache.tar", self.folder / "elsewhere"
        subprocess.run(["tar", "-cf", archive, "-C", self.folder, "cache"], check=True)
        subprocess.run(["git", "clone", "--quiet", f"file://{self.clone}", elsewhere], check=True)  # as another job does
        shutil.rmtree(self.clone)
        shutil.rmtree(self.cache)
        subprocess.run(["tar", "-xf", archive, "-C", self.folder], check=True)
        self.assertEqual(self.build("HEAD~1", clone=elsewhere), program)  # of a clone that is gone: anew
        self.assertEqual((program.parents[3] / ".git/objects/info/alternates").read_text(), f"{elsewhere}/.git/objects\n")
        shutil.rmtree(self.cache)
        subprocess.run(["tar", "-xf", archive, "-C", self.folder], check=True)
        elsewhere.rename(self.clone)
        self.assertEqual(self.build("HEAD~1"), program)
        self.assertEqual((program.parents[3] / ".git/objects/info/alternates").read_text(), f"{self.clone}/.git/objects\n")
        self.assertEqual(self.call("HEAD~1").stderr, "")  # nothing is built

    def test_the_same_libtorch_and_settings(self):
        torch = self.clone / ".venv/lib/python3.11/site-packages/torch"
        torch.mkdir(parents=True)
        first = self.build("HEAD")
        self.assertEqual(first.read_text(), f"of commit two with {torch}\n")
        (torch / "version.py").write_text("__version__ = '9'")
        self.assertNotEqual(self.build("HEAD"), first)
        (self.clone / "build/release").mkdir(parents=True)
        (self.clone / "build/release/setup.env").write_text("TORCH_ROOT=/opt/torch\n")
        self.assertEqual(self.build("HEAD").read_text(), "of commit two with /opt/torch\n")

    def test_it_is_said_how_long_it_takes_and_what_helps(self):
        tools = self.folder / "tools"
        tools.mkdir()
        for name in ("bash", "git", "nproc", "cat", "sort", "rm", "cp", "mkdir", "sed", "cksum", "cut", "flock", "head", "awk", "chmod", "find",
                     "dirname"):
            (tools / name).symlink_to(shutil.which(name))
        said = self.call("HEAD~1", PATH=str(tools), SCALEMARK_JOBS="2").stderr
        rows = [line.split() for line in (SCRIPTS / "compile_seconds").read_text().splitlines() if line[0] != "#"]
        seconds = sum(int(row[2]) for row in rows if row[0] in ("front_door", "engine")) // 2
        self.assertIn(f"takes about {seconds // 60} min {seconds % 60} s with 2 jobs", said)
        self.assertIn("apt-get install ccache", said)
        (tools / "ccache").symlink_to("/bin/true")
        said = self.call("HEAD", PATH=str(tools)).stderr
        self.assertRegex(said, r"takes about \d s with")  # as the build before
        self.assertNotIn("apt-get", said)
        self.assertEqual(self.call("HEAD", PATH=str(tools)).stderr, "")

    def test_clones_that_lack_something(self):
        shutil.rmtree(self.clone / ".git/info", ignore_errors=True)  # made without templates
        self.git("worktree", "add", "--quiet", "--detach", self.folder / "linked")
        shallow = self.folder / "shallow"
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{self.clone}", shallow], check=True)
        for clone in (self.clone, self.folder / "linked", shallow):
            with self.subTest(clone.name):
                self.call("--remove")
                self.assertEqual(self.build("HEAD", clone=clone).read_text(), "of commit two with nothing\n")

    def test_no_commit(self):
        said = self.call("nowhere", expect=2).stderr
        self.assertIn("nowhere is no commit of this repository", said)
        self.assertNotIn("unshallow", said)
        shallow = self.folder / "shallow"
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{self.clone}", shallow], check=True)
        self.assertIn("a shallow clone of depth 1: git fetch --unshallow", self.call("HEAD~1", clone=shallow, expect=2).stderr)
        for words in (["--base"], [], ["HEAD", "HEAD"]):
            self.assertIn("scripts/build_commit COMMIT", self.call(*words, expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
