"""scalemark study: real steps of a small study, what it says, how it goes on, two sites; every shipped study's commands."""
import json
import os
import signal

from support import SCALEMARK, SOURCE, ProgramTest, main, mpirun, schema_errors

SMALL = {"model": "trivial", "num_batches": 30, "num_warmup_batches": 1, "roofline": False}
PROFILE = {"evidence": "effect", "shows": "That two ranks compute more.", "differs": "everything", "ranks": 2}


def study(**more):
    """Three steps of seconds, and figures of each."""
    made = {"$schema": "study_plan.schema.json", "title": "A small study", "publication": "Nobody.", "published_on": "no machine.",
            "not_stated": ["the weather"], "profiles": {"laptop": PROFILE, "full": PROFILE},
            "steps": [
                {"name": "ranks", "about": "one rank and two", "plan": {"settings": SMALL, "axes": {"ranks": [1, 2]}, "repeats": 2},
                 "laptop": {"run": "sweep", "minutes": 0.2}, "full": {"run": "sweep", "minutes": 1, "needs": ["gpu"]}},
                {"name": "bytes", "about": "a plan", "laptop": {"run": "scale --model trivial --ranks 1,64 --dry_run --json", "minutes": 0.1}},
                {"name": "curve", "about": "rounds", "laptop": {
                    "run": "scale --model trivial --num_batches 30 --ranks 1,2 --repeats 2", "minutes": 0.1}},
                {"name": "more", "about": "a projection", "laptop": {"run": "project {curve} --ranks 8", "minutes": 0.1}}],
            "figures": [
                {"name": "speedup", "published": {"value": 1.96, "unit": "ratio"}, "laptop": {
                    "step": "ranks", "of": "throughput", "where": {"ranks": 2}, "over": {"ranks": 1}, "expect": {"above": 0}}},
                {"name": "bytes", "published": {"value": 64, "unit": "ratio"}, "laptop": {
                    "step": "bytes", "of": "global_batch_size", "where": {"ranks": 64}, "over": {"ranks": 1}, "expect": {"equals": 64}}},
                {"name": "efficiency", "published": {"low": 0.9, "unit": "share"}, "laptop": {
                    "step": "curve", "of": "efficiency", "where": {"ranks": 2}}},
                {"name": "of 8", "published": {"unit": "images/sec", "text": "announced"}, "laptop": {
                    "step": "more", "of": "throughput", "where": {"ranks": 8}}},
                {"name": "of a cluster", "published": {"value": 5391.75, "unit": "images/sec"}, "full": {
                    "step": "ranks", "of": "throughput"}}]}
    return {**made, **more}


class Study(ProgramTest):
    def put(self, content, name="small.json"):
        self.assertEqual(schema_errors(content, "study_plan.schema.json"), [])
        (self.folder / name).write_text(json.dumps(content))

    def study(self, *words, expect=0, **options):
        return self.run_program(SCALEMARK, "study", "./small.json", *words, expect=expect, **options)

    def record(self, site="here", profile="laptop"):
        return self.read(f"results/studies/small/{profile}/{site}/study.json")

    def statuses(self, **where):
        return {step["name"]: step["status"] for step in self.record(**where)["steps"]}


