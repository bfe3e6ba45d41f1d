"""Golden values of tiny random HuggingFace models: every hidden state, logits, greedy decode, loss and gradients.

For each model: a real HF folder (config.json, generation_config.json, model.safetensors in f32), golden.safetensors and
features.json (what changing one feature is worth in the logits).
README.md in this folder lists the tensors. Computed in f32 with eager attention in eval mode, sequence by sequence,
without padding. A draw of the weights is kept only if nothing sits on an edge (an argmax, a ReLU) and every feature of
the architecture moves the logits by more than FEATURE_FLOOR; otherwise the next draw of the same seed is tried.
"""

import argparse
import json
import math
import pathlib
import shutil

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from in_double import InDouble, in_double
from tiny_features import feature_table

LENGTHS = (29, 17, 1)  # of decoder-only sequences
ENCODER_LENGTHS = (29, 13, 1)
DECODER_LENGTHS = (19, 23, 1)
GREEDY_STEPS = 16
IGNORED = -100  # label that does not count
LOGIT_DEVIATION = 3.0
DISTINCT_TOKENS = 6  # at least, among the greedy ones
ARGMAX_MARGIN = 1e-3  # between the two largest logits of a greedy step
RELU_MARGIN = 2e-5  # of any ReLU's input to zero: an f32 sum of another order must not switch it
FEATURE_FLOOR = 1e-3  # what changing one feature must be worth in some logit
NOISE_CEILING = 1.5e-5  # HF's own f32 error: absolute on logits, relative to the norm on a gradient


# --------------------------------------------------------------------------------------------------- weights


