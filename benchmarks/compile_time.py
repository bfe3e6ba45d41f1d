#!/usr/bin/env python3
"""Seconds and memory that the compiler needs, against budgets.

  compile_time.py [--runs N] [--write-readme]      measures, prints a markdown table (and puts it into README.md)
  compile_time.py --check [--tolerance 2]          one run each; exits with 1 when a unit is over its budget or missing

Seconds are processor seconds (user + system) of the compiler with everything it starts, the best of N runs: they vary far less
than wall-clock time on a busy machine. Memory is the largest resident set of one process. The budgets are for a current x86
server core; --check multiplies the seconds by the tolerance, since a shared CI machine's cores have been seen to be half as
fast, and takes memory as it is. Units are compiled with -O2, CUDA for one architecture. Without nvcc its rows are left out,
and --check says so.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- compile time: begin (benchmarks/compile_time.py --write-readme) -->", "<!-- compile time: end -->"
MEGABYTES = 2048


@dataclass(frozen=True)
class Unit:
    """What is compiled: a source of this repository, or an entry header alone."""
    name: str
    source: str
    seconds: float | None = None
    host: bool = False  # a CUDA header compiled for the host layer
    separate: bool = False  # with TYPEFORMER_SEPARATE_COMPILATION

    @property
    def is_header(self):
        return self.source.startswith("typeformer/")

    @property
    def by_nvcc(self):
        return self.source.endswith((".cu", ".cuh")) and not self.host


UNITS = (
    Unit("`typeformer.hpp` alone", "typeformer/typeformer.hpp", 1),
    Unit("`cpu.hpp` alone", "typeformer/cpu.hpp"),
    Unit("`train.hpp` alone", "typeformer/train.hpp"),
    Unit("`io.hpp` alone", "typeformer/io.hpp"),
    Unit("`text.hpp` alone", "typeformer/text.hpp"),
    Unit("`cuda.cuh` alone, on the host layer", "typeformer/cuda.cuh", host=True),
    Unit("one forward (`benchmarks/compile_time/forward.cpp`)", "benchmarks/compile_time/forward.cpp"),
    Unit("a program that generates (`examples/generate.cpp`)", "examples/generate.cpp", 10, separate=True),
    Unit("what it shares with every other: `io_impl.hpp`", "typeformer/io_impl.hpp", separate=True),
    Unit("what it shares with every other: `text_impl.hpp`", "typeformer/text_impl.hpp", separate=True),
    Unit("the same program headers only", "examples/generate.cpp"),
    Unit("one training unit (`examples/train.cpp`)", "examples/train.cpp", 20),
    Unit("`cuda.cuh` alone", "typeformer/cuda.cuh"),
    Unit("one CUDA unit (`benchmarks/compile_time/cuda.cu`)", "benchmarks/compile_time/cuda.cu", 60),
)


def measure(command):
    """(processor seconds, megabytes, standard error) of a command and what it starts; raises when it fails."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            raise RuntimeError(f"{' '.join(map(str, command))}\n{output.read()[:4000]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def command_for(unit, cxx, nvcc, folder):
    source = ROOT / unit.source
    if unit.is_header:
        source = pathlib.Path(folder, "alone.cu" if unit.by_nvcc else "alone.cpp")
        source.write_text(f'#include "{unit.source}"\nint main() {{}}\n', encoding="utf-8")
    compiler = [nvcc, "-arch=sm_80", "--expt-relaxed-constexpr", "-ccbin", cxx] if unit.by_nvcc else [cxx]
    define = ["-DTYPEFORMER_CUDA_ON_HOST"] if unit.host else []
    if unit.separate:
        define.append("-DTYPEFORMER_SEPARATE_COMPILATION")
    return [*compiler, *define, "-std=c++20", "-O2", f"-I{ROOT / 'include'}", "-c", str(source), "-o", os.path.join(folder, "unit.o")]


def exists(unit):
    return (ROOT / ("include" if unit.is_header else ".") / unit.source).exists()


def version(compiler):
    lines = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()
    release = [line for line in lines if "release" in line]
    return f"nvcc {release[0].split(' V')[-1]}" if release else re.sub(r" \([^)]*\)", "", lines[0])


def processor():
    try:
        found = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return found.group(1) if found else "unknown processor"


def table(rows, cxx, nvcc):
    compilers = ", ".join(version(compiler) for compiler in (cxx, nvcc) if compiler)
    lines = ["| what is compiled | seconds | budget | MB (budget 2048) |", "|---|---|---|---|"]
    for unit, result in rows:
        budget = f"{unit.seconds:g}" if unit.seconds else ""
        seconds, megabytes = (f"{result[0]:.2f}", f"{result[1]:.0f}") if result else ("missing", "")
        lines.append(f"| {unit.name} | {seconds} | {budget} | {megabytes} |")
    return "\n".join(lines) + f"\n\nProcessor seconds, -O2, {compilers}, one core of {processor()}.\n"


def write_readme(text):
    path = ROOT / "README.md"
    readme = path.read_text(encoding="utf-8")
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(f"{before}{BEGIN}\n{text}{END}{after}", encoding="utf-8")


def complaints(rows, tolerance):
    for unit, result in rows:
        if result is None:
            yield f"{unit.name}: {unit.source} is missing"
        elif unit.seconds and result[0] > unit.seconds * tolerance:
            yield f"{unit.name}: {result[0]:.2f} s, budget {unit.seconds:g} s x {tolerance:g}"
        if result and result[1] > MEGABYTES:
            yield f"{unit.name}: {result[1]:.0f} MB, budget {MEGABYTES} MB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cxx", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--nvcc", default=shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--tolerance", type=float, default=2)
    parser.add_argument("--write-readme", action="store_true")
    options = parser.parse_args()

    rows, failed = [], []
    for unit in UNITS:
        if unit.by_nvcc and not options.nvcc:
            print(f"left out, no nvcc: {unit.name}", file=sys.stderr)
            continue
        if not exists(unit):
            rows.append((unit, None))
            continue
        with tempfile.TemporaryDirectory() as folder:
            command = command_for(unit, options.cxx, options.nvcc, folder)
            try:
                results = [measure(command) for _ in range(1 if options.check else options.runs)]
            except RuntimeError as error:
                failed.append(f"{unit.name}: does not compile\n{error}")
                continue
        rows.append((unit, (min(result[0] for result in results), max(result[1] for result in results))))

    text = table(rows, options.cxx, options.nvcc)
    print(text)
    if options.write_readme:
        write_readme(text)
    failed += complaints(rows, options.tolerance) if options.check else []
    print("\n".join(failed), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
