#!/usr/bin/env python3
"""PyTorch's times for the operations of operations.cpp, eager and compiled: a JSON object per line.

Measured as there: normal numbers, three warm-ups, the median, and nothing in the L2 cache."""
import json

import torch
import torch.nn.functional as F

TOKENS, CONTEXT, SEQUENCES = 4096, 8192, 8
D_MODEL, HEADS, KV_HEADS, HEAD_DIM, D_FF, VOCAB = 4096, 32, 8, 128, 14336, 128256


def median_us(operation, repetitions=11):
    for _ in range(3):
        operation()
    cache, times = torch.empty(256 << 20, dtype=torch.uint8, device="cuda"), []
    for _ in range(repetitions):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        cache.zero_()
        begin.record()
        operation()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return sorted(times)[len(times) // 2]


def report(name, eager, compiled=None):
    row = {"name": name, "us": round(median_us(eager), 2)}
    if compiled is not None:
        row["us_compiled"] = round(median_us(compiled), 2)
    print(json.dumps(row), flush=True)


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


@torch.no_grad()
def main():
    x, residual, gain = random(TOKENS, D_MODEL), random(TOKENS, D_MODEL), random(D_MODEL)
    norm = lambda: F.rms_norm(x, (D_MODEL,), gain, 1e-5) + residual
    report("rmsnorm_and_residual", norm, torch.compile(norm))

    q = random(1, HEADS, TOKENS, HEAD_DIM)
    k, v = random(1, KV_HEADS, TOKENS, HEAD_DIM), random(1, KV_HEADS, TOKENS, HEAD_DIM)
    report("attention_causal", lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))
    one = random(SEQUENCES, HEADS, 1, HEAD_DIM)
    keys, values = random(SEQUENCES, KV_HEADS, CONTEXT, HEAD_DIM), random(SEQUENCES, KV_HEADS, CONTEXT, HEAD_DIM)
    report("attention_decode", lambda: F.scaled_dot_product_attention(one, keys, values, enable_gqa=True))
    with torch.enable_grad():
        leaves = [t.detach().requires_grad_() for t in (q, k, v)]
        out = F.scaled_dot_product_attention(*leaves, is_causal=True, enable_gqa=True)
        gradient = torch.randn_like(out)
        report("attention_causal_backward", lambda: torch.autograd.grad(out, leaves, gradient, retain_graph=True))

    both = random(TOKENS, 2 * D_FF)
    swiglu = lambda: F.silu(both[:, :D_FF]) * both[:, D_FF:]
    report("swiglu", swiglu, torch.compile(swiglu))

    logits, labels = random(1024, VOCAB), torch.randint(0, VOCAB, (1024,), device="cuda")
    with torch.enable_grad():
        leaf = logits.detach().requires_grad_()
        loss = lambda: torch.autograd.grad(F.cross_entropy(leaf.float(), labels), leaf)
        report("cross_entropy_and_gradient", loss, torch.compile(loss))

    qkv, up = random((HEADS + 2 * KV_HEADS) * HEAD_DIM, D_MODEL), random(2 * D_FF, D_MODEL)
    report("product_qkv", lambda: F.linear(x, qkv))
    report("product_ffn_up", lambda: F.linear(x, up))
    report("product_ffn_up_of_one_token", lambda: F.linear(x[:1], up))


if __name__ == "__main__":
    main()
