"""Llama of transformers (Grattafiori et al. 2024), for make_golden.py: as in Llama 3, and as in Llama 3.2 with stretched
positions and one table for words and output."""

from golden import Parameters
from published import in_float64, text_golden, with_weights

STRETCHED = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
             "original_max_position_embeddings": 8192}


def llama_golden(name, d, inner, heads, key_heads, layers, stretched):
    from transformers import LlamaConfig, LlamaForCausalLM

    vocabulary, depth = 97, d // heads
    rope = {"rope_theta": 500000.0, **(STRETCHED if stretched else {"rope_type": "default"})}
    with in_float64():
        network = LlamaForCausalLM(LlamaConfig(
            vocab_size=vocabulary, hidden_size=d, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=heads,
            num_key_value_heads=key_heads, max_position_embeddings=131072, rms_norm_eps=1e-5, tie_word_embeddings=stretched,
            rope_parameters=rope)).double().eval()
    p = Parameters()
    weights = {"model.embed_tokens.weight": p.weight(vocabulary, d)}
    for i in range(layers):
        place = f"model.layers.{i}."
        weights[place + "input_layernorm.weight"] = p.gamma(d)
        of_heads = p.weight((heads + 2 * key_heads) * depth, d).split([heads * depth, key_heads * depth, key_heads * depth])
        weights |= {f"{place}self_attn.{part}_proj.weight": weight for part, weight in zip("qkv", of_heads)}
        weights[place + "self_attn.o_proj.weight"] = p.weight(d, d)
        weights[place + "post_attention_layernorm.weight"] = p.gamma(d)
        gate_and_factor = p.weight(2 * inner, d).split(inner)
        weights |= {f"{place}mlp.{part}_proj.weight": weight for part, weight in zip(("gate", "up"), gate_and_factor)}
        weights[place + "mlp.down_proj.weight"] = p.weight(d, inner)
    weights["model.norm.weight"] = p.gamma(d)
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"] if stretched else p.weight(vocabulary, d)
    text_golden(name, p, lambda tokens: with_weights(network, weights)(tokens).logits, vocabulary, 7)


def make():
    llama_golden("llama_125m", d=768, inner=2048, heads=12, key_heads=4, layers=12, stretched=False)
    llama_golden("llama_tiny", d=128, inner=352, heads=4, key_heads=2, layers=2, stretched=True)
