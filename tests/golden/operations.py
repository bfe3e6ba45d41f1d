"""Golden values of single operations, forward and backward: norms, linear, attention, activations, cross-entropy:
ops/*.safetensors.

Inputs are exactly representable in bf16. Results are computed in f64; beside them lie PyTorch's own results in bf16 and
the errors of its bf16 and f32 results, by which ours are measured. README.md in this folder lists the tensors.
"""

import argparse
import math
import pathlib

import torch
from safetensors.torch import save_file
from transformers.activations import ACT2FN
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.t5.modeling_t5 import T5Attention

from formulas import alibi_slopes


def single(value):
    """The value of the nearest f32: what a float field of the library holds."""
    return float(torch.tensor(value, dtype=torch.float32))


class Draw:
    """Random values that bf16 holds exactly, as f64."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape, deviation=1.0, mean=0.0):
        values = mean + deviation * torch.randn(shape, generator=self.generator)
        return values.to(torch.bfloat16).double()


def gradients(function, inputs, output_gradient, dtype):
    """function(*inputs) and the gradients of sum(output * output_gradient), everything in dtype."""
    leaves = [value.clone().to(dtype).detach().requires_grad_() for value in inputs]
    output = function(*leaves)
    output.backward(output_gradient.to(dtype))
    return [output.detach()] + [leaf.grad for leaf in leaves]


def error(result, exact):
    """Largest difference, and norm of the difference over norm."""
    difference = result.double() - exact
    return torch.tensor([float(difference.abs().max()), float(difference.norm() / exact.norm())], dtype=torch.float64)


def measure(function, inputs, output_gradient, names, others=None):
    """f64 results under their names, bf16.NAME, error.bf16.NAME and error.f32.NAME; others: more functions in bf16."""
    exact = gradients(function, inputs, output_gradient, torch.float64)
    tensors = dict(zip(names, exact))
    for label, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32)):
        for name, result, truth in zip(names, gradients(function, inputs, output_gradient, dtype), exact):
            tensors[f"error.{label}.{name}"] = error(result, truth)
            if label == "bf16":
                tensors[f"bf16.{name}"] = result
    for label, other in (others or {}).items():
        results = gradients(other, inputs, output_gradient, torch.bfloat16)
        for name, result, truth in zip(names, results, exact):
            tensors[f"error.{label}.{name}"] = error(result, truth)
    return tensors


def write(path, tensors, bf16, f32=()):
    """Writes the tensors; those named in bf16 and f32 in that type."""
    for name in tensors:
        if name in bf16:
            assert torch.equal(tensors[name].to(torch.bfloat16).double(), tensors[name]), name
            tensors[name] = tensors[name].to(torch.bfloat16)
        elif name in f32:
            tensors[name] = tensors[name].float()
    save_file({name: value.contiguous() for name, value in tensors.items()}, path)
    path.chmod(0o644)
    return path.stat().st_size


# --------------------------------------------------------------------------------------------------- norms


def module_norm(make, double_form):
    """A module of HF for f32 and bf16; in f64 the plain formula, since the modules compute in f32 inside."""
    def function(x, weight):
        if x.dtype == torch.float64:
            return double_form(x, weight)
        module = make(x.shape[-1])
        del module.weight
        module.weight = weight
        return module(x)
    return function


def norms(seed, out):
    rows, width, eps = 21, 136, single(1e-2)
    draw = Draw(seed)
    x = draw(rows, width)
    x[0] = 0.0  # only eps counts
    x[1] *= 2.0**-9
    x[2] *= 256.0
    x[3] = draw(width, mean=7.0)
    dy = draw(rows, width)
    root = lambda x: torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    layer = lambda x, w, b: torch.nn.functional.layer_norm(x, (width,), w, b, eps)
    cases = {
        "norm_rms": (module_norm(lambda n: LlamaRMSNorm(n, eps), lambda x, w: x * root(x) * w),
                     [x, draw(width, deviation=0.4, mean=1.0)], ["y", "dx", "dweight"]),
        "norm_rms_one": (module_norm(lambda n: Gemma3RMSNorm(n, eps), lambda x, w: x * root(x) * (1.0 + w)),
                         [x, draw(width, deviation=0.7, mean=0.5)], ["y", "dx", "dweight"]),
        "norm_layer": (layer, [x, draw(width, deviation=0.4, mean=1.0), draw(width, deviation=0.5)],
                       ["y", "dx", "dweight", "dbias"]),
    }
    for name, (function, inputs, names) in cases.items():
        tensors = measure(function, inputs, dy, names)
        tensors |= dict(zip(("x", "weight", "bias"), inputs)) | {"dy": dy}
        tensors["eps"] = torch.tensor([eps], dtype=torch.float64)
        report(name, write(out / f"{name}.safetensors", tensors, {"x", "weight", "bias", "dy"}), tensors, "y")


# --------------------------------------------------------------------------------------------------- linear


def linears(seed, out):
    for index, (name, rows, width_in, width_out, bias) in enumerate([
            ("linear", 33, 136, 72, True), ("linear_no_bias", 17, 64, 48, False), ("linear_odd", 7, 45, 23, True)]):
        draw = Draw(seed + index)
        inputs = [draw(rows, width_in), draw(width_out, width_in, deviation=width_in**-0.5)]
        inputs += [draw(width_out, deviation=0.5)] if bias else []
        dy = draw(rows, width_out)
        names = ["y", "dx", "dw", "dbias"][:len(inputs) + 1]
        tensors = measure(torch.nn.functional.linear, inputs, dy, names)
        tensors |= dict(zip(("x", "w", "bias"), inputs)) | {"dy": dy}
        report(name, write(out / f"{name}.safetensors", tensors, {"x", "w", "bias", "dy"}), tensors, "y")


# --------------------------------------------------------------------------------------------------- attention


def visible(queries, keys, causal, window):
    """mask[i, j]: key j is seen by query i; a window of W counts the current key."""
    behind = torch.arange(queries)[:, None] - torch.arange(keys)[None, :]
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        seen &= behind >= 0
    if window:
        seen &= behind < window
    return seen


def by_heads(x, heads):
    """[tokens, kv_heads, head_dim] -> [heads, tokens, head_dim]; query head h reads key head h / (heads / kv_heads)."""
    return x.transpose(0, 1).repeat_interleave(heads // x.shape[1], dim=0)


def attend(case, bias, q, k, v):
    """Eager attention as HF writes it: scores in the given type, softmax in at least f32. Result and scores."""
    heads = q.shape[1]
    scores = by_heads(q, heads) @ by_heads(k, heads).transpose(1, 2) * case["scale"]
    if case["cap"]:
        scores = case["cap"] * torch.tanh(scores / case["cap"])
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    scores = scores.masked_fill(~visible(q.shape[0], k.shape[0], case["causal"], case["window"]), -math.inf)
    inner = torch.promote_types(scores.dtype, torch.float32)
    weights = torch.softmax(scores, -1, dtype=inner).to(q.dtype)
    return (weights @ by_heads(v, heads)).transpose(0, 1), scores


def sdpa(case, bias, q, k, v):
    """PyTorch's fused attention."""
    heads = q.shape[1]
    mask = visible(q.shape[0], k.shape[0], case["causal"], case["window"])
    if bias is not None:
        mask = bias.to(q.dtype).masked_fill(~mask, -math.inf)
    out = torch.nn.functional.scaled_dot_product_attention(
        by_heads(q, heads)[None], by_heads(k, heads)[None], by_heads(v, heads)[None],
        attn_mask=mask if mask.dim() == 2 else mask[None], scale=case["scale"])
    return out[0].transpose(0, 1)


