"""The Vision Transformer of torchvision (Dosovitskiy et al. 2021), for make_golden.py."""

from golden import CLASSES, image_golden
from published import with_weights

SIZE = 32


def build(p):
    from torchvision.models import vit_b_16

    network, d, layers = vit_b_16(image_size=SIZE, num_classes=CLASSES).double().eval(), 768, 12
    weights = {"class_token": p.weight(1, 1, d), "encoder.pos_embedding": p.weight(1, (SIZE // 16) ** 2 + 1, d),
               "conv_proj.weight": p.weight(d, 3, 16, 16), "conv_proj.bias": p.bias(d)}

    def norm(place):
        weights.update({f"{place}.weight": p.gamma(d), f"{place}.bias": p.bias(d)})

    def linear(weight, bias, inputs, outputs):
        weights.update({weight: p.weight(outputs, inputs), bias: p.bias(outputs)})

    for i in range(layers):
        place = f"encoder.layers.encoder_layer_{i}."
        norm(place + "ln_1")
        linear(place + "self_attention.in_proj_weight", place + "self_attention.in_proj_bias", d, 3 * d)
        for part, inputs, outputs in (("self_attention.out_proj", d, d), ("mlp.0", d, 4 * d), ("mlp.3", 4 * d, d)):
            if part == "mlp.0":
                norm(place + "ln_2")
            linear(f"{place}{part}.weight", f"{place}{part}.bias", inputs, outputs)
    norm("encoder.ln")
    linear("heads.head.weight", "heads.head.bias", d, CLASSES)
    return with_weights(network, weights)


def make():
    image_golden("vit_b_16", build, SIZE)
