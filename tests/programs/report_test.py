"""scalemark report: of every folder that the commands leave, of mixtures, and of what is damaged, foreign or hostile."""

import contextlib
import io
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import uuid

from made_records import rescale
from report_records import curve, point, record, run, with_runs
from support import SCALEMARK, SMALL, SOURCE, ProgramTest, environment, main

PYTHON = {"SCALEMARK_PYTHON": sys.executable}
SHORT = ["--num_batches", "5"]
# What each command leaves, and the sections that it is worth.
COMMANDS = {
    "run": (["run", *SMALL, *SHORT, "--ranks", "2", "--output", "run.json"], {"steps", "loss", "records"}),
    "trace": (["run", *SMALL, *SHORT, "--trace", "trace.json", "--output", "run.json"], {"operators", "steps"}),
    "scale": (["scale", *SMALL, *SHORT, "--ranks", "1,2", "--repeats", "2", "--output", "scale.json"], {"scaling", "steps", "loss"}),
    "sweep": (["sweep", "plan.json", "--output", "out"], {"runs", "steps", "loss"}),
    "infer": (["infer", *SMALL, "--num_batches", "20", "--output", "infer.json"], {"latency"}),
    "server": (["infer", *SMALL, "--mode", "server", "--arrival_rate", "500", "--min_query_count", "50", "--min_duration", "0",
                "--latency_bound_ms", "5000", "--output", "infer.json"], {"latency"}),
    "instances": (["instances", *SMALL, "--num_batches", "1000000", "--max_seconds", "0.3", "--repeats", "1",
                   "--output", "i.json"], {"instances"}),
    "preflight": (["preflight", "--pinning", "--output", "p.json"], {"preflight"}),
    "compare": (["compare", "base/resnet50-1gbit-none.json", "base/resnet50-1gbit-backward.json", "--varied", "overlap", "--output",
                 "c.json"], {"comparison", "scaling"}),
    "project": (["project", "base/resnet18-200mbit-8hosts.json", "--output", "j.json"], {"projection", "scaling"}),
    "gate": (["gate", "base/a", "base/b", "--output", "v.json"], {"records"}),
}


def sections_of(page):
    return set(re.findall(r'<section id="(\w+)"', page))


