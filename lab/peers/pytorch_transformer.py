#!/usr/bin/env python3
"""Transformer training in plain PyTorch (nn.Transformer), a peer that lab/speed compares with.

Vaswani et al. 2017, base or big: post-norm, one embedding for source, target and projection, dropout, label
smoothing, fused Adam; synthetic data made once; bf16 is autocast. Prints the JSON of training.py in target tokens/sec.
"""

import torch
import torch.nn.functional as F
import training
from torch import nn

SIZES = {"transformer_base": {"width": 512, "ffn": 2048, "heads": 8, "layers": 6, "vocabulary": 32768},
         "transformer_big": {"width": 1024, "ffn": 4096, "heads": 16, "layers": 6, "vocabulary": 32768}}
DROPOUT, LABEL_SMOOTHING = 0.1, 0.1


def positions(length, width):
    """Sinusoids of section 3.5; (length, width)."""
    angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)


class Transformer(nn.Module):
    """Logits (batch, length, vocabulary) of two (batch, length) tensors of token ids."""

    def __init__(self, width, ffn, heads, layers, vocabulary, length):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.stacks = nn.Transformer(width, heads, layers, layers, ffn, DROPOUT, batch_first=True)
        self.dropout = nn.Dropout(DROPOUT)
        self.scale = width**0.5
        self.register_buffer("positions", positions(length, width))
        self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(length))

    def embed(self, tokens):
        return self.dropout(torch.add(self.positions, self.embedding(tokens), alpha=self.scale))

    def forward(self, source, decoder_input):
        x = self.stacks(self.embed(source), self.embed(decoder_input), tgt_mask=self.causal, tgt_is_causal=True)
        return F.linear(x, self.embedding.weight)


def loss_of(model, source, decoder_input, targets):
    """Mean over tokens."""
    return F.cross_entropy(model(source, decoder_input).flatten(0, 1), targets.flatten(), label_smoothing=LABEL_SMOOTHING)


def main():
    flags = training.sequence_parser(__doc__, SIZES, "transformer_big", length=64)
    arguments = flags.parse_args()
    training.start(arguments)
    size = training.size_of(arguments, SIZES)
    model = Transformer(**size, length=arguments.sequence_length).to(arguments.device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    batch = torch.randint(size["vocabulary"], (3, arguments.batch_size, arguments.sequence_length),
                          device=arguments.device).unbind()
    training.run(arguments, model, optimizer, loss_of, batch, batch[-1].numel(), "tokens/sec")


if __name__ == "__main__":
    main()
