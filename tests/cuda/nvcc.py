#!/usr/bin/env python3
"""Compiles every kernel form with nvcc and reads ptxas' report: nothing may spill. Then links programs with CUDA's libraries.

    nvcc.py --nvcc NVCC --source REPOSITORY --work FOLDER [--host-compiler CXX] [--jobs N] [--run]

Writes FOLDER/registers.txt, a line for each kernel: architecture, registers, bytes of static shared memory, name. --run also
runs the tests' kernels on the GPU of this machine (all of attention, which takes minutes to compile).
"""
import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys

ARCHITECTURES = ("80", "90")
PARTS = {"1": "norms and column sums", "2": "attention on float", "3": "attention on bf16",
         "4": "tables, activations, arrays, losses and sampling", "5": "queries and keys",
         "6": "attention by splits"}
SMALL = ["norm", "linear", "device", "embedding", "feedforward", "elementwise", "loss", "sampling"]  # tests that compile in seconds
FLAGS = ["-std=c++20", "--expt-relaxed-constexpr", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra"]


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    return done.returncode, done.stdout


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


def compile_forms(options, part, architecture):
    command = [*options.compiler, f"-DFORMS={part}", f"-arch=sm_{architecture}", "-Xptxas", "-v", "-c",
               str(options.tests / "forms.cu"), "-o", str(options.work / f"forms_{part}_{architecture}.o")]
    code, output = run(command)
    return part, architecture, code, output


def check_forms(options):
    """Number of complaints."""
    complaints, lines = 0, []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(compile_forms, options, part, architecture)
                for part in sorted(PARTS, reverse=True) for architecture in ARCHITECTURES]
        for job in concurrent.futures.as_completed(jobs):
            part, architecture, code, output = job.result()
            found = list(kernels(output))
            if code != 0 or len(found) < 20:
                print(f"{PARTS[part]}, sm_{architecture}: nvcc failed or reported {len(found)} kernels\n{output[-4000:]}")
                complaints += 1
            for name, (_, registers, shared, stack, stores, loads) in zip(demangled([k[0] for k in found]), found):
                lines.append(f"sm_{architecture} {registers:4d} {shared:6d} {name}")
                if stores or loads or stack:
                    print(f"sm_{architecture}: {name}: {stack} bytes of stack, {stores} spilled, {loads} reloaded")
                    complaints += 1
    (options.work / "registers.txt").write_text("\n".join(sorted(lines)) + "\n")
    most = max((int(line.split()[1]) for line in lines), default=0)
    print(f"{len(lines)} kernels compiled for {' and '.join('sm_' + a for a in ARCHITECTURES)}, at most {most} registers, "
          f"{complaints} complaints; see {options.work / 'registers.txt'}")
    return complaints


def link_tests(options, names, program):
    """Kernels by nvcc, tests by the host compiler, linked with the CUDA runtime and cuBLASLt. Returns the program's path, or None."""
    objects = []
    folder = options.tests.parent
    host = [options.host_compiler, "-std=c++20", "-O1", f"-I{options.source / 'include'}", f"-I{folder}"]
    tests = [f"{n}_test" for n in names] + (["attention_decode_test"] if "attention" in names else [])
    for name in tests + ["support", "../main"]:
        objects.append(str(options.work / f"{program}_{pathlib.Path(name).name}.o"))
        code, output = run([*host, "-c", str(options.tests / f"{name}.cpp"), "-o", objects[-1]])
        if code:
            print(output[-4000:])
            return None
    kernel_files = ["mode_kernels"] + [f"{n}_kernels" for n in names if n != "attention"]
    if "attention" in names:
        kernel_files += ["attention_f32_kernels", "attention_bf16_kernels"]
    for name in kernel_files:
        objects.append(str(options.work / f"{program}_{name}.o"))
        code, output = run([*options.compiler, "-x", "cu", "-arch=native" if options.run else "-arch=sm_80", f"-I{folder}", "-c",
                            str(options.tests / f"{name}.cpp"), "-o", objects[-1]])
        if code:
            print(output[-4000:])
            return None
    path = options.work / program
    code, output = run([options.nvcc, *objects, "-lcublasLt", "-o", str(path)])
    if code:
        print(output[-4000:])
        return None
    print(f"linked {path} with the CUDA runtime and cuBLASLt")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--host-compiler", default="g++")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--run", action="store_true")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    options.tests = options.source / "tests" / "cuda"
    options.compiler = [options.nvcc, "-ccbin", options.host_compiler, *FLAGS, f"-I{options.source / 'include'}"]
    if options.run:
        program = link_tests(options, [*SMALL, "heads", "attention"], "cuda_on_gpu")
        return 1 if program is None else subprocess.run([program], cwd=options.source, check=False).returncode
    failures = check_forms(options)
    failures += link_tests(options, SMALL, "cuda_linked") is None
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
