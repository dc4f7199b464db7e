#!/usr/bin/env python3
"""A real Slurm of two nodes, n0 and n1, on this one machine: slurmctld, a slurmd for each node, and munged.

All of it lives in a PID namespace whose first process dies with the test: the kernel then kills what is left and takes
network and mounts away. usage: tests/programs/slurm_lab.py COMMAND...: runs a command beside such a Slurm.
"""

import ctypes
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
import traceback

NAMESPACES = 0x00020000 | 0x04000000 | 0x20000000 | 0x40000000  # of mounts, names, processes, network: <sched.h>
PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "unshare", "ip")
NODES = ("n0", "n1")
FOLDER = pathlib.Path("/run/slurm-lab")  # a tmpfs that only the lab sees, all of its nodes
SOURCE = pathlib.Path(__file__).resolve().parents[2]
KILL_WAIT_SECONDS = 5  # between Slurm's SIGTERM and its SIGKILL; a site's default is 30
libc = ctypes.CDLL(None, use_errno=True)

# No control groups, no accounting: a container has neither. Both nodes have the same two CPUs, or the only one, and
# call each a core (config_overrides), whatever hardware threads they are. The nodes of the partition gpus are there by
# name: jobs can be asked of them, as of a cluster of 4 x 8 GPUs, and wait.
SLURM_CONF = """\
ClusterName=lab
SlurmctldHost=login
SlurmctldPort=6817
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmUser=root
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool-%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait={kill_wait}
MinJobAge=300
InactiveLimit=0
NodeName=n0 NodeHostname=n0 NodeAddr=10.78.0.1 Port=6818 CPUs={cores} Boards=1 SocketsPerBoard=1 CoresPerSocket={cores} ThreadsPerCore=1 RealMemory=500
NodeName=n1 NodeHostname=n1 NodeAddr=10.78.0.2 Port=6819 CPUs={cores} Boards=1 SocketsPerBoard=1 CoresPerSocket={cores} ThreadsPerCore=1 RealMemory=500
PartitionName=lab Nodes=n0,n1 Default=YES MaxTime=INFINITE State=UP
GresTypes=gpu
NodeName=g[0-3] NodeAddr=10.78.0.9 Port=6820 CPUs=96 Boards=1 SocketsPerBoard=2 CoresPerSocket=48 ThreadsPerCore=1 RealMemory=500 Gres=gpu:8 State=DOWN
PartitionName=gpus Nodes=g[0-3] MaxTime=INFINITE State=UP
"""

# Slurm resolves no name where there is but a loopback interface.
LOGIN = f"""\
mount --make-rprivate /
mount -t proc proc /proc
mkdir -p {FOLDER}
mount -t tmpfs -o mode=755 slurm-lab {FOLDER}
printf '127.0.0.1 localhost\n10.78.0.1 n0\n10.78.0.2 n1\n10.78.0.3 login\n' >{FOLDER}/hosts
mount --bind {FOLDER}/hosts /etc/hosts
echo login >/proc/sys/kernel/hostname
ip link set lo up
ip link add eth0 type veth peer name eth1
for address in 1 2 3; do ip address add 10.78.0.$address/24 dev eth0; done
ip link set eth1 up
ip link set eth0 up
"""

# A node has a name and a /tmp of its own, in which a source tree below /tmp stays visible.
NODE = f"""\
mount --make-rprivate /
mkdir -m 1777 {FOLDER}/tmp-$NODE
case {shlex.quote(str(SOURCE))} in /tmp/*)
  mkdir -p {FOLDER}/tmp-$NODE{shlex.quote(str(SOURCE)[4:])}
  mount --rbind {shlex.quote(str(SOURCE))} {FOLDER}/tmp-$NODE{shlex.quote(str(SOURCE)[4:])} ;;
esac
mount --rbind {FOLDER}/tmp-$NODE /tmp
mount -t tmpfs tmpfs /dev/shm
echo $NODE >/proc/sys/kernel/hostname
exec slurmd -D -N $NODE
"""


