#!/usr/bin/env python3
"""Compiles every kernel form with nvcc and reads what came out. Then compiles models, and links a program with CUDA's libraries.

    nvcc.py --nvcc NVCC --source REPOSITORY --work FOLDER [--nvdisasm NVDISASM] [--host-compiler CXX] [--jobs N]

The front end makes PTX for compute_80; what it makes for compute_90 differs in the target's name alone, which is checked for one
group of forms. ptxas makes code for sm_80, sm_90 and sm_100 of it. Nothing may spill or use a stack. With --nvdisasm the
instructions of every kernel are what sass.py wants.

Writes FOLDER/registers.txt, a line for each kernel: architecture, registers, bytes of static shared memory, name; and
FOLDER/times.txt: kernels, processor seconds and memory of each group of forms.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

import sass

ARCHITECTURES = ("80", "90", "100")
PARTS = {"1": "norms and column sums", "2": "attention on float", "3": "attention on bf16",
         "4": "tables, activations, arrays, losses and sampling", "5": "queries and keys",
         "6": "attention by splits"}
LINKED = ("device", "linear", "norm", "sampling")  # tests that compile in seconds, and need all libraries
MODELS = ("model_llama", "model_t5", "smollm2")  # compiled, without ptxas: nvcc's host code writes names of whole models
FLAGS = ["-std=c++20", "--expt-relaxed-constexpr", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra"]


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    return done.returncode, done.stdout


def measured(command):
    """(exit status, output, processor seconds, MiB at most) of a command and those it starts."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, output, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def kernels(report):
    """(mangled name, registers, shared bytes, stack, spill stores, spill loads) of every kernel in ptxas' report."""
    entry = re.compile(r"Compiling entry function '(\S+)' for")
    spills = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
    used = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")
    name, stack = None, None
    for line in report.splitlines():
        if found := entry.search(line):
            name = found.group(1)
        elif found := spills.search(line):
            stack = tuple(int(x) for x in found.groups())
        elif (found := used.search(line)) and name:
            yield name, int(found.group(1)), int(found.group(2) or 0), *stack
            name = None


def demangled(names):
    if not shutil.which("c++filt"):
        return list(names)
    text = run(["c++filt"], input="\n".join(names))[1].splitlines()
    text = [re.sub(r"typeformer::v\w+::(cuda::detail::)?|^void ", "", name) for name in text]
    return [re.sub(r"\(.*", "", re.sub(r"\([\w:]+\)(?=\d)", "", name)) for name in text]  # (Enum)0 first, then parameters


def front_end(options, part, architecture):
    """What `measured` gives, and the PTX's path."""
    ptx = options.work / f"forms_{part}_{architecture}.ptx"
    return measured([*options.compiler, f"-DFORMS={part}", f"-arch=compute_{architecture}", "-ptx",
                     str(options.tests / "forms.cu"), "-o", str(ptx)]), ptx


def compile_forms(options, part):
    """[(step, exit status, output, seconds, MiB, what check_code gives or None)]: the front end's, then ptxas'."""
    made, ptx = front_end(options, part, ARCHITECTURES[0])
    steps = [("front end", *made, None)]
    for code in ARCHITECTURES if made[0] == 0 else ():
        cubin = options.work / f"forms_{part}_{code}.cubin"
        ptxas = str(pathlib.Path(options.nvcc).with_name("ptxas"))
        made = measured([ptxas, f"-arch=sm_{code}", "-v", str(ptx), "-o", str(cubin)])
        steps.append((f"ptxas for sm_{code}", *made, None if made[0] else check_code(options, code, made[1], cubin)))
    return steps


def check_same_ptx(options, part):
    """Complaints where the PTX of compute_90 is not that of compute_80."""
    (status, output, _, _), ptx = front_end(options, part, "90")
    if status:
        return [f"{PARTS[part]}, compute_90: nvcc failed\n{output[-4000:]}"]
    texts = [re.sub(r"(?m)^\.target .*", "", path.read_text()) for path in (ptx, ptx.with_name(f"forms_{part}_80.ptx"))]
    return [] if texts[0] == texts[1] else [f"{PARTS[part]}: the PTX of compute_90 is not that of compute_80: compile both"]


