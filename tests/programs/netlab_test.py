"""scripts/netlab: real Open MPI over several hosts, each a set of namespaces on this machine, with shaped links between.

Where namespaces are not permitted (no root, a container without the capabilities) everything here is skipped.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from open_mpi_5_test import UnderOpenMpi5
from support import SCALEMARK, SMALL, SOURCE, ProgramTest, main

NETLAB = SOURCE / "scripts" / "netlab"
LONG = [*SMALL, "--num_batches", "100000"]
CORES = len(os.sched_getaffinity(0))
# What this process says of every run is for the ranks of all hosts.
MPIRUN = "mpirun -n 2 -x SCALEMARK_LABEL -x SCALEMARK_ROOFLINE -x OMP_NUM_THREADS -x MKL_NUM_THREADS".split()


def setUpModule():
    tried = subprocess.run([NETLAB, "--", "true"], capture_output=True, text=True, check=False)
    if tried.returncode == 7:
        raise unittest.SkipTest(f"no lab here: {tried.stderr}")


def places(record):
    return [(rank["host"], rank["cpus"]) for rank in record["ranks"]]


class Ranks(ProgramTest):
    def test_scale_spreads_over_two_hosts_by_itself(self):
        self.run_program(NETLAB, "--hosts", "2", "--rate", "1gbit", "--", SCALEMARK, "scale", *SMALL, "--num_batches", "5",
                         "--ranks", "1,2", "--repeats", "1", "--output", "s.json")
        self.read("s.json")
        [path] = (path for path in self.folder.glob("s.runs/ranks2-*.json") if "none" not in path.name)
        record = self.read(path)
        self.assertEqual([host for host, _ in places(record)], ["n0", "n1"])
        self.assertEqual(record["communication"]["transport"], "tcp")
        if CORES >= 2:  # Open MPI bound each rank to a core of its own host
            self.assertNotEqual(record["ranks"][0]["cpus"], record["ranks"][1]["cpus"])

    def test_bytes_of_the_interfaces_are_those_of_the_algorithm(self):
        """Headers of TCP/IP, acknowledgements and control traffic add 0.2 % to 47 MB a step; 3 % are allowed."""
        self.run_program(NETLAB, "--rate", "4gbit", "--", *MPIRUN, SCALEMARK, "run",
                         "--model", "resnet18", "--image_size", "32", "--batch_size", "1", "--num_batches", "8", "--num_warmup_batches", "2",
                         "--output", "r.json")
        communication = self.read("r.json")["communication"]
        ratio = communication["nic_bytes_per_step"] / communication["wire_bytes_per_step"]
        self.assertGreater(ratio, 1.0)
        self.assertLess(ratio, 1.03)

    def test_a_checkpoint_of_each_host(self):
        self.run_program(NETLAB, "--rate", "4gbit", "--", *MPIRUN, SCALEMARK, "run", *SMALL, "--num_batches", "4",
                         "--checkpoint_every", "2", "--checkpoint_dir", "c", "--checkpoint_writers", "node", "--output", "r.json")
        checkpoint = self.read("r.json")["checkpoint"]
        self.assertEqual([(node["host"], node["files"]) for node in checkpoint["nodes"]], [("n0", 1), ("n1", 1)])
        self.assertEqual(sorted(path.name for path in (self.folder / "c").glob("*.pt")),
                         ["checkpoint-00000005-rank0.pt", "checkpoint-00000005-rank1.pt"])

    def test_a_sweep_changes_the_links_between_its_launches(self):
        plan = json.loads((SOURCE / "configs/sweeps/links.json").read_text())
        plan["settings"] = {"model": "trivial", "batch_size": 4, "num_batches": 5, "num_intra_threads": 1, "ranks_per_node": 1}
        plan.update(repeats=1, after=[["/run/netlab/rsh", host, f"tc qdisc show dev {device}"]
                                                           for host, device in (("n1", "eth0"), ("switch", "n1"))])
        (self.folder / "plan.json").write_text(json.dumps(plan))
        self.run_program(NETLAB, "--rate", "2gbit", "--", SCALEMARK, "sweep", "plan.json", "--output", "out")
        entries = [json.loads(line) for line in (self.folder / "out/journal.jsonl").read_text().splitlines()]
        self.assertEqual(sorted(entry["settings"]["alternate"] for entry in entries), ["1gbit"] * 2 + ["4gbit"] * 2)
        for entry in entries:
            self.assertEqual([host for host, _ in places(self.read(f"out/{entry['record']}"))], ["n0", "n1"][:entry["settings"]["ranks"]])
            said = (self.folder / f"out/logs/{pathlib.Path(entry['record']).stem}.after.log").read_text()
            self.assertEqual(re.findall(r"rate (\d)Gbit", said), [entry["settings"]["alternate"][0]] * 2, said)
        out, _ = self.run_program(SCALEMARK, "scale", "--from", "out", "--resource", "node", "--json")
        curves = json.loads(out)
        self.assertEqual([curve["settings"] for curve in curves], [{"alternate": "1gbit"}, {"alternate": "4gbit"}])
        for curve in curves:
            self.assertEqual([point["resources"] for point in curve["points"]], [1, 2])

    def test_a_command_on_each_host_of_a_launch(self):
        before = "tc qdisc change dev {device} root tbf rate 3gbit burst 500000 latency 10ms".split()
        plan = {"settings": {"model": "trivial", "batch_size": 4, "num_batches": 5, "num_intra_threads": 1},
                "points": [{"ranks": 1, "ranks_per_node": 1}, {"ranks": 2, "ranks_per_node": 1}, {"ranks": 4, "ranks_per_node": 2}],
                "values": {"device": "none"}, "before": [{"each_host": before}],
                "after": [{"each_host": ["sh", "-c", "tc qdisc show dev {device}; echo {ranks} >>$(uname -n).txt"]}]}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        self.run_program(NETLAB, "--rate", "2gbit", "--", SCALEMARK, "sweep", "plan.json", "--value", "device=eth0", "--output", "out")
        for entry in (json.loads(line) for line in (self.folder / "out/journal.jsonl").read_text().splitlines()):
            hosts = ["n0", "n1"][:entry["settings"]["ranks"]]
            said = (self.folder / f"out/logs/{pathlib.Path(entry['record']).stem}.after.log").read_text()
            self.assertEqual(said.count("rate 3Gbit"), len(hosts), said)
            self.assertEqual(sorted(re.findall(r"^scalemark: on (n\d): status 0$", said, re.M)), hosts)
        for host, ranks in (("n0", ["1", "2", "4"]), ("n1", ["2", "4"])):
            self.assertEqual(sorted((self.folder / f"{host}.txt").read_text().split()), ranks)

        _, err = self.run_program(NETLAB, "--", SCALEMARK, "sweep", "plan.json", "--output", "none", expect=7)
        self.assertRegex(err, r"before: tc qdisc change dev none .* on n0 ended with status 1")
        # What fails on one host does not end it on the other.
        plan["points"], plan["before"] = plan["points"][1:2], [{"each_host": ["sh", "-c", "test $(uname -n) = n0 && sleep 1 && touch done"]}]
        (self.folder / "plan.json").write_text(json.dumps(plan))
        _, err = self.run_program(NETLAB, "--", SCALEMARK, "sweep", "plan.json", "--value", "device=eth0", "--output", "one", expect=7)
        self.assertRegex(err, r"touch done' on n1 ended with status 1; see one/logs/")
        self.assertNotIn("on n0 ended", err)
        self.assertTrue((self.folder / "done").exists())

    def test_c10d_connects_the_hosts_and_sends_a_ring(self):
        """By the interface that the lab names, and without a name by the one that there is."""
        for words in ([], ["env", "-u", "GLOO_SOCKET_IFNAME"]):
            self.run_program(NETLAB, "--rate", "4gbit", "--", *MPIRUN, *words, SCALEMARK, "run",
                             "--model", "resnet18", "--image_size", "32", "--batch_size", "1", "--num_batches", "8", "--num_warmup_batches", "2",
                             "--reducer", "c10d", "--output", "r.json")
            communication = self.read("r.json")["communication"]
            self.assertEqual(communication["communicator"], "gloo")
            ratio = communication["nic_bytes_per_step"] / communication["wire_bytes_per_step"]
            self.assertGreater(ratio, 1.0)
            self.assertLess(ratio, 1.03)

    def test_a_sweep_measures_its_points_over_the_hosts(self):
        plan = {"settings": {"model": "smallnet", "num_batches": 5, "num_warmup_batches": 1, "num_intra_threads": 1},
                "axes": {"ranks": [1, 2]}}
        (self.folder / "plan.json").write_text(json.dumps(plan))
        out, _ = self.run_program(NETLAB, "--", SCALEMARK, "sweep", "plan.json", "--output", "sweep")
        self.assertIn("ranks=2", out)
        records = [self.read(path) for path in self.folder.glob("sweep/runs/*.json")]
        self.assertEqual(sorted([host for host, _ in places(record)] for record in records), [["n0"], ["n0", "n1"]])

    def test_instances_share_the_cores_of_their_host(self):
        self.run_program(NETLAB, "--cores_per_host", CORES, "--", SCALEMARK, "instances", *SMALL, "--num_batches", "20", "--repeats", "1",
                         "--instances", "1", "--output", "i.json")
        record = self.read("i.json")
        [instance] = record["points"][0]["repeats"][0]["instances"]
        self.assertEqual([host for host, _ in places(self.read(instance["path"]))], ["n0"])

    def instances(self, ranks, slots, *words):
        """The record, and where the ranks of each instance ran when all ran together."""
        self.run_program(NETLAB, "--cores_per_host", CORES, "--", SCALEMARK, "instances", "--device", "cpu", "--ranks", ranks, "--slots", slots,
                         *SMALL, "--num_batches", "1000000", "--max_seconds", "1", "--repeats", "1", *words, "--output", "i.json")
        record = self.read("i.json")
        [repeat] = record["points"][-1]["repeats"]
        return record, [places(self.read(instance["path"])) for instance in repeat["instances"]]

    def test_instances_run_side_by_side_on_hosts_of_their_own(self):
        cpu = min(os.sched_getaffinity(0))
        record, both = self.instances(2, f"n0:{cpu};n1:{cpu}")
        self.assertEqual(both, [[("n0", str(cpu))] * 2, [("n1", str(cpu))] * 2])
        self.assertGreater(record["points"][1]["overlap"], 0.5)
        self.assertEqual([slot["places"][0]["host"] for slot in record["slots"]], ["n0", "n1"])

    @unittest.skipIf(CORES < 2, "one core")
    def test_two_jobs_each_over_both_hosts(self):
        first, second = sorted(os.sched_getaffinity(0))[:2]
        record, both = self.instances(2, f"n0:{first}+n1:{first};n0:{second}+n1:{second}", "--instances", "2")
        self.assertEqual(both, [[("n0", str(cpu)), ("n1", str(cpu))] for cpu in (first, second)])
        self.assertIsNone(record["slots"][0]["cpus"])

    def test_cpus_that_another_host_does_not_have(self):
        words = [*SMALL, "--num_batches", "5", "--repeats", "1", "--instances", "1", "--device", "cpu"]
        _, err = self.run_program(NETLAB, "--", SCALEMARK, "instances", *words, "--slots", "n1:60000", expect=7)
        self.assertIn("60000", err)

    def test_lost_frames_are_sent_again_and_the_result_stands(self):
        (self.folder / "job").write_text(f"""
            {' '.join(MPIRUN)} {SCALEMARK} run --model resnet18 --image_size 32 --batch_size 1 --num_batches 3 \
                --num_warmup_batches 1 --output r.json && for host in n0 n1; do $NETLAB_RSH $host nft -j list chain netdev loss out; done >lost""")
        _, err = self.run_program(NETLAB, "--rate", "4gbit", "--loss", "0.5%", "--", "bash", "job")
        self.assertIn("0.5% of frames lost", err)
        self.assertEqual(self.read("r.json")["status"], "ok")
        for line in (self.folder / "lost").read_text().splitlines():
            # Each host sends at least 4 steps x 47 MB in frames of 1.5 kB: 620 +- 25 of them are lost.
            [lost] = re.findall(r'"counter": {"packets": (\d+)', line)
            self.assertTrue(500 < int(lost) < 2000, line)

    def test_preflight_names_the_host_whose_link_is_slow(self):
        (self.folder / "job").write_text(f"""
            /run/netlab/rsh switch tc qdisc change dev n2 root tbf rate 50mbit burst 70000 latency 10ms &&
            exec {SCALEMARK} preflight --ranks 3 --seconds 0.2 --sizes 8 --scratch_mb 1 --output p.json""")
        out, _ = self.run_program(NETLAB, "--hosts", "3", "--cores_per_host", "1", "--rate", "1gbit", "--", "bash", "job", expect=4)
        record = self.read("p.json")
        self.assertEqual(sorted(pair["hosts"] for pair in record["pairs"]), [["n0", "n1"], ["n0", "n2"], ["n1", "n2"]])
        slow = [check["host"] for check in record["checks"] if check["name"] == "pair.host" and check["status"] == "fail"]
        self.assertEqual(slow, ["n2"])
        self.assertIn("furthest behind", out)

    def test_four_hosts_share_cores_where_there_are_too_few(self):
        _, err = self.run_program(NETLAB, "--hosts", "4", "--cores_per_host", "1", "--", SCALEMARK, "scale", *SMALL,
                                  "--num_batches", "5", "--ranks", "4", "--repeats", "1", "--output", "s.json")
        self.assertEqual("hosts share cores" in err, CORES < 4)
        [path] = (path for path in self.folder.glob("s.runs/*.json") if "none" not in path.name)
        self.assertEqual([host for host, _ in places(self.read(path))], ["n0", "n1", "n2", "n3"])

    def test_any_program_of_a_users_mpirun(self):
        out, _ = self.run_program(NETLAB, "--", "mpirun", "-n", "2", "python3", "-c",
                                  "import os, socket; os.write(1, f\"{socket.gethostname()} {os.environ['GLOO_SOCKET_IFNAME']}\\n\".encode())")
        self.assertEqual(sorted(out.splitlines()), ["n0 eth0", "n1 eth0"])


class Ends(ProgramTest):
    DAEMON, ITS_END = "orted", "mpirun ended with status"

    """After each test ProgramTest finds no process that was started from here, the holders of the hosts included."""

    def start_lab(self, *words):
        """A lab with a long job that has begun to measure."""
        process = self.start(NETLAB, "--", *words, start_new_session=True)
        self.wait_for_line(process.stdout, "images/sec:")
        return process

    def namespaces_of(self, process):
        """Network namespaces of the processes below `process`, apart from ours."""
        pids = [process.pid]
        for pid in pids:
            pids += map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return {os.readlink(f"/proc/{pid}/ns/net") for pid in pids} - {os.readlink("/proc/self/ns/net")}

    def namespaces_in_use(self):
        """Network namespaces of all processes."""
        used = set()
        for path in pathlib.Path("/proc").glob("[0-9]*/ns/net"):
            with contextlib.suppress(OSError):  # it has just ended
                used.add(os.readlink(path))
        return used

    def assert_gone(self, process, namespaces, interfaces):
        process.stdout.read()
        code = process.wait(timeout=30)
        self.wait_until(lambda: set(os.listdir("/sys/class/net")) == interfaces, 10)
        self.assertNotIn("netlab", pathlib.Path("/proc/mounts").read_text())
        self.wait_until(lambda: not namespaces & self.namespaces_in_use(), 10, lambda: "its namespaces are still in use")
        return code

    def ended_by(self, number):
        interfaces = set(os.listdir("/sys/class/net"))
        process = self.start_lab(SCALEMARK, "scale", *LONG, "--ranks", "1,2", "--baseline=false", "--output", "s.json")
        namespaces = self.namespaces_of(process)
        self.assertEqual(len(namespaces), 3)  # two hosts and the switch
        process.send_signal(number)
        return self.assert_gone(process, namespaces, interfaces)

    def test_ctrl_c_is_the_commands_and_nothing_stays(self):
        self.assertEqual(self.ended_by(signal.SIGINT), 4)
        self.assertEqual(self.read("s.json")["status"], "interrupted")

    def test_a_killed_netlab_takes_everything_along(self):
        self.assertEqual(self.ended_by(signal.SIGKILL), -signal.SIGKILL)

    def test_the_commands_exit_code_stands_and_its_processes_end(self):
        self.run_program(NETLAB, "--", "bash", "-c", '$NETLAB_RSH n1 "sleep 600" & kill -KILL $$', expect=137)
        self.run_program(NETLAB, "--", "no_such_program", expect=127)

    def test_a_rank_killed_on_the_second_host_ends_the_job(self):
        self.run_program(NETLAB, "--", SCALEMARK, "scale", *SMALL, "--num_batches", "5", "--ranks", "1,2", "--repeats", "2",
                         "--output", "s.json", "--inject", "kill:rank=1:step=4", expect=4)
        self.assertEqual(self.read("s.json")["status"], "failed")

    def test_a_daemon_that_is_killed_is_no_stop_from_outside(self):
        """Open MPI then ends the ranks by SIGTERM."""
        (self.folder / "job").write_text(f"""
            (read -r line <began; pkill -KILL -x {self.DAEMON}) &
            {SCALEMARK} run {' '.join(LONG)} --ranks 2 --ranks_per_node 1 --output r.json | tee >(grep -m 1 images/sec: >began)
            exit ${{PIPESTATUS[0]}}""")
        os.mkfifo(self.folder / "began")
        self.run_program(NETLAB, "--", "bash", "job", expect=4)
        record = self.read("r.json")
        self.assertEqual(record["status"], "failed")
        self.assertRegex(record["reason"], self.ITS_END)

    def test_19_a_link_that_goes_down_is_a_timeout_that_names_the_rank(self):
        """tcp_retries2: mpirun itself waits for its lost daemon as long as TCP does, by default a quarter of an hour."""
        (self.folder / "job").write_text(f"""
            for host in n0 n1; do $NETLAB_RSH $host 'echo 4 >/proc/sys/net/ipv4/tcp_retries2'; done
            (read -r line <began; $NETLAB_RSH n1 ip link set eth0 down) &
            {' '.join(MPIRUN)} {SCALEMARK} run {' '.join(LONG)} --timeout 4 --output r.json | tee >(grep -m 1 images/sec: >began)
            exit ${{PIPESTATUS[0]}}""")
        os.mkfifo(self.folder / "began")
        _, err = self.run_program(NETLAB, "--", "bash", "job", expect=5)
        self.assertRegex(err, r"rank 1 on n1: silent")
        self.assertEqual(self.read("r.json")["status"], "timeout")

    def test_19_under_scale_mpirun_does_not_outlive_the_job(self):
        (self.folder / "job").write_text(f"""
            (read -r line <began; $NETLAB_RSH n1 ip link set eth0 down) &
            {SCALEMARK} scale {' '.join(LONG)} --ranks 2 --baseline=false --timeout 4 | tee >(grep -m 1 images/sec: >began)
            exit ${{PIPESTATUS[0]}}""")
        os.mkfifo(self.folder / "began")
        _, err = self.run_program(NETLAB, "--", "bash", "job", expect=5)
        self.assertRegex(err, r"rank 1 on n1: silent")


class EndsUnderOpenMpi5(UnderOpenMpi5, Ends):
    """What Open MPI 5 does with lost ranks, daemons and hosts."""
    DAEMON, ITS_END = "prted", r"killed by signal 9 \(KILL\)|ended with status 0"  # by which it hears of first
    test_19_a_link_that_goes_down_is_a_timeout_that_names_the_rank = None  # prterun 5.0.11 ends with 0 there


class WrongInput(ProgramTest):
    def test_it_is_refused_with_what_would_be_right(self):
        for words, naming in (
                ([], "COMMAND"), (["--"], "COMMAND"), (["--hosts", "1", "--", "true"], "2 to 200"),
                (["--hosts", "two", "--", "true"], "two"), (["--rate", "1gb", "--", "true"], "2.5gbit"),
                (["--rate", "0mbit", "--", "true"], "1mbit or more"), (["--delay", "1", "--", "true"], "500us or 1ms"),
                (["--loss", "1", "--", "true"], "0.1% or 1%"), (["--loss", "80%", "--", "true"], "50%"),
                (["--cores_per_host", "100000", "--", "true"], "cores here"),
                (["--speed", "1gbit", "--", "true"], "--speed")):
            _, err = self.run_program(NETLAB, *words, expect=2)
            self.assertIn(naming, err)

    def test_a_delay_needs_netem(self):
        process = self.start(NETLAB, "--delay", "1ms", "--", "true")
        _, err = process.communicate(timeout=30)
        if process.returncode == 0:
            self.skipTest("this kernel has netem")
        self.assertEqual(process.returncode, 7, err)
        self.assertIn("sch_netem", err)

    def test_without_root_or_capabilities_it_says_what_it_needs(self):
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        for words, naming in ((["setpriv", "--bounding-set=-net_admin"], "CAP_NET_ADMIN"),
                              (["setpriv", "--bounding-set=-sys_admin"], "CAP_SYS_ADMIN"), (nobody, "root")):
            process = self.start(*words, "/usr/bin/python3", "-", "--", "true", stdin=open(NETLAB, encoding="utf-8"))
            _, err = process.communicate(timeout=30)
            self.assertEqual(process.returncode, 7, err)
            self.assertIn(naming, err)

    def test_a_dry_run_prints_the_commands_and_does_nothing(self):
        out, _ = self.run_program(NETLAB, "--dry-run", "--hosts", "3", "--rate", "2.5gbit", "--", "mpirun", "-n", "3", "a b")
        self.assertEqual(out.count("tbf rate 2.5gbit"), 6)  # both ends of three links
        self.assertIn("mpirun -n 3 'a b'", out)


if __name__ == "__main__":
    main()
