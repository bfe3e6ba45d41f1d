"""Tiny random models of sixteen HuggingFace families in f64: parameters, inputs, logits, loss and gradients.

They hold the judge (tests/reference.hpp) to every block layout, norm, position and attention variant that has a class in
transformers. Parameters go by the judge's canonical names, fused matrices split and transposed to [out, in]; they are
rounded to f32, so that F32 keeps them exactly. Everything else is F64. Tensors of families.safetensors: FAMILY/ids.B,
FAMILY/labels.B (target of each position, -100 does not count), FAMILY/encoder_ids.B, FAMILY/logits.B (BERT: the last
hidden state), FAMILY/loss, FAMILY/parameter.NAME, FAMILY/gradient.NAME.
"""

import argparse
import math
import pathlib
import re

import torch
import transformers as tr
from in_double import InDouble
from safetensors.torch import save_file

VOCAB, LENGTHS = 13, (11, 6, 1)
EAGER = {"vocab_size": VOCAB, "attn_implementation": "eager"}
ROPE = {"rope_type": "default", "rope_theta": 100.0}
LLAMA_LIKE = EAGER | {
    "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1,
    "intermediate_size": 10, "max_position_embeddings": 32, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2}
OPT_LIKE = EAGER | {
    "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "ffn_dim": 10, "max_position_embeddings": 32,
    "word_embed_proj_dim": 12, "dropout": 0.0}
WINDOWED = {"sliding_window": 3, "layer_types": ["sliding_attention", "full_attention"]}

# HF name -> canonical name: replacements applied in order.
LLAMA_NAMES = [
    ("model.", ""), ("embed_tokens", "token_embeddings"), (".input_layernorm.", ".ln1."),
    (".post_attention_layernorm.", ".ln2."), (".self_attn.", ".attn."), (".o_proj.", ".output_proj."),
    (".mlp.", ".ffn.")]
GEMMA_NAMES = [
    (".post_attention_layernorm.", ".ln1_post."), (".pre_feedforward_layernorm.", ".ln2."),
    (".post_feedforward_layernorm.", ".ln2_post."), *LLAMA_NAMES]
OPT_NAMES = [
    ("model.decoder.", ""), ("embed_tokens", "token_embeddings"), ("embed_positions", "position_embeddings"),
    (".self_attn_layer_norm.", ".ln1."), (".final_layer_norm.", ".ln2."), ("final_layer_norm", "ln_final"),
    (".self_attn.", ".attn."), (".out_proj.", ".output_proj."), (".fc1.", ".ffn.up_proj."), (".fc2.", ".ffn.down_proj.")]
GPT_NAMES = [
    ("transformer.", ""), ("gpt_neox.", ""), ("wte", "token_embeddings"), ("embed_in", "token_embeddings"),
    ("word_embeddings_layernorm", "embedding_norm"), ("word_embeddings", "token_embeddings"),
    ("wpe", "position_embeddings"), ("final_layer_norm", "ln_final"), ("ln_f.", "ln_final."),
    (".ln_1.", ".ln1."), (".ln_2.", ".ln2."), (".input_layernorm.", ".ln1."), (".post_attention_layernorm.", ".ln2."),
    (".self_attention.", ".attn."), (".attention.", ".attn."), (".query_key_value.", ".qkv_proj."),
    (".c_attn.", ".qkv_proj."), (".mlp.c_proj.", ".ffn.down_proj."), (".c_proj.", ".output_proj."),
    (".dense.", ".output_proj."), (".out_proj.", ".output_proj."), (".mlp.c_fc.", ".ffn.up_proj."),
    (".mlp.fc_in.", ".ffn.up_proj."), (".mlp.fc_out.", ".ffn.down_proj."), (".mlp.dense_h_to_4h.", ".ffn.up_proj."),
    (".mlp.dense_4h_to_h.", ".ffn.down_proj.")]
BERT_NAMES = [
    ("embeddings.LayerNorm", "embedding_norm"), ("embeddings.word_", "token_"), ("embeddings.position_", "position_"),
    ("embeddings.token_type", "token_type"), ("encoder.layer.", "layers."), (".attention.output.LayerNorm.", ".ln1."),
    (".output.LayerNorm.", ".ln2."), (".attention.output.dense.", ".attn.output_proj."),
    (".attention.self.query.", ".attn.q_proj."), (".attention.self.key.", ".attn.k_proj."),
    (".attention.self.value.", ".attn.v_proj."), (".intermediate.dense.", ".ffn.up_proj."),
    (".output.dense.", ".ffn.down_proj.")]
