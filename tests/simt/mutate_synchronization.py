#!/usr/bin/env python3
"""Deletes every synchronization of kernel files, one at a time, and asks whether a test notices. Their logic: mutate_logic.py.

    mutate_synchronization.py --root include --source typeformer/kernel/cuda/rows.cuh [--source ...] \\
        --build 'g++ -std=c++20 ... -I{work}/overlay -Iinclude -c synchronization_norm.cpp -o {work}/t.o && g++ {work}/t.o runtime.o -o {work}/t'

Mutants: each __syncthreads();  __syncwarp(...);  __threadfence...();  cp_async_wait<N>();  cp_async_wait_all();
cp_async_commit();  is left out, and each cp_async_wait<N>() also becomes cp_async_wait<N + 1>(). Comments are left alone.

The files are rewritten so that the environment chooses the mutant, at the paths that they have under --root, in the folder
{work}/overlay. The build command, a line for the shell, must find them there before the originals and make {work}/t, which
then runs for each mutant: KILLED when it fails or takes longer than --timeout, SURVIVED when it succeeds. Without any change
it must succeed.

A barrier may be needed by the device's rules although no test on the host can tell. Such a line is named by
--equivalent REGEX, matched against its text: its mutant may survive. It is an error when such a mutant is killed after all, or
when no line matches.

Exit status: 0 all killed, but for the equivalent ones; 1 some survived, or an error above; 2 no program, or it fails unchanged.
Standard library only.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

QUALIFIER = r"(?:\btypeformer::|\bsimt::)*"
STATEMENTS = re.compile(
    r"\b__sync(?:threads|warp)\s*\([^;()]*\)\s*;|\b__threadfence(?:_block|_system)?\s*\(\s*\)\s*;|"
    + QUALIFIER + r"\bcp_async_(?:wait\s*<\s*(?P<pending>\d+)\s*>|wait_all|commit)\s*\(\s*\)\s*;")
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
CHOSEN = "TYPEFORMER_MUTANT"
HEADER = f"""#pragma once
#include <cstdlib>
namespace mutant {{
inline const int chosen = std::getenv("{CHOSEN}") ? std::atoi(std::getenv("{CHOSEN}")) : -1;
}}
"""


def mutable(text, mutants, file):
    """The text with a choice at every synchronization; what is chosen is added to the mutants: (file, line, description)."""
    covered = [match.span() for match in COMMENTS.finditer(text)]
    line_of = lambda match: text.count("\n", 0, match.start()) + 1

    def choice(match):
        if any(first <= match.start() < last for first, last in covered):
            return match.group()
        statement = " ".join(match.group().split())
        changed = f"if (mutant::chosen != {len(mutants)}) {statement}"
        mutants.append((file, line_of(match), f"without {statement}"))
        if match.group("pending") is not None:
            weaker = re.sub(r"<\s*\d+\s*>", f"<{int(match.group('pending')) + 1}>", statement)
            changed = f"if (mutant::chosen == {len(mutants)}) {weaker} else {changed}"
            mutants.append((file, line_of(match), f"{statement} as {weaker}"))
        return "{ " + changed + " }"

    return STATEMENTS.sub(choice, text)


def shell(command, timeout, **environment):
    """(succeeded, last lines of output)."""
    try:
        done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                              env={**os.environ, **environment}, check=False)
        return done.returncode == 0, done.stdout.decode(errors="replace")[-1500:]
    except subprocess.TimeoutExpired:
        return False, f"longer than {timeout} s"


def reason(output):
    """The shortest telling line of a failed run."""
    for line in output.splitlines():
        found = re.search(r"got ([^\[;]*)", line)
        if found and "expected" in line:
            return found.group(1).strip()[:90]
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1][:90] if lines else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True, help="the include folder")
    parser.add_argument("--source", required=True, action="append", help="a kernel file, relative to the root; several may be given")
    parser.add_argument("--build", required=True, help="shell command with {work}")
    parser.add_argument("--equivalent", action="append", default=[], help="lines whose mutants may survive")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one run")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    options = parser.parse_args()

    mutants, lines = [], {}
    with tempfile.TemporaryDirectory(prefix="mutants_") as work:
        overlay = pathlib.Path(work) / "overlay"
        for file in options.source:
            text = (pathlib.Path(options.root) / file).read_text()
            lines[file] = text.splitlines()
            (overlay / file).parent.mkdir(parents=True, exist_ok=True)
            (overlay / file).write_text('#include "mutant.hpp"\n#line 1\n' + mutable(text, mutants, file))
        (overlay / "mutant.hpp").write_text(HEADER)
        good, output = shell(options.build.replace("{work}", work), 1200)
        if good:
            good, output = shell(f"{work}/t", options.timeout)
        if not good:
            print(f"without a change:\n{output}")
            return 2
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(lambda i: shell(f"{work}/t", options.timeout, **{CHOSEN: str(i)}), range(len(mutants))))
    errors, excused = 0, set()
    for (file, line, what), (survived, output) in zip(mutants, results):
        rules = [rule for rule in options.equivalent if re.search(rule, lines[file][line - 1])]
        excused.update(rules)
        errors += survived != bool(rules)
        verdict = ("SURVIVED" if survived else "KILLED") + (" (equivalent)" if rules else "")
        print(f"{file}:{line}: {what}: {verdict} {'' if survived else reason(output)}".rstrip())
    for rule in options.equivalent:
        if rule not in excused:
            print(f"no mutant's line matches --equivalent {rule}")
            errors += 1
    survivors = sum(survived for survived, _ in results)
    print(f"{len(mutants)} mutants: {len(mutants) - survivors} killed, {survivors} survived")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