def case(heads, kv_heads, head_dim, queries, keys=None, causal=True, window=0, cap=0.0, scale=None, bias=None):
    return {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "queries": queries, "keys": keys or queries,
            "causal": causal, "window": window, "cap": single(cap), "scale": single(scale or head_dim**-0.5),
            "bias": bias}


ATTENTION = {
    "attention_causal_32": case(4, 2, 32, 71),
    "attention_causal_40": case(3, 1, 40, 67),
    "attention_causal_64": case(3, 1, 64, 66),
    "attention_window_32": case(4, 2, 32, 75, window=20),
    "attention_softcap_40": case(3, 1, 40, 41, cap=3.0, scale=0.25),
    "attention_window_softcap_64": case(2, 1, 64, 53, window=9, cap=2.0, scale=0.2),
    "attention_bidirectional_40": case(4, 2, 40, 50, causal=False),
    "attention_alibi_32": case(5, 5, 32, 41, bias="alibi"),
    "attention_alibi_64": case(3, 1, 64, 47, bias="alibi"),
    "attention_table_32": case(3, 3, 32, 37, causal=False, scale=1.0, bias="table"),
    "attention_cross_64": case(2, 1, 64, 23, 71, causal=False),
    "attention_cross_32": case(4, 4, 32, 39, 11, causal=False, scale=1.0),
}
BUCKETS, MAX_DISTANCE = 8, 20  # of the table case


