"""A network of the user's own, as a file of TorchScript or a library of C++: trained, scaled and asked like those of
the catalog."""

import os
import pathlib
import re
import shutil
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
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="scalemark-own-")))
        subprocess.run([PYTHON, "-c", SAVE], check=True, cwd=cls.place)

    def setUp(self):
        super().setUp()
        shutil.copy(self.place / "net.pt", self.folder)

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
        self.assertRegex(err, "neither a network of torch.export nor a TorchScript module.*torch.export.save")


EXPORTS = """
import pathlib, sys
import torch
from torch import nn
from torch.nn import functional as F
sys.path.insert(0, sys.argv[1])
from exported_values import write
torch.manual_seed(1)


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.norm, self.head = nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.Linear(8, 10)
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("scale", torch.full((8,), 2.0), persistent=False)
        self.shift = torch.tensor([0.5])

    def forward(self, x):
        x = torch.relu(self.norm(self.convolution(x))).mean((2, 3)) * self.scale + self.shift
        return self.head(self.dropout(x.view(x.shape[0] * 2, -1).reshape(x.shape[0], -1)))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(20, 8), nn.Linear(8, 20, bias=False)
        self.head.weight = self.embedding.weight
        self.norm = nn.LayerNorm(8)

    def forward(self, tokens):
        with torch.no_grad():
            position = torch.arange(tokens.shape[1], device=tokens.device).float()[:, None] / tokens.shape[1]
        x = self.embedding(tokens) + position
        x = x + F.scaled_dot_product_attention(x, x, x)
        return self.head(self.norm(x))


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.recurrent, self.head = nn.LSTM(6, 4, batch_first=True), nn.Linear(4, 4)

    def forward(self, x, labels):
        rows = self.head(self.recurrent(x)[0].sum(1))
        return rows, F.cross_entropy(rows, labels), rows.softmax(1)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.linear(x), lambda x: self.linear(x) * 2, (x,))


@torch.library.custom_op("mine::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


@twice.register_fake
def _(x):
    return torch.empty_like(x)


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.ops.mine.twice(self.linear(x))


def save(net, inputs, name, **options):
    torch.export.save(torch.export.export(net, inputs, **options), name + ".pt2")


batch = {0: torch.export.Dim("batch", min=1, max=64)}
images = torch.randn(4, 3, 32, 32)
save(Images(), (images,), "trained", dynamic_shapes=(batch,))
save(Images().eval(), (images,), "asked", dynamic_shapes=(batch,))
save(Images(), (images,), "fixed")
save(Tied(), (torch.randint(20, (4, 7)),), "tied", dynamic_shapes=({0: batch[0], 1: torch.export.Dim("length", min=2, max=32)},))
save(Two(), (torch.randn(4, 2, 6), torch.tensor([0, 1, 2, 3])), "two", dynamic_shapes=(batch, batch))
save(Branches(), (torch.randn(4, 4),), "branches", dynamic_shapes=(batch,))
save(Custom(), (torch.randn(4, 4),), "custom", dynamic_shapes=(batch,))
values = pathlib.Path("values")
values.mkdir()
doubles = images.double()
write(Images().double().eval(), (doubles,), values, "images")
write(Images().double().eval(), (doubles,), values, "images_fixed", dynamic=False)
write(Images().double().eval(), (doubles,), values, "images_decomposed", decomposed=True)
write(Tied().double(), (torch.randint(20, (4, 7)),), values, "tied")
write(Two().double(), (torch.randn(4, 2, 6).double(), torch.tensor([0, 1, 2, 3])), values, "two")
"""


