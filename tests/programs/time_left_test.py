"""The time left that scripts/setup shows, on made logs of ninja: it never rises, does not stand still, and is roughly right,
however fast the machine is."""

import pathlib
import random
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = SOURCE / "scripts"
OLD = "# ninja log v5\n0\t9000\t0\tbin/scalemark\tabc\n"
TABLE = "# a comment\nfront core 60\nengine models 90\n"
# Like those of scripts/setup: a few long files, many short ones, links.
FILES = {**{f"src/CMakeFiles/core.dir/unit_{i}.cpp.o": 12 for i in range(12)},
         **{f"models/CMakeFiles/models.dir/unit_{i}.cpp.o": seconds for i, seconds in enumerate((45, 105, 30))},
         **{f"tests/CMakeFiles/room_{i}_test.dir/unit.cpp.o": 4 + i % 9 for i in range(24)}, "bin/scalemark": 1}


def awk(program, *words, stdin=""):
    return subprocess.run(["awk", *map(str, words[:words.index("--")]), "-f", SCRIPTS / program, *map(str, words[words.index("--") + 1:])],
                          input=stdin, check=True, capture_output=True, text=True).stdout


def shell(line):
    return subprocess.run(["bash", "-euc", f". scripts/progress.sh; {line}"], cwd=SOURCE, check=True, capture_output=True,
                          text=True).stdout.strip()


def lower(shown, left, passed):
    """progress_lower of progress.sh."""
    return int(shell(f"progress_lower {shown} {left} {passed}"))


class Build:
    """Files compiled by `jobs` at once, each `slowness` times as long as its weight says, give or take."""

    def __init__(self, files, jobs, slowness, seed):
        draw = random.Random(seed)
        self.files, self.jobs = files, jobs
        free, self.steps = [0.0] * jobs, []
        for file, seconds in files.items():
            begin = free.pop(free.index(min(free)))
            free.append(begin + seconds * slowness * draw.uniform(0.7, 1.4))
            self.steps.append((free[-1], begin, file))
        self.steps.sort()

    @property
    def seconds(self):
        return self.steps[-1][0]

    def logs(self, now):
        """(.ninja_log, what ninja has said)"""
        done = [step for step in self.steps if step[0] <= now]
        return OLD + "".join(f"{1e3 * begin:.0f}\t{1e3 * end:.0f}\t0\t{file}\t{hash(file):x}\n" for end, begin, file in done), \
            "[0/2] Re-checking globbed directories...\n" + "".join(
                f"[{i}/{len(self.files)}] Building CXX object {file}\nsome warning\n" for i, (_, _, file) in enumerate(done, 1))


class TimeLeft(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return self.folder / name

    def left(self, logs, jobs, elapsed):
        """As progress.sh asks, in tenths of a second."""
        for name, text in zip(("compile_before", "ninja_log", "build.log"), (OLD, logs[0], "of another build\n" + logs[1])):
            self.write(name, text)
        return int(shell(f"progress_left_by_steps {self.folder} {self.folder}/ninja_log {jobs} 2 {elapsed}"))

    def shown(self, build, pause):
        """[(seconds, seconds left as shown)] while it is built."""
        shown, all_shown = 0, []
        for now in range(pause, int(build.seconds), pause):
            shown = lower(shown, self.left(build.logs(now), build.jobs, now), pause)
            all_shown.append((now, shown / 10))
        return all_shown

    def test_it_never_rises_never_stands_and_ends_near_the_truth(self):
        self.write("compile_weights", "".join(f"{file}\t{seconds}\n" for file, seconds in FILES.items()))
        for jobs, slowness in ((2, 1), (2, 2.5), (4, 0.3), (1, 1.2)):
            build = Build(FILES, jobs, slowness, seed=jobs)
            shown = self.shown(build, pause=max(1, int(build.seconds / 25)))
            with self.subTest(jobs=jobs, slowness=slowness, shown=shown, truth=build.seconds):
                for (before, more), (now, less) in zip(shown, shown[1:]):
                    self.assertGreaterEqual(more - less, min(0.1 * (now - before), more - 1) - 1e-9)
                for now, left in shown:
                    truth = build.seconds - now
                    if now > 0.5 * build.seconds:
                        self.assertLess(abs(left - truth), 0.3 * build.seconds)
                    if now > 0.9 * build.seconds:
                        self.assertLess(abs(left - truth), 0.12 * build.seconds)

    def test_a_build_that_is_not_from_scratch_goes_by_the_number_of_its_steps(self):
        self.write("compile_weights", "".join(f"f{i}.o\t10\n" for i in range(100)))
        self.assertEqual(self.left((OLD, ""), 2, 0), 5000)
        log, said = OLD, ""
        for i in range(1, 6):
            log += f"{5000 * i - 5000}\t{5000 * i + 5000}\t0\tf{i}.o\tabc{i}\n"
            said += f"[{i}/5] Building CXX object f{i}.o\n"
            left = self.left((log, said), 2, 5 * i + 5)
            self.assertAlmostEqual(left, 10 * (5 - i) * 5, delta=50)
        self.assertEqual(left, 0)

    def test_weights_are_the_last_times_and_else_shares_of_a_target(self):
        commands = "".join(f"ccache c++ -c a.cpp -MF x -o {file} -c a.cpp\n" for file in FILES if file.endswith(".o"))
        commands += "cd build && cmake -P revision.cmake\n: && c++ a.o -o bin/scalemark -lm && :\n"
        table = self.write("table", TABLE)
        log = self.write("log", "# ninja log v5\n100\t900\t0\tsrc/CMakeFiles/core.dir/unit_0.cpp.o\tabc\n"
                         "1000\t21500\t0\tsrc/CMakeFiles/core.dir/unit_0.cpp.o\tabd\n")
        words = ("compile_weights.awk", "--", "what=table", table, "what=log", log, "what=commands", "-")
        found = dict(line.split("\t") for line in awk(*words, stdin=commands).splitlines())
        self.assertEqual(set(found), set(FILES))
        self.assertEqual(found["src/CMakeFiles/core.dir/unit_0.cpp.o"], "20.50")
        self.assertEqual(found["src/CMakeFiles/core.dir/unit_1.cpp.o"], "5.00")
        self.assertEqual(found["models/CMakeFiles/models.dir/unit_0.cpp.o"], "30.00")
        self.assertEqual(found["bin/scalemark"], "1.00")

    def test_a_stage_that_takes_longer_goes_on_down(self):
        shown, last = 0, None
        for elapsed in range(10, 500, 10):
            shown = lower(shown, int(shell(f"progress_left_by_time 100 {elapsed}")), 10)
            if last is not None:
                self.assertLess(shown, max(last, 11))
            last = shown
        self.assertEqual(last, 10)

    def test_the_table_names_targets_and_parts(self):
        text = "\n".join(path.read_text() for path in SOURCE.glob("**/CMakeLists.txt") if "build" not in path.parts)
        rows = [line.split() for line in (SCRIPTS / "compile_seconds").read_text().splitlines() if line[0] != "#"]
        self.assertEqual({row[0] for row in rows}, {"front_door", "engine", "tests"})
        for _, target, seconds in rows:
            self.assertGreater(int(seconds), 0)
            room = target.removesuffix("_test").removesuffix("_gpu").removesuffix("_mpi")
            self.assertRegex(text, rf"\b({target}|{room})\b")
        self.assertEqual(int(shell("compile_seconds front_door engine")),
                         sum(int(row[2]) for row in rows if row[0] != "tests"))


if __name__ == "__main__":
    unittest.main()
