"""Tables of formulas from PyTorch and transformers, in f64: formulas.json. README.md in this folder lists the fields."""

import argparse
import json
import math
import pathlib

import numpy
import torch
import transformers
from transformers import GPTNeoXConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom.modeling_bloom import _get_alibi_slopes
from transformers.models.cohere import modeling_cohere
from transformers.models.distilbert.modeling_distilbert import create_sinusoidal_embeddings
from transformers.models.fsmt.modeling_fsmt import SinusoidalPositionalEmbedding
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding
from transformers.models.llama import modeling_llama
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.t5.modeling_t5 import T5Attention

from in_double import InDouble


def single(value):
    """The value of the nearest f32: what a float field of the library holds."""
    return float(torch.tensor(value, dtype=torch.float32))


def doubles(tensor):
    return tensor.detach().double().tolist()


# --------------------------------------------------------------------------------------------------- activations

POINTS = [0.0] + [sign * x for sign in (1.0, -1.0) for x in (
    1e-30, 1e-8, 1e-4, 2**-10, 0.01, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.25, 1.5, 1.702, 2.0,
    2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 50.0, 88.0, 100.0)]

ACTIVATIONS = {
    "relu": torch.relu,
    "relu2": lambda x: torch.relu(x).square(),
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "silu": torch.nn.functional.silu,
    "elu": torch.nn.functional.elu,
    "selu": torch.nn.functional.selu,
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}


def activations():
    table = {"points": [single(x) for x in POINTS]}
    for name, function in ACTIVATIONS.items():
        x = torch.tensor(table["points"], dtype=torch.float64, requires_grad=True)
        y = function(x)
        derivative, = torch.autograd.grad(y.sum(), x)
        table[name] = {"value": doubles(y), "derivative": doubles(derivative)}
    return table


# --------------------------------------------------------------------------------------------------- positions

