"""Help in the width of the terminal, the manual page, and completion in the shells themselves: bash, and where they are
installed zsh and fish."""

import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import termios
import time
import unittest

from support import SCALEMARK, ProgramTest, main


def on_a_terminal(words, columns, typed=b"", until=b"", seconds=20):
    """What a program prints on a terminal of so many columns. Without `until` it is read to its end."""
    try:
        child, terminal = pty.fork()
    except OSError as error:
        raise unittest.SkipTest(f"no terminal to be had here: {error}") from error
    if child == 0:
        os.environ.pop("COLUMNS", None)
        time.sleep(0.2)  # the terminal gets its size
        os.execvp(words[0], words)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    output, end = b"", time.monotonic() + seconds
    try:
        for line in typed.split(b"\0") if typed else []:
            time.sleep(0.5)
            os.write(terminal, line)
        while time.monotonic() < end and not (until and until in output):
            if select.select([terminal], [], [], 0.1)[0]:
                output += os.read(terminal, 65536)
    except OSError:  # the terminal is closed
        pass
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    return output.decode(errors="replace")


class Help(ProgramTest):
    def test_lines_fit_the_terminal(self):
        for columns in (50, 80, 200):
            for words in (["help", "scale"], ["help", "scale", "all"]):
                lines = on_a_terminal([str(SCALEMARK), *words], columns).splitlines()
                longest = max(len(line) for line in lines if not line.startswith("  scalemark "))
                self.assertLessEqual(longest, columns, words)
                if words[-1] == "all":
                    self.assertGreater(longest, columns - 15)  # and use what there is
        out, _ = self.run_program(SCALEMARK, "help", "scale", "all", env=self.environment(COLUMNS="60"))
        self.assertLessEqual(max(len(line) for line in out.splitlines() if line.startswith(28 * " ")), 60)

    def test_the_manual_page_has_no_faults(self):
        page, _ = self.run_program(SCALEMARK, "help", "--man")
        (self.folder / "scalemark.1").write_text(page)
        checked = False
        for checker in (["man", "--warnings", "-l"], ["mandoc", "-T", "lint", "-W", "warning"]):
            if shutil.which(checker[0]):
                checked = True
                done = subprocess.run([*checker, self.folder / "scalemark.1"], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout[:2000])
        if not checked:
            self.skipTest("neither man nor mandoc is installed")

    def test_the_examples_that_need_nothing_run(self):
        for words in (["list", "models"], ["clean", "--dry_run"], ["completion", "fish"],
                      ["run", "--model", "transformer_base", "--batch_size", "64", "--dry_run"]):
            self.run_program(SCALEMARK, *words)


class Completion(ProgramTest):
    def script(self, shell):
        out, _ = self.run_program(SCALEMARK, "completion", shell)
        path = self.folder / f"completion.{shell}"
        path.write_text(out)
        return path

    def bash(self, *words):
        """What bash offers; a word with '=' is three there."""
        call = '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _scalemark; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", call, "bash", self.script("bash"), "scalemark", *words],
                              capture_output=True, text=True, check=True)
        return done.stdout.split()

    def test_bash(self):
        self.assertEqual(self.bash("sw"), ["sweep"])
        self.assertIn("--version", self.bash(""))
        self.assertEqual(self.bash("run", "--momen"), ["--momentum"])
        self.assertEqual(self.bash("run", "--num-ba"), ["--num_batches"])
        self.assertEqual(self.bash("run", "--repeat"), [])  # a flag of scale
        self.assertEqual(self.bash("scale", "--repeats"), ["--repeats"])
        self.assertIn("resnet50", self.bash("run", "--model", "resnet"))
        self.assertEqual(self.bash("run", "--optimizer", "la"), ["lamb", "lars"])
        self.assertEqual(self.bash("run", "--optimizer", "=", "la"), ["lamb", "lars"])
        self.assertEqual(self.bash("run", "--optimizer", "="), self.bash("run", "--optimizer", ""))
        self.assertEqual(self.bash("scale", "--launcher", ""), ["auto", "mpirun", "srun"])
        self.assertEqual(self.bash("gate", "--alternate", ""), ["auto", "steps", "launches"])
        self.assertEqual(self.bash("project", "--algorithm", "r"), ["ring"])
        self.assertEqual(self.bash("run", "--seed", ""), [])
        self.assertEqual(self.bash("run", "--json", "--see"), ["--seed"])
        self.assertEqual(self.bash("list", "c"), ["configs"])
        self.assertIn("sweep", self.bash("help", ""))

    def test_bash_completes_at_its_prompt(self):
        typed = f". {self.script('bash')}\n\0scalemark run --optimizer lam\t".encode()
        shown = on_a_terminal(["bash", "--norc", "--noprofile", "-i"], 80, typed, b"--optimizer lamb")
        self.assertIn("--optimizer lamb", shown)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_completes_at_its_prompt(self):
        shutil.move(self.script("zsh"), self.folder / "_scalemark")
        begin = f"fpath=({self.folder} $fpath); autoload -U compinit; compinit -D -u\n\0".encode()
        for typed, expected in ((b"scalemark swe\t", b"scalemark sweep"),
                                (b"scalemark run --optimizer lam\t", b"--optimizer lamb"),
                                (b"scalemark run --optimizer=lam\t", b"--optimizer=lamb"),
                                (b"scalemark run --momen\t", b"--momentum"),
                                (b"scalemark list c\t", b"list configs")):
            shown = on_a_terminal(["zsh", "-f", "-i"], 80, begin + typed, expected)
            self.assertIn(expected.decode(), shown)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        path = self.script("fish")

        def offered(line):
            done = subprocess.run(["fish", "--no-config", "-c", f"source {path}; complete -C '{line}'"],
                                  capture_output=True, text=True, check=True,
                                  env=self.environment(HOME=str(self.folder)))
            return [words.split("\t")[0] for words in done.stdout.splitlines()]

        self.assertEqual(offered("scalemark sw"), ["sweep"])
        self.assertEqual(offered("scalemark run --momen"), ["--momentum"])
        self.assertEqual(offered("scalemark run --repeat"), [])
        self.assertEqual(offered("scalemark run --optimizer la"), ["lamb", "lars"])
        self.assertEqual(offered("scalemark run --optimizer=la"), ["--optimizer=lamb", "--optimizer=lars"])
        self.assertEqual(offered("scalemark list c"), ["configs"])


if __name__ == "__main__":
    main()