def missing():
    """Why there can be no lab here; empty where there can."""
    if os.geteuid() != 0:
        return "only root may make the namespaces of a Slurm lab"
    lacking = [name for name in PROGRAMS if not shutil.which(name, path=search_path())]
    if lacking:
        return f"no {', '.join(lacking)}: apt-get install slurmctld slurmd slurm-client munge iproute2"
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(in_namespaces(lambda: 0))
        except OSError:
            os._exit(1)
    if os.waitpid(pid, 0)[1] != 0:
        return "a lab needs CAP_SYS_ADMIN and CAP_NET_ADMIN (docker run --privileged), and veth in the kernel"
    return ""


def search_path():
    return os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"


def in_namespaces(function):
    """Calls `function` in a process of new PID, mount and network namespaces; its return value is the exit code. The
    namespaces' first process reaps orphans and ends with this one."""
    if libc.unshare(NAMESPACES) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    first = os.fork()
    if first == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os._exit(first_process(function))
    return os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])


def first_process(function):
    made = subprocess.run(["sh", "-ec", LOGIN], check=False, env={**os.environ, "PATH": search_path()})
    if made.returncode != 0:
        return 7
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = function()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


class SlurmLab:
    """To be used within in_namespaces(), once. Sets SLURM_CONF and PATH for whatever is started from here."""

    def __init__(self):
        self.daemons = []

    def __enter__(self):
        for name in ("munge", "state", *(f"spool-{node}" for node in NODES), "work"):
            (FOLDER / name).mkdir()
        os.environ["PATH"] = search_path()
        os.environ["SLURM_CONF"] = str(FOLDER / "slurm.conf")
        cores = min(2, len(os.sched_getaffinity(0)))
        (FOLDER / "slurm.conf").write_text(SLURM_CONF.format(folder=FOLDER, cores=cores, kill_wait=KILL_WAIT_SECONDS))
        self.start_munge()
        self.launch("slurmctld", "slurmctld", "-D", "-c")
        for node in NODES:
            self.launch(f"slurmd-{node}", "env", f"NODE={node}", "unshare", "-m", "-u", "-i", "sh", "-ec", NODE)
        self.wait(self.idle, "the nodes do not become idle")
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.kill()
            daemon.wait()

    def start_munge(self):
        """As root, on a socket of its own: a real Slurm here is not disturbed."""
        munge = FOLDER / "munge"
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o400)
        self.launch("munged", "munged", "--foreground", "--num-threads=2", f"--key-file={munge}/key",
                    f"--socket={munge}/socket", f"--pid-file={munge}/pid", f"--seed-file={munge}/seed")
        self.wait((munge / "socket").exists, "munged makes no socket")

    def launch(self, name, *words):
        with open(FOLDER / f"{name}.out", "wb") as out:
            self.daemons.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT))

    @staticmethod
    def idle():
        done = subprocess.run(["sinfo", "-h", "-N", "-p", "lab", "-o", "%t"], capture_output=True, text=True, check=False)
        return done.stdout.split() == ["idle"] * len(NODES)

    @staticmethod
    def has_pmix():
        return "pmix" in subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True, check=False).stdout

    def wait(self, condition, complaint, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or any(daemon.poll() is not None for daemon in self.daemons):
                raise RuntimeError(f"{complaint}\n{self.logs()}")
            time.sleep(0.05)

    def logs(self):
        """The last lines of every daemon."""
        return "\n".join(f"--- {file.name}\n" + "\n".join(file.read_text(errors="replace").splitlines()[-15:])
                         for file in sorted(FOLDER.glob("*.out")))


def run_command(words):
    with SlurmLab():
        return subprocess.run(words, check=False).returncode


def main():
    if len(sys.argv) < 2:
        print("usage: tests/programs/slurm_lab.py COMMAND...", file=sys.stderr)
        return 2
    if reason := missing():
        print(f"slurm_lab: {reason}", file=sys.stderr)
        return 7
    return in_namespaces(lambda: run_command(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
