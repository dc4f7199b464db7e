"""Transformer (Vaswani et al. 2017, "Attention Is All You Need") in plain tensor operations, for make_golden.py.

Post-norm with a final norm after each stack, ReLU, one embedding shared by source, target and output projection, no
dropout. Tensors are (batch, length, d) and (batch, heads, length, d / heads).
"""

import torch
import torch.nn.functional as F
from golden import BATCH, Parameters, write


def positions(length, d):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same; section 3.5."""
    angle = torch.arange(length, dtype=torch.float64)[:, None] / 10000 ** (
        torch.arange(0, d, 2, dtype=torch.float64) / d)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).reshape(length, d)


def norm(p, d, epsilon=1e-5):
    gamma, beta = p.gamma(d), p.bias(d)

    def run(x):
        mean, var = x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True)
        return (x - mean) / (var + epsilon).sqrt() * gamma + beta

    return run


def attention(p, d, heads, projections, causal=False):
    """projections: which of q, k and v share a matrix, in the order of creation: ("qkv",) or ("q", "kv")."""
    pieces = [(p.weight(len(names) * d, d), p.bias(len(names) * d)) for names in projections]
    out_weight, out_bias = p.weight(d, d), p.bias(d)

    def run(x, memory):
        weight, bias = torch.cat([w for w, _ in pieces]), torch.cat([b for _, b in pieces])
        q, k, v = (source @ w.T + b for source, w, b in zip((x, memory, memory), weight.split(d), bias.split(d)))
        q, k, v = (t.unflatten(-1, (heads, d // heads)).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(-1, -2) / (d / heads) ** 0.5
        if causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2) @ out_weight.T + out_bias

    return run


def feed_forward(p, d, ffn):
    inner, inner_bias, outer, outer_bias = p.weight(ffn, d), p.bias(ffn), p.weight(d, ffn), p.bias(d)
    return lambda x: F.relu(x @ inner.T + inner_bias) @ outer.T + outer_bias


def transformer(p, vocabulary, d, ffn, heads, layers):
    """Returns logits(source, decoder_input): (batch, length) token ids -> (batch, length, vocabulary)."""
    embedding = p.weight(vocabulary, d)
    encoder = [(attention(p, d, heads, ("qkv",)), norm(p, d), feed_forward(p, d, ffn), norm(p, d))
               for _ in range(layers)]
    encoder_norm = norm(p, d)
    decoder = [(attention(p, d, heads, ("qkv",), causal=True), norm(p, d), attention(p, d, heads, ("q", "kv")),
                norm(p, d), feed_forward(p, d, ffn), norm(p, d)) for _ in range(layers)]
    decoder_norm = norm(p, d)

    def embed(tokens):
        return d**0.5 * embedding[tokens] + positions(tokens.shape[1], d)

    def run(source, decoder_input):
        x = embed(source)
        for self_attention, norm_1, ffn_block, norm_2 in encoder:
            x = norm_1(x + self_attention(x, x))
            x = norm_2(x + ffn_block(x))
        memory, y = encoder_norm(x), embed(decoder_input)
        for self_attention, norm_1, cross_attention, norm_2, ffn_block, norm_3 in decoder:
            y = norm_1(y + self_attention(y, y))
            y = norm_2(y + cross_attention(y, memory))
            y = norm_3(y + ffn_block(y))
        return decoder_norm(y) @ embedding.T

    return run


def label_smoothed_loss(logits, targets, epsilon):
    """Sum over tokens of (1 - epsilon) nll + epsilon / V sum_v -log p_v."""
    log_p = logits.log_softmax(-1)
    nll = -log_p.gather(-1, targets[..., None])[..., 0]
    return ((1 - epsilon) * nll - epsilon * log_p.mean(-1)).sum()


def transformer_golden(name, vocabulary, length, **size):
    """Label smoothing 0.1, no dropout; token ids are linear in their index modulo the vocabulary."""
    p = Parameters()
    run = transformer(p, vocabulary, **size)
    i = torch.arange(BATCH * length).reshape(BATCH, length)
    source, decoder_input, targets = (7 * i + 3) % vocabulary, (5 * i + 1) % vocabulary, (3 * i + 2) % vocabulary
    logits = run(source, decoder_input)
    about = {"vocabulary": vocabulary, "sequence_length": length}
    write(name, about, p, logits, label_smoothed_loss(logits, targets, 0.1))


def make():
    transformer_golden("transformer_base", 97, 7, d=512, ffn=2048, heads=8, layers=6)
