#!/usr/bin/env python3
"""Decoder language models in plain PyTorch, peers that lab/speed compares with: GPT-2 and Llama.

GPT-2 (Radford et al. 2019): pre-norm, tanh GELU, learned positions, one table for words and output. Llama (Grattafiori et
al. 2024): RMSNorm, rotary positions, grouped keys, SwiGLU, no biases. No dropout; fused AdamW; synthetic data made once;
bf16 is autocast. gpt2 has 124,439,808 parameters, llama_125m 124,668,672. Prints the JSON of training.py in tokens/sec.
"""

import math

import torch
import torch.nn.functional as F
import training
from torch import nn

SIZES = {"gpt2": {"width": 768, "heads": 12, "key_heads": 12, "inner": 3072, "layers": 12, "vocabulary": 50257},
         "llama_125m": {"width": 768, "heads": 12, "key_heads": 4, "inner": 2048, "layers": 12, "vocabulary": 32000}}
POSITIONS, THETA, STD = 1024, 500_000, 0.02


class Attention(nn.Module):
    """Causal attention of grouped heads; (batch, length, width) -> the same."""

    def __init__(self, width, heads, key_heads, bias):
        super().__init__()
        self.depth = width // heads
        self.sizes = [heads * self.depth, key_heads * self.depth, key_heads * self.depth]
        self.qkv, self.out = nn.Linear(width, sum(self.sizes), bias), nn.Linear(width, width, bias)

    def forward(self, x, rotation=None):
        q, k, v = (part.unflatten(-1, (-1, self.depth)).transpose(1, 2) for part in self.qkv(x).split(self.sizes, dim=-1))
        if rotation is not None:
            q, k = rotated(q, *rotation), rotated(k, *rotation)
        weighted = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=k.shape[1] < q.shape[1])
        return self.out(weighted.transpose(1, 2).flatten(2))


def rotated(x, cosines, sines):
    """Pairs (x[i], x[i + depth / 2]) rotated by the position's angle."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cosines - b * sines, b * cosines + a * sines), dim=-1)


def rotation(length, depth):
    """Cosines and sines (length, depth / 2) of position / theta^(2 i / depth)."""
    angles = torch.arange(length)[:, None] * THETA ** (-torch.arange(0, depth, 2) / depth)
    return angles.cos(), angles.sin()


class Gated(nn.Module):
    """SwiGLU (Shazeer 2020)."""

    def __init__(self, width, inner):
        super().__init__()
        self.inner, self.outer = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)

    def forward(self, x):
        gate, factor = self.inner(x).chunk(2, dim=-1)
        return self.outer(F.silu(gate) * factor)


class Layer(nn.Module):
    def __init__(self, width, heads, key_heads, inner, llama):
        super().__init__()
        norm = nn.RMSNorm if llama else nn.LayerNorm
        self.attention_norm, self.attention = norm(width, 1e-5), Attention(width, heads, key_heads, bias=not llama)
        self.feed_forward_norm = norm(width, 1e-5)
        self.feed_forward = Gated(width, inner) if llama else nn.Sequential(
            nn.Linear(width, inner), nn.GELU(approximate="tanh"), nn.Linear(inner, width))

    def forward(self, x, rotation=None):
        x = x + self.attention(self.attention_norm(x), rotation)
        return x + self.feed_forward(self.feed_forward_norm(x))


class Decoder(nn.Module):
    """Logits (batch, length, vocabulary) of tokens (batch, length)."""

    def __init__(self, width, heads, key_heads, inner, layers, vocabulary, llama, length):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = None if llama else nn.Embedding(POSITIONS, width)
        self.layers = nn.ModuleList(Layer(width, heads, key_heads, inner, llama) for _ in range(layers))
        self.norm = (nn.RMSNorm if llama else nn.LayerNorm)(width, 1e-5)
        self.head = nn.Linear(width, vocabulary, bias=False)
        if not llama:
            self.head.weight = self.words.weight
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                last = name.endswith(("out.weight", "outer.weight", "feed_forward.2.weight"))
                nn.init.normal_(weight, std=STD / math.sqrt(2 * layers) if last else STD)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)
        cosines, sines = rotation(length, width // heads)
        self.register_buffer("cosines", cosines)
        self.register_buffer("sines", sines)

    def forward(self, tokens):
        x = self.words(tokens)
        if self.positions is None:
            angles = self.cosines, self.sines
        else:
            x, angles = x + self.positions.weight[:tokens.shape[1]], None
        for layer in self.layers:
            x = layer(x, angles)
        return self.head(self.norm(x))


def loss_of(model, tokens, targets):
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


def main():
    flags = training.sequence_parser(__doc__, SIZES, "gpt2", length=256)
    arguments = flags.parse_args()
    training.start(arguments)
    size = training.size_of(arguments, SIZES)
    model = Decoder(**size, llama=arguments.model.startswith("llama"), length=arguments.sequence_length)
    model = model.to(arguments.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, eps=1e-6, weight_decay=0.01, fused=True)
    text = torch.randint(size["vocabulary"], (arguments.batch_size, arguments.sequence_length + 1), device=arguments.device)
    batch = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    training.run(arguments, model, optimizer, loss_of, batch, batch[1].numel(), "tokens/sec")


if __name__ == "__main__":
    main()
