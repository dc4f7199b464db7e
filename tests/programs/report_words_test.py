"""Words of the page: names of what stands together, machines, commands, the three words of a study, nodes of a preflight. Needs
Python with matplotlib; no program."""
import unittest

from report_records import collected, config, curve, point, record, run, system


def text_of(parts):
    return "".join(part if isinstance(part, str) else part.text for part in parts)


class Labels(unittest.TestCase):
    def test_what_all_say_is_left_out(self):
        from reporting.labels import in_common, labels
        names = [f"trivial fp32 2 ranks x 4, scalemark kernels, launch {i}, on {host}" for host in "ab" for i in (1, 2)]
        self.assertEqual(labels(names), ["launch 1, on a", "launch 2, on a", "launch 1, on b", "launch 2, on b"])
        self.assertEqual(in_common(names), "trivial fp32 2 ranks x 4, scalemark kernels")
        self.assertEqual(labels(["resnet18 fp32 weak", "resnet18 bf16 weak"]), ["fp32 weak", "bf16 weak"])

    def test_what_differs_stays(self):
        from reporting.labels import labels
        for names in (["x" * 60 + "a", "x" * 60 + "b"], ["a, b", "a"], ["a" * 50, "a" * 50 + "b" * 50, "a" * 100],
                      [f"{'long ' * 9}{i}{' end' * 9}" for i in range(9)], ["same", "same", "other"]):
            made = labels(names, 30)
            self.assertEqual(len(set(made)), len(set(names)), made)
            self.assertLessEqual(max(map(len, made)), 30)
        self.assertEqual(labels([]), [])


class Machines(unittest.TestCase):
    def assigned(self, *made):
        from reporting.machines import assign
        collection = collected(*made)
        return collection, assign([root.record for root in collection.all_roots()])

    def test_are_told_apart_by_host_processor_device_and_link(self):
        gpu = [{"index": 0, "name": "H100"}]
        made = [run(system=system("a")), run(system=system("b")), run(system=system("a", cpu_model="Xeon")),
                run(system=system("a", gpus=gpu), device_name="H100"), run(system=system("a", speed_mbps=100000)), run(system=system("a"))]
        _, machines = self.assigned(*made)
        self.assertEqual([machine.label for machine in machines], [
            "a, EPYC, CPU, eth0 10 Gbit/s", "b", "a, Xeon, CPU, eth0 10 Gbit/s", "a, EPYC, H100, eth0 10 Gbit/s",
            "a, EPYC, CPU, eth0 100 Gbit/s"])
        self.assertEqual(len({machine.colour for machine in machines}), 5)

    def test_one_alone_is_not_named(self):
        from reporting.collection import names_of, run_word
        collection, machines = self.assigned(run(system=system("a")), run(4, system=system("a")), run(8))
        self.assertEqual([machine.label for machine in machines], [""])
        self.assertEqual(names_of(collection.runs, run_word)[0], "resnet50 fp32 2 ranks x 8")

    def test_a_curve_and_a_study_are_of_the_machine_of_their_runs(self):
        line = curve(point(1, 100.0), point(2, 190.0), device="auto")
        line["system"] = system("a")
        study = record("study", measured_on={"host": "a", "cpu_model": "EPYC", "gpu": None})
        _, machines = self.assigned(study, line, run(system=system("a"), device_name="cpu"), run(system=system("b")))
        self.assertEqual([machine.label for machine in machines], ["a", "b"])

    def test_interfaces_of_containers_are_no_links(self):
        from reporting.machines import links
        nics = [{"name": name, "state": state, "speed_mbps": speed, "driver": "x"} for name, state, speed in (
            ("docker0", "up", 10000), ("eth1", "down", 1000), ("eth0", "up", None), ("ib0", "up", 200000))]
        collection, _ = self.assigned(run(system={**system("a"), "nics": nics}))
        self.assertEqual(links(collection.runs[0]), "eth0 (x), ib0 200 Gbit/s")

    def test_rows_of_launches_are_of_one_machine(self):
        from reporting.plots_runs import groups_of
        collection, _ = self.assigned(*[run(system=system(host)) for host in "abab"])
        [rows] = groups_of(collection.runs).values()
        self.assertEqual({word: len(of) for word, of in rows.items()},
                         {"resnet50 fp32 2 ranks x 8, on a": 2, "resnet50 fp32 2 ranks x 8, on b": 2})