class Weights:
    """Random parameter values whose sizes make the features bite."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, shape, deviation, mean=0.0):
        return mean + deviation * torch.randn(shape, generator=self.generator)

    def fill(self, model, rules):
        """rules: list of (suffixes, function(shape) -> values); the first whose suffix matches is used."""
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                for suffixes, make in rules:
                    if name.endswith(suffixes):
                        parameter.copy_(make(parameter.shape))
                        break
                else:
                    raise RuntimeError(f"no rule for parameter {name}")

    def matrix(self, gain=1.0):
        return lambda shape: self.normal(shape, gain / math.sqrt(shape[1]))

    def vector(self, mean, deviation):
        return lambda shape: self.normal(shape, deviation, mean)


def llama_weights(weights, model):
    weights.fill(model, [
        (("norm.weight",), weights.vector(1.0, 0.35)),
        (("layernorm.weight",), weights.vector(1.0, 0.35)),
        (("bias",), weights.vector(0.0, 0.4)),
        (("q_proj.weight", "k_proj.weight"), weights.matrix(1.4)),
        (("embed_tokens.weight",), weights.vector(0.0, 0.7)),
        (("weight",), weights.matrix(1.0)),
    ])


def gemma3_weights(weights, model):
    weights.fill(model, [
        (("post_attention_layernorm.weight", "post_feedforward_layernorm.weight"), weights.vector(4.0, 1.0)),
        (("q_norm.weight", "k_norm.weight"), weights.vector(0.2, 0.3)),
        (("norm.weight",), weights.vector(0.3, 0.4)),
        (("embed_tokens.weight",), weights.vector(0.0, 0.35)),
        (("weight",), weights.matrix(0.6)),
    ])


def t5_weights(weights, model):
    score_gain = math.sqrt(1.6) / model.config.d_kv**0.25  # T5 does not divide the scores by sqrt(d_kv)
    weights.fill(model, [
        (("layer_norm.weight",), weights.vector(1.0, 0.35)),
        (("relative_attention_bias.weight",), weights.vector(0.0, 1.5)),
        ((".q.weight", ".k.weight"), weights.matrix(score_gain)),
        (("shared.weight",), weights.vector(0.0, 0.8)),
        (("weight",), weights.matrix(1.0)),
    ])


def final_norm(model):
    return model.decoder.final_layer_norm if hasattr(model, "decoder") else model.model.norm


# --------------------------------------------------------------------------------------------------- models


def make_llama():
    config = LlamaConfig(
        vocab_size=101, hidden_size=48, intermediate_size=56, num_hidden_layers=3, num_attention_heads=6,
        num_key_value_heads=2, head_dim=16, rms_norm_eps=2e-2, attention_bias=True, mlp_bias=True,
        tie_word_embeddings=False, max_position_embeddings=64,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        bos_token_id=1, eos_token_id=2, attn_implementation="eager")
    return LlamaForCausalLM(config)


def make_llama_tied():
    config = LlamaConfig(
        vocab_size=103, hidden_size=40, intermediate_size=52, num_hidden_layers=2, num_attention_heads=5,
        num_key_value_heads=1, head_dim=12, rms_norm_eps=6e-3, attention_bias=False, mlp_bias=False,
        tie_word_embeddings=True, max_position_embeddings=256,
        rope_parameters={"rope_type": "llama3", "rope_theta": 1000.0, "factor": 4.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 64},
        bos_token_id=1, eos_token_id=2, attn_implementation="eager")
    return LlamaForCausalLM(config)


def make_gemma3():
    config = Gemma3TextConfig(
        vocab_size=109, hidden_size=32, intermediate_size=40, num_hidden_layers=7, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, rms_norm_eps=1e-2, hidden_activation="gelu_pytorch_tanh",
        query_pre_attn_scalar=24, sliding_window=5, sliding_window_pattern=6, max_position_embeddings=64,
        rope_parameters={"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 3000.0},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}},
        final_logit_softcapping=5.0, tie_word_embeddings=True, pad_token_id=None, bos_token_id=2, eos_token_id=1,
        attn_implementation="eager")
    return Gemma3ForCausalLM(config)


def make_t5():
    config = T5Config(
        vocab_size=89, d_model=32, d_kv=12, d_ff=56, num_layers=2, num_decoder_layers=3, num_heads=4,
        relative_attention_num_buckets=8, relative_attention_max_distance=20, layer_norm_epsilon=1e-2,
        feed_forward_proj="relu", decoder_start_token_id=0, attn_implementation="eager")
    return T5ForConditionalGeneration(config)


def make_t5_gated():
    # T5Config ties the head whatever it is told and keeps the word of v1.1 files, tie_word_embeddings false, only as
    # "do not scale the decoder's output"; so the head is untied by hand.
    config = T5Config(
        vocab_size=83, d_model=24, d_kv=8, d_ff=44, num_layers=3, num_decoder_layers=2, num_heads=5,
        relative_attention_num_buckets=10, relative_attention_max_distance=18, layer_norm_epsilon=3e-2,
        feed_forward_proj="gated-gelu", tie_word_embeddings=False, decoder_start_token_id=0,
        attn_implementation="eager")
    model = T5ForConditionalGeneration(config)
    model.lm_head.weight = torch.nn.Parameter(torch.zeros_like(model.shared.weight))
    return model


MODELS = {
    "llama": (make_llama, llama_weights),
    "llama_tied": (make_llama_tied, llama_weights),
    "gemma3": (make_gemma3, gemma3_weights),
    "t5": (make_t5, t5_weights),
    "t5_gated": (make_t5_gated, t5_weights),
}


# --------------------------------------------------------------------------------------------------- running


def is_t5(model):
    return hasattr(model, "decoder")


def draw_inputs(model, seed):
    """Token ids and labels; ids 0 and vocab - 1 occur, ids repeat, a fifth of the labels is ignored."""
    generator = torch.Generator().manual_seed(seed)
    vocab = model.config.vocab_size
    draw = lambda n: torch.randint(0, vocab, (n,), generator=generator)
    inputs = []
    for b in range(3):
        if is_t5(model):
            item = {"encoder_ids": draw(ENCODER_LENGTHS[b]), "ids": draw(DECODER_LENGTHS[b])}
            item["ids"][0] = model.config.decoder_start_token_id
        else:
            item = {"ids": draw(LENGTHS[b])}
        ids = item["ids"]
        if b == 0:
            ids[3], ids[7] = vocab - 1, 0
        labels = torch.cat([ids[1:], draw(1)])
        if len(ids) > 1:
            ignored = torch.rand(len(ids), generator=generator) < 0.2
            ignored[2], ignored[0] = True, False
            labels[ignored] = IGNORED
        item["labels"] = labels
        inputs.append(item)
    return inputs


def run(model, item, ids=None):
    """One sequence alone, without padding: logits [tokens, vocab] and hidden states by name."""
    ids = item["ids"] if ids is None else ids
    before = {}

    def keep(name):
        def hook(module, args):
            before[name] = args[0][0]
        return hook

    hooks = []
    common = {"output_hidden_states": True, "use_cache": False}
    if is_t5(model):
        hooks.append(model.encoder.final_layer_norm.register_forward_pre_hook(keep("encoder")))
        hooks.append(model.decoder.final_layer_norm.register_forward_pre_hook(keep("decoder")))
        out = model(input_ids=item["encoder_ids"][None], decoder_input_ids=ids[None], **common)
        stacks = {"encoder.": out.encoder_hidden_states, "decoder.": out.decoder_hidden_states}
    else:
        hooks.append(model.model.norm.register_forward_pre_hook(keep("")))
        out = model(input_ids=ids[None], **common)
        stacks = {"": out.hidden_states}
    for hook in hooks:
        hook.remove()
    hidden = {}
    for stack, states in stacks.items():
        for layer, state in enumerate(states):
            hidden[f"{stack}hidden", layer] = state[0]
        hidden[f"{stack}hidden_before_norm", None] = before[stack.rstrip(".")]
    return out.logits[0], hidden


def results(model, inputs):
    """Everything a golden file holds but the inputs and the greedy steps, as name -> tensor."""
    model.zero_grad(set_to_none=True)
    tensors = {}
    total, valid = 0.0, 0
    for b, item in enumerate(inputs):
        logits, hidden = run(model, item)
        tensors[f"logits.{b}"] = logits.detach()
        for (name, layer), state in hidden.items():
            tensors[f"{name}.{b}" if layer is None else f"{name}.{b}.{layer}"] = state.detach()
        total = total + torch.nn.functional.cross_entropy(
            logits.float(), item["labels"], ignore_index=IGNORED, reduction="sum")  # as HF's loss has it
        valid += int((item["labels"] != IGNORED).sum())
    loss = total / valid
    loss.backward()
    tensors["loss"] = loss.detach().reshape(1)
    for name, parameter in model.named_parameters():
        tensors[f"grad.{name}"] = parameter.grad.detach().clone()
    return tensors


def greedy(model, item):
    """GREEDY_STEPS tokens after the whole of sequence 0 and the logits that chose each; every step a full forward."""
    ids, chosen, margin = item["ids"], [], math.inf
    with torch.no_grad():
        for _ in range(GREEDY_STEPS):
            logits = run(model, item, ids)[0][-1]
            top = logits.topk(2)
            margin = min(margin, float(top.values[0] - top.values[1]))
            chosen.append(logits)
            ids = torch.cat([ids, top.indices[:1]])
    return ids[len(item["ids"]):], torch.stack(chosen), margin


def relu_margin(model, inputs):
    """Smallest distance of a ReLU's input from zero (infinite without a ReLU)."""
    smallest, hooks = [math.inf], []
    for module in model.modules():
        if isinstance(module, torch.nn.ReLU):
            hooks.append(module.register_forward_pre_hook(lambda m, a: smallest.append(float(a[0].abs().min()))))
    with torch.no_grad():
        for item in inputs:
            run(model, item)
    for hook in hooks:
        hook.remove()
    return min(smallest)


