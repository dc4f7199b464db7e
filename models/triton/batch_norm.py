"""Batch normalisation of training over rows of channels [rows, channels], the form of channels_last activations, with the
addition of a residual and ReLU, as models/kernels/batch_norm.cpp computes it on the CPU: two passes over memory in each
direction. A program takes `rows_each` rows of BLOCK channels, in tiles of BLOCK_ROWS; what programs of the same channels
have summed is combined in their order, so the result is the same in every run."""
import triton
import triton.language as tl


@triton.jit
def tile_of(first, column, rows, channels, BLOCK_ROWS: tl.constexpr):
    """Offsets of a tile, and which of them are inside."""
    row = first + tl.arange(0, BLOCK_ROWS)
    return row[:, None] * channels + column[None, :], (row < rows)[:, None] & (column < channels)[None, :]


@triton.jit
def share_of(rows, channels, rows_each, BLOCK: tl.constexpr):
    """Of this program the first row, the number of rows, the columns, and which of these are inside."""
    first = tl.program_id(0).to(tl.int64) * rows_each
    column = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    return first, tl.minimum(rows - first, rows_each), column, column < channels


@triton.jit
def batch_norm_moments(x, partial, rows, channels, rows_each, BLOCK_ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Of the rows of each program their mean and the sum of squared differences from it: partial fp32 [2, programs,
    channels]."""
    first, count, column, inside = share_of(rows, channels, rows_each, BLOCK)
    shift = tl.load(x + first * channels + column, mask=inside, other=0.0).to(tl.float32)
    sums = tl.zeros((BLOCK_ROWS, BLOCK), tl.float32)
    squares = tl.zeros((BLOCK_ROWS, BLOCK), tl.float32)
    for begin in range(0, count, BLOCK_ROWS):
        offset, here = tile_of(first + begin, column, first + count, channels, BLOCK_ROWS)
        value = tl.load(x + offset, mask=here, other=0.0).to(tl.float32)
        difference = tl.where(here, value - shift[None, :], 0.0)
        sums += difference
        squares += difference * difference
    sum_of_differences = tl.sum(sums, 0)
    mean = sum_of_differences / count.to(tl.float32)
    place = partial + tl.program_id(0).to(tl.int64) * channels + column
    tl.store(place, shift + mean, mask=inside)
    tl.store(place + tl.num_programs(0).to(tl.int64) * channels, tl.sum(squares, 0) - sum_of_differences * mean,
             mask=inside)


@triton.jit
def batch_norm_statistics(partial, kept, running_mean, running_variance, programs, rows, rows_each, channels, momentum,
                          epsilon, BLOCK_PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Combines them (Chan, Golub and LeVeque 1983) to kept fp32 [2, channels]: mean, 1 / sqrt(variance + epsilon), and moves
    the running statistics, the variance unbiased."""
    column = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = column < channels
    means = tl.zeros((BLOCK_PARTS, BLOCK), tl.float32)
    for begin in range(0, programs, BLOCK_PARTS):
        offset, here = tile_of(begin, column, programs, channels, BLOCK_PARTS)
        count = tl.minimum(rows - (begin + tl.arange(0, BLOCK_PARTS)) * rows_each, rows_each).to(tl.float32)
        means += tl.load(partial + offset, mask=here, other=0.0) * count[:, None]
    mean = tl.sum(means, 0) / rows.to(tl.float32)
    squares = tl.zeros((BLOCK_PARTS, BLOCK), tl.float32)
    for begin in range(0, programs, BLOCK_PARTS):
        offset, here = tile_of(begin, column, programs, channels, BLOCK_PARTS)
        count = tl.minimum(rows - (begin + tl.arange(0, BLOCK_PARTS)) * rows_each, rows_each).to(tl.float32)
        away = tl.load(partial + offset, mask=here, other=0.0) - mean[None, :]
        within = tl.load(partial + programs * channels + offset, mask=here, other=0.0)
        squares += tl.where(here, within + away * away * count[:, None], 0.0)
    square = tl.sum(squares, 0)
    tl.store(kept + column, mean, mask=inside)
    tl.store(kept + channels + column, 1 / tl.sqrt(square / rows.to(tl.float32) + epsilon), mask=inside)
    old_mean = tl.load(running_mean + column, mask=inside)
    old_variance = tl.load(running_variance + column, mask=inside)
    tl.store(running_mean + column, old_mean + momentum * (mean - old_mean), mask=inside)
    unbiased = square / (rows - 1).to(tl.float32)
    tl.store(running_variance + column, old_variance + momentum * (unbiased - old_variance), mask=inside)


@triton.jit
def batch_norm_apply(x, residual, y, kept, weight, bias, rows, channels, rows_each, RELU: tl.constexpr, ADD: tl.constexpr,
                     BLOCK_ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """y = relu((x - mean) inverse weight + bias + residual); without ADD there is no residual."""
    first, count, column, inside = share_of(rows, channels, rows_each, BLOCK)
    mean = tl.load(kept + column, mask=inside)
    scale = tl.load(kept + channels + column, mask=inside) * tl.load(weight + column, mask=inside)
    shift = tl.load(bias + column, mask=inside)
    for begin in range(0, count, BLOCK_ROWS):
        offset, here = tile_of(first + begin, column, first + count, channels, BLOCK_ROWS)
        value = tl.load(x + offset, mask=here).to(tl.float32)
        result = (value - mean[None, :]) * scale[None, :] + shift[None, :]
        if ADD:
            result += tl.load(residual + offset, mask=here).to(tl.float32)
        if RELU:
            result = tl.where(result < 0, 0.0, result)  # which keeps NaN
        tl.store(y + offset, result.to(y.dtype.element_ty), mask=here)


@triton.jit
def batch_norm_gradient_sums(dy, x, y, partial, kept, rows, channels, rows_each, RELU: tl.constexpr,
                             BLOCK_ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Of the rows of each program the sums of the gradient g before ReLU, and of g (x - mean) inverse: partial fp32 [2,
    programs, channels]. `y` is the result, which tells where ReLU has passed."""
    first, count, column, inside = share_of(rows, channels, rows_each, BLOCK)
    mean = tl.load(kept + column, mask=inside)
    inverse = tl.load(kept + channels + column, mask=inside)
    sums = tl.zeros((BLOCK_ROWS, BLOCK), tl.float32)
    products = tl.zeros((BLOCK_ROWS, BLOCK), tl.float32)
    for begin in range(0, count, BLOCK_ROWS):
        offset, here = tile_of(first + begin, column, first + count, channels, BLOCK_ROWS)
        gradient = tl.load(dy + offset, mask=here, other=0.0).to(tl.float32)
        if RELU:
            gradient = tl.where(tl.load(y + offset, mask=here, other=0.0).to(tl.float32) > 0, gradient, 0.0)
        normal = (tl.load(x + offset, mask=here, other=0.0).to(tl.float32) - mean[None, :]) * inverse[None, :]
        sums += gradient
        products += gradient * normal
    place = partial + tl.program_id(0).to(tl.int64) * channels + column
    tl.store(place, tl.sum(sums, 0), mask=inside)
    tl.store(place + tl.num_programs(0).to(tl.int64) * channels, tl.sum(products, 0), mask=inside)


@triton.jit
def sums_of_parts(partial, sums, programs, channels, BLOCK_PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Sums partial fp32 [2, programs, channels] over programs: fp32 [2, channels]. The grid's second side is 2."""
    half = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK_PARTS, BLOCK), tl.float32)
    for begin in range(0, programs, BLOCK_PARTS):
        offset, here = tile_of(begin, column, programs, channels, BLOCK_PARTS)
        total += tl.load(partial + half * programs * channels + offset, mask=here, other=0.0)
    tl.store(sums + half * channels + column, tl.sum(total, 0), mask=column < channels)


@triton.jit
def batch_norm_gradient(dy, x, y, dx, dresidual, kept, sums, weight, rows, channels, rows_each, RELU: tl.constexpr,
                        ADD: tl.constexpr, BLOCK_ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """dx = weight inverse (g - mean of g - normal x, mean of g normal x), and with ADD the residual's, which is g."""
    first, count, column, inside = share_of(rows, channels, rows_each, BLOCK)
    mean = tl.load(kept + column, mask=inside)
    inverse = tl.load(kept + channels + column, mask=inside)
    scale = inverse * tl.load(weight + column, mask=inside)
    mean_gradient = tl.load(sums + column, mask=inside) / rows.to(tl.float32)
    mean_product = tl.load(sums + channels + column, mask=inside) / rows.to(tl.float32)
    for begin in range(0, count, BLOCK_ROWS):
        offset, here = tile_of(first + begin, column, first + count, channels, BLOCK_ROWS)
        gradient = tl.load(dy + offset, mask=here).to(tl.float32)
        if RELU:
            gradient = tl.where(tl.load(y + offset, mask=here).to(tl.float32) > 0, gradient, 0.0)
        normal = (tl.load(x + offset, mask=here).to(tl.float32) - mean[None, :]) * inverse[None, :]
        result = scale[None, :] * (gradient - mean_gradient[None, :] - normal * mean_product[None, :])
        tl.store(dx + offset, result.to(dx.dtype.element_ty), mask=here)
        if ADD:
            tl.store(dresidual + offset, gradient.to(dresidual.dtype.element_ty), mask=here)