class Report(ProgramTest):
    def report(self, *words, expect=0, **options):
        return self.run_program(SCALEMARK, "report", *words, expect=expect, env=self.environment(**PYTHON), **options)

    def page(self, *words):
        """Made within this process, where matplotlib is imported once."""
        from reporting.main import main as make
        before, out, err = os.getcwd(), io.StringIO(), io.StringIO()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                self.assertEqual(make(["--program", str(SCALEMARK), *map(str, words)]), 0, err.getvalue())
            return pathlib.Path(out.getvalue().strip()).read_text()
        finally:
            os.chdir(before)

    def put(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path


class OfCommands(Report):
    @classmethod
    def setUpClass(cls):
        """All commands once, each in a folder of its own."""
        cls.made = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="scalemark-reports-")))
        for name, (words, _) in COMMANDS.items():
            folder = cls.made / name
            folder.mkdir()
            if name in ("compare", "project", "gate"):
                (folder / "base").mkdir()
            if name == "compare":
                for of in ("none", "backward"):
                    shutil.copy(SOURCE / f"results/baselines/resnet50-1gbit-{of}.json", folder / "base")
            elif name == "project":
                shutil.copy(SOURCE / "results/baselines/resnet18-200mbit-8hosts.json", folder / "base")
            elif name == "sweep":
                (folder / "plan.json").write_text(json.dumps({"settings": {"model": "smallnet", "batch_size": 4, "num_batches": 5},
                                                             "axes": {"ranks": [1, 2]}}))
            elif name == "gate":
                for i, of in enumerate("ab"):
                    shutil.copytree(cls.made / "scale/scale.runs", folder / "base" / of)
                continue  # launches of its own would take minutes: gate_test.py; here its published verdict
            done = subprocess.run([SCALEMARK, *words], cwd=folder, env=environment(), capture_output=True, text=True, check=False)
            if done.returncode not in (0, 4):
                raise AssertionError(f"{name}: {done.stderr}")
        shutil.copy(SOURCE / "results/baselines/ci-gate.json", cls.made / "gate/v.json")

    def test_every_command_leaves_what_can_be_shown(self):
        for name, (_, wanted) in COMMANDS.items():
            with self.subTest(command=name):
                page = self.page(self.made / name)
                self.assertLessEqual(wanted | {"verdict", "files"}, sections_of(page))
                self.assertNotIn("damaged", page)
                plots = list((self.made / name / "report_plots").glob("*"))
                self.assertEqual({path.suffix for path in plots} - {".png", ".svg"}, set())
                self.assertEqual(len(plots) // 2, page.count("<figure>"))

    def test_a_mixture_of_all(self):
        out, _ = self.report(*[self.made / name for name in COMMANDS], "--output", "all.html")
        self.assertEqual(out, "all.html\n")
        page = (self.folder / "all.html").read_text()
        self.assertLessEqual(set.union(*(wanted for _, wanted in COMMANDS.values())) | {"gate"}, sections_of(page))
        self.assertIn("copy", page)  # the gate's sets are runs of the curve
        self.assertTrue(list((self.folder / "all_plots").glob("throughput*.svg")))


class TwoMachines(Report):
    """A sweep, and the same of another machine, which is the first one's records with another host and processor."""

    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="scalemark-reports-")))
        plan = {"settings": {"model": "trivial", "batch_size": 4, "num_batches": 5, "num_warmup_batches": 1}, "axes": {"ranks": [1]},
                "repeats": 6}
        (cls.made / "plan.json").write_text(json.dumps(plan))
        subprocess.run([SCALEMARK, "sweep", "plan.json", "--output", "here"], cwd=cls.made, env=environment(), capture_output=True,
                       check=True)
        shutil.copytree(cls.made / "here", cls.made / "there")
        for path in (cls.made / "there/runs").glob("*.json"):
            record = json.loads(path.read_text())
            cls.host = record["system"]["host"]
            record["id"] = str(uuid.uuid4())
            record["system"].update(host="elsewhere", cpu_model="Another CPU")
            rescale(record, 0.5)
            path.write_text(json.dumps(record).replace(f'"host": "{cls.host}"', '"host": "elsewhere"'))

    def setUp(self):
        super().setUp()
        for name in ("here", "there"):
            shutil.copytree(self.made / name, self.folder / "sets" / name)

    def test_share_no_row_and_are_compared(self):
        page = self.page("sets")
        for host in (self.host, "elsewhere"):
            self.assertEqual(page.count(f">trivial fp32 1 rank x 4, scalemark kernels, on {host}<"), 6)
            self.assertIn(f"<h3><span class=\"machine s{1 + (host == 'elsewhere')}\"", page)
        self.assertLessEqual({"measured", "comparison"}, sections_of(page))
        self.assertIn(f"elsewhere against {self.host}", page)
        self.assertNotIn("traggler", page[page.index('id="verdict"'):page.index('id="comparison"')])
        [record] = (self.folder / "sets/report_plots").glob("compare_trivial*.json")
        [point] = json.loads(record.read_text())["points"]
        low, high = point["interval_percent"]
        self.assertIn(f'title="/points/0/interval_percent">{low:+.1f} % to {high:+.1f} %</a>', page)

    def test_what_is_compared_already_is_not_compared_again(self):
        self.run_program(SCALEMARK, "compare", "sets/here", "sets/there", "--output", "sets/c.json")
        page = self.page("sets")
        self.assertIn("there against here", page)
        self.assertFalse(list((self.folder / "sets/report_plots").glob("compare_*.json")))

    def test_a_page_that_stands_alone_has_no_link_to_a_file(self):
        self.put("sets/broken.json", "{")
        page = self.page("sets", "--standalone", "--output", "mail/page.html") if not (self.folder / "mail").mkdir() else ""
        self.assertEqual([path.name for path in (self.folder / "mail").iterdir()], ["page.html"])
        links = set(re.findall(r'<a [^>]*href="([^"]*)"', page))
        self.assertEqual({link for link in links if not link.startswith("#")}, set())
        self.assertLessEqual({link[1:] for link in links}, set(re.findall(r' id="([^"]+)"', page)))
        self.assertIn("<dt>system/cpu_model</dt><dd>Another CPU</dd>", page)
        self.assertIn("difference_percent -", page)  # of the comparison, which lies nowhere else