@unittest.skipUnless(PYTHON_HAS_TORCH, "no Python with torch here to export a network")
class Exported(ProgramTest):
    """Networks of torch.export.save."""

    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="scalemark-exported-")))
        subprocess.run([PYTHON, "-W", "ignore", "-c", EXPORTS, SOURCE / "tests/programs"], check=True, cwd=cls.place)

    def words(self, name, *more):
        return ["--model_file", self.place / f"{name}.pt2", "--num_batches", "5", "--num_warmup_batches", "2", *more]

    def refusal(self, code, name, *more):
        return self.run_program(SCALEMARK, "run", *self.words(name, *more), expect=code)[1]

    def test_outputs_and_gradients_equal_those_of_python(self):
        from exported_values import compared
        found = compared(BINARY / "bin/models_test", self.place / "values")
        self.assertEqual(set(found), {"images", "images_fixed", "images_decomposed", "tied", "two"})

    def test_it_is_trained_and_asked(self):
        for command, passes in (("run", 3), ("infer", 1)):
            for name in ("trained", "asked"):
                with self.subTest(command, name=name):
                    record = self.record_of(command, *self.words(name, "--batch_size", "4"))
                    self.assertEqual((record["status"], record["model"], record["unit"]), ("ok", "exported", "samples/sec"))
                    self.assertEqual((record["parameters"], record["flops_per_sample"]), (PARAMETERS, passes * FLOPS))

    def test_it_learns_in_every_precision_and_over_ranks(self):
        for precision in ("fp32", "bf16"):
            with self.subTest(precision):
                record = self.record_of("run", "--ranks", "2", *self.words("tied", "--batch_size", "4", "--precision", precision, "--num_batches", "60",
                                                                           "--init_learning_rate", "0.1", "--lr_schedule", "constant"))
                self.assertLess(record["loss"]["last"], 0.9 * record["loss"]["first"])

    def test_shared_weights_are_one_parameter_and_open_sizes_follow_input_shape(self):
        record = self.record_of("run", *self.words("tied", "--model_unit", "tokens", "--input_shape", "12"))
        self.assertEqual(record["parameters"], 20 * 8 + 16)
        self.assertIn("dimension 1", self.refusal(2, "tied", "--input_shape", "40"))
        self.assertIn("leave --input_shape out", self.refusal(2, "trained", "--input_shape", "3x16x16"))

    def test_several_inputs_and_a_loss_of_its_own(self):
        record = self.record_of("run", *self.words("two", "--loss", "own", "--batch_size", "6", "--micro_batch_size", "3", "--input", "host",
                                                   "--init_learning_rate", "0.1"))
        self.assertLess(record["loss"]["first"], 4)
        self.record_of("infer", *self.words("two", "--mode", "single_stream"))

    def test_a_fixed_batch_is_said(self):
        self.record_of("run", *self.words("fixed", "--batch_size", "4"))
        self.assertIn("a fixed batch of 4: use --batch_size 4, or export it with dynamic_shapes", self.refusal(2, "fixed", "--batch_size", "6"))
        self.assertIn("allows 1 to 64", self.refusal(2, "trained", "--batch_size", "65"))

    def test_what_cannot_be_run_is_named_with_its_place(self):
        self.assertRegex(self.refusal(2, "branches"), r"higher_order\.cond \(node .*control flow")
        self.assertRegex(self.refusal(2, "custom"), r"mine\.twice\.default \(node twice.*no such operator")

    def test_damaged_files_are_refused(self):
        whole = (self.place / "trained.pt2").read_bytes()
        damaged = self.folder / "damaged.pt2"
        for size in (0, 100, len(whole) // 2, len(whole) - 10):
            damaged.write_bytes(whole[:size])
            with self.subTest(size):
                _, err = self.run_program(SCALEMARK, "run", "--model_file", damaged, "--input_shape", "3x32x32", expect=6)
                self.assertIn("neither a network of torch.export nor", err)
        for old, new in ((b'"nodes"', b'"odes_"'), (b'"graph_module"', b'"graph-module"'), (b'"weight_0"', b'"weight_x"')):
            at = whole.index(old)
            damaged.write_bytes(whole[:at] + new + whole[at + len(old):])
            with self.subTest(new):
                _, err = self.run_program(SCALEMARK, "run", "--model_file", damaged, expect=6)
                self.assertIn("damaged.pt2", err)


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
