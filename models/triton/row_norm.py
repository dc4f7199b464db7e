"""Layer normalisation of x + dropout(branch) (Ba, Kiros and Hinton 2016), and dropout(relu(x)). Masks are drawn from a key
and the place of an element (Philox), so the backward pass draws them again instead of keeping them."""
import triton
import triton.language as tl


@triton.jit
def kept_of(seed, offset, probability):
    """Which elements dropout keeps. The key lies on the GPU, so that a recorded step draws anew when it is repeated."""
    return tl.rand(tl.load(seed), offset) >= probability


@triton.jit
def add_norm(x, branch, weight, bias, y, sums, kept, seed, probability, epsilon, rows, width, DROP: tl.constexpr,
             BLOCK: tl.constexpr):
    """Of one row a program: sums = x + dropout(branch), y = its normalisation; kept fp32 [2, rows]: mean, 1 / deviation."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < width
    offset = row * width + column
    added = tl.load(branch + offset, mask=inside, other=0.0).to(tl.float32)
    if DROP:
        added = tl.where(kept_of(seed, offset, probability), added / (1 - probability), 0.0)
    total = (tl.load(x + offset, mask=inside, other=0.0).to(tl.float32) + added).to(sums.dtype.element_ty)
    tl.store(sums + offset, total, mask=inside)
    value = total.to(tl.float32)
    mean = tl.sum(value, 0) / width.to(tl.float32)
    difference = tl.where(inside, value - mean, 0.0)
    inverse = 1 / tl.sqrt(tl.sum(difference * difference, 0) / width.to(tl.float32) + epsilon)
    result = difference * inverse * tl.load(weight + column, mask=inside, other=0.0)
    result += tl.load(bias + column, mask=inside, other=0.0)
    tl.store(y + offset, result.to(y.dtype.element_ty), mask=inside)
    tl.store(kept + row, mean)
    tl.store(kept + rows + row, inverse)


@triton.jit
def add_norm_gradient(dy, sums, weight, kept, dx, dbranch, partial, seed, probability, rows, width, DROP: tl.constexpr,
                      BLOCK: tl.constexpr):
    """The gradients of x and of the branch, and of the rows of each program the sums of the gradients of bias and weight:
    partial fp32 [2, programs, width]. A program takes every num_programs-th row."""
    program = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < width
    factor = tl.load(weight + column, mask=inside, other=0.0)
    of_bias = tl.zeros((BLOCK,), tl.float32)
    of_weight = tl.zeros((BLOCK,), tl.float32)
    for row in range(program, rows, tl.num_programs(0)):
        offset = row * width + column
        gradient = tl.load(dy + offset, mask=inside, other=0.0).to(tl.float32)
        mean = tl.load(kept + row)
        inverse = tl.load(kept + rows + row)
        value = tl.load(sums + offset, mask=inside, other=0.0).to(tl.float32)
        normal = tl.where(inside, (value - mean) * inverse, 0.0)
        of_bias += gradient
        of_weight += gradient * normal
        scaled = gradient * factor
        mean_scaled = tl.sum(scaled, 0) / width.to(tl.float32)
        mean_product = tl.sum(scaled * normal, 0) / width.to(tl.float32)
        result = inverse * (scaled - mean_scaled - normal * mean_product)
        tl.store(dx + offset, result.to(dx.dtype.element_ty), mask=inside)
        if DROP:
            passed = tl.where(kept_of(seed, offset, probability), result / (1 - probability), 0.0)
            tl.store(dbranch + offset, passed.to(dbranch.dtype.element_ty), mask=inside)
    place = partial + program * width + column
    tl.store(place, of_bias, mask=inside)
    tl.store(place + tl.num_programs(0).to(tl.int64) * width, of_weight, mask=inside)


@triton.jit
def relu_dropout(x, y, seed, probability, elements, BLOCK: tl.constexpr):
    offset = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < elements
    value = tl.load(x + offset, mask=inside, other=0.0).to(tl.float32)
    passed = tl.where(kept_of(seed, offset, probability), tl.where(value < 0, 0.0, value) / (1 - probability), 0.0)
    tl.store(y + offset, passed.to(y.dtype.element_ty), mask=inside)


@triton.jit
def relu_dropout_gradient(dy, y, dx, probability, elements, BLOCK: tl.constexpr):
    """What the forward pass has written tells which elements have passed: those above zero."""
    offset = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offset < elements
    gradient = tl.load(dy + offset, mask=inside, other=0.0).to(tl.float32) / (1 - probability)
    passed = tl.where(tl.load(y + offset, mask=inside, other=0.0).to(tl.float32) > 0, gradient, 0.0)
    tl.store(dx + offset, passed.to(dx.dtype.element_ty), mask=inside)