MARIAN_NAMES = [
    ("model.", ""), ("shared", "token_embeddings"), (".self_attn_layer_norm.", ".ln1."),
    (".encoder_attn_layer_norm.", ".ln_cross."), (".final_layer_norm.", ".ln2."), (".self_attn.", ".attn."),
    (".encoder_attn.", ".cross."), (".out_proj.", ".output_proj."), (".fc1.", ".ffn.up_proj."),
    (".fc2.", ".ffn.down_proj.")]


def families():
    """Name -> (model, replacements)."""
    llama = lambda **fields: LLAMA_LIKE | {"rope_parameters": ROPE} | fields
    yarn = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 16,
            "beta_fast": 4.0, "beta_slow": 1.0}
    return {
        "neox": (tr.GPTNeoXForCausalLM(tr.GPTNeoXConfig(
            **EAGER, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=10,
            hidden_act="gelu", layer_norm_eps=1e-2, max_position_embeddings=32, tie_word_embeddings=False,
            rope_parameters=ROPE | {"partial_rotary_factor": 0.5})), GPT_NAMES),
        "gptj": (tr.GPTJForCausalLM(tr.GPTJConfig(
            **EAGER, n_embd=16, n_layer=2, n_head=2, n_inner=10, rotary_dim=6, layer_norm_epsilon=1e-2, n_positions=32,
            bos_token_id=1, eos_token_id=2)), GPT_NAMES),
        "bloom": (tr.BloomForCausalLM(tr.BloomConfig(
            **EAGER, hidden_size=12, n_layer=2, n_head=3, layer_norm_epsilon=1e-2)), GPT_NAMES),
        "gpt2": (tr.GPT2LMHeadModel(tr.GPT2Config(
            **EAGER, n_embd=12, n_layer=2, n_head=3, n_inner=10, n_positions=32, layer_norm_epsilon=1e-2,
            bos_token_id=1, eos_token_id=2)), GPT_NAMES),
        "opt": (tr.OPTForCausalLM(tr.OPTConfig(**OPT_LIKE)), OPT_NAMES),
        "opt_post": (tr.OPTForCausalLM(tr.OPTConfig(**OPT_LIKE, do_layer_norm_before=False)), OPT_NAMES),
        "bert": (tr.BertModel(tr.BertConfig(
            **EAGER, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=10,
            max_position_embeddings=32, layer_norm_eps=1e-2), add_pooling_layer=False), BERT_NAMES),
        "cohere": (tr.CohereForCausalLM(tr.CohereConfig(
            **llama(layer_norm_eps=1e-2, logit_scale=0.3, use_qk_norm=True))), LLAMA_NAMES),
        "cohere2": (tr.Cohere2ForCausalLM(tr.Cohere2Config(
            **llama(layer_norm_eps=1e-2, logit_scale=0.3), **WINDOWED)), LLAMA_NAMES),
        "olmo": (tr.OlmoForCausalLM(tr.OlmoConfig(**llama(clip_qkv=0.6, tie_word_embeddings=False))), LLAMA_NAMES),
        "olmo2": (tr.Olmo2ForCausalLM(tr.Olmo2Config(
            **llama(rms_norm_eps=1e-2, tie_word_embeddings=False))), GEMMA_NAMES),
        "gemma2": (tr.Gemma2ForCausalLM(tr.Gemma2Config(
            **llama(head_dim=6, rms_norm_eps=1e-2, query_pre_attn_scalar=20, attn_logit_softcapping=1.5,
                    final_logit_softcapping=2.0), **WINDOWED)), GEMMA_NAMES),
        "qwen3": (tr.Qwen3ForCausalLM(tr.Qwen3Config(
            **llama(head_dim=6, rms_norm_eps=1e-2, tie_word_embeddings=False))), LLAMA_NAMES),
        "nemotron": (tr.NemotronForCausalLM(tr.NemotronConfig(
            **llama(head_dim=4, norm_eps=1e-2, tie_word_embeddings=False, partial_rotary_factor=0.5,
                    rope_parameters=ROPE | {"partial_rotary_factor": 0.5}))), LLAMA_NAMES),
        "yarn": (tr.LlamaForCausalLM(tr.LlamaConfig(
            **llama(head_dim=6, rms_norm_eps=1e-2, tie_word_embeddings=False, rope_parameters=yarn))), LLAMA_NAMES),
        "marian": (tr.MarianMTModel(tr.MarianConfig(
            **EAGER, d_model=12, encoder_layers=1, decoder_layers=2, encoder_attention_heads=3,
            decoder_attention_heads=3, encoder_ffn_dim=10, decoder_ffn_dim=10, activation_function="relu",
            scale_embedding=True, max_position_embeddings=32, dropout=0.0, pad_token_id=0, decoder_start_token_id=0,
            eos_token_id=1)), MARIAN_NAMES),
    }


