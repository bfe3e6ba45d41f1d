#!/usr/bin/env python3
"""Plants bugs that exist on the device only and counts those that the PTX runs find.

    bugs.py --source REPOSITORY --work FOLDER --nvcc NVCC --program NAME=PROGRAM ... [--only N ...] [--least N] [-- PROGRAM'S ARGUMENTS]

Each bug edits a copy of the headers where only nvcc looks (simt/cuda.hpp, convert.hpp's assembly, #ifdef __CUDACC__), which is
shown by comparing what g++'s preprocessor gives. The unchanged test program NAME then runs on the PTX of the copy: norm with its own
checks, attention (synchronization_attention.cpp) against the host layer.
"""
import argparse
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

CUDA, THREADS = "simt/cuda.hpp", "kernel/cuda/threads.cuh"
SHUFFLE = "value += __shfl_xor_sync(whole_warp, value, distance);"


def on_device(code):
    """Another statement where SHUFFLE stands, for nvcc only."""
    return f"\n#if defined(__CUDACC__)\n{code}\n#else\n{SHUFFLE}\n#endif\n"


# (what, program, file, from, to); from and to are regular expressions when `from` begins with "re:"
BUGS = [
    ("load_vector reads 8 bytes further", "norm", CUDA, "return *reinterpret_cast<const Vector*>(address);",
     "return *reinterpret_cast<const Vector*>(static_cast<const char*>(address) + 8);"),
    ("store_vector writes 16 bytes further", "norm", CUDA, "*reinterpret_cast<Vector*>(address) = value;",
     "*reinterpret_cast<Vector*>(static_cast<char*>(address) + 16) = value;"),
    ("every barrier is a barrier of the warp", "norm", CUDA, "#include <cuda_runtime.h>",
     "#include <cuda_runtime.h>\n#define __syncthreads() __syncwarp()"),
    ("no barrier", "norm", CUDA, "#include <cuda_runtime.h>", "#include <cuda_runtime.h>\n#define __syncthreads() ((void)0)"),
    ("shuffles name 16 lanes", "norm", THREADS, SHUFFLE, on_device("value += __shfl_xor_sync(0xffffu, value, distance);")),
    ("shuffles stay in 16 lanes", "norm", THREADS, SHUFFLE, on_device("value += __shfl_xor_sync(whole_warp, value, distance, 16);")),
    ("a sum over lanes without its last step", "norm", THREADS, SHUFFLE,
     on_device("value += distance > 1 ? __shfl_xor_sync(whole_warp, value, distance) : 0;")),
    ("launch bounds too small", "norm", CUDA, "#include <cuda_runtime.h>",
     "#include <cuda_runtime.h>\n#undef __launch_bounds__\n#define __launch_bounds__(...) __attribute__((launch_bounds(64)))"),
    ("shared arrays of half the size", "norm", CUDA, "__shared__ __align__(16) T name[size]", "__shared__ __align__(16) T name[((size) + 1) / 2]"),
    ("dynamic shared memory begins 16 bytes later", "attention", CUDA, "reinterpret_cast<T*>(typeformer_dynamic_shared)",
     "reinterpret_cast<T*>(typeformer_dynamic_shared + 16)"),
    ("shared_address cuts a generic pointer", "attention", CUDA, "static_cast<unsigned>(__cvta_generic_to_shared(pointer))",
     "static_cast<unsigned>(reinterpret_cast<std::size_t>(pointer))"),
    ("mma: b0 and b1 swapped", "attention", CUDA, '"r"(b0), "r"(b1)', '"r"(b1), "r"(b0)'),
    ("mma: a[1] and a[2] swapped", "attention", CUDA, '"r"(a[1]), "r"(a[2])', '"r"(a[2]), "r"(a[1])'),
    ("mma: bf16 says f16", "attention", CUDA, "f32.bf16.bf16.f32", "f32.f16.f16.f32"),
    ("mma: C in another order", "attention", CUDA, '{%8,%9}, {%0,%1,%2,%3};', '{%8,%9}, {%0,%1,%3,%2};'),
    ("mma: =f for +f", "attention", CUDA, '"+f"(d[0]), "+f"(d[1])', '"=f"(d[0]), "=f"(d[1])'),
    ("ldmatrix_x4_trans without .trans", "attention", CUDA, "x4.trans.shared", "x4.shared"),
    ("ldmatrix_x4 with .trans", "attention", CUDA, "m8n8.x4.shared", "m8n8.x4.trans.shared"),
    ("ldmatrix: results 1 and 2 swapped", "attention", CUDA, "x4.shared.b16 {%0, %1, %2, %3}", "x4.shared.b16 {%0, %2, %1, %3}"),
    ("cp.async: half of the bytes", "attention", CUDA, "valid ? Bytes : 0", "valid ? Bytes / 2 : 0"),
    ("cp.async: zeros where valid", "attention", CUDA, "valid ? Bytes : 0", "valid ? 0 : Bytes"),
    ("cp.async: wait for one group fewer", "attention", CUDA, '"n"(Pending)', '"n"(Pending + 1)'),
    ("cp.async: no commit", "attention", CUDA, 'asm volatile("cp.async.commit_group;" ::: "memory");', ""),
    ("cp.async: no wait", "attention", CUDA, 're:asm volatile\\("cp.async.wait_(group|all)[^;]*;[^;]*;', ""),
]


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def preprocessed(options, include, name):
    command = ["g++", "-std=c++20", "-E", "-P", "-DTYPEFORMER_CUDA_ON_HOST", f"-I{include}", f"-I{options.source / 'tests'}",
               str(options.source / "tests/cuda" / f"{SOURCES[name]}.cpp")]
    return hashlib.sha256(" ".join(run(command).stdout.split()).encode()).hexdigest()


