#!/usr/bin/env python3
"""What CONTRIBUTING.md says of adding something holds: the files that it names are there, and models and communicators
are spelled in no source but those. Needs Python alone."""
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def sources_with(pattern, *ends):
    """Files of src/, models/, bench/ and lab/ with a line that matches, comments left out."""
    named = [f"--include=*{end}" for end in ends or (".cpp", ".hpp", ".inc")]
    found = subprocess.run(["grep", "-rnIE", *named, pattern,
                            "src", "models", "bench", "lab"], cwd=ROOT, text=True, stdout=subprocess.PIPE).stdout
    lines = (line.split(":", 2) for line in found.splitlines())
    return {path for path, _, text in lines if re.search(pattern, text.split("//")[0])}


def contributing(title):
    with open(os.path.join(ROOT, "CONTRIBUTING.md"), encoding="utf-8") as file:
        return re.search(rf"^## {title}$(.*?)^## ", file.read(), re.MULTILINE | re.DOTALL)[1]


class Additions(unittest.TestCase):
    def test_the_files_to_touch_are_there(self):
        checked = 0
        for what in "flag", "subcommand", "record key", "exit code", "model", "communicator":
            for path in re.findall(r"[`(]((?:src|models|tests|scripts|docs)/[\w./]+)[`)]", contributing(f"Adding an? {what}")):
                if re.search(r"\bNAME", path):
                    continue
                checked += 1
                self.assertTrue(os.path.exists(os.path.join(ROOT, path)), f"{what}: {path}")
        self.assertGreater(checked, 15)

    def test_a_model_is_its_file_and_its_line(self):
        self.assertEqual(sources_with(r'"smallnet"|make_smallnet'), {"models/smallnet.cpp", "models/catalog.inc"})

    def test_a_communicator_is_its_word_its_files_and_the_factory(self):
        listed = {"src/config/keys/machine.hpp", "src/comm/communicator.cpp"}
        self.assertEqual(sources_with(r"CommunicatorKind::nccl"), listed)
        self.assertEqual(sources_with(r"[Nn]ccl_?[Cc]ommunicator"),
                         {"src/comm/communicator.cpp", "src/comm/nccl_factory.hpp", "src/comm/no_cuda/nccl_factory.cpp",
                          "src/comm/cuda/nccl_communicator.cpp"})

    def test_what_is_used_has_its_licence_in_the_list(self):
        """docs/third_party.md: what scripts/setup installs and fetches, and what CMake looks for."""
        with open(os.path.join(ROOT, "scripts/setup"), encoding="utf-8") as file:
            setup = re.sub(r" +#.*", "", file.read())
        named = {word for words in re.findall(r"^(?:readonly )?(?!PIP)[A-Z_]+\+?=\(([^$)]+)\)", setup, re.MULTILINE)
                 for word in words.split()} | {"libfaketime"}
        with open(os.path.join(ROOT, "scripts/lock/make"), encoding="utf-8") as file:
            wheels = re.findall(r'"(\w+)(?:==[^"]+)?"', "".join(re.findall(r"^[A-Z_]+ = \[.*?\]$", file.read(), re.M | re.S)))
        self.assertGreater(len(wheels), 12)
        named.update(wheels)
        # What is wanted by name is in a list.
        locked = subprocess.run(["grep", "-rhoE", "^[a-z0-9-]+==[^;]+", "scripts/lock"], cwd=ROOT, text=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(set(wheels) - {line.split("==")[0].replace("-", "_") for line in locked.splitlines()}, set())
        for path in "CMakeLists.txt", "tests/CMakeLists.txt":
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                named.update(re.findall(r"find_package\((\w+)", file.read()))
        self.assertGreater(len(named), 35)
        with open(os.path.join(ROOT, "docs/third_party.md"), encoding="utf-8") as file:
            listed = set(re.findall(r"`([^`]+)`", file.read()))
        self.assertEqual(named - listed - {"Python3"}, set())

    def test_no_program_is_started_by_a_shell(self):
        """docs/security.md. src/launch/program_output.hpp starts one and reads what it says."""
        self.assertEqual(sources_with(r"\b(popen|system) *\("), set())
        self.assertEqual(sources_with(r"\b(shell *= *True|os\.(system|popen))\b", ""), set())

    def test_nothing_asks_for_the_name_of_a_communicator(self):
        self.assertEqual(sources_with(r'communicator_?(->|\.)name\(\) *[!=]='), set())


if __name__ == "__main__":
    unittest.main()
