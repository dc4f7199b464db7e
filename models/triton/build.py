#!/usr/bin/env python3
"""Compiles the kernels for generations of GPUs, without one, and writes a C++ file that holds them
(models/triton/operators.hpp declares what it defines).
  build.py FOLDER VERSION...   FOLDER/triton_kernels.cpp and the binaries beside it; VERSION: 90 for sm_90"""
import pathlib
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from variants import VARIANTS, signature

MOST_SHARED_BYTES = 48 << 10  # of a block that asks for no more
HEAD = """// The kernels of models/triton/, compiled by its build.py.
#include <array>

#include "models/triton/operators.hpp"

"""


def compiled(variant, version):
    source = ASTSource(variant.kernel, *signature(variant))
    return triton.compile(source, target=GPUTarget("cuda", version, 32), options={"num_warps": variant.warps})


def main(folder, versions):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    binaries, rows = [], []
    for version in versions:
        for name, variant in VARIANTS.items():
            made = compiled(variant, version)
            scratch = made.metadata.global_scratch_size + made.metadata.profile_scratch_size
            if scratch or made.metadata.shared > MOST_SHARED_BYTES:  # the launcher gives none, and no more
                sys.exit(f"{name} for sm_{version} wants {scratch} bytes of scratch and {made.metadata.shared} of shared memory")
            symbol = f"scalemark_{name}_{version}"
            path = folder / f"{name}.sm_{version}.cubin"
            path.write_bytes(made.asm["cubin"])
            binaries.append(f'asm(".pushsection .rodata\\n.balign 16\\n{symbol}: .incbin \\"{path.resolve()}\\"\\n.popsection");\n'
                            f"extern const char {symbol}[];\n")
            kinds = variant.arguments.replace("a", "n").translate(str.maketrans("BFI", "ppp"))
            rows.append(f'    {{"{name}", "{made.metadata.name}", {version}, {symbol}, {variant.warps}, '
                        f'{made.metadata.shared}, "{kinds}"}},\n')
    (folder / "triton_kernels.cpp").write_text(
        HEAD + 'extern "C" {\n' + "".join(binaries) + "}\n\nnamespace scalemark {\n\n"
        "std::span<const CompiledKernel> compiled_kernels() {\n"
        f"  static const std::array<CompiledKernel, {len(rows)}> all{{{{\n" + "".join(rows) + "  }};\n  return all;\n}\n\n"
        "}  // namespace scalemark\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], [int(version) for version in sys.argv[2:]])
