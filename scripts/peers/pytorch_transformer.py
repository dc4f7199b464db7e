#!/usr/bin/env python3
"""Transformer training in plain PyTorch eager (nn.Transformer), a peer that scripts/speed compares with.

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


def parse_arguments():
    flags = training.parser(__doc__, batch_size=4)
    flags.add_argument("--model", choices=list(SIZES), default="transformer_big")
    flags.add_argument("--sequence_length", type=int, default=64, help="of source and target")
    for name in SIZES["transformer_big"]:
        flags.add_argument(f"--{name}", type=int, help="instead of the model's, for a quick try")
    return flags.parse_args()


def main():
    arguments = parse_arguments()
    training.start(arguments)
    size = {name: getattr(arguments, name) or value for name, value in SIZES[arguments.model].items()}
    model = Transformer(**size, length=arguments.sequence_length).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    source, decoder_input, targets = torch.randint(
        size["vocabulary"], (3, arguments.batch_size, arguments.sequence_length))
    targets = targets.flatten()

    def loss_of(net):
        return F.cross_entropy(net(source, decoder_input).flatten(0, 1), targets, label_smoothing=LABEL_SMOOTHING)

    training.run(arguments, model, optimizer, loss_of, targets.numel(), "tokens/sec")


if __name__ == "__main__":
    main()
