"""The page of `scalemark report` in a real browser: no request, nothing on the console, no link without a target, nothing cut
off at 1,400 and 390 pixels, light, dark and on paper, and no complaint of an accessibility checker."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

import support
from report_browser import Browser, missing
from report_records import SOURCE, curve, point, record, run, with_runs

# Published records of which others of the same kind are on the page: the accessibility checker looks at every cell.
ALIKE = shutil.ignore_patterns("llama_tiny_256-*", "llama_tiny-*-o*.json", "resnet50-*-backward*", "smallnet-40mbit*", "speed-*-amx.json",
                               "speed-*-zen3.json", "speed-transformer*", "gate-study*", "studies")
NASTY = "<script>alert(1)</script></svg>\"'&$x^2$"


def every_kind():
    """Records beside the published ones, so that the page has all its sections."""
    slow = run(8, model=NASTY)
    slow["ranks"][5].update(straggler=True, step_seconds_mean=0.16, host=NASTY)
    slow["rank_steps"]["compute_seconds"][5] = [0.155] * 4
    sparse = [run(n, communication={"communicator": "mpi", "embedding": {
        "strategy": "sparse", "tied_gradient": "dense", "buffer_bytes_per_rank": n << 20, "wire_bytes_per_step": 1 << 20,
        "exchange_seconds": 0.01}}) for n in (1, 2, 4)]
    bound = {"server": {"arrival_rate": 100.0, "latency_quantile": 0.99, "latency_at_quantile_seconds": 0.04,
                        "latency_bound_seconds": 0.03, "ended_by": "all_served", "holds": False}}
    latency = {"p50": 0.01, "p90": 0.02, "p99": 0.04, "p99_9": 0.05}
    return [run(model=NASTY), *with_runs(curve(point(1, 100.0), point(8, 500.0, baseline_throughput=700.0), model=NASTY), slow), *sparse,
            run(status="failed", reason=NASTY, throughput=None),
            record("inference", model="resnet50", precision="fp32", mode="server", unit="images/sec", latency_seconds=latency, **bound),
            record("instances", job="run", model="resnet50", unit="images/sec", points=[
                {"instances": n, "efficiency": 1 - n / 10, "speedup": n, "cumulative": {"mean": 10.0 * n, "ci95": [9.0 * n, 11.0 * n]},
                 "per_instance": [{"slot": 0, "throughput": 9.0, "alone": 10.0, "ratio": 0.9}]} for n in (1, 2)]),
            record("history", sets=[{"label": f"c{i}", "relative_rate": 1 - i / 100} for i in range(8)],
                   changes=[{"kind": "step", "at": "c4", "until": None, "change_percent": -4.0, "p": 0.001}]),
            record("projection", curve={"model": "resnet50", "scaling": "weak", "unit": "images/sec"}, points=[
                {"ranks": n, "throughput": 90.0 * n, "throughput_band": [80.0 * n, 95.0 * n], "efficiency": 0.9,
                 "measured_throughput": 91.0 * n if n < 8 else None, "held_out": n == 4} for n in (1, 2, 4, 8, 16)],
                base={"ranks": 1, "throughput": 91.0}, errors={"points": 1, "in_band": 1, "model_percent": 1.0}),
            record("study", study="links", title=NASTY, profile="laptop", site=NASTY, evidence="effect", shows=NASTY, differs="all",
                   steps=[{"name": "one", "about": NASTY, "status": "ok", "seconds": 3.0, "reason": ""}], figures=[
                       {"name": NASTY, "unit": unit, "published": {"value": value, "low": None, "high": None, "about": True, "text": None},
                        "measured": {"value": 1.2 * (value or 1), "ci95": [value or 1, 1.5 * (value or 1)], "repeats": 5}, "reason": "",
                        "difference": {"amount": 20.0, "unit": "percent"}, "expected": "above 0", "verdict": verdict}
                       for unit, value, verdict in (("percent", 18.7, "shown"), ("same", None, "not shown"), ("share", 0.79, "opposite"),
                                                    ("ratio", 1.95, "shown"), ("ratio", 83.5, None), ("images/sec", 2757.0, None))]),
            record("preflight", verdict="fail", hosts=[{"host": "n0"}, {"host": "n1"}], checks=[
                {"name": "gemm.fp32", "statistic": "flops", "status": "fail", "host": "n1", "message": NASTY},
                {"name": "noise", "statistic": "steal", "status": "warn", "host": "n1", "message": "busy"},
                {"name": "binding", "statistic": "overlaps", "status": "pass", "host": None, "message": "all apart"}])]


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if lacks := missing():
            raise unittest.SkipTest(f"{', '.join(lacks)} not installed; scripts/setup --tests installs them as root")
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="scalemark-report-")))
        shutil.copytree(SOURCE / "results/baselines", cls.folder / "published", ignore=ALIKE)
        for i, made in enumerate(every_kind()):
            (cls.folder / f"{i}-{made['kind']}.json").write_text(json.dumps(made))
        (cls.folder / "broken <b>.json").write_text("{")
        cls.page = cls.folder / "report.html"
        done = subprocess.run([sys.executable, SOURCE / "scripts/report", "--program", support.SCALEMARK, cls.folder],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        (cls.folder / "mail").mkdir()
        done = subprocess.run([sys.executable, SOURCE / "scripts/report", "--program", support.SCALEMARK, SOURCE / "results/baselines/studies",
                               "--standalone", "--output", cls.folder / "mail/page.html"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def assert_nothing_sticks_out(self, width):
        self.assertLessEqual(self.browser.ask("document.documentElement.scrollWidth"), width)
        cut = self.browser.ask("""[...document.querySelectorAll('figure svg')].flatMap(svg => {
            const box = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text')].filter(text => {
                const r = text.getBoundingClientRect();
                return r.width && (r.left < box.left - 3 || r.right > box.right + 3 || r.top < box.top - 3 || r.bottom > box.bottom + 3);
            }).map(text => text.textContent); })""")
        self.assertEqual(cut, [])

    def test_every_width_and_scheme(self):
        for width, dark in ((1400, False), (390, True)):  # no rule of the page is of a width and a scheme together
            with self.subTest(width=width, dark=dark):
                self.browser.open(self.page, width, dark)
                self.assert_nothing_sticks_out(width)
                self.assertEqual(self.browser.violations(), [])
                self.assertEqual(self.browser.console(), [])
                asked = [url for url in self.browser.requests() if not url.startswith(("data:", self.page.resolve().as_uri()))]
                self.assertEqual(asked, [])
                paper = self.browser.ask("getComputedStyle(document.querySelector('section')).backgroundColor")
                ink = self.browser.ask("getComputedStyle(document.querySelector('figure svg text')).fill")
                self.assertEqual(brightness(paper) < brightness(ink), dark, (paper, ink))

    def test_no_column_is_cut_off(self):
        self.browser.open(self.page)
        self.browser.driver.execute_script("document.querySelectorAll('details').forEach(details => details.open = true)")
        wide = self.browser.ask("""[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth + 1)
                                .map(box => box.getAttribute('aria-label'))""")
        self.assertEqual(wide, [])

    def test_a_page_that_stands_alone(self):
        for width in (1400, 390):
            self.browser.open(self.folder / "mail/page.html", width)
            self.assert_nothing_sticks_out(width)
        self.assertEqual(self.browser.violations(), [])
        links = self.browser.ask("[...document.querySelectorAll('main a')].map(a => a.getAttribute('href'))")
        self.assertGreater(len(links), 100)
        ids = set(self.browser.ask("[...document.querySelectorAll('[id]')].map(element => element.id)"))
        self.assertEqual({link for link in links if link[:1] != "#" or link[1:] not in ids}, set())
        self.browser.driver.execute_script("document.querySelector('#verdict a[href^=\"#record-\"]').click()")
        self.assertTrue(self.browser.ask("document.querySelector(location.hash).closest('details').open"), "a link shows what it leads to")
        self.browser.console(), self.browser.requests()  # the next test's are its own

    def test_what_checks_can_complain(self):
        self.browser.open(self.page)
        self.browser.console(), self.browser.requests()
        self.browser.driver.execute_script("""document.documentElement.removeAttribute('lang');
            document.querySelector('main').style.width = '2000px';
            document.querySelector('figure svg text').setAttribute('x', -900);
            document.querySelector('figure svg text').removeAttribute('transform');
            document.querySelector('h1').style.backgroundImage = 'url(http://example.invalid/x.png)';""")
        self.assertEqual(len(self.browser.violations(only=["html-has-lang"])), 1)
        with self.assertRaises(AssertionError):
            self.assert_nothing_sticks_out(1400)
        self.assertTrue(any("Content Security Policy" in message or "example.invalid" in message for message in self.browser.console()))

    def test_all_sections_and_landmarks_are_there(self):
        self.browser.open(self.page)
        sections = self.browser.ask("[...document.querySelectorAll('main > section')].map(section => section.id)")
        self.assertEqual(sections, ["measured", "warnings", "verdict", "gate", "comparison", "studies", "scaling", "runs", "steps", "loss",
                                    "latency", "instances", "projection", "embedding", "preflight", "records", "files"])
        for tag in ("header", "nav", "main", "footer", "h1"):
            self.assertEqual(self.browser.ask("document.querySelectorAll(arguments[0]).length", tag), 1, tag)
        drawings = self.browser.ask("[...document.querySelectorAll('figure svg')].map(svg => [svg.getAttribute('role'), ...svg"
                                    ".getAttribute('aria-labelledby').split(' ').map(id => document.getElementById(id).textContent)])")
        self.assertGreater(len(drawings), 15)
        for role, title, description in drawings:
            self.assertEqual(role, "img")
            self.assertGreater(len(title) * len(description), 0)
        ids = self.browser.ask("[...document.querySelectorAll('[id]')].map(element => element.id)")
        self.assertEqual(len(ids), len(set(ids)))

    def test_every_link_has_its_target(self):
        self.browser.open(self.page)
        links = self.browser.ask("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
        self.assertGreater(len(links), 200)
        ids = set(self.browser.ask("[...document.querySelectorAll('[id]')].map(element => element.id)"))
        for link in set(links):
            if link.startswith("#"):
                self.assertIn(link[1:], ids)
            else:
                self.assertTrue((self.folder / urllib.parse.unquote(link)).is_file(), link)

    def test_numbers_link_to_the_place_in_their_record(self):
        self.browser.open(self.page)
        links = self.browser.ask("[...document.querySelectorAll('td a[title^=\"/\"]')].map(a => [a.getAttribute('href'), a.title])")
        self.assertGreater(len(links), 200)
        for href, title in links:
            place = json.loads((self.folder / urllib.parse.unquote(href)).read_text())
            keys = title.split(":")[0].strip("/").split("/")
            for key in keys[:-1]:  # the last may be missing, and then the title says why
                place = place[int(key)] if isinstance(place, list) else (place or {}).get(key)

    def test_text_of_records_stays_text(self):
        self.browser.open(self.page)
        self.assertEqual(self.browser.ask("document.querySelectorAll('script').length"), 0)
        self.assertIn(NASTY, self.browser.ask("document.getElementById('preflight').textContent"))
        shown = self.browser.ask("[...document.querySelectorAll('figure svg text')].map(text => text.textContent).join()")
        self.assertIn("<script>", shown)

    def test_the_keyboard_reaches_what_a_mouse_does(self):
        from selenium.webdriver.common.keys import Keys
        self.browser.open(self.page)
        self.browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        self.assertEqual(self.browser.ask("document.activeElement.getAttribute('href')"), "#verdict")
        self.browser.ask("document.querySelector('details.numbers:not([open]) summary').focus()")
        self.browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
        self.assertTrue(self.browser.ask("document.activeElement.parentElement.open"))

    def test_paper(self):
        self.browser.open(self.page, 690, dark=True, media="print")  # A4 less its margins
        self.assert_nothing_sticks_out(690)
        self.assertGreater(brightness(self.browser.ask("getComputedStyle(document.documentElement).getPropertyValue('--paper')")), 700)
        self.assertEqual(self.browser.ask("getComputedStyle(document.querySelector('nav')).display"), "none")
        numbers = self.browser.ask("""[...document.querySelectorAll('details.numbers:not(.long)')].filter(details =>
            details.closest('#records') === null).map(details => details.querySelector('table').getBoundingClientRect().height)""")
        self.assertGreater(len(numbers), 15)
        self.assertGreater(min(numbers), 10, "tables of numbers are printed")
        self.browser.open(self.page)
        pdf = self.browser.pdf()
        self.assertTrue(pdf.startswith(b"%PDF"))
        width, height = (float(text) for text in re.search(rb"/MediaBox ?\[ ?0 0 ([\d.]+) ([\d.]+)", pdf).groups())
        self.assertAlmostEqual(width, 595, delta=2)
        self.assertAlmostEqual(height, 842, delta=2)


def brightness(color):
    """Of "rgb(1, 2, 3)" or "#010203", 0 to 765."""
    color = color.strip()
    if color.startswith("#"):
        return sum(int(color[i:i + 2], 16) for i in (1, 3, 5))
    return sum(map(int, re.findall(r"\d+", color)[:3]))


if __name__ == "__main__":
    support.main()
