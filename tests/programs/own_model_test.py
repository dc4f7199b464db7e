"""A network of the user's own, as a file of TorchScript or a library of C++: trained, scaled and asked like those of
the catalog."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from support import BINARY, PYTHON_HAS_TORCH, SCALEMARK, SOURCE, ProgramTest, main

PYTHON = sys.executable
SAVE = """
import torch
from torch import nn
net = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
torch.jit.save(torch.jit.script(net), "net.pt")
"""
PARAMETERS = 8 * 3 * 9 + 8 + 16 + 80 + 10
FLOPS = 2 * (16 * 16 * 8 * 27 + 8 * 10)
OWN = ["--model_file", "net.pt", "--input_shape", "3x32x32", "--batch_size", "4", "--num_warmup_batches", "2"]


@unittest.skipUnless(PYTHON_HAS_TORCH, "no Python with torch here to write a module")
class OwnModel(ProgramTest):
    def setUp(self):
        super().setUp()
        subprocess.run([PYTHON, "-c", SAVE], check=True, cwd=self.folder)

    def test_it_is_trained_and_asked(self):
        for command in ("run", "infer"):
            with self.subTest(command):
                record = self.record_of(command, *OWN, "--num_batches", "10", "--model_unit", "images")
                self.assertEqual((record["status"], record["model"], record["unit"]), ("ok", "torchscript", "images/sec"))
                self.assertEqual(record["parameters"], PARAMETERS)
                passes = 3 if command == "run" else 1
                self.assertEqual(record["flops_per_sample"], passes * FLOPS)
                self.assertGreater(record["achieved_flops"], 0)
                given = self.record_of(command, *OWN, "--num_batches", "3", "--model_flops", "1000")
                self.assertEqual(given["flops_per_sample"], passes * 1000)

    def test_it_learns_in_every_precision_and_over_ranks(self):
        for precision in ("fp32", "bf16"):
            with self.subTest(precision):
                record = self.record_of("run", "--ranks", "2", *OWN, "--num_batches", "60", "--precision", precision,
                                        "--init_learning_rate", "0.1", "--lr_schedule", "constant")
                self.assertLess(record["loss"]["last"], 0.8 * record["loss"]["first"])
                self.assertGreaterEqual(record["communication"]["bytes_per_step"], 4 * PARAMETERS)

    def test_a_curve(self):
        record = self.record_of("scale", "--ranks", "1,2", *OWN, "--num_batches", "5", "--repeats", "1")
        self.assertEqual([point["ranks"] for point in record["points"]], [1, 2])

    def test_the_file_and_not_its_place_is_what_is_measured(self):
        first = self.record_of("run", *OWN, "--num_batches", "3")
        (self.folder / "elsewhere.pt").write_bytes((self.folder / "net.pt").read_bytes())
        other = self.record_of("run", *OWN, "--num_batches", "3", "--model_file", "elsewhere.pt")
        self.assertEqual(first["config_hash"], other["config_hash"])
        with open(self.folder / "elsewhere.pt", "ab") as file:
            file.write(b" ")
        _, err = self.run_program(SCALEMARK, "run", *OWN, "--model_file", "elsewhere.pt", "--model_digest",
                                  first["config"]["model_digest"]["value"], expect=2)
        self.assertIn("has the SHA-256", err)

    def test_measured_again_another_file_is_named_and_one_that_is_gone_refused(self):
        self.record_of("run", *OWN, "--num_batches", "3")
        again = [SCALEMARK, "run", "--again", "record.json"]
        self.assertIn("the settings are the same", self.run_program(*again)[0])
        with open(self.folder / "net.pt", "ab") as file:
            file.write(b" ")
        self.assertRegex(self.run_program(*again)[0], r'model_digest \(then: "[0-9a-f]+"\.*; now: "[0-9a-f]+"\.*\)')
        (self.folder / "net.pt").unlink()
        self.assertIn("--model_file net.pt: no such file", self.run_program(*again, expect=2)[1])

    def test_what_has_no_meaning_is_refused(self):
        for words, said in ((["--model_file", "net.pt"], "needs --input_shape"), ([*OWN, "--model", "vgg"], "unknown"),
                            ([*OWN, "--model", "smallnet"], "one network is measured"), ([*OWN, "--dry_run"], "tells nothing"),
                            ([*OWN, "--input_shape", "3x-1"], "3x224x224"), ([*OWN, "--model_file", "none.pt"], "no such file"),
                            (["--input_shape", "3"], "belong to --model_file"), (["--model_unit", "tokens"], "belong to"),
                            ([*OWN, "--model_library", "m.so"], "one network is measured"), ([*OWN, "--input_shape", "5"], "fails")):
            with self.subTest(said):
                _, err = self.run_program(SCALEMARK, "run", *words, expect=2)
                self.assertIn(said, err)
                self.assertNotIn("Traceback", err)
        pathlib.Path(self.folder / "net.pt").write_text("no module")
        _, err = self.run_program(SCALEMARK, "run", *OWN, expect=6)
        self.assertIn("no TorchScript module", err)


class OwnLibrary(ProgramTest):
    """The example of docs/adding_a_model.md, built by the line that stands there."""

    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="scalemark-own-")))
        text = (SOURCE / "docs/adding_a_model.md").read_text()
        cls.code = re.search(r"```cpp\n(.*?)```", text, re.DOTALL)[1]
        cls.line = re.search(r"^g\+\+ .*$", text, re.MULTILINE)[0].replace("-O2", "-O0")
        cls.library = cls.build("my_model", cls.code)

    @classmethod
    def build(cls, name, code):
        cache = (BINARY / "CMakeCache.txt").read_text()
        torch = re.search(r"^TorchLib_CPU_LIBRARY:FILEPATH=(.*)/lib/libtorch_cpu.so$", cache, re.MULTILINE)[1]
        (cls.place / f"{name}.cpp").write_text(code)
        subprocess.run(cls.line.replace("my_model", name), shell=True, check=True, cwd=cls.place,
                       env=os.environ | {"INCLUDE": str(SOURCE), "TORCH": torch})
        return cls.place / f"{name}.so"

    def test_it_is_trained_over_ranks_scaled_and_asked(self):
        words = ["--model_library", self.library, "--batch_size", "16", "--num_batches", "20"]
        passes = 2 * (784 * 512 + 512 * 10)
        for precision in ("fp32", "bf16"):
            record = self.record_of("run", "--ranks", "2", *words, "--precision", precision, "--init_learning_rate", "0.01")
            self.assertEqual((record["status"], record["model"], record["unit"]), ("ok", "library", "samples/sec"))
            self.assertEqual(record["parameters"], 785 * 512 + 513 * 10)
            self.assertEqual(record["flops_per_sample"], 3 * passes)
            self.assertLess(record["loss"]["last"], record["loss"]["first"])
            self.assertGreaterEqual(record["communication"]["bytes_per_step"], 4 * record["parameters"])
        self.assertEqual(self.record_of("infer", *words)["flops_per_sample"], passes)
        curve = self.record_of("scale", "--ranks", "1,2", *words, "--repeats", "1")
        self.assertEqual([point["ranks"] for point in curve["points"]], [1, 2])

    def test_what_is_no_library_of_ours_is_refused(self):
        (self.folder / "text.so").write_text("no library")
        other = self.build("other", 'extern "C" const char* scalemark_model_interface() { return "interface 0"; }\n')
        nothing = self.build("nothing", "int nothing;\n")
        for library, said, code in (("none.so", "no such file", 2), ("text.so", "cannot be loaded", 6), (other, "compile it again", 6),
                                    (nothing, "SCALEMARK_MODEL", 6)):
            with self.subTest(said):
                _, err = self.run_program(SCALEMARK, "run", "--model_library", library, "--num_batches", "3", expect=code)
                self.assertIn(said, err)
        _, err = self.run_program(SCALEMARK, "run", "--model_library", self.library, "--data", "learnable", expect=2)
        self.assertIn("learnable", err)


if __name__ == "__main__":
    main()