ROPES = {  # head_dim, partial_rotary_factor, rope_parameters, sequence length (dynamic only)
    "plain 1e4": (64, 1.0, {"rope_type": "default", "rope_theta": 1e4}, None),
    "plain 5e5, head_dim 80": (80, 1.0, {"rope_type": "default", "rope_theta": 5e5}, None),
    "linear": (32, 1.0, {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0}, None),
    "llama3.1": (128, 1.0, {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
                            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}, None),
    "llama3.2": (64, 1.0, {"rope_type": "llama3", "rope_theta": 5e5, "factor": 32.0, "low_freq_factor": 1.0,
                           "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}, None),
    "yarn": (128, 1.0, {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0,
                        "original_max_position_embeddings": 32768}, None),
    "yarn, other betas": (64, 1.0, {"rope_type": "yarn", "rope_theta": 1e4, "factor": 40.0, "beta_fast": 16.0,
                                    "beta_slow": 2.0, "original_max_position_embeddings": 4096}, None),
    "fraction 0.25": (96, 0.25, {"rope_type": "default", "rope_theta": 1e4}, None),
    "fraction 0.5": (64, 0.5, {"rope_type": "default", "rope_theta": 1e4}, None),
    "fraction 0.5, linear": (64, 0.5, {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}, None),
    "dynamic, short": (64, 1.0, {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}, 1500),
    "dynamic, long": (64, 1.0, {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}, 5000),
}
CONTEXT = 2048  # max_position_embeddings, read by dynamic only


def rope_frequencies():
    rows = []
    for name, (head_dim, fraction, rope, length) in ROPES.items():
        parameters = dict(rope) | ({"partial_rotary_factor": fraction} if fraction != 1.0 else {})
        stretched = int(rope["factor"] * rope["original_max_position_embeddings"]) if len(rope) > 3 else CONTEXT
        config = GPTNeoXConfig(hidden_size=4 * head_dim, num_attention_heads=4, max_position_embeddings=stretched,
                               rope_parameters=parameters)
        if fraction == 1.0:  # GPTNeoXConfig's own default is a quarter
            config.rope_parameters["partial_rotary_factor"] = 1.0
        plain = GPTNeoXRotaryEmbedding.compute_default_rope_parameters
        function = ROPE_INIT_FUNCTIONS.get(rope["rope_type"], plain)
        further = {"seq_len": length} if length else {}
        frequencies, amplitude = function(config, torch.device("cpu"), **further)
        with InDouble():
            exact, _ = function(config, torch.device("cpu"), **further)
        assert exact.dtype == torch.float64 and len(exact) == int(head_dim * fraction) // 2
        rows.append({"name": name, "head_dim": head_dim, "fraction": fraction, "scaling": rope, "length": length,
                     "context": CONTEXT, "amplitude": float(amplitude), "frequencies": doubles(exact),
                     "hf_f32": doubles(frequencies)})
    return rows


def rope_rotation(seed):
    """One head turned at a few positions, pairs (i, i + r/2) as in Llama and (2i, 2i + 1) as in Cohere."""
    generator = torch.Generator().manual_seed(seed)
    width, theta, positions = 10, 100.0, [0, 1, 2, 7, 100]
    x = torch.randn(len(positions), width, generator=generator).to(torch.bfloat16).double()
    frequencies = theta ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.tensor(positions, dtype=torch.float64)[:, None] * frequencies
    result = {"theta": theta, "positions": positions, "x": doubles(x)}
    with InDouble():
        for name, module, both in (("halves", modeling_llama, torch.cat([angles, angles], -1)),
                                   ("adjacent", modeling_cohere, torch.repeat_interleave(angles, 2, -1))):
            heads = x[None, None]  # [batch, heads, tokens, width]
            turned, _ = module.apply_rotary_pos_emb(heads, heads, both.cos()[None], both.sin()[None])
            result[name] = doubles(turned[0, 0])
    return result


def alibi_slopes(heads):
    with InDouble():
        return _get_alibi_slopes(heads, torch.device("cpu"))


def alibi():
    heads = [*range(1, 13), 16, 40, 71, 112]
    return [{"heads": n, "slopes": doubles(alibi_slopes(n)), "hf_f32": doubles(_get_alibi_slopes(n, "cpu"))}
            for n in heads]


def t5_buckets():
    reach = 300
    relative = torch.arange(-reach, reach + 1)
    return [{"buckets": buckets, "max_distance": distance, "bidirectional": both, "first": -reach,
             "rows": T5Attention._relative_position_bucket(relative, both, buckets, distance).tolist()}
            for buckets, distance in ((32, 128), (8, 20)) for both in (True, False)]


def sinusoids():
    positions, base = [0, 1, 2, 3, 7, 50, 511], 10000.0
    rows = []
    for width in (8, 12):
        half, count = width // 2, max(positions) + 1
        exponents = {"paper": numpy.arange(half) / half, "halves": numpy.arange(half) / half,
                     "spread": numpy.arange(half) / (half - 1)}
        paper = torch.empty(count, width)
        create_sinusoidal_embeddings(count, width, paper)
        hf = {"paper": paper, "halves": MarianSinusoidalPositionalEmbedding(count, width).create_weight(),
              "spread": SinusoidalPositionalEmbedding.get_embedding(count, width, None)}
        for layout, exponent in exponents.items():
            angles = numpy.outer(positions, base ** -exponent)
            parts = [numpy.sin(angles), numpy.cos(angles)]
            table = numpy.stack(parts, -1).reshape(len(positions), width) if layout == "paper" else numpy.hstack(parts)
            gap = float(numpy.abs(table - hf[layout][positions].double().numpy()).max())
            assert gap < 1e-4, (layout, gap)  # HF forms the angles of the spread layout in f32
            rows.append({"layout": layout, "d_model": width, "base": base, "positions": positions,
                         "table": table.tolist()})
    return rows


# --------------------------------------------------------------------------------------------------- training


def cross_entropy(seed):
    generator = torch.Generator().manual_seed(seed)
    logits = (3.0 * torch.randn(6, 11, generator=generator)).to(torch.bfloat16).double()
    logits[4] *= 32.0  # one row that overflows a naive exp in f32
    labels = torch.tensor([3, 0, -100, 10, 7, 5])
    cases = []
    for factor, cap, z_loss, smoothing in ((1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 1e-2, 0.0), (1.0, 0.0, 0.0, 0.1),
                                           (1.0, 0.0, 1e-2, 0.1), (0.25, 5.0, 1e-2, 0.1), (1.0, 4.0, 0.0, 0.0)):
        numbers = {"factor": single(factor), "cap": single(cap), "z_loss": single(z_loss),
                   "smoothing": single(smoothing)}
        raw = logits.clone().requires_grad_()
        z = raw * numbers["factor"]
        if cap:
            z = numbers["cap"] * torch.tanh(z / numbers["cap"])
        loss = torch.nn.functional.cross_entropy(z, labels, reduction="none", label_smoothing=numbers["smoothing"])
        loss = loss + numbers["z_loss"] * torch.logsumexp(z, -1).square() * (labels >= 0)
        gradient, = torch.autograd.grad(loss.sum(), raw)
        cases.append(numbers | {"loss": doubles(loss), "gradient": doubles(gradient)})
    return {"logits": doubles(logits), "labels": labels.tolist(), "cases": cases}


def adamw(seed):
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(9, generator=generator).to(torch.bfloat16).double()
    gradients = torch.randn(5, 9, generator=generator).to(torch.bfloat16).double()
    gradients[:, 0] = 0.0
    gradients[:, 1] *= 2.0**-30
    gradients[:, 2] *= 2.0**10
    rates = [1e-2, 1e-2, 5e-3, 2e-2, 1e-3]
    cases = []
    for beta1, beta2, eps, decay in ((0.9, 0.95, 1e-6, 0.1), (0.8, 0.999, 1e-8, 0.0)):
        numbers = {"beta1": single(beta1), "beta2": single(beta2), "eps": single(eps), "decay": single(decay)}
        weight = torch.nn.Parameter(start.clone())
        optimizer = torch.optim.AdamW([weight], lr=1.0, betas=(numbers["beta1"], numbers["beta2"]), eps=numbers["eps"],
                                      weight_decay=numbers["decay"])
        steps = []
        for rate, gradient in zip(rates, gradients):
            optimizer.param_groups[0]["lr"] = single(rate)
            weight.grad = gradient.clone()
            optimizer.step()
            state = optimizer.state[weight]
            steps.append({"learning_rate": single(rate), "weight": doubles(weight), "m": doubles(state["exp_avg"]),
                          "v": doubles(state["exp_avg_sq"])})
        cases.append(numbers | {"steps": steps})
    return {"weight": doubles(start), "gradients": doubles(gradients), "cases": cases}


def clipping(seed):
    generator = torch.Generator().manual_seed(seed)
    gradients = [torch.randn(n, generator=generator).to(torch.bfloat16).double() for n in (5, 1, 8)]
    cases = []
    for limit in (1.0, 100.0):
        parameters = [torch.nn.Parameter(torch.zeros_like(g)) for g in gradients]
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient.clone()
        norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
        cases.append({"limit": limit, "norm": float(norm), "clipped": [doubles(p.grad) for p in parameters]})
    return {"gradients": [doubles(g) for g in gradients], "cases": cases}


def schedules():
    """Factor on the learning rate for step 0, 1, ...; the rate in force at the step of that number."""
    warmup, total = 5, 24
    wsd = {"num_decay_steps": 8, "num_stable_steps": 11, "decay_type": "cosine", "min_lr_ratio": 0.1}
    make = {
        "linear": lambda o: transformers.get_linear_schedule_with_warmup(o, warmup, total),
        "cosine": lambda o: transformers.get_cosine_schedule_with_warmup(o, warmup, total),
        "inverse_sqrt": lambda o: transformers.get_inverse_sqrt_schedule(o, warmup),
        "wsd": lambda o: transformers.get_wsd_schedule(o, warmup, **wsd),
        "wsd linear": lambda o: transformers.get_wsd_schedule(o, warmup, **(wsd | {"decay_type": "linear"})),
    }
    rows = []
    for name, schedule in make.items():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
        scheduler = schedule(optimizer)
        factors = []
        for _ in range(total + 1):  # HF's cosine rises again after that
            factors.append(float(scheduler.get_last_lr()[0]))
            optimizer.step()
            scheduler.step()
        rows.append({"name": name, "warmup": warmup, "total": total, "factors": factors}
                    | (wsd | {"decay_type": "linear" if "linear" in name else "cosine"} if "wsd" in name else {}))
    return rows


# --------------------------------------------------------------------------------------------------- writing


def compact(value, indent=0):
    """JSON with one line per list of numbers."""
    pad, end = " " * (indent + 1), " " * indent
    if isinstance(value, dict):
        inner = [f"{pad}{json.dumps(k)}: {compact(v, indent + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(inner) + f"\n{end}}}"
    if isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        return "[\n" + ",\n".join(pad + compact(v, indent + 1) for v in value) + f"\n{end}]"
    return json.dumps(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seed = arguments.seed
    tables = {
        "made": f"seed {seed}, torch {torch.__version__}, transformers {transformers.__version__}",
        "activations": activations(),
        "rope_frequencies": rope_frequencies(),
        "rope_rotation": rope_rotation(seed),
        "alibi": alibi(),
        "t5_buckets": t5_buckets(),
        "sinusoids": sinusoids(),
        "cross_entropy": cross_entropy(seed + 1),
        "adamw": adamw(seed + 2),
        "clipping": clipping(seed + 3),
        "schedules": schedules(),
    }
    text = compact(tables)
    assert not any(word in text for word in ("NaN", "Infinity"))
    (arguments.out / "formulas.json").write_text(text + "\n")
    print(f"formulas.json: {len(text) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
