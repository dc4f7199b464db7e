"""Cross-entropy of one row of logits a program, with label smoothing, as models/kernels/cross_entropy.cpp computes it on
the CPU. Rows whose label is `ignored` have loss and gradient 0. Logits: [rows, classes], one row after the other."""
import triton
import triton.language as tl


@triton.jit
def cross_entropy_forward(logits, labels, losses, normalisers, ignored, smoothing, classes,
                          BLOCK: tl.constexpr):
    """Of each row the loss and, for the gradient, the logarithm of the sum of exponentials; both fp32 [rows]."""
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    first = logits + row * classes
    highest, exponentials, plain, hit = -float("inf"), 0.0, 0.0, 0.0
    for begin in range(0, classes, BLOCK):
        column = begin + tl.arange(0, BLOCK)
        inside = column < classes
        x = tl.load(first + column, mask=inside, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(x, 0))
        exponentials = exponentials * tl.exp(highest - higher) + tl.sum(tl.exp(x - higher), 0)
        highest = higher
        plain += tl.sum(tl.where(inside, x, 0.0), 0)
        hit += tl.sum(tl.where(column == label, x, 0.0), 0)
    normaliser = highest + tl.log(exponentials)
    loss = normaliser - (1 - smoothing) * hit - smoothing / classes.to(tl.float32) * plain
    tl.store(losses + row, tl.where(label == ignored, 0.0, loss))
    tl.store(normalisers + row, normaliser)


@triton.jit
def cross_entropy_gradient(logits, labels, normalisers, scales, ignored, smoothing, classes,
                           BLOCK: tl.constexpr):
    """Writes the gradient by the logits in their place. `scales`: one fp32, the gradient by the sum of losses, which the
    host need not wait for."""
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    normaliser = tl.load(normalisers + row)
    scale = tl.where(label == ignored, 0.0, tl.load(scales))
    first = logits + row * classes
    for begin in range(0, classes, BLOCK):
        column = begin + tl.arange(0, BLOCK)
        inside = column < classes
        x = tl.load(first + column, mask=inside, other=-float("inf")).to(tl.float32)
        wanted = smoothing / classes.to(tl.float32) + tl.where(column == label, 1 - smoothing, 0.0)
        gradient = scale * (tl.exp(x - normaliser) - wanted)
        tl.store(first + column, gradient.to(logits.dtype.element_ty), mask=inside)