class Again(unittest.TestCase):
    def command(self, made, **settings):
        from reporting.again import command
        root = collected(made).all_roots()[0]
        root.record.settings = settings
        return command(root)

    def test_of_what_somebody_set(self):
        made = run(config=config(model="resnet50", precision="bf16", ranks=None, seed=1, output="x.json"))
        for key in ("model", "precision", "output"):
            made["config"][key]["origin"] = "command_line"
        made["config"]["roofline"] = {"value": False, "origin": "environment"}
        self.assertEqual(self.command(made), "scalemark run --model resnet50 --precision bf16 --roofline=false --ranks 2")
        self.assertEqual(self.command(made, **{"precision": "fp32", "alternate": "a", "env.OMPI_MCA_btl": "tcp,self"}),
                         "OMPI_MCA_btl=tcp,self scalemark run --model resnet50 --precision fp32 --roofline=false --ranks 2")

    def test_of_every_kind(self):
        line = curve(point(1, 100.0), model="it's")
        line["config"].update(model={"value": "it's", "origin": "file"}, ranks={"value": [1, 2], "origin": "command_line"})
        sets = [{"label": "a", "path": "r/a"}, {"label": "new", "path": "r/b.json"}]
        for made, words in ((line, "scalemark scale --model 'it'\"'\"'s' --ranks 1,2"),
                            (record("study", study="links", profile="full", site="vm"), "scalemark study links --profile full --site vm"),
                            (record("comparison", sets=sets, varied=["overlap"]), "scalemark compare r/a new=r/b.json --varied overlap"),
                            (record("verdict", sets=sets), "scalemark gate r/a new=r/b.json"), (record("history", sets=sets), "")):
            self.assertEqual(self.command(made), words)


def figure(unit="percent", value=10.0, ci95=(5.0, 15.0), verdict="shown"):
    return {"name": "gain", "unit": unit, "published": {"value": 8}, "measured": {"value": value, "ci95": ci95 and list(ci95), "repeats": 5},
            "difference": {"amount": 4.0, "unit": "points"}, "expected": "above 0", "verdict": verdict, "reason": ""}


class Study(unittest.TestCase):
    def finding(self, *figures, evidence="effect", **keys):
        from reporting.study_verdict import findings
        made = record("study", study="links", title="Links", profile="laptop", evidence=evidence, figures=list(figures), **keys)
        return findings(collected(made))

    def test_the_size_is_held_against_the_published_one(self):
        from reporting.study_words import size
        for published, measured, ci95, word in (({"value": 6}, 32.8, (20.1, 46.8), "larger"), ({"value": 50}, 32.8, (20.1, 46.8), "smaller"),
                                                ({"value": 30}, 32.8, (20.1, 46.8), "compatible"), ({"low": 2, "high": 3}, 5, (4, 6), "larger"),
                                                ({"low": 90}, 95, (93, 97), "compatible"), ({"high": 75}, 75.03, (64, 86), "compatible"),
                                                ({"value": 7.56}, 11.32, None, "larger"), ({"value": 82, "about": True}, 83.7, None, "compatible"),
                                                ({"value": 12.5}, 12.5, None, "compatible"), ({"value": 10.16}, 10.15625, (10.15625, 10.15625), "compatible"), ({}, 3.0, (2, 4), "")):
            made = figure("ratio", measured, ci95)
            made["published"] = published
            root = collected(record("study", figures=[made])).of("study")[0]
            self.assertEqual(size(root.views("figures")[0]), word, published)

    def test_a_stand_in_is_never_sure(self):
        [found] = self.finding(figure(), evidence="stand_in")
        self.assertEqual((found.weight, found.sure), ("note", "a hint"))
        self.assertEqual(text_of(found.says), "The direction is the published one, the size is compatible: Links.")
        self.assertIn("Transfers: a stand-in, which says nothing of the size of the real effect.", text_of(found.why))

    def test_another_size_is_not_good(self):
        [found] = self.finding({**figure(value=32.8, ci95=(20.1, 46.8)), "published": {"value": 6}})
        self.assertEqual((found.weight, found.sure), ("note", "likely"))
        self.assertEqual(text_of(found.says), "The direction is the published one, the size is larger: Links.")
        self.assertIn("Size: 0 of 1 figure compatible; gain: +32.8 % against +6.0 % (+4.0 points).", text_of(found.why))

    def test_figures_of_which_nothing_is_expected_count_in_their_size(self):
        unjudged = {**figure("ratio", 11.32, None, verdict=None), "published": {"value": 7.56}, "name": "step"}
        [found] = self.finding(figure(), unjudged)
        self.assertIn("Size: 1 of 2 figures compatible; step: 11.32 against 7.560", text_of(found.why))
        self.assertEqual(found.weight, "note")
        [found] = self.finding(unjudged)
        self.assertEqual(text_of(found.says), "No direction is judged, the size is larger: Links.")

    def test_all_three_are_good_or_the_opposite_is_bad(self):
        [found] = self.finding(figure())
        self.assertEqual((found.weight, found.sure), ("good", "sure"))
        [found] = self.finding(figure(), warnings=["busy"])
        self.assertEqual(found.sure, "likely")
        [found] = self.finding(figure(value=-10.0, ci95=(-15.0, -5.0), verdict="opposite"))
        self.assertEqual((found.weight, found.sure), ("bad", "likely"))
        self.assertEqual(self.finding(), [])


