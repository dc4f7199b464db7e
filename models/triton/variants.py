"""The kernels that the engine launches, by the name by which it asks for them: what they are compiled for, and what the
interpreter runs in a test. Adding one: its function, a row here, a call in operators.cpp."""
import dataclasses

from batch_norm import (batch_norm_apply, batch_norm_gradient, batch_norm_gradient_sums, batch_norm_moments,
                        batch_norm_statistics, sums_of_parts)
from cross_entropy import cross_entropy_forward, cross_entropy_gradient
from row_norm import add_norm, add_norm_gradient, relu_dropout, relu_dropout_gradient

ALIGNMENT = 16  # bytes: of what LibTorch allocates, and more; and elements: of rows, where an argument says so
TYPES = {"B": "*bf16", "F": "*fp32", "I": "*i64", "n": "i64", "a": "i64", "f": "fp32"}  # a: a multiple of ALIGNMENT


@dataclasses.dataclass
class Variant:
    kernel: object
    arguments: str  # a letter of TYPES for each that is not a constant, in order
    constants: dict
    warps: int = 4

    def names(self):
        return [name for name in self.kernel.arg_names if name not in self.constants]


TILE = {"BLOCK_ROWS": 32, "BLOCK": 64}  # of rows of channels
PARTS = {"BLOCK_PARTS": 128, "BLOCK": 16}
ROW = {"BLOCK": 1024}  # the widest row that is normalised
FLAT = {"BLOCK": 2048}
CLASSES = {"BLOCK": 4096}

VARIANTS = {
    "batch_norm_moments": Variant(batch_norm_moments, "BFnan", TILE),
    "batch_norm_statistics": Variant(batch_norm_statistics, "FFFFnnnaff", PARTS),
    "batch_norm_apply": Variant(batch_norm_apply, "BBBFFFnan", {**TILE, "RELU": False, "ADD": False}),
    "batch_norm_apply_relu": Variant(batch_norm_apply, "BBBFFFnan", {**TILE, "RELU": True, "ADD": False}),
    "batch_norm_apply_add_relu": Variant(batch_norm_apply, "BBBFFFnan", {**TILE, "RELU": True, "ADD": True}),
    "batch_norm_gradient_sums": Variant(batch_norm_gradient_sums, "BBBFFnan", {**TILE, "RELU": False}),
    "batch_norm_gradient_sums_relu": Variant(batch_norm_gradient_sums, "BBBFFnan", {**TILE, "RELU": True}),
    "batch_norm_gradient": Variant(batch_norm_gradient, "BBBBBFFFnan", {**TILE, "RELU": False, "ADD": False}),
    "batch_norm_gradient_relu": Variant(batch_norm_gradient, "BBBBBFFFnan", {**TILE, "RELU": True, "ADD": False}),
    "batch_norm_gradient_add_relu": Variant(batch_norm_gradient, "BBBBBFFFnan", {**TILE, "RELU": True, "ADD": True}),
    "sums_of_parts": Variant(sums_of_parts, "FFna", PARTS),
    "add_norm": Variant(add_norm, "BBFFBBFIffna", {**ROW, "DROP": False}),
    "add_norm_drop": Variant(add_norm, "BBFFBBFIffna", {**ROW, "DROP": True}),
    "add_norm_gradient": Variant(add_norm_gradient, "BBFFBBFIfna", {**ROW, "DROP": False}),
    "add_norm_gradient_drop": Variant(add_norm_gradient, "BBFFBBFIfna", {**ROW, "DROP": True}),
    "relu_dropout": Variant(relu_dropout, "BBIfa", FLAT),
    "relu_dropout_gradient": Variant(relu_dropout_gradient, "BBBfa", FLAT),
    "cross_entropy_forward": Variant(cross_entropy_forward, "BIFFnfa", CLASSES, warps=8),
    "cross_entropy_gradient": Variant(cross_entropy_gradient, "BIFFnfa", CLASSES, warps=8),
}


def signature(variant):
    """The types of the arguments in Triton's words, and which are multiples of ALIGNMENT, by place among all."""
    kernel = variant.kernel
    kinds = dict(zip(variant.names(), variant.arguments, strict=True))
    types = {**{name: TYPES[kind] for name, kind in kinds.items()}, **dict.fromkeys(variant.constants, "constexpr")}
    aligned = {(kernel.arg_names.index(name),): [["tt.divisibility", ALIGNMENT]]
               for name, kind in kinds.items() if kind in "BFIa"}
    constants = {(kernel.arg_names.index(name),): value for name, value in variant.constants.items()}
    return types, constants, aligned
