#!/usr/bin/env python3
"""BERT pretraining in plain PyTorch, a peer that lab/speed compares with.

Devlin et al. 2018: post-norm encoder, exact GELU, dropout 0.1 on embeddings, attention and residuals; a masked language
model with the word embedding as projection, which sees the masked positions alone, and the next sentence. Fused AdamW;
synthetic data made once; bf16 is autocast. BERT-large has 336,226,108 parameters. Prints the JSON of training.py in
sequences/sec.
"""

import torch
import torch.nn.functional as F
import training
from torch import nn

SIZES = {"bert_base": {"width": 768, "heads": 12, "layers": 12, "vocabulary": 30522},
         "bert_large": {"width": 1024, "heads": 16, "layers": 24, "vocabulary": 30522}}
POSITIONS, DROPOUT, EPSILON = 512, 0.1, 1e-12


class Layer(nn.Module):
    """Self-attention and feed-forward network, each with residual and normalisation; (batch, length, width) -> the same."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, EPSILON)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.feed_forward_norm = nn.LayerNorm(width, EPSILON)
        self.dropout = nn.Dropout(DROPOUT)

    def attention(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        weighted = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout.p if self.training else 0.0)
        return self.out(weighted.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = self.attention_norm(x + self.dropout(self.attention(x)))
        return self.feed_forward_norm(x + self.dropout(self.outer(F.gelu(self.inner(x)))))


class MaskedHead(nn.Module):
    """(positions, width) -> logits (positions, vocabulary) by the word embedding's weight."""

    def __init__(self, width, vocabulary):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.dense = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, EPSILON)

    def forward(self, x, words):
        return F.linear(self.norm(F.gelu(self.dense(x))), words, self.bias)


class Bert(nn.Module):
    """Logits of the masked positions (batch * masked, vocabulary) and of the next sentence (batch, 2).

    Of tokens and segments (batch, length), and masked (batch, masked): positions within the sequence.
    """

    def __init__(self, width, heads, layers, vocabulary):
        super().__init__()
        self.words, self.positions, self.segments = (nn.Embedding(n, width) for n in (vocabulary, POSITIONS, 2))
        self.norm = nn.LayerNorm(width, EPSILON)
        self.dropout = nn.Dropout(DROPOUT)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.pooler = nn.Linear(width, width)
        self.masked = MaskedHead(width, vocabulary)
        self.next_sentence = nn.Linear(width, 2)
        self.apply(self.initialise)

    @staticmethod
    def initialise(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.trunc_normal_(module.weight, std=0.02, a=-0.04, b=0.04)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    def forward(self, tokens, segments, masked):
        x = self.words(tokens) + self.positions.weight[:tokens.shape[1]] + self.segments(segments)
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x)
        chosen = x.gather(1, masked[..., None].expand(-1, -1, x.shape[-1])).flatten(0, 1)
        return self.masked(chosen, self.words.weight), self.next_sentence(torch.tanh(self.pooler(x[:, 0])))


def masked_positions(length):
    """15 % of the tokens, to the nearest that scalemark takes (models/catalog.hpp): 20 of 128."""
    return (5 * length + 31) // 32


def loss_of(model, tokens, segments, masked, labels, following):
    """Mean over masked positions + mean over sequences; labels (batch, masked), following (batch)."""
    words, next_sentence = model(tokens, segments, masked)
    return F.cross_entropy(words, labels.flatten()) + F.cross_entropy(next_sentence, following)


def make_batch(batch_size, length, vocabulary):
    """The arguments of loss_of() behind the model."""
    count = masked_positions(length)
    segments = (torch.arange(length) >= length // 2).long().repeat(batch_size, 1)
    masked = torch.rand(batch_size, length).topk(count).indices.sort().values
    return (torch.randint(vocabulary, (batch_size, length)), segments, masked,
            torch.randint(vocabulary, (batch_size, count)), torch.randint(2, (batch_size,)))


def main():
    flags = training.sequence_parser(__doc__, SIZES, "bert_large", length=128)
    arguments = flags.parse_args()
    training.start(arguments)
    size = training.size_of(arguments, SIZES)
    model = Bert(**size).to(arguments.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, eps=1e-6, weight_decay=0.01, fused=True)
    batch = [part.to(arguments.device) for part in make_batch(arguments.batch_size, arguments.sequence_length, size["vocabulary"])]
    training.run(arguments, model, optimizer, loss_of, batch, arguments.batch_size, "sequences/sec")


if __name__ == "__main__":
    main()