def check_code(options, code, output, cubin):
    """(lines for registers.txt, claims checked, complaints) of ptxas' report and its code."""
    found = list(kernels(output))
    complaints = [] if len(found) >= 20 else [f"{cubin.name}: {len(found)} kernels reported\n{output[-4000:]}"]
    lines = []
    for name, (_, registers, shared, stack, stores, loads) in zip(demangled([k[0] for k in found]), found):
        lines.append(f"sm_{code} {registers:4d} {shared:6d} {name}")
        if stores or loads or stack:
            complaints.append(f"{name}: {stack} bytes of stack, {stores} spilled, {loads} reloaded")
    checked = 0
    if options.nvdisasm:
        functions, checked, more = sass.check(options.nvdisasm, cubin, demangled)
        complaints += more
        if functions != len(found):
            complaints.append(f"{cubin.name}: {functions} kernels disassembled, {len(found)} compiled")
    return lines, checked, [f"sm_{code}: {text}" for text in complaints]


def check_forms(options):
    """Number of complaints."""
    complaints, lines, checked = [], [], 0
    table = ["kernels  front end s  ptxas s  s a kernel  MiB  forms, for all architectures together"]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        longest_first = ["5", "2", "3", "6", "1", "4"]
        for part, steps in zip(longest_first, pool.map(lambda part: compile_forms(options, part), longest_first)):
            count, front, back = 0, steps[0][3], sum(step[3] for step in steps[1:])
            for step, status, output, _, _, found in steps:
                if status:
                    complaints.append(f"{PARTS[part]}, {step}: failed\n{output[-4000:]}")
                if found:
                    count += len(found[0])
                    lines += found[0]
                    checked += found[1]
                    complaints += found[2]
            table.append(f"{count:7d} {front:12.1f} {back:8.1f} {(front + back) / max(count, 1):11.2f} "
                         f"{max(step[4] for step in steps):4.0f}  {PARTS[part]}")
    complaints += check_same_ptx(options, "1")
    lines = sorted(set(lines))  # what is no template is in every part
    (options.work / "registers.txt").write_text("\n".join(lines) + "\n")
    (options.work / "times.txt").write_text("\n".join(table) + "\n")
    print("\n".join(table + complaints))
    most = max((int(line.split()[1]) for line in lines), default=0)
    print(f"{len(lines)} kernels compiled for sm_{', sm_'.join(ARCHITECTURES)} together, at most {most} registers; {checked} claims "
          f"about instructions checked, {len(complaints)} complaints; see {options.work / 'registers.txt'}")
    return len(complaints)


def compile_and_link(options):
    """Number of complaints: models that nvcc can't compile, and tests that don't link with the CUDA runtime and cuBLASLt."""
    host = [options.host_compiler, "-std=c++20", "-O1"]
    device = [*options.compiler, "-x", "cu"]
    sources = [([*device, "-gencode", "arch=compute_80,code=compute_80"], options.tests / f"{name}_kernels.cpp") for name in MODELS]
    sources += [([*device, "-arch=sm_80"], options.tests / f"{name}_kernels.cpp") for name in (*LINKED, "mode")]
    sources += [(host, options.tests / f"{name}_test.cpp") for name in LINKED]
    sources += [(host, options.tests / "support.cpp"), (host, options.tests.parent / "main.cpp")]
    includes = [f"-I{options.source / 'include'}", f"-I{options.tests.parent}"]

    def make(compiler, source):
        made = str(options.work / f"{source.stem}.o")
        return made, *run([*compiler, *includes, "-c", str(source), "-o", made])

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        made = list(pool.map(make, *zip(*sources)))
    for path, code, output in made:
        if code:
            print(f"{path}: {output[-4000:]}")
    failures = sum(code != 0 for _, code, _ in made)
    if failures == 0:
        program = options.work / "cuda_linked"
        code, output = run([options.nvcc, *(path for path, _, _ in made[len(MODELS):]), "-lcublasLt", "-o", str(program)])
        print(output[-4000:] if code else f"linked {program} with the CUDA runtime and cuBLASLt")
        failures += code != 0
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--nvdisasm", default="")
    parser.add_argument("--host-compiler", default="g++")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    options.tests = options.source / "tests" / "cuda"
    options.compiler = [options.nvcc, "-ccbin", options.host_compiler, *FLAGS, f"-I{options.source / 'include'}"]
    failures = check_forms(options)
    failures += compile_and_link(options)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