class OfASmallStudy(Study):
    def test_runs_tells_and_goes_on(self):
        self.put(study())
        out, err = self.study()
        self.assertIn("[1/4] ranks: one rank and two; about 12 s, 30 s left in all", err)
        self.assertIn("[4/4] more: ok", err)
        record = self.record()
        self.assertEqual(record["status"], "ok")
        figures = {figure["name"]: figure for figure in record["figures"]}
        rates = {(entry["settings"]["ranks"], entry["repeat"]):
                 self.read(f"results/studies/small/laptop/here/ranks/{entry['record']}")["throughput"]["mean"]
                 for entry in map(json.loads, (self.folder / "results/studies/small/laptop/here/ranks/journal.jsonl").read_text().splitlines())}
        ratio = (rates[2, 1] / rates[1, 1] * rates[2, 2] / rates[1, 2]) ** 0.5
        self.assertAlmostEqual(figures["speedup"]["measured"]["value"], ratio)
        self.assertAlmostEqual(figures["speedup"]["difference"]["amount"], 100 * (ratio / 1.96 - 1))
        self.assertEqual(figures["bytes"]["measured"], {"value": 64, "ci95": None, "repeats": 1})
        self.assertEqual(figures["bytes"]["verdict"], "shown")
        self.assertEqual(figures["efficiency"]["measured"]["value"],
                         self.read("results/studies/small/laptop/here/curve.json")["points"][1]["efficiency"])
        self.assertEqual(figures["of 8"]["measured"]["value"],
                         self.read("results/studies/small/laptop/here/more.json")["points"][0]["throughput"])
        self.assertEqual(figures["of a cluster"]["reason"], "not of this profile")
        for words in ("A small study (laptop, here)", "1.960 x", "5392 images/sec", "over 90.0 %", "the weather", "everything"):
            self.assertIn(words, out)

        _, err = self.study()
        self.assertEqual(err.count("done before"), 4)
        os.remove(self.folder / "results/studies/small/laptop/here/curve.json")
        _, err = self.study()
        self.assertEqual(err.count("done before"), 3)
        changed = study()
        changed["steps"][0]["plan"]["repeats"] = 3
        changed["steps"][0]["plan"]["settings"] = {**SMALL, "num_batches": 31}  # launches of the old plan stay
        self.put(changed)
        _, err = self.study()
        self.assertIn("2 points x 3 repeats", err)
        out, _ = self.study("--json", "--quiet")
        self.assertEqual(json.loads(out)["figures"][0]["measured"]["repeats"], 3)
        self.assertIn("| speedup | 1.960 x |", self.study("--markdown", "--quiet")[0])

    def test_two_sites_beside_each_other(self):
        self.put(study())
        for site in ("vm", "bm"):
            self.study("--site", site, "--quiet")
        out, _ = self.run_program(SCALEMARK, "study", "./small.json", "--sites", "vm", "bm")
        self.assertRegex(out, r"figure +published +vm +bm +difference")
        self.assertRegex(out, r"speedup +1.960 x +\d.* x \[")
        self.assertIn("ranks: one rank and two", out)
        self.assertRegex(out, r"(faster|slower|no difference shown|too few)")
        self.run_program(SCALEMARK, "study", "./small.json", "--sites", "vm", "nowhere", expect=2)

    def test_interrupted_it_goes_on_within_its_sweep(self):
        slow = study()
        slow["steps"][0]["plan"]["settings"] = {**SMALL, "num_batches": 200, "inject": "delay:milliseconds=10"}
        self.put(slow)
        process = self.start(SCALEMARK, "study", "./small.json")
        self.wait_for_line(process.stderr, "[2/4]")  # of the sweep
        self.assertIn("another one is at work", self.study(expect=7)[1])
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4, err)
        self.assertEqual(self.statuses(), {"ranks": "interrupted", "bytes": "waiting", "curve": "waiting", "more": "waiting"})
        self.assertEqual(self.record()["status"], "interrupted")
        _, err = self.study()
        self.assertRegex(err, r"[123] launch(es are|  ?is) done")
        self.assertEqual(set(self.statuses().values()), {"ok"})

    def test_a_step_that_fails_costs_those_that_need_it_alone(self):
        broken = study()
        broken["steps"][2]["laptop"]["run"] = "scale --model trivial --ranks 1,2 --num_batches 0"
        self.put(broken)
        out, err = self.study(expect=2)
        self.assertEqual(self.statuses(), {"ranks": "ok", "bytes": "ok", "curve": "failed", "more": "skipped"})
        self.assertIn("more: skipped: it needs the result of curve", out)
        self.assertIn("--num_batches", err)
        self.put(study())
        self.study()
        self.assertEqual(set(self.statuses().values()), {"ok"})

    def test_what_cannot_run_here_is_skipped_and_said(self):
        self.put(study())
        out, err = self.study("--profile", "full", expect=7)
        self.assertIn("it needs a GPU", err)
        self.assertIn("ranks: skipped: it needs a GPU", out)
        self.assertEqual(self.record(profile="full")["status"], "failed")

    def test_failed_launches_are_left_out_of_pairs_and_said(self):
        failing = study()
        failing["steps"][0]["plan"]["axes"]["inject"] = [None]
        failing["steps"][0]["plan"] = {"settings": SMALL, "points": [{"ranks": 1}, {"ranks": 2}, {"ranks": 2, "inject": "nan_loss:step=5"}],
                                       "repeats": 2}
        self.put(failing)
        out, _ = self.study(expect=4)
        self.assertEqual(self.statuses()["ranks"], "failed")
        figure = self.record()["figures"][0]
        self.assertEqual(figure["measured"]["repeats"], 2)  # the failed point has no throughput
        self.assertIn("ranks: failed", out)