class Preflight(unittest.TestCase):
    def test_the_worst_node_leads_and_a_pair_is_no_node(self):
        from reporting.checklist import checklist
        checks = [{"name": name, "status": status, "host": host, "message": host or ""} for name, status, host in (
            ("noise", "warn", "n0"), ("gemm.fp32", "fail", "n2"), ("pair.host", "fail", "n2"), ("pair.link", "fail", "n0 - n1"),
            ("gemm.bf16", "fail", "n1"), ("binding", "pass", None), ("scratch", "pass", "n3"))]
        root = collected(record("preflight", verdict="fail", hosts=[{"host": f"n{i}"} for i in range(4)], checks=checks)).of("preflight")[0]
        made = checklist(root)
        self.assertEqual([(place.name, place.status) for place in made.places], [
            ("n2", "fail"), ("n1", "fail"), ("n0", "warn"), ("n3", "pass"), ("between n0 and n1", "fail")])


class Baselines(unittest.TestCase):
    def test_one_slower_than_its_measurement_is_told(self):
        from reporting.notices import slow_baselines
        from reporting.plots_steps import doubts_of
        from reporting.record import exposed
        slow = collected(curve(point(1, 100.0), point(4, 395.6, baseline_throughput=332.0, exposed_seconds=-0.272)))
        [notice] = slow_baselines(slow)
        self.assertIn("4 ranks of 0-scaling", text_of(notice.parts))
        self.assertIn("At 4 ranks the baseline is slower", doubts_of(slow.curves[0]))
        self.assertEqual((exposed(-0.272), exposed(0.037)), ("-272.0 ms, noise", "37.00 ms"))
        self.assertEqual(slow_baselines(collected(curve(point(1, 100.0), point(4, 300.0, baseline_throughput=332.0)))), [])


class Gate(unittest.TestCase):
    def gate(self, mode, *, repeats=True):
        from reporting.plots_gate import launches, slowdowns
        made = []
        for label, rates in (("base", (100.0, 110.0)), ("new", (90.0, 121.0))):
            of = [run(throughput={"mean": rate}, created_at=f"2026-01-0{i + 1}T00:00:00Z", label=label) for i, rate in enumerate(rates)]
            made.append(of)
        verdict = record("verdict", design={"mode": mode}, points=[{"ranks": 2, "settings": {"precision": "fp32"}, "base_value": 100.0}],
                         sets=[{"label": str(i), "records": [one["id"] for one in of]} for i, of in enumerate(made)])
        collection = collected(verdict, *made[1], *made[0], run(4))
        by_id = {one.text("id"): one for one in collection.runs}
        if repeats:  # as a sweep numbers them: the new build's launches in the other order
            for i, one in enumerate([*made[0], *reversed(made[1])]):
                by_id[one["id"]].record.repeat = i % 2 + 1
        root = collection.of("verdict")[0]
        return [[round(value, 6) for value in of] for of in slowdowns(root, root.views("points")[0], launches(root, by_id))]

    def test_pairs_are_those_of_a_repeat(self):
        self.assertEqual(self.gate("sequential pairs"), [[-21.0, 18.181818], [], []])
        self.assertEqual(self.gate("pairs", repeats=False), [[10.0, -10.0], [], []])

    def test_samples_have_no_pairs(self):
        self.assertEqual(self.gate("samples"), [[], [0.0, -10.0], [10.0, -21.0]])