def fill(model, generator):
    """Random values, exact in f32: norm factors around 1, biases not zero, matrices that keep the size of their input."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:  # Marian's sinusoids
                continue
            table = re.search("emb|wte|wpe|shared|_norm", name)
            size = 0.3 if parameter.dim() == 1 or "_norm" in name else 0.7 if table else parameter.shape[1] ** -0.5
            factor = re.search("norm|ln_|LayerNorm", name) and name.endswith("weight")
            values = (1.0 if factor and parameter.dim() == 1 else 0.0) + size * torch.randn(
                parameter.shape, generator=generator)
            parameter.copy_(values.float())


def canonical(family, name, tensor, heads, replacements):
    """(canonical name, tensor) pairs of one parameter: one, or three of a fused one."""
    if name.startswith(("lm_head", "embed_out")):
        return [(name.replace("embed_out", "lm_head"), tensor)]
    for old, new in replacements:
        name = name.replace(old, new)
    name = re.sub(r"^norm\.", "ln_final.", re.sub(r"^h\.", "layers.", name))
    if family == "gpt2" and "proj" in name and tensor.dim() == 2:
        tensor = tensor.T  # Conv1D
    if ".attn.q_norm" in name or ".attn.k_norm" in name:
        tensor = tensor.reshape(-1)  # Cohere: [heads, head_dim]
    if ".qkv_proj." not in name:
        return [(name, tensor)]
    if family == "gpt2":
        parts = tensor.chunk(3)
    else:  # q, k and v of one head after another
        by_head = tensor.reshape(heads, 3, -1, *tensor.shape[1:])
        parts = [by_head[:, i].reshape(-1, *tensor.shape[1:]) for i in range(3)]
    return [(name.replace("qkv_proj", f"{letter}_proj"), part) for letter, part in zip("qkv", parts)]


def compute(family, model, replacements, generator):
    tensors, total, valid = {}, 0.0, 0
    draw = lambda n: torch.randint(3, VOCAB, (n,), generator=generator)
    for b, length in enumerate(LENGTHS):
        ids, labels = draw(length), draw(length)
        if length > 3:
            labels[3] = -100
        tensors[f"ids.{b}"], tensors[f"labels.{b}"] = ids, labels
        if family == "marian":
            tensors[f"encoder_ids.{b}"] = draw(length + 2)
            out = model(input_ids=tensors[f"encoder_ids.{b}"][None], decoder_input_ids=ids[None], use_cache=False)
        else:
            out = model(input_ids=ids[None])
        logits = (out.last_hidden_state if family == "bert" else out.logits)[0]
        tensors[f"logits.{b}"] = logits.detach()
        if family != "bert":
            total = total + torch.nn.functional.cross_entropy(logits, labels, ignore_index=-100, reduction="sum")
            valid += int((labels != -100).sum())
    if valid:
        (total / valid).backward()
        tensors["loss"] = (total / valid).detach().reshape(1)
    heads = model.config.num_attention_heads
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        for ours, part in canonical(family, name, parameter.detach(), heads, replacements):
            tensors[f"parameter.{ours}"] = part.float()
        if valid:
            for ours, part in canonical(family, name, parameter.grad, heads, replacements):
                tensors[f"gradient.{ours}"] = part
    return tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    arguments = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    generator = torch.Generator().manual_seed(arguments.seed)
    stored = {}
    with InDouble():
        for family, (model, replacements) in families().items():
            model = model.double().eval()
            fill(model, generator)
            for name, tensor in compute(family, model, replacements, generator).items():
                assert name.startswith("parameter.") or tensor.dtype in (torch.float64, torch.int64), name
                stored[f"{family}/{name}"] = tensor.contiguous().clone()
            print(f"{family}: {sum(p.numel() for p in model.parameters())} parameters, "
                  f"loss {float(stored.get(f'{family}/loss', torch.tensor([math.nan]))[0]):.4f}")
    save_file(stored, arguments.out / "families.safetensors")


if __name__ == "__main__":
    main()
