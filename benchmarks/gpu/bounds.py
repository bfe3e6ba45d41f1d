#!/usr/bin/env python3
"""Writes bounds.md: what each operation must take at least, beside the best published figures for the same operation.

    bounds.py --operations PROGRAM --registers FILE --memory FILE > bounds.md

PROGRAM is operations.cpp's, compiled for the host or a GPU; `--bounds` makes it print bytes and FLOPs without running
anything. The files are registers.txt of tests/cuda/nvcc.py and what the test cuda_memory_budget_racecheck prints.
Nothing in the table is a measurement of this library's speed.
"""
import argparse
import json
import pathlib
import re
import subprocess

PEAK_TFLOPS = 989

# operation: (the kernels that do it, its name in registers.txt, the best published figure, where it is from)
CUDNN = "cudnn-frontend's CSV"
NORM = ("torch.compile 4.18 TB/s, 87 %, forward; cuDNN 3.80 TB/s, 79 %, backward (H200, rows of 8192 and 4096)", CUDNN)
MATMUL = ("794.5 TFLOP/s, 80.3 %: the largest matmul found by search (H100)", "stas00/ml-engineering")
SOFTMAX = ("QuACK's softmax 3.01 TB/s, 90 % (H100); of the loss itself no bandwidth seen", "QuACK's article")
NONE = ("none seen as a fraction of bandwidth", "")
DECODE = ("decoding a whole model of 1B: 78 % of bandwidth (H100)", "the megakernel's article")
ATTEND = ("cuDNN 9.19 591 TFLOP/s, 60 % (H200, 4k, 64 query and 8 key heads, causal)", CUDNN)
ATTEND_BACKWARD = ("cuDNN 9.19 474 TFLOP/s, 48 % (H200, 4k, 64 query and 8 key heads, causal)", CUDNN)
RMS = r"NormForm<RMSNorm, 0, false>, 8, bf16"
TILE, FORM = r"TensorCoreTile<bf16, 128, \d+, \d+>", r"Causal, ScoreForm<false, NoBias>, bf16"
PUBLISHED = {
    "copy": ("cudaMemcpyAsync", None, *NONE),
    "rmsnorm_and_residual": ("norm_rows", rf"norm_rows<{RMS}>", *NORM),
    "rmsnorm_backward": ("norm_rows_backward, sum_slabs", rf"norm_rows_backward<{RMS}>", *NORM),
    "rope_and_cache": ("prepare_heads", r"prepare_heads<NormForm<NoNorm, \d, false>, 0, 8, 1, bf16>", *NONE),
    "attention_causal": ("attend", rf"attend<{TILE}, {FORM}>", *ATTEND),
    "attention_causal_backward": ("attend_row_dots, attend_backward_queries, attend_backward_keys",
                                  rf"attend_backward_keys<{TILE}, 0, {FORM}>", *ATTEND_BACKWARD),
    "attention_decode": ("attend_split, combine_splits", rf"attend_split<{TILE}, {FORM}>", *NONE),
    "swiglu": ("activate", r"activate<Gated<SiLU>, 8, bf16>", *NONE),
    "swiglu_backward": ("activate_backward", r"activate_backward<Gated<SiLU>, 8, bf16>", *NONE),
    "embedding": ("gather_rows", r"gather_rows<8, bf16, bf16>", *NONE),
    "embedding_backward": ("gather_rows_backward", r"gather_rows_backward<8, bf16>", *NONE),
    "cross_entropy_and_gradient": ("cross_entropy", r"cross_entropy<bf16>", *SOFTMAX),
    "sample": ("sample_rows", r"sample_rows<\d+>", *NONE),
    "adamw": ("adamw", r"adamw<4>", *NONE),
    "product_qkv": ("cuBLASLt", None, *MATMUL),
    "product_ffn_up": ("cuBLASLt", None, *MATMUL),
    "product_ffn_up_of_one_token": ("cuBLASLt", None, *DECODE),
}


def registers(lines, pattern):
    """Registers and bytes of static shared memory on sm_90, of the one kernel of that name."""
    found = [line.split(None, 3) for line in lines if pattern and re.fullmatch(pattern, line.split(None, 3)[3])]
    found = [(int(count), int(shared)) for code, count, shared, _ in found if code == "sm_90"]
    if pattern and not found:
        raise SystemExit(f"no kernel {pattern} among the registers")
    return f"{found[0][0]}" if found else "—"


def counters(lines, kernels):
    """Sectors for each request (ideally) and conflicts between banks, of each kernel, in bf16 where it has that."""
    found, number = {}, r" +([\d.]+)"
    said = re.compile(rf"(?:f32|bf16) +(\w+){number} sectors for each request, ideally{number};{number} conflicts")
    for line in lines:  # bf16 after f32
        if match := said.match(line):
            found[match.group(1)] = match.groups()[1:]
    names = [name for name in kernels.split(", ") if name in found]
    return "; ".join(f"{float(actual):g} ({float(ideal):g})" for actual, ideal, _ in map(found.get, names)) or "—", \
        "; ".join(f"{float(conflicts):g}" for _, _, conflicts in map(found.get, names)) or "—"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", required=True)
    parser.add_argument("--registers", required=True, type=pathlib.Path)
    parser.add_argument("--memory", required=True, type=pathlib.Path)
    options = parser.parse_args()
    lines, memory = options.registers.read_text().splitlines(), options.memory.read_text().splitlines()
    printed = subprocess.run([options.operations, "--bounds"], stdout=subprocess.PIPE, text=True, check=True).stdout
    print("""# Bound, not measured

What any program must read, write and compute for each operation of one layer of Llama 3.1 8B (4096 tokens; decode: 8
sequences of 8192 positions; bf16): each input once, each output once. And the time that this takes at least on an H100
(3.35 TB/s, 989 TFLOP/s) and an A100 (2.04 TB/s, 312 TFLOP/s): bound = max(bytes / bandwidth, FLOPs / peak). No kernel
of this library has been timed for it. Registers are ptxas' for sm_90. Sectors of global memory for each request (in
brackets: of 32 bytes fully used) and conflicts between banks of shared memory for each request are counted on the host,
kernel by kernel. Published figures are other libraries', on the hardware named. Made by `benchmarks/gpu/bounds.py`.
""")
    print("| operation | kernels | registers | sectors | conflicts | MB | GFLOP | H100 µs at least | A100 µs at least "
          "| limit | best published figure | source |")
    print("|" + "---|" * 12)
    for row in map(json.loads, printed.splitlines()):
        kernels, pattern, figure, source = PUBLISHED[row["name"]]
        limit = "arithmetic" if row["flops"] / (PEAK_TFLOPS * 1e6) >= row["bound_us_H100"] * 0.999 else "memory"
        sectors, conflicts = counters(memory, kernels)
        print(f"| {row['name'].replace('_', ' ')} | {kernels} | {registers(lines, pattern)} | {sectors} | {conflicts} "
              f"| {row['bytes'] / 1e6:.1f} | {row['flops'] / 1e9:.1f} | {row['bound_us_H100']:.1f} "
              f"| {row['bound_us_A100']:.1f} | {limit} | {figure} | {source or '—'} |")


if __name__ == "__main__":
    main()
