"""What each feature of the tiny models is worth: the largest change of any logit when that one thing is wrong.

A golden that a wrong eps, window or norm leaves unmoved tests nothing; tiny_models.py refuses such a draw.
"""

import copy

import torch
from transformers.activations import ACT2FN


def is_t5(model):
    return hasattr(model, "decoder")


def changed_config(**fields):
    def change(model):
        config = copy.deepcopy(model.config)
        for name, value in fields.items():
            setattr(config, name, value)
        config._attn_implementation = "eager"
        other = type(model)(config)
        if is_t5(model) and model.lm_head.weight is not model.shared.weight:
            other.lm_head.weight = torch.nn.Parameter(torch.zeros_like(other.shared.weight))
        other.load_state_dict(model.state_dict(), strict=False)
        return other.eval()
    return change


def changed_weights(change_parameters):
    def change(model):
        other = copy.deepcopy(model)
        with torch.no_grad():
            change_parameters(other)
        return other
    return change


def changed_rope(layer_type=None, **fields):
    def change(model):
        rope = copy.deepcopy(model.config.rope_parameters)
        (rope if layer_type is None else rope[layer_type]).update(fields)
        return changed_config(rope_parameters=rope)(model)
    return change


def adjacent_pairs(head_dim, names=("q_proj", "k_proj", "q_norm", "k_norm")):
    """Reorders the channels of every query and key head, which is what a rotation of adjacent pairs would read."""
    order = torch.arange(head_dim).reshape(2, head_dim // 2).T.reshape(-1)

    def change(model):
        for name, parameter in model.named_parameters():
            if any(part in name for part in names):
                heads = parameter.reshape(-1, head_dim, *parameter.shape[1:])
                parameter.copy_(heads[:, order].reshape(parameter.shape))
    return changed_weights(change)


def zeroed(*parts):
    def change(model):
        for name, parameter in model.named_parameters():
            if any(part in name for part in parts):
                parameter.zero_()
    return changed_weights(change)


def weight_without_one(model):
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.sub_(1.0)


def wrong_norm(parts, replacement):
    """Puts another norm in place of the named ones (same weights)."""
    def change(model):
        other = copy.deepcopy(model)
        for name, module in list(other.named_modules()):
            if name.endswith(parts):
                parent, _, child = name.rpartition(".")
                setattr(other.get_submodule(parent), child, replacement(module))
        return other
    return change


class Skipped(torch.nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.weight = norm.weight

    def forward(self, x):
        return x


class Centred(torch.nn.Module):
    """The same norm after subtracting the mean: what a LayerNorm would do."""

    def __init__(self, norm):
        super().__init__()
        self.norm, self.weight = norm, norm.weight

    def forward(self, x):
        return self.norm(x - x.mean(-1, keepdim=True))


def activation(name):
    def change(model):
        other = copy.deepcopy(model)
        for module in list(other.modules()):
            for field, owners in (("act_fn", "MLP"), ("act", "ActDense")):
                if type(module).__name__.endswith(owners):
                    setattr(module, field, ACT2FN[name])
        return other
    return change


def score_factor(factor):
    """Multiplies the score scale of every attention."""
    def change(model):
        other = copy.deepcopy(model)
        for module in other.modules():
            if hasattr(module, "scaling"):
                module.scaling = module.scaling * factor
        return other
    return change


def causal_cross(model):
    """Cross-attention that sees only the encoder's positions up to its own."""
    other = copy.deepcopy(model)
    for block in other.decoder.block:
        attention = block.layer[1].EncDecAttention
        forward = attention.forward

        def masked(hidden_states, mask=None, key_value_states=None, _forward=forward, **kwargs):
            queries, keys = hidden_states.shape[1], key_value_states.shape[1]
            seen = torch.ones(queries, keys, dtype=torch.bool).tril()
            mask = torch.zeros(queries, keys).masked_fill(~seen, -1e9)[None, None]
            return _forward(hidden_states, mask=mask, key_value_states=key_value_states, **kwargs)

        attention.forward = masked
    return other


def swapped_gate(model):
    for name, module in model.named_modules():
        for a, b in (("gate_proj", "up_proj"), ("wi_0", "wi_1")):
            if hasattr(module, a):
                first, second = getattr(module, a), getattr(module, b)
                for one, two in zip(first.parameters(), second.parameters()):
                    kept = one.clone()
                    one.copy_(two)
                    two.copy_(kept)


def features(name):
    """What is changed -> a function that makes the changed model."""
    common = {
        "norm subtracts the mean": wrong_norm(("norm",), Centred),
        "gate and up exchanged": changed_weights(swapped_gate),
        "score scale 2 % off": score_factor(1.02),
    }
    if name == "llama":
        return common | {
            "eps 1e-5": changed_config(rms_norm_eps=1e-5),
            "eps 10 % off": changed_config(rms_norm_eps=2.2e-2),
            "theta 10000": changed_rope(rope_theta=10000.0),
            "theta 1 % off": changed_rope(rope_theta=505.0),
            "adjacent pairs": adjacent_pairs(16),
            "no q bias": zeroed("q_proj.bias"),
            "no k bias": zeroed("k_proj.bias"),
            "no v bias": zeroed("v_proj.bias"),
            "no o bias": zeroed("o_proj.bias"),
            "no gate bias": zeroed("gate_proj.bias"),
            "no up bias": zeroed("up_proj.bias"),
            "no down bias": zeroed("down_proj.bias"),
            "no final norm": wrong_norm(("model.norm",), Skipped),
            "gelu-tanh for silu": activation("gelu_pytorch_tanh"),
        }
    if name == "llama_tied":
        rope = {"rope_type": "default", "rope_theta": 1000.0}
        return common | {
            "eps 1e-5": changed_config(rms_norm_eps=1e-5),
            "no rope scaling": changed_config(rope_parameters=rope),
            "linear rope scaling": changed_config(rope_parameters=rope | {"rope_type": "linear", "factor": 4.0}),
            "low_freq_factor 2": changed_rope(low_freq_factor=2.0),
            "high_freq_factor 8": changed_rope(high_freq_factor=8.0),
            "theta 1 % off": changed_rope(rope_theta=1010.0),
            "adjacent pairs": adjacent_pairs(12),
        }
    if name == "gemma3":
        all_full, all_local = ["full_attention"] * 7, ["sliding_attention"] * 7
        shifted = ["full_attention"] + ["sliding_attention"] * 5 + ["full_attention"]
        return common | {
            "eps 1e-6": changed_config(rms_norm_eps=1e-6),
            "weight without the one": changed_weights(weight_without_one),
            "window 4": changed_config(sliding_window=4),
            "window 6": changed_config(sliding_window=6),
            "every layer full": changed_config(layer_types=all_full),
            "every layer local": changed_config(layer_types=all_local),
            "first layer full": changed_config(layer_types=shifted),
            "local theta 1 % off": changed_rope("sliding_attention", rope_theta=101.0),
            "global theta 10 % off": changed_rope("full_attention", rope_theta=3300.0),
            "global factor 1": changed_rope("full_attention", factor=1.0),
            "local theta everywhere": changed_rope("full_attention", rope_theta=100.0),
            "adjacent pairs": adjacent_pairs(16),
            "scale from head_dim": changed_config(query_pre_attn_scalar=16),
            "final cap 6": changed_config(final_logit_softcapping=6.0),
            "no final cap": changed_config(final_logit_softcapping=None),
            "no q norm": wrong_norm(("q_norm",), Skipped),
            "no k norm": wrong_norm(("k_norm",), Skipped),
            "no norm after attention": wrong_norm(("post_attention_layernorm",), Skipped),
            "no norm after feed-forward": wrong_norm(("post_feedforward_layernorm",), Skipped),
            "no norm before attention": wrong_norm(("input_layernorm",), Skipped),
            "no norm before feed-forward": wrong_norm(("pre_feedforward_layernorm",), Skipped),
            "no final norm": wrong_norm(("model.norm",), Skipped),
            "gelu-erf": activation("gelu"),
            "silu": activation("silu"),
        }
    t5 = common | {
        "eps 1e-6": changed_config(layer_norm_epsilon=1e-6),
        "no bias table": zeroed("relative_attention_bias"),
        "no bias table in the encoder": zeroed("encoder.block.0.layer.0.SelfAttention.relative_attention_bias"),
        "no bias table in the decoder": zeroed("decoder.block.0.layer.0.SelfAttention.relative_attention_bias"),
        "max_distance 40": changed_config(relative_attention_max_distance=40),
        "scores divided by sqrt(d_kv)": score_factor(None),
        "causal cross-attention": causal_cross,
        "scaled output exchanged": None,
        "no final norm in the encoder": wrong_norm(("encoder.final_layer_norm",), Skipped),
        "no final norm in the decoder": wrong_norm(("decoder.final_layer_norm",), Skipped),
        "silu": activation("silu"),
    }
    if name == "t5":
        del t5["gate and up exchanged"]
        t5["gelu-tanh for relu"] = activation("gelu_new")
    else:
        t5["gelu-erf"] = activation("gelu")
    t5["scores divided by sqrt(d_kv)"] = score_factor((12 if name == "t5" else 8) ** -0.5)
    t5["scaled output exchanged"] = changed_config(scale_decoder_outputs=name != "t5")
    return t5


def feature_table(name, model, inputs, run):
    """Largest change of any logit for each changed feature; run(model, item)[0] are the logits."""
    table = {}
    with torch.no_grad():
        logits = [run(model, item)[0] for item in inputs]
        for feature, change in features(name).items():
            other = change(model)
            table[feature] = max(float((run(other, item)[0] - kept).abs().max()) for item, kept in zip(inputs, logits))
    return table