def attention(seed, out):
    for index, (name, c) in enumerate(ATTENTION.items()):
        draw = Draw(seed + index)
        size = 1.4 if c["scale"] < 0.5 else 1.4 * math.sqrt(c["head_dim"]) ** -0.5  # scores deviate by about two
        q = draw(c["queries"], c["heads"], c["head_dim"], deviation=size)
        k = draw(c["keys"], c["kv_heads"], c["head_dim"], deviation=size)
        v = draw(c["keys"], c["kv_heads"], c["head_dim"])
        do = draw(c["queries"], c["heads"], c["head_dim"])
        inputs, names = [q, k, v], ["o", "dq", "dk", "dv"]
        extra, bias_of = {}, lambda *table: None
        relative = torch.arange(c["keys"])[None, :] - torch.arange(c["queries"])[:, None]  # key - query
        if c["bias"] == "alibi":
            extra["slopes"] = alibi_slopes(c["heads"]).float()
            alibi = extra["slopes"].double()[:, None, None] * relative
            bias_of = lambda *table: alibi
        if c["bias"] == "table":
            bucket = T5Attention._relative_position_bucket(relative, True, BUCKETS, MAX_DISTANCE)
            inputs, names = inputs + [draw(BUCKETS, c["heads"], deviation=1.5)], names + ["dtable"]
            extra |= {"table": inputs[3], "bucket": bucket}
            bias_of = lambda table: table[bucket].permute(2, 0, 1)
        eager = lambda q, k, v, *table: attend(c, bias_of(*table), q, k, v)[0]
        fused = lambda q, k, v, *table: sdpa(c, bias_of(*table), q, k, v)
        others = {} if c["cap"] or c["bias"] == "table" else {"sdpa_bf16": fused}
        tensors = measure(eager, inputs, do, names, others)
        tensors["lse"] = torch.logsumexp(attend(c, bias_of(*inputs[3:]), q, k, v)[1], -1).T
        tensors |= {"q": q, "k": k, "v": v, "do": do} | extra
        for field in ("scale", "cap"):
            tensors[field] = torch.tensor([c[field]], dtype=torch.float64)
        for field in ("causal", "window"):
            tensors[field] = torch.tensor([int(c[field])])
        size = write(out / f"{name}.safetensors", tensors, {"q", "k", "v", "do", "table"},
                     {"o", "dq", "dk", "dv", "lse", "dtable"})
        report(name, size, tensors, "o")


# --------------------------------------------------------------------------------------------------- activations


ACTIVATIONS = {"gelu_erf": ACT2FN["gelu"], "gelu_tanh": ACT2FN["gelu_pytorch_tanh"], "silu": ACT2FN["silu"],
               "relu2": ACT2FN["relu2"], "quick_gelu": ACT2FN["quick_gelu"], "elu": torch.nn.functional.elu,
               "selu": torch.nn.functional.selu}
GATES = ("silu", "gelu_erf", "gelu_tanh")


def activations(seed, out):
    rows, width = 11, 40
    for index, name in enumerate([*ACTIVATIONS, *("gated_" + gate for gate in GATES)]):
        draw = Draw(seed + index)
        gated = name.startswith("gated_")
        inner = ACTIVATIONS[name.removeprefix("gated_")]
        x, dy = draw(rows, 2 * width if gated else width, deviation=2.0), draw(rows, width)
        function = (lambda x: inner(x[:, :width]) * x[:, width:]) if gated else inner
        tensors = measure(function, [x], dy, ["y", "dx"]) | {"x": x, "dy": dy}
        name = f"activation_{name}"
        report(name, write(out / f"{name}.safetensors", tensors, {"x", "dy"}), tensors, "y")


# --------------------------------------------------------------------------------------------------- loss


LOSSES = {
    "cross_entropy": {},
    "cross_entropy_z_loss": {"z_loss": 1e-2, "smoothing": 0.1},
    "cross_entropy_softcap": {"factor": 0.5, "cap": 3.0, "z_loss": 1e-3, "smoothing": 0.05, "gradient_scale": 0.125},
}


def losses(seed, out):
    rows, vocab = 19, 131
    for index, (name, options) in enumerate(LOSSES.items()):
        draw = Draw(seed + index)
        c = {key: single(options.get(key, default)) for key, default in
             {"factor": 1.0, "cap": 0.0, "z_loss": 0.0, "smoothing": 0.0, "gradient_scale": 1.0}.items()}
        labels = torch.randint(vocab, (rows,), generator=draw.generator)
        labels[::5] = -100

        def function(logits):
            z = logits * c["factor"]
            if c["cap"]:
                z = c["cap"] * torch.tanh(z / c["cap"])
            loss = torch.nn.functional.cross_entropy(z, labels, reduction="none", label_smoothing=c["smoothing"])
            return loss + torch.where(labels < 0, 0.0, c["z_loss"] * torch.logsumexp(z, -1) ** 2)

        logits, seed_of_loss = draw(rows, vocab, deviation=3.0), torch.full((rows,), c["gradient_scale"]).double()
        tensors = measure(function, [logits], seed_of_loss, ["loss", "dlogits"])
        tensors |= {"logits": logits, "labels": labels}
        tensors |= {key: torch.tensor([value], dtype=torch.float64) for key, value in c.items()}
        report(name, write(out / f"{name}.safetensors", tensors, {"logits"}), tensors, "loss")


def report(name, size, tensors, output):
    errors = {label: float(tensors[f"error.{label}.{output}"][1])
              for label in ("f32", "bf16", "sdpa_bf16") if f"error.{label}.{output}" in tensors}
    print(f"ops/{name}: {size / 1000:.0f} kB, error of {output}: "
          + ", ".join(f"{label} {value:.1e}" for label, value in errors.items()))
    assert size < 300_000, name


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    out = arguments.out / "ops"
    out.mkdir(parents=True, exist_ok=True)
    norms(1000 * arguments.seed, out)
    linears(1000 * arguments.seed + 100, out)
    attention(1000 * arguments.seed + 200, out)
    activations(1000 * arguments.seed + 300, out)
    losses(1000 * arguments.seed + 400, out)


if __name__ == "__main__":
    main()
