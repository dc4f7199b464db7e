"""scripts/build_commit: a worktree a commit, built by that commit's own set-up. Here that set-up only writes a file: a real one
takes minutes, and .ci/gate runs it."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/build_commit"
SETUP = """#!/usr/bin/env bash
set -e
mkdir -p build/release/bin
echo "of commit $(git log -1 --format=%s)" >build/release/bin/scalemark
echo "set-up talks"
"""


class BuildCommit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "scripts").mkdir()
        shutil.copy(SCRIPT, self.root / "scripts")
        (self.root / "scripts/setup").write_text(SETUP)
        (self.root / "scripts/setup").chmod(0o755)
        (self.root / ".gitignore").write_text("/.venv/\n/build/\n")
        self.git("init", "--quiet")
        for subject in ("one", "two"):
            self.git("add", "--all")
            self.git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "-m", subject)

    def git(self, *words, folder="."):
        done = subprocess.run(["git", "-C", self.root / folder, *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def build(self, commit, expect=0):
        done = subprocess.run([self.root / "scripts/build_commit", commit], capture_output=True, text=True)
        self.assertEqual(done.returncode, expect, done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def test_a_worktree_a_commit(self):
        for commit, subject in (("HEAD~1", "one"), ("HEAD", "two"), ("HEAD~1", "one")):
            with self.subTest(commit):
                path = pathlib.Path(self.build(commit).strip())
                self.assertEqual(path.read_text(), f"of commit {subject}\n")
        self.assertEqual(len(list((self.root / "build/commits").glob("*/scripts"))), 2)

    def test_libtorch_is_shared_and_hidden_from_git(self):
        (self.root / ".venv").mkdir()
        shutil.rmtree(self.root / ".git/info")  # as in a clone made without templates
        tree = pathlib.Path(self.build("HEAD").strip()).parents[3]
        self.assertEqual((tree / ".venv").resolve(), (self.root / ".venv").resolve())
        self.assertEqual(self.git("status", "--porcelain", folder=tree), "")

    def test_no_commit(self):
        self.assertIn("nowhere is no commit of this repository", self.build("nowhere", expect=2))
        self.assertIn("usage", self.build("--base", expect=2))


if __name__ == "__main__":
    unittest.main()