SOURCES = {"norm": "norm_kernels", "attention": "synchronization_attention"}
ENVIRONMENT = {"norm": {}, "attention": {"TYPEFORMER_PTX_MODE": "both", "TYPEFORMER_PTX_MOST_ERROR": "0.02"}}


def plant(options, bug):
    """Result and first line of what was said."""
    _, name, file, old, new = bug
    include = options.work / "include"
    shutil.rmtree(include, ignore_errors=True)
    shutil.copytree(options.source / "include", include)
    path = include / "typeformer" / file
    text = path.read_text()
    changed = re.sub(old[3:], new, text) if old.startswith("re:") else text.replace(old, new)
    if changed == text:
        return "pattern not found", ""
    path.write_text(changed)
    if preprocessed(options, include, name) != preprocessed(options, options.source / "include", name):
        return "g++ sees it too", ""
    ptx = options.work / "bug.ptx"
    done = run([options.nvcc, "-ptx", "-x", "cu", "-std=c++20", "-arch=sm_80", "-lineinfo", "--expt-relaxed-constexpr", f"-I{include}",
                f"-I{options.source / 'tests'}", str(options.source / "tests/cuda" / f"{SOURCES[name]}.cpp"), "-o", str(ptx)])
    if done.returncode:
        return "nvcc", done.stderr.strip().split("\n")[0]
    program = dict(pair.split("=", 1) for pair in options.program)[name]
    environment = {**os.environ, **ENVIRONMENT[name], "TYPEFORMER_PTX": str(ptx)}
    done = run([program, *(options.arguments if name == "norm" else [])], env=environment, timeout=1200)
    if done.returncode == 0:
        return "missed", ""
    output = done.stdout + done.stderr
    said = re.search(r"got ptx: (.*)", output)
    if said:
        return "reported", said.group(1)
    return "result", next((line.strip() for line in output.split("\n") if "ERROR" in line or "what()" in line), "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--program", action="append", required=True, help="NAME=PROGRAM")
    parser.add_argument("--only", action="append", type=int)
    parser.add_argument("--least", type=int, default=0)
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    names = {pair.split("=", 1)[0] for pair in options.program}
    results = []
    for number, bug in enumerate(BUGS):
        if bug[1] not in names or (options.only and number not in options.only):
            continue
        result, said = plant(options, bug)
        results.append(result)
        print(f"{number:2} {bug[1]:9} {bug[0]:45} {result:9} {said[:150]}", flush=True)
    found = sum(result in ("reported", "result", "nvcc") for result in results)
    print(f"{found} of {len(results)} found")
    return 1 if found < options.least else 0


if __name__ == "__main__":
    sys.exit(main())