class Comparison(unittest.TestCase):
    def test_no_difference_is_said_with_its_interval(self):
        from reporting.sets import unshown
        points = [{"set": "b", "ranks": ranks, "difference_percent": -3.0 * ranks, "interval_percent": [-9.0, 2.0],
                   "verdict": "no difference shown"} for ranks in (1, 2)]
        made = record("comparison", base="a", sets=[{"label": "a"}, {"label": "b"}], points=points)
        found = unshown(collected(made).of("comparison")[0])
        self.assertEqual((found.about, found.weight, found.sure), ("b against a", "note", "a hint"))
        self.assertEqual(text_of(found.says + [" "] + found.why),
                         "No difference is shown at 2 of 2 points. Most at 2 ranks: -6.0 %, interval -9.0 % to +2.0 %.")
        points[0]["verdict"] = "slower"
        self.assertIsNone(unshown(collected(made).of("comparison")[0]))

    def test_sets_that_a_record_has_are_compared(self):
        from reporting.sets import Set, is_compared
        a, b = (Set(name, None, (), "", ids) for name, ids in (("a", {"a1", "a2"}), ("b", {"b1"})))
        for sets, known in (([{"records": ["a1"]}, {"records": ["b1", "x"]}], True), ([{"records": ["a1", "b1"]}], False),
                            ([{"records": ["a1"]}, {"records": [["b1"], None]}], False), ([], False)):
            self.assertEqual(is_compared([a, b], collected(record("verdict", sets=sets)).of("verdict")), known, sets)


class Facts(unittest.TestCase):
    def test_a_record_becomes_a_place_in_the_page(self):
        from reporting.facts import facts_of, stand_alone
        from reporting.files import File
        records = [root.record for root in collected(run(), curve(point(1, 100.0), point(2, 190.0))).all_roots()]
        files = [File(records[0].shown, records[0].href, "read", "run"), File("x", "x", "damaged", "")]
        stand_alone(records, files, [])
        self.assertEqual([file.href for file in files], ["#record-1", ""])
        made = facts_of(records[0])
        self.assertEqual((made.id, made.kind), ("record-1", records[0].kind))
        rows = {key: text for of in map(facts_of, records) for key, text in of.rows}
        self.assertEqual(rows["throughput/mean"], "160.0")
        self.assertIn("ranks 2, throughput 190.0, ci95 188.1 to 191.9, efficiency 0.9500", rows["points/1"])


class Cards(unittest.TestCase):
    def test_a_card_says_what_where_when_and_how_again(self):
        from reporting.machines import assign
        from reporting.measured import cards
        made = [run(system=system(host), created_at=f"2026-01-{day:02}T12:00:00Z", config=config(model="resnet50")) for host, day in
                (("a", 1), ("a", 3), ("b", 2))]
        collection = collected(*made)
        assign([root.record for root in collection.all_roots()])
        first, second = cards(collection)[0]
        rows = dict(first.rows)
        self.assertEqual((rows["What"], rows["Host"], rows["Device"], rows["Link"], rows["When"]), (
            "2 runs: resnet50 fp32", "a (rank 0), n0", "CPU", "eth0 10 Gbit/s", "2026-01-01 12:00 to 2026-01-03 12:00 UTC"))
        self.assertEqual(rows["Processor"], "EPYC, 2 cores")
        self.assertEqual(first.again, [("scalemark run --ranks 2", "2 launches")])
        self.assertEqual((first.title, second.title), ("On a", "On b"))


if __name__ == "__main__":
    unittest.main()
