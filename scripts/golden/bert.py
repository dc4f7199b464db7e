"""BERT pretraining (Devlin et al. 2018) in plain tensor operations, for make_golden.py.

Post-norm encoder, exact GELU, LayerNorm with epsilon 1e-12, no dropout. Tensors are (batch, length, d).
"""

import torch
from golden import BATCH, Parameters, write
from transformer import attention, norm

EPSILON = 1e-12


def gelu(x):
    """x Phi(x), Phi the distribution function of the standard normal."""
    return 0.5 * x * (1 + torch.erf(x / 2**0.5))


def layer(p, d, ffn, heads):
    self_attention, norm_1 = attention(p, d, heads, ("qkv",)), norm(p, d, EPSILON)
    inner, inner_bias, outer, outer_bias = p.weight(ffn, d), p.bias(ffn), p.weight(d, ffn), p.bias(d)
    norm_2 = norm(p, d, EPSILON)

    def run(x):
        x = norm_1(x + self_attention(x, x))
        return norm_2(x + gelu(x @ inner.T + inner_bias) @ outer.T + outer_bias)

    return run


def bert(p, vocabulary, d, ffn, heads, layers, positions=512):
    """Returns logits(tokens, segments, masked): ids and positions (batch, length or count) -> (batch, count,
    vocabulary) of the masked positions and (batch, 2) of the next sentence."""
    word, position, segment = p.weight(vocabulary, d), p.weight(positions, d), p.weight(2, d)
    embedding_norm = norm(p, d, EPSILON)
    encoder = [layer(p, d, ffn, heads) for _ in range(layers)]
    pooler, pooler_bias = p.weight(d, d), p.bias(d)
    vocabulary_bias, dense, dense_bias = p.bias(vocabulary), p.weight(d, d), p.bias(d)
    head_norm = norm(p, d, EPSILON)
    next_sentence, next_sentence_bias = p.weight(2, d), p.bias(2)

    def run(tokens, segments, masked):
        x = embedding_norm(word[tokens] + position[:tokens.shape[1]] + segment[segments])
        for encode in encoder:
            x = encode(x)
        chosen = torch.stack([sequence[places] for sequence, places in zip(x, masked)])
        words = head_norm(gelu(chosen @ dense.T + dense_bias)) @ word.T + vocabulary_bias
        pooled = torch.tanh(x[:, 0] @ pooler.T + pooler_bias)
        return words, pooled @ next_sentence.T + next_sentence_bias

    return run


def pretraining_loss(words, labels, following, following_labels):
    """Mean over masked positions + mean over sequences, of the negative log likelihood."""
    def mean_nll(logits, targets):
        return -logits.log_softmax(-1).gather(-1, targets[..., None]).mean()

    return mean_nll(words, labels) + mean_nll(following, following_labels)


def bert_golden(name, vocabulary, length, masked, **size):
    """Ids and positions are linear in their index, modulo what there is. The loss of the model is a sum: the mean times
    the number of masked positions."""
    p = Parameters()
    run = bert(p, vocabulary, **size)
    i, k = torch.arange(BATCH * length).reshape(BATCH, length), torch.arange(BATCH * masked).reshape(BATCH, masked)
    words, following = run((7 * i + 3) % vocabulary, (i % length >= length // 2).long(), (2 * k + 1) % length)
    loss = BATCH * masked * pretraining_loss(words, (5 * k + 2) % vocabulary, following, torch.arange(BATCH) % 2)
    about = {"vocabulary": vocabulary, "sequence_length": length, "masked_positions": masked}
    write(name, about, p, torch.cat([words.flatten(), following.flatten()]), loss)


def make():
    bert_golden("bert_base", 97, 7, 3, d=768, ffn=3072, heads=12, layers=12)