class Reading(Report):
    def test_numbers_are_those_of_the_record_and_link_to_it(self):
        self.put("r/c.json", curve(point(1, 100.0), point(4, 312.0)))
        page = self.page("r")
        self.assertIn('<a href="c.json" title="/points/1/efficiency">78.0 %</a>', page)
        self.assertIn("Does not scale well to", page)
        page = self.page("r", "--output", "elsewhere/deep/x.html") if (self.folder / "elsewhere/deep").mkdir(parents=True) is None else ""
        self.assertIn('<a href="../../r/c.json" title="/points/1/efficiency">78.0 %</a>', page)

    def test_what_is_missing_is_a_dash_with_its_reason(self):
        made = curve(point(1, 100.0), point(2, 190.0))
        made["unavailable"] = {"points.exposed_seconds": "because <of> \"this\""}
        self.put("r/c.json", made)
        self.assertIn('title="/points/0/exposed_seconds: because &lt;of&gt; &#34;this&#34;">–</a>', self.page("r"))

    def test_damaged_and_foreign_files_are_listed(self):
        self.put("r/good.json", run())
        for name, text in (("empty", ""), ("half", json.dumps(run())[:100]), ("nan", '{"kind": "run", "x": NaN}'), ("list", "[1]"),
                           ("other", '{"kind": "cake"}'), ("text", '"run"'), ("deep", "[" * 100000), ("bytes", "\x00\x01"),
                           ("old", json.dumps({**run(), "schema_version": 0})), ("id", json.dumps({**run(), "id": 7}))):
            self.put(f"r/{name}.json", text)
        (self.folder / "r/latin.json").write_bytes(b'{"kind": "run\xe9"}')
        (self.folder / "r/dangling.json").symlink_to("nowhere")
        os.mkfifo(self.folder / "r/pipe.json")
        page = self.page("r")
        rows = dict(re.findall(r'<tr><td><a href="([\w.]+)">[^<]*</a></td><td>([\w ]+)</td>', page))
        self.assertEqual(rows.pop("good.json"), "read")
        self.assertEqual(rows.pop("old.json"), "other version")
        self.assertEqual({name for name, status in rows.items() if status == "foreign"}, {"list.json", "other.json", "text.json"})
        self.assertEqual({name for name, status in rows.items() if status == "damaged"},
                         {f"{name}.json" for name in ("empty", "half", "nan", "deep", "bytes", "id", "latin", "dangling", "pipe")})

    def test_values_of_other_types_end_nothing(self):
        """Every value of every kind of record in turn is something else: of five types, three for each."""
        others = itertools.cycle((None, -1e308, "x", [[], None, {}], {"a": 1}))
        originals = [run(), curve(point(1, 100.0), point(2, 190.0)), record("preflight", verdict="fail", hosts=[{"host": "a"}], checks=[
            {"name": "x", "status": "fail", "host": "a"}]), record("inference", latency_seconds={"p50": 0.1, "p99": 0.2}, server={})]
        originals += [json.loads((SOURCE / "results/baselines" / name).read_text())
                      for name in ("ci-gate.json", "hosts-1gbit-4gbit.json", "smallnet-diverges.json")]
        for i, original in enumerate(originals):
            for key in sorted(set(original) - {"schema_version", "kind", "id", "status"}):
                for j, other in zip(range(3), others):
                    self.put(f"r/{i}-{key}-{j}.json", {**original, "id": f"{i}-{key}-{j}", key: other})
        self.assertIn("<h1>", self.page("r"))

    def test_text_from_records_stays_text(self):
        nasty = "</svg></style><script>alert('x')</script><img src=x onerror=\"y\">&amp; $a_b$ \ud800 \u202e\x1b[31m"
        made = with_runs(curve(point(1, 100.0), point(2, 120.0), model=nasty, precision=nasty), run(model=nasty, warnings=[nasty]),
                         run(status=nasty, reason=nasty))
        made[1]["ranks"][0].update(host=nasty, straggler=True)
        for i, each in enumerate([*made, run(model=nasty), record("comparison", base=nasty, metric=nasty, points=[
                {"set": nasty, "ranks": 1, "difference_percent": 1.0, "settings": {nasty: nasty}, "verdict": nasty}])]):
            self.put(f"r/{i}.json", each)
        self.put("r/<img src=x>'\" #%?.json", run(model="m"))
        page = self.page("r")
        for forbidden in ("<script", "<img", "</style><", "\x1b", "\u202e"):
            self.assertNotIn(forbidden, page)
        self.assertEqual(page.count("<svg"), page.count("</svg>"))
        self.assertIn("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;", page)
        self.assertIn('href="%3Cimg%20src%3Dx%3E%27%22%20%23%25%3F.json"', page)
        for drawing in (self.folder / "r/report_plots").glob("*.svg"):
            self.assertNotIn("<script", drawing.read_text())

    def test_a_sweep_tells_its_settings_and_the_launches_that_it_lost(self):
        lines = []
        for i, overlap in enumerate(("none", "backward", "<b>")):
            self.put(f"r/runs/{i}.json", run())
            lines.append({"record": f"runs/{i}.json", "settings": {"overlap": overlap, "ranks": 2}, "status": "ok", "reason": ""})
        lines.append({"record": "", "settings": {"overlap": "step"}, "status": "failed", "reason": "no memory"})
        self.put("r/journal.jsonl", "\n".join(map(json.dumps, lines)) + '\n{"record": 5}\nhalf a li')
        page = self.page("r")
        for text in ("resnet50 fp32 2 ranks x 8, overlap=none", "overlap=&lt;b&gt;", "1 launch left no record", "overlap=step: no memory",
                     "2 lines of the journal", "Throughput of launches: resnet50"):
            self.assertIn(text, page)

    def test_what_a_section_has_no_room_for_is_told(self):
        for i in range(9):
            self.put(f"r/p{i}.json", record("preflight", verdict="pass", hosts=[], checks=[]))
            self.put(f"r/v{i}.json", record("verdict", verdict="pass", slowdown_percent=0.1, points=[]))
        page = self.page("r")
        self.assertIn("3 further records are not shown here", page)
        self.assertIn("5 further records are not shown here", page)

    def test_launches_of_two_builds_are_told_apart(self):
        for i, revision in enumerate(("aaa", "aaa", "bbb")):
            self.put(f"r/{i}.json", run(build={"revision": revision}))
        page = self.page("r")
        self.assertEqual(page.count(">resnet50 fp32 2 ranks x 8, build aaa<"), 2)
        self.assertEqual(page.count(">resnet50 fp32 2 ranks x 8, build bbb<"), 1)

    def test_warnings_come_first(self):
        bound = run()
        bound["ranks"][1]["binding"] = {"as_asked": False, "overlaps_with": [0], "crosses_numa": True}
        for i, made in enumerate([run(warnings=["the clock stood still"]), bound, run(noise={"throttled": 2.5}),
                                  run(preflight={"verdict": "fail"}), run(status="failed", reason="rank 1 died", throughput=None),
                                  run(build={"revision": "other"}), curve(point(1, 100.0), point(2, 190.0), repeat_unit="in_process")]):
            self.put(f"r/{i}.json", made)
        page = self.page("r")
        box = page[page.index('<section id="warnings"'):page.index('<section id="verdict"')]
        for text in ("the clock stood still", "Binding not achieved", "Ranks share CPUs", "Ranks cross NUMA nodes", "Throttled",
                     "preflight had failed", "rank 1 died", "Mixed builds", "Intervals of one launch"):
            self.assertIn(text, box)
        self.put("q/0.json", run())
        self.assertNotIn('<section id="warnings"', self.page("q"))

    def test_a_thousand_records(self):
        for i in range(50):
            runs = [run(2) for _ in range(19)]
            for made in with_runs(curve(point(1, 100.0), point(2, 150.0 + i), model=f"m{i % 7}"), *runs):
                self.put(f"r/{i}/{made['id']}.json", made)
        _, err = self.report("r")
        self.assertIn("950 runs, 50 curves", err)
        self.assertLess((self.folder / "r/report.html").stat().st_size, 5_000_000)
        self.assertLess(len(list((self.folder / "r/report_plots").iterdir())), 100)