class OfWrongInput(Study):
    def test_names_places_and_combinations(self):
        for words, says in ((["link_rat"], "did you mean link_rate?"), ([], "takes one study"), (["./no.json"], "no.json"),
                            (["link_rate", "--profile", "labtop"], "did you mean laptop?"), (["link_rate", "--site", "a/b"], "--site"),
                            (["link_rate", "--sites", "a"], "--sites takes two"), (["link_rate", "--json", "--dry_run"], "give one")):
            _, err = self.run_program(SCALEMARK, "study", *words, expect=2)
            self.assertIn(says, err)
        wrong = study()
        wrong["figures"][0]["laptop"]["setp"] = wrong["figures"][0]["laptop"]["step"]
        (self.folder / "small.json").write_text(json.dumps(wrong))
        self.assertIn("/figures/0/laptop/setp", self.study(expect=2)[1])
        (self.folder / "small.json").write_text("{")
        self.assertIn("small.json", self.study(expect=2)[1])

    def test_it_is_no_rank(self):
        self.assertIn("start it once", self.run_program(*mpirun(2, SCALEMARK, "study", "link_rate", "--dry_run"), expect=2)[1])

    def test_a_damaged_study_record_is_measured_again(self):
        small = study()
        small["steps"], small["figures"] = small["steps"][1:2], small["figures"][1:2]
        self.put(small)
        self.study()
        path = self.folder / "results/studies/small/laptop/here/study.json"
        path.write_text(path.read_text()[:500])
        self.assertNotIn("done before", self.study()[1])
        self.record()


    def test_values_are_of_the_sweeps_that_have_them(self):
        small = study()
        small["steps"], small["figures"] = small["steps"][:2], small["figures"][1:2]
        small["steps"][0]["plan"].update(values={"device": "eth0"}, before=[["touch", "{device}"]], axes={}, repeats=1)
        self.put(small)
        self.study("--value", "device=ib0")
        self.assertTrue((self.folder / "ib0").exists())
        self.assertEqual(self.study("--value", "device=ib0")[1].count("done before"), 2)
        _, err = self.study(expect=2)  # eth0, in the same folder
        self.assertIn("--value device=ib0, and now it is eth0", err)
        for value, says in (("devise=ib0", "did you mean device?"), ("device", "no NAME=TEXT")):
            self.assertIn(says, self.study("--value", value, "--site", "b", expect=2)[1])
        _, err = self.run_program(SCALEMARK, "study", "link_rate", "--value", "device=ib0", expect=2)
        self.assertIn('"device" is no value of the profile laptop (it has none)', err)
        self.assertIn("--sites reads", self.run_program(SCALEMARK, "study", "./small.json", "--sites", "a", "b", "--value", "device=ib0",
                                                         expect=2)[1])


class OfShippedStudies(Study):
    def test_the_rate_of_an_interface_is_set_on_every_host(self):
        (self.folder / "hosts").write_text("".join(f"n{host} slots=8\n" for host in range(5)))
        out, _ = self.run_program(SCALEMARK, "study", "link_rate", "--profile", "full", "--value", "device=ib0", "--dry_run",
                                  env=self.environment(SCALEMARK_HOSTFILE=self.folder / "hosts"))
        lines = [line for line in out.splitlines() if "ethtool" in line]
        self.assertTrue(all(" ethtool -s ib0 " in line for line in lines), lines)
        self.assertEqual({line.split("--host ")[1].split()[0] for line in lines}, {"n0:1,n1:1", "n0:1,n1:1,n2:1,n3:1"})

    def test_every_command_of_every_study_is_printed(self):
        lists = json.loads(self.run_program(SCALEMARK, "list", "studies", "--json")[0])["studies"]
        self.assertEqual({entry["name"] for entry in lists}, {path.stem for path in (SOURCE / "configs/studies").glob("*.json")})
        for entry in lists:
            self.assertLessEqual(entry["profiles"]["laptop"]["minutes"], 5, entry["name"])
            for profile in entry["profiles"]:
                out, err = self.run_program(SCALEMARK, "study", entry["name"], "--profile", profile, "--dry_run")
                self.assertGreaterEqual(out.count("scalemark"), 1, entry["name"])
                self.assertIn("about", err)
        text, _ = self.run_program(SCALEMARK, "list", "studies")
        self.assertIn("weak_scaling_resnet50\n    Weak scaling", text)
        self.assertIn(", root", text)
        self.assertIn(", GPU", text)


class OfTheDocuments(ProgramTest):
    def test_the_page_says_what_the_records_say(self):
        self.run_program(SOURCE / "scripts/study_tables", "--check")
        for path in (SOURCE / "results/baselines/studies").glob("*.json"):
            record = json.loads(path.read_text())
            self.assertEqual([figure["name"] for figure in record["figures"] if figure["verdict"] not in (None, "shown")], [], path.name)
            self.assertLessEqual(record["wall_seconds"], 300, path.name)


if __name__ == "__main__":
    main()