# --------------------------------------------------------------------------------------------------- writing


def with_noise(make, model, inputs):
    """results() in f32, for each tensor its distance from the same in f64 as noise.NAME, and the largest noises."""
    single = results(model, inputs)
    with InDouble():
        double = results(in_double(make, model), inputs)
    assert single.keys() == double.keys()
    tensors, logits_noise, gradient_noise = dict(single), 0.0, 0.0
    for key, value in single.items():
        error = value.double() - double[key]
        largest, relative = float(error.abs().max()), float(error.norm() / double[key].norm())
        tensors[f"noise.{key}"] = torch.tensor([largest, relative], dtype=torch.float64)
        if key.startswith("logits."):
            logits_noise = max(logits_noise, largest)
        if key.startswith("grad."):
            gradient_noise = max(gradient_noise, relative)
    return tensors, logits_noise, gradient_noise


def bf16_errors(make, model, inputs, steps):
    """How far the model in bf16 (weights and arithmetic) is from f64 with the same rounded weights, as
    bf16_error.NAME: the norm of the difference, and that over the norm. The greedy steps' logits read the given tokens."""
    rounded = make().bfloat16().eval()
    rounded.load_state_dict({k: v.bfloat16() for k, v in model.state_dict().items()})
    prompt, count = inputs[0]["ids"], len(steps)

    def everything(network):
        tensors = results(network, inputs)
        with torch.no_grad():
            tensors["greedy.logits"] = run(network, inputs[0], torch.cat([prompt, steps[:-1]]))[0][-count:]
        return tensors

    single = everything(rounded)
    with InDouble():
        double = everything(in_double(make, rounded))
    errors = {}
    for key, value in single.items():
        error = float((value.double() - double[key]).norm())
        errors[f"bf16_error.{key}"] = torch.tensor([error, error / float(double[key].norm())], dtype=torch.float64)
    return errors