class Refusing(Report):
    def test_exit_codes(self):
        self.put("r/a.json", run())
        self.put("empty/readme.txt", "x")
        self.put("foreign/x.json", "[]")
        self.put("file", "x")
        for words, code, text in ((["nowhere"], 2, "'nowhere' does not exist"), ([], 2, "give a record"), (["r", "--outptu", "x"], 2, "outptu"),
                                  (["r", "--output", "x.pdf"], 2, "must end in .html"), (["empty"], 6, "no *.json file"),
                                  (["foreign"], 6, "x.json: JSON without a kind"), (["r", "--output", "file/x.html"], 6, "cannot be written")):
            with self.subTest(words=words):
                _, err = self.report(*words, expect=code)
                self.assertIn(text, err)

    def test_a_single_file_and_a_default_beside_it(self):
        self.put("r/a.json", run())
        out, _ = self.report("r/a.json")
        self.assertEqual(out.strip(), "r/report.html")
        self.assertFalse(list((self.folder / "r").glob(".report-*")))

    def test_a_python_without_packages_says_the_remedy(self):
        self.put("r/a.json", run())
        bare = self.write_program("python", f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
        words = [SCALEMARK, "report", "r"]
        _, err = self.run_program(*words, expect=7, env=self.environment(SCALEMARK_PYTHON=str(bare)))
        self.assertRegex(err, r"matplotlib and Jinja2 missing in .*: run scripts/setup")
        _, err = self.run_program(*words, expect=7, env=self.environment(SCALEMARK_PYTHON="/nowhere/python"))
        self.assertIn("cannot start /nowhere/python", err)

    @unittest.skipUnless(os.geteuid() != 0 or shutil.which("setpriv"), "root writes everywhere, and there is no setpriv")
    def test_a_folder_that_cannot_be_written(self):
        self.put("r/a.json", run())
        (self.folder / "r").chmod(0o555)
        self.folder.chmod(0o755)
        plain = [] if os.geteuid() else ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        _, err = self.run_program(*plain, sys.executable, SOURCE / "scripts/report", "--program", SCALEMARK, "r", expect=6)
        self.assertIn("cannot be written", err)
        (self.folder / "r").chmod(0o755)


if __name__ == "__main__":
    main()
