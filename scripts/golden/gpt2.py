"""GPT-2 of transformers (Radford et al. 2019), without dropout, for make_golden.py."""

from golden import Parameters
from published import in_float64, text_golden, with_weights


def make():
    from transformers import GPT2Config, GPT2LMHeadModel

    vocabulary, d, layers = 97, 768, 12
    with in_float64():
        network = GPT2LMHeadModel(GPT2Config(vocab_size=vocabulary, n_embd=d, n_layer=layers, n_head=12)).double().eval()
    p = Parameters()
    weights = {"transformer.wte.weight": p.weight(vocabulary, d), "transformer.wpe.weight": p.weight(1024, d)}
    weights["lm_head.weight"] = weights["transformer.wte.weight"]
    for i in range(layers):
        for part, inputs, outputs in (("ln_1", d, 0), ("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d), ("ln_2", d, 0),
                                      ("mlp.c_fc", d, 4 * d), ("mlp.c_proj", 4 * d, d)):
            place = f"transformer.h.{i}.{part}"
            weights[f"{place}.weight"] = p.weight(outputs, inputs).T if outputs else p.gamma(inputs)
            weights[f"{place}.bias"] = p.bias(outputs or inputs)
    weights |= {"transformer.ln_f.weight": p.gamma(d), "transformer.ln_f.bias": p.bias(d)}
    text_golden("gpt2", p, lambda tokens: with_weights(network, weights)(tokens).logits, vocabulary, 7)