def one_draw(name, seed):
    """The model and its inputs for one draw, or the reason why this draw is no good."""
    make, fill = MODELS[name]
    model = make().eval()
    weights = Weights(seed)
    fill(weights, model)
    inputs = draw_inputs(model, seed + 1)

    # The final norm's weight sets the size of the logits; its signs are mixed, for else a tied head prefers the token
    # that was just read, and greedy decoding repeats it for ever.
    with torch.no_grad():
        norm = final_norm(model)
        capped = getattr(model.config, "final_logit_softcapping", None)
        if capped:
            model.config.final_logit_softcapping = None
        deviation = torch.cat([run(model, item)[0] for item in inputs]).std()
        one = 1.0 if name == "gemma3" else 0.0
        signs = torch.where(weights.normal(norm.weight.shape, 1.0) > 0, 1.0, -1.0)
        norm.weight.copy_((norm.weight + one) * signs * (LOGIT_DEVIATION / deviation) - one)
        model.config.final_logit_softcapping = capped

    steps, step_logits, margin = greedy(model, inputs[0])
    if len(set(steps.tolist())) < DISTINCT_TOKENS:
        return f"greedy decoding repeats itself: {steps.tolist()}"
    if margin < ARGMAX_MARGIN:
        return f"argmax margin {margin:.1e}"
    if relu_margin(model, inputs) < RELU_MARGIN:
        return f"relu margin {relu_margin(model, inputs):.1e}"
    tensors, logits_noise, gradient_noise = with_noise(make, model, inputs)
    if logits_noise > NOISE_CEILING or gradient_noise > NOISE_CEILING:
        return f"f32 noise {logits_noise:.1e} on logits, {gradient_noise:.1e} on gradients"
    table = feature_table(name, model, inputs, run)
    weak = {f: v for f, v in table.items() if not v > FEATURE_FLOOR}
    if weak:
        return f"features that do not show: {weak}"
    tensors |= {"greedy.ids": steps, "greedy.logits": step_logits} | bf16_errors(make, model, inputs, steps)
    report = (f"{sum(p.numel() for p in model.parameters())} parameters, loss {float(tensors['loss']):.4f}, "
              f"greedy margin {margin:.1e}, f32 noise {logits_noise:.1e} on logits, {gradient_noise:.1e} on gradients, "
              f"weakest feature {min(table, key=table.get)}: {min(table.values()):.1e}")
    return model, inputs, tensors, table, report


def check_reload(folder, model, inputs):
    """What lies on the disk is the network that was measured."""
    stored = load_file(folder / "model.safetensors")
    for key, parameter in model.named_parameters():
        assert torch.equal(stored[key], parameter), key
    if not is_t5(model) or model.lm_head.weight is model.shared.weight:
        again = type(model).from_pretrained(folder, attn_implementation="eager").eval()
        with torch.no_grad():
            for item in inputs:
                assert torch.equal(run(again, item)[0], run(model, item)[0])


def write(name, seed, out, show):
    for attempt in range(50):
        drawn = one_draw(name, seed * 1_000_003 + 101 * attempt)
        if not isinstance(drawn, str):
            break
        print(f"{name}: draw {attempt} refused: {drawn}")
    else:
        raise RuntimeError(f"{name}: no good draw for seed {seed}")
    model, inputs, tensors, table, report = drawn
    print(f"{name}: draw {attempt}: {report}")
    if show:
        for feature, value in sorted(table.items(), key=lambda pair: pair[1]):
            print(f"  {value:10.2e}  {feature}")

    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model.save_pretrained(folder)
    check_reload(folder, model, inputs)
    for b, item in enumerate(inputs):
        if is_t5(model):
            tensors[f"encoder.ids.{b}"] = item["encoder_ids"]
            tensors[f"decoder.ids.{b}"] = item["ids"]
        else:
            tensors[f"ids.{b}"] = item["ids"]
        tensors[f"labels.{b}"] = item["labels"]
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "golden.safetensors",
              # one key only: safetensors writes several in random order
              metadata={"made": f"seed {seed}, torch {torch.__version__}, transformers {transformers.__version__}"})
    (folder / "features.json").write_text(
        json.dumps({f: float(f"{v:.3g}") for f, v in table.items()}, indent=1) + "\n")
    for file in folder.iterdir():
        file.chmod(0o644)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--only", choices=MODELS, action="append")
    parser.add_argument("--check", action="store_true", help="print what each feature is worth")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    for name in arguments.only or MODELS:
        write(name, arguments.seed, arguments.out, arguments.check)


if __name__ == "__main__":
    main()
