"""The findings of the program on the page: sentences with links, names of curves, and what is damaged or hostile. Needs Python
with matplotlib, and the program."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from report_records import curve, point, record, run, with_runs
from support import SCALEMARK

BASE = point(1, 100.0)


def made_finding(**keys):
    number = {"name": "efficiency", "value": 0.6, "text": "60.0 %", "record": "r", "pointer": "/points/1/efficiency", "sentence": "why",
              "begin": 11}
    return {"rule": "link", "tone": "bad", "about": "a", "what": "The link: ranks wait.", "why": "Efficiency 60.0 %.", "try": ["more"],
            "sure": "hint", "because": "nothing", "numbers": [number], **keys}


def text_of(parts):
    return "".join(part if isinstance(part, str) else part.text for part in parts)


class Sentences(unittest.TestCase):
    def finding(self, **keys):
        from reporting.finding import finding_of
        return finding_of(made_finding(**keys), "a", {"r": "r.json"}, "the link")

    def test_numbers_become_links(self):
        from reporting.record import Number
        found = self.finding()
        self.assertEqual(found.why, ["Efficiency ", Number("60.0 %", "r.json", "/points/1/efficiency"), "."])
        self.assertEqual((found.says, found.sure, found.label), (["The link: ranks wait."], "a hint", "the link"))

    def test_places_count_characters(self):
        why, number = "Zürich \u2116 7: 60.0 %.", {**made_finding()["numbers"][0], "begin": 12}
        found = self.finding(why=why, numbers=[number])
        self.assertEqual((found.why[1].text, text_of(found.why)), ("60.0 %", why))

    def test_a_number_that_is_not_where_it_says_is_text(self):
        number = made_finding()["numbers"][0]
        for other in ({"begin": 3}, {"begin": None}, {"begin": -4}, {"record": "another"}, {"record": [1]}, {"text": ""}, {"text": 7}):
            with self.subTest(**other):
                self.assertEqual(self.finding(numbers=[{**number, **other}]).why, ["Efficiency 60.0 %."])

    def test_what_is_no_finding_is_none(self):
        for other in ({"rule": None}, {"tone": "awful"}, {"sure": "very"}, {"what": 3}, {"because": None}):
            with self.subTest(**other):
                self.assertIsNone(self.finding(**other))
        for other in ({"numbers": None}, {"numbers": 4}, {"numbers": [4]}, {"try": None}, {"try": [4]}):
            self.assertEqual(text_of(self.finding(**other).why), "Efficiency 60.0 %.")


class OfTheProgram(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="scalemark-findings-")))

    def verdict(self, *made):
        from reporting.collection import collect
        from reporting.files import read_paths
        from reporting.verdict import verdict
        for i, each in enumerate(made):
            (self.folder / f"{i}-{each['kind']}.json").write_text(json.dumps(each))
        records, _, _ = read_paths([str(self.folder)], str(self.folder))
        return verdict(str(SCALEMARK), collect(records), records)

    def test_a_curve_is_judged_with_its_runs_and_named_as_on_the_page(self):
        slow = run()
        slow["ranks"][1].update(straggler=True, step_seconds_mean=0.13)
        made = with_runs(curve(BASE, point(2, 150.0)), slow)
        found, unread = self.verdict(*made, curve(BASE, point(2, 198.0)))
        self.assertEqual([(finding.rule, finding.about) for finding in found], [
            ("scales", "resnet50 fp32 weak, 0-scaling"), ("straggler", "resnet50 fp32 weak, 0-scaling"),
            ("scales", "resnet50 fp32 weak, 2-scaling")])
        rank = found[1].says[1]
        self.assertEqual((rank.text, rank.href, rank.pointer), ("1", "1-run.json", "/ranks/1/rank"))
        self.assertEqual(unread, [])

    def test_what_a_record_says_is_shown_and_not_judged_anew(self):
        made = curve(BASE, point(2, 150.0))
        made["findings"] = [made_finding(numbers=[{**made_finding()["numbers"][0], "record": made["id"]}])]
        found, _ = self.verdict(made)
        self.assertEqual([finding.rule for finding in found], ["link"])
        self.assertEqual((found[0].why[1].href, found[0].label), ("0-scaling.json", "the link"))

    def test_a_straggler_of_several_runs_is_named_once_with_the_settings_of_their_sweep(self):
        lines = []
        for i in range(3):
            slow = run()
            slow["ranks"][1].update(straggler=True, step_seconds_mean=0.13)
            (self.folder / f"run{i}.json").write_text(json.dumps(slow))
            lines.append({"record": f"run{i}.json", "settings": {"overlap": "none", "ranks": 2}, "status": "ok", "reason": ""})
        (self.folder / "journal.jsonl").write_text("\n".join(map(json.dumps, lines)))
        found, _ = self.verdict()
        self.assertEqual([(finding.rule, finding.about) for finding in found], [("straggler", "resnet50 fp32 2 ranks x 8, overlap=none")])
        self.assertIn("in 3 of 3 runs with several ranks", text_of(found[0].why))

    def test_gates_are_told_apart_by_their_files(self):
        found, _ = self.verdict(record("verdict", verdict="pass", slowdown_percent=0.1), record("verdict", verdict="regressed"))
        self.assertEqual({finding.about for finding in found}, {"gate: 0-verdict", "gate: 1-verdict"})

    def test_a_file_that_the_program_cannot_read_is_told(self):
        found, unread = self.verdict(run(model="half a pair \ud800"), curve(BASE, point(2, 150.0)))
        self.assertEqual([finding.rule for finding in found], ["scales"])
        self.assertEqual([os.path.basename(path) for path, _ in unread], ["0-run.json"])

    def test_without_a_program_the_reason_is_told(self):
        from reporting.verdict import NoProgram, ask
        for program, text in (("", "is not found"), ("/nowhere/scalemark", "No such file"), ("/bin/false", "exit code 1"),
                              ("/bin/true", "cannot judge")):
            with self.subTest(program=program), self.assertRaisesRegex(NoProgram, text):
                ask(program, [])

    def test_a_folder_is_told_as_json(self):
        (self.folder / "c.json").write_text(json.dumps(curve(BASE, point(2, 150.0))))
        (self.folder / "broken.json").write_text("{")
        done = subprocess.run([SCALEMARK, "report", "--findings", self.folder], capture_output=True, text=True, check=True)
        told = json.loads(done.stdout)
        self.assertEqual([finding["rule"] for finding in told["findings"]], ["scales"])
        self.assertEqual([os.path.basename(file["path"]) for file in told["unread"]], ["broken.json"])
        for words, text in (([self.folder / "nowhere"], "does not exist"), ([self.folder, "--output", "x.html"], "--output"),
                            (["-"], "list of files on stdin")):
            done = subprocess.run([SCALEMARK, "report", "--findings", *words], input="x", capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr)


class Sections(unittest.TestCase):
    def test_one_that_cannot_be_drawn_says_so(self):
        from report_records import collected
        from reporting.sections import all_curves, sections

        def broken(*_):
            return {}["<key>"]
        made = sections(None, collected(run()), (broken, all_curves))
        self.assertEqual([section.id for section in made], ["broken", "records"])
        self.assertIn("KeyError: '<key>'", made[0].note)


if __name__ == "__main__":
    unittest.main()
