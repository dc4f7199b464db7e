"""What a Triton kernel is compiled to, without a GPU, by the disassemblers that come with Triton."""
import dataclasses
import pathlib
import re
import subprocess
import tempfile

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TOOLS = pathlib.Path(triton.__file__).parent / "backends/nvidia/bin"
BITS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128}  # of an instruction that names none: 32
ALIGNMENT_BYTES = 16  # of what LibTorch allocates, and more


@dataclasses.dataclass
class Compiled:
    registers: int
    spilled_bytes: int  # of a thread's stack and of its other memory outside registers
    instructions: list[str]  # mnemonics, such as "LDG.E.128.CONSTANT"

    def widths(self, operation):
        """Bits that the loads ("LDG") or stores ("STG") of a thread move, sorted, each once."""
        named = [name.split(".") for name in self.instructions]
        return sorted({next((BITS[part] for part in parts if part in BITS), 32) for parts in named if parts[0] == operation})


def tool(name, path, *options):
    return subprocess.run([TOOLS / name, *options, path], check=True, capture_output=True, text=True, timeout=120).stdout


def compile_for(kernel, version, types, warps, **constants):
    """`version`: 90 of sm_90; `types`: of its arguments in order, such as "*bf16"; pointers are aligned."""
    names = [name for name in kernel.arg_names if name not in constants]
    signature = {**dict(zip(names, types, strict=True)), **dict.fromkeys(constants, "constexpr")}
    attributes = {(kernel.arg_names.index(name),): [["tt.divisibility", ALIGNMENT_BYTES]]
                  for name, kind in signature.items() if kind.startswith("*")}
    source = ASTSource(kernel, signature, {(kernel.arg_names.index(k),): v for k, v in constants.items()}, attributes)
    made = triton.compile(source, target=GPUTarget("cuda", version, 32), options={"num_warps": warps})
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        cubin.write(made.asm["cubin"])
        cubin.flush()
        usage = dict(re.findall(r"(REG|STACK|LOCAL):(\d+)", tool("cuobjdump", cubin.name, "--dump-resource-usage")))
        code = tool("nvdisasm", cubin.name, "--print-code")
    instructions = re.findall(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.a-z]*)", code, re.MULTILINE)
    return Compiled(int(usage["REG"]), int(usage["STACK"]) + int(usage["LOCAL"]), instructions)
