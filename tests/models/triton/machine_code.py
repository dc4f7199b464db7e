"""What a Triton kernel is compiled to, without a GPU, by the disassemblers that come with Triton."""
import dataclasses
import pathlib
import re
import subprocess
import tempfile

import triton

TOOLS = pathlib.Path(triton.__file__).parent / "backends/nvidia/bin"
BITS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128}  # of an instruction that names none: 32


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


def code_of(made):
    """`made`: what triton.compile() has made."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        cubin.write(made.asm["cubin"])
        cubin.flush()
        usage = dict(re.findall(r"(REG|STACK|LOCAL):(\d+)", tool("cuobjdump", cubin.name, "--dump-resource-usage")))
        code = tool("nvdisasm", cubin.name, "--print-code")
    instructions = re.findall(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.a-z]*)", code, re.MULTILINE)
    return Compiled(int(usage["REG"]), int(usage["STACK"]) + int(usage["LOCAL"]), instructions)
