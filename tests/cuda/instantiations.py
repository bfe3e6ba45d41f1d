#!/usr/bin/env python3
"""Counts the kernels that programs instantiate, as the host build has them, and holds their union under a budget.

    instantiations.py --source REPOSITORY [--most NUMBER] [--names] PROGRAM...

A kernel is an instantiation of a `__global__` function of include/typeformer/kernel/cuda; that nvcc makes the same ones of the
same sources is what the ptx_entries tests check. --names prints them all.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys


def kernel_names(source):
    """Names of the __global__ functions."""
    text = "\n".join(path.read_text() for path in sorted((source / "include/typeformer/kernel/cuda").glob("*.cuh")))
    names = re.findall(r"__global__ void\s+(?:__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\(", text)
    if len(names) != text.count("__global__"):
        raise SystemExit(f"{text.count('__global__')} kernels are declared, {len(names)} names read")
    return names


def instantiations(program, names):
    """{kernel: {instantiation}} of a program or object file."""
    text = subprocess.run(["nm", "-C", "--defined-only", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = collections.defaultdict(set)
    kernel = re.compile(rf" [WTtuV] (?:void )?typeformer::v\w+::cuda::detail::({'|'.join(names)})(<.*>)?\(")
    for line in text.splitlines():
        if match := kernel.search(line):
            found[match.group(1)].add(re.sub(r"typeformer::v\w+::(cuda::detail::)?", "", match.group(2) or ""))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--most", type=int)
    parser.add_argument("--names", action="store_true")
    parser.add_argument("programs", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    names = kernel_names(options.source)
    columns = {program.name: instantiations(program, names) for program in options.programs}
    union = collections.defaultdict(set)
    for found in columns.values():
        for kernel, kinds in found.items():
            union[kernel] |= kinds
    columns["union"] = union
    print("  ".join([f"{'kernel':30}", *columns]))
    for kernel in sorted(union):
        print("  ".join([f"{kernel:30}", *(f"{len(found.get(kernel, ())):{len(name)}}" for name, found in columns.items())]))
        if options.names:
            print("\n".join(f"    {kind}" for kind in sorted(union[kernel])))
    totals = {name: sum(map(len, found.values())) for name, found in columns.items()}
    print("  ".join([f"{'in all':30}", *(f"{total:{len(name)}}" for name, total in totals.items())]))
    if min(totals.values()) == 0:
        print("a program without kernels")
        return 1
    if options.most is not None and totals["union"] > options.most:
        print(f"{totals['union']} instantiations, the budget is {options.most}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
