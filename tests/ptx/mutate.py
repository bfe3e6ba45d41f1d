#!/usr/bin/env python3
"""Mutates PTX and counts the mutants that a test program finds. Only lines that the program runs are mutated.

    mutate.py --ptx FILE --program PROGRAM [--count N] [--seed N] [--least PERCENT] [-- PROGRAM'S ARGUMENTS]

Deletes each barrier, wait, commit and shuffle (at most N of them), and makes N random mutants: deleted statements, swapped operands, immediates off by
one, negated predicates. A mutant is found when the program fails; the interpreter names what it did ("reported"), or results are
wrong ("result"). Survivors are listed. Fails when fewer than PERCENT of the mutants are found.
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile


def run(options, ptx, **more):
    environment = {**os.environ, "TYPEFORMER_PTX": str(ptx), **more}
    try:
        done = subprocess.run([options.program, *options.arguments], env=environment, capture_output=True, text=True, timeout=options.timeout, check=False)
    except subprocess.TimeoutExpired:
        return "endless"
    if done.returncode == 0:
        return "survived"
    return "reported" if "got ptx: " in done.stdout + done.stderr else "result"


def swap(line, first, second):
    head, _, rest = line.strip().rstrip(";").partition(" ")
    operands = re.findall(r"\[[^]]*\]|\{[^}]*\}|[^,\s][^,]*", rest)
    operands[first], operands[second] = operands[second], operands[first]
    return f"{head} {', '.join(operands)};"


def mutate(line, choose):
    """(kind, new line), or None."""
    luck = choose.random()
    if re.match(r"\s*@%p", line) and luck < 0.5:
        return "negated predicate", line.replace("@%p", "@!%p", 1)
    number = re.search(r", (-?\d+);$", line)
    if number and luck < 0.5:
        return "immediate", line[:number.start(1)] + str(int(number.group(1)) + choose.choice((-1, 1))) + ";"
    if re.match(r"\s*(sub|shl|shr|div|setp\.(?!eq|ne)[a-z]+|selp|prmt|bfi)\.", line) and line.count(",") >= 2 and luck < 0.7:
        return "swapped operands", swap(line, 1, 2)
    if re.match(r"\s*(@!?%p\d+ )?(bra|ret)\b", line):
        return None
    return "deleted statement", "// deleted"


def mutants(options, text, lines_run):
    choose = random.Random(options.seed)
    synchronizing = [n for n in lines_run if re.search(r"bar\.sync|barrier\.sync|cp\.async\.(wait|commit)|shfl\.sync|bar\.warp", text[n])]
    if len(synchronizing) > options.count:
        synchronizing = sorted(choose.sample(synchronizing, options.count))
    yield from ((n, "deleted synchronization", "// deleted") for n in synchronizing)
    made = 0
    while made < options.count:
        n = choose.choice(lines_run)
        mutant = mutate(text[n], choose)
        if mutant and mutant[1] != text[n]:
            made += 1
            yield (n, *mutant)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptx", required=True, type=pathlib.Path)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least", type=float, default=0)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    text = options.ptx.read_text().split("\n")
    with tempfile.TemporaryDirectory() as folder:
        report, mutant = pathlib.Path(folder, "report.txt"), pathlib.Path(folder, "mutant.ptx")
        if run(options, options.ptx, TYPEFORMER_PTX_REPORT=str(report)) != "survived":
            print("the program fails without a mutation")
            return 1
        rows = [line.split("\t") for line in report.read_text().splitlines()]
        lines_run = sorted({int(n) - 1 for row in rows if row[0] == "lines" for n in row[2].split()})
        counts, found, total = {}, 0, 0
        for n, kind, new in mutants(options, text, lines_run):
            mutant.write_text("\n".join(text[:n] + [new] + text[n + 1:]))
            result = run(options, mutant)
            counts.setdefault(kind, {}).setdefault(result, 0)
            counts[kind][result] += 1
            total += 1
            found += result != "survived"
            if result == "survived":
                entry = next((line for line in reversed(text[:n]) if ".entry" in line), "").split()[-1:]
                print(f"{result}: line {n + 1}: {kind}: {text[n].strip()} -> {new.strip()} in {' '.join(entry)}", flush=True)
    for kind, results in counts.items():
        print(f"{kind}: {', '.join(f'{number} {result}' for result, number in sorted(results.items()))}")
    print(f"{found} of {total} mutants found ({100 * found / max(total, 1):.1f} %)")
    return 1 if 100 * found < options.least * total else 0


if __name__ == "__main__":
    sys.exit(main())
