"""Golden values of SmolLM2-135M-Instruct (30 layers, real weights, GGUF de-quantised to f32): smollm2.json.

Not 12 MB of logits but, at every position of a 64-token prompt, their log-sum-exp, the eight largest and four sums with
seeded signs; and what greedy decoding answers to a question. README.md in this folder describes the fields.
"""

import argparse
import json
import pathlib

import numpy
import torch
import transformers

from in_double import InDouble, in_double
from smollm2_files import FILE, PACKAGE, VERSION, gguf_sha256, network, published_tokenizer

PROMPT = (
    "The lighthouse keeper wrote down the weather three times a day: at 6 in the morning, at noon, and when the lamp "
    "was lit. On 14 March 1907 he noted a falling glass, wind from the south-west, and a ship that did not answer his "
    "signals. \"She carries no lights,\" he wrote, \"and nobody moves on deck.\" The next page of the book is missing.")
PROMPT_TOKENS = 64
QUESTION = "What is gravity?"
NEW_TOKENS = 64
PROJECTIONS = 4


def signs(seed, row, width):
    """r(v) = +1 or -1 for v = 0 .. width - 1: the top bit of splitmix64's mix of seed + (row * width + v) * golden."""
    with numpy.errstate(over="ignore"):
        index = numpy.arange(width, dtype=numpy.uint64) + numpy.uint64(row * width)
        z = numpy.uint64(seed) + index * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    return 1.0 - 2.0 * (z >> numpy.uint64(63)).astype(numpy.float64)


def position_summary(logits, rows):
    """logits: f64 [vocab]; rows: signs [PROJECTIONS, vocab]."""
    values, ids = logits.topk(8)
    return {
        "log_sum_exp": float(torch.logsumexp(logits, 0)),
        "largest": float(logits.abs().max()),
        "top_ids": ids.tolist(),
        "top_logits": values.tolist(),
        "projections": (rows @ logits.numpy()).tolist(),
    }


def prompt_part(model, tokenizer, seed):
    ids = tokenizer(PROMPT).input_ids[:PROMPT_TOKENS]
    text = tokenizer.decode(ids)
    assert len(ids) == PROMPT_TOKENS and tokenizer(text).input_ids == ids
    batch = torch.tensor([ids])
    with torch.no_grad():
        out = model(input_ids=batch, output_hidden_states=True, use_cache=False)
        twin = in_double(lambda: type(model)(model.config), model)
        with InDouble():
            exact = twin(input_ids=batch, output_hidden_states=True, use_cache=False)
    logits = out.logits[0].double()
    vocab = logits.shape[1]
    rows = numpy.stack([signs(seed, k, vocab) for k in range(PROJECTIONS)])
    layers = []
    for state, exact_state in zip(out.hidden_states, exact.hidden_states):
        state, exact_state = state[0].double(), exact_state[0]
        flat = state.reshape(-1).numpy()
        layers.append({
            "norm": float(state.norm()),
            "noise": float((state - exact_state).norm() / exact_state.norm()),
            "projections": [float(signs(seed, k, flat.size) @ flat) for k in range(PROJECTIONS)],
        })
    noise = (logits - exact.logits[0]).abs()
    print(f"smollm2: {vocab} logits, f32 noise {float(noise.max()):.1e} of {float(logits.abs().max()):.1f}, "
          f"hidden states up to {max(layer['noise'] for layer in layers):.1e}")
    return {
        "text": text,
        "ids": ids,
        "logits_noise": [float(noise.max()), float(noise.max() / exact.logits.abs().max())],
        "positions": [position_summary(row, rows) for row in logits],
        "hidden": layers,
    }


def chat_part(model, tokenizer):
    messages = [{"role": "user", "content": QUESTION}]
    rendered = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(rendered, add_special_tokens=False).input_ids
    out = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                         max_new_tokens=NEW_TOKENS, do_sample=False, output_logits=True, return_dict_in_generate=True)
    new_ids = out.sequences[0, len(ids):].tolist()
    margins = [float(step[0].topk(2).values.diff().abs()) for step in out.logits]
    with torch.no_grad():  # the same without a cache
        whole = model(input_ids=out.sequences[:, :-1], use_cache=False).logits[0, len(ids) - 1:].argmax(-1)
    assert whole.tolist() == new_ids
    text = tokenizer.decode(new_ids)
    print(f"smollm2: smallest greedy margin {min(margins):.1e}: {text!r}")
    return {"question": QUESTION, "messages": messages, "rendered": rendered, "prompt_ids": ids, "new_ids": new_ids,
            "text": text, "margins": [float(f"{m:.4g}") for m in margins]}


def compact(value, indent=0):
    """JSON with one line per inner object, so that a changed value is one changed line."""
    pad = " " * (indent + 1)
    if isinstance(value, dict) and indent < 2:
        inner = [f"{pad}{json.dumps(k)}: {compact(v, indent + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(inner) + "\n" + " " * indent + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(pad + json.dumps(v, ensure_ascii=False) for v in value) + "\n" + " " * indent + "]"
    return json.dumps(value, ensure_ascii=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the projections")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    model, tokenizer = network(), published_tokenizer()
    content = {
        "made": f"torch {torch.__version__}, transformers {transformers.__version__}",
        "package": f"{PACKAGE}=={VERSION}",
        "file": FILE,
        "sha256": gguf_sha256(),
        "seed": arguments.seed,
        "prompt": prompt_part(model, tokenizer, arguments.seed),
        "chat": chat_part(model, tokenizer),
    }
    (arguments.out / "smollm2.json").write_text(compact(content) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
