"""What people see: on a real terminal colours, bars and lines that fit; none of them where there is none; --quiet."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

from support import SCALEMARK, ProgramTest, main

CURVE = ["scale", "--model", "trivial", "--num_batches", "30", "--ranks", "1,2", "--repeats", "2"]
COLOUR = re.compile(r"\x1b\[3\dm")
CONTROL = re.compile(r"\x1b\[[0-9;]*[mK]|\r")


class Terminal(ProgramTest):
    def on_terminal(self, *words, columns=80, expect=0, **variables):
        """What a terminal of so many columns shows of stdout and stderr."""
        try:
            ours, theirs = pty.openpty()
        except OSError as error:  # a container without /dev/pts
            self.skipTest(f"no terminal can be made here: {error}")
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        env = self.environment(TERM="xterm", LANG="C.UTF-8", **variables)
        for name in ("LC_ALL", "COLUMNS") + (() if "NO_COLOR" in variables else ("NO_COLOR",)):
            env.pop(name, None)
        process = subprocess.Popen([SCALEMARK, *words], stdin=theirs, stdout=theirs, stderr=theirs, cwd=self.folder, env=env)
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the last of them has closed it
                break
            if not part:
                break
            text += part
        os.close(ours)
        status = process.wait()
        self.assertIn(status, (0, 4) if expect is None else (expect,), text.decode())
        return text.decode()

    def test_a_curve_has_bars_and_coloured_warnings_in_80_columns(self):
        text = self.on_terminal(*CURVE, "--label", "x", "--max_seconds", "60")
        self.assertIn("ranks and speedup, of the ideal", text)
        self.assertRegex(text, r"\n1  █+[▏▎▍▌▋▊▉]? +1\.00 of 1\r\n2  █+")
        if "warning:" in text:
            self.assertRegex(text, r"\x1b\[33mwarning:\x1b\[0m")
        table = CONTROL.sub("", text[text.index("Weak scaling of trivial"):text.index("ranks and speedup")])
        self.assertLessEqual(max(map(len, table.splitlines())), 80, table)

    def test_bars_are_ascii_where_the_locale_asks_for_it(self):
        text = self.on_terminal(*CURVE, LC_CTYPE="C")
        self.assertRegex(text, r"\n1  #+ +1\.00 of 1\r\n2  #+")
        text.encode("ascii")

    def test_verdicts_are_coloured_but_not_with_no_color(self):
        checks = ["preflight", "--ranks", "1", "--seconds", "0.01", "--sizes", "8"]
        self.assertRegex(self.on_terminal(*checks, expect=None), r"\x1b\[3[123]mverdict: (pass|warn|fail)\x1b\[0m")
        plain = self.on_terminal(*checks, expect=None, NO_COLOR="1")
        self.assertRegex(plain, r"\nverdict: (pass|warn|fail)")
        self.assertNotRegex(plain, COLOUR)

    def test_nothing_of_it_in_a_pipe(self):
        out, err = self.run_program(SCALEMARK, *CURVE, env=self.environment(TERM="xterm", LANG="C.UTF-8"))
        self.assertNotIn("\x1b", out + err)
        self.assertNotIn("█", out)


class Quiet(ProgramTest):
    def talk(self, *words, **options):
        """Lines of stderr that are no warnings."""
        out, err = self.run_program(SCALEMARK, *words, **options)
        return out, [line for line in err.splitlines() if not line.startswith(("warning:", "too noisy"))]

    def test_a_quiet_command_says_nothing_but_its_result(self):
        small = ["--model", "trivial", "--num_batches", "30"]
        for words in (["run", *small], ["run", *small, "--ranks", "2"], [*CURVE, "--output", "c.json"],
                      ["infer", *small, "--json"]):
            with self.subTest(words=words):
                out, talk = self.talk(*words, "--quiet")
                self.assertEqual(talk, [])
                self.assertIn("images/sec", out)
        self.assertEqual(self.talk("compare", "a=c.json", "b=c.json", "--quiet", expect=2)[1][0].split(":")[0], "scalemark")

    def test_an_error_is_said_all_the_same(self):
        _, err = self.run_program(SCALEMARK, "run", "--model", "trivial", "--batch_size", "0", "--quiet", expect=2)
        self.assertIn("batch_size", err)

    def test_every_subcommand_has_it(self):
        out, _ = self.run_program(SCALEMARK, "help")
        for name in re.findall(r"^  ([a-z]+)  +\S", out, re.MULTILINE):
            with self.subTest(subcommand=name):
                self.assertIn("--quiet", self.run_program(SCALEMARK, "help", name, "all")[0])


class CleanJson(ProgramTest):
    def test_the_list_is_json(self):
        temporary = self.folder / "tmp"
        temporary.mkdir()
        out, _ = self.run_program(SCALEMARK, "clean", "--dry-run", "--json", str(self.folder),
                                  env=self.environment(TMPDIR=str(temporary)))
        self.assertIsInstance(json.loads(out)["leftovers"], list)


if __name__ == "__main__":
    main()
