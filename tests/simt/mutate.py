#!/usr/bin/env python3
"""Deletes every synchronization of a kernel file, one at a time, and asks whether the tests notice. Its logic: mutate_logic.py.

    mutate.py --root include --source typeformer/kernel/cuda/norm.cuh \\
              --build 'g++ -std=c++20 ... -I{overlay} -Iinclude -c norm_test.cpp -o {work}/t.o && g++ {work}/t.o runtime.o -o {work}/t' \\
              --run '{work}/t' [--run 'TYPEFORMER_SIMT_SEED=3 {work}/t' ...]

Mutants: each __syncthreads();  __syncwarp(...);  __threadfence...();  cp_async_wait<N>();  cp_async_wait_all();
cp_async_commit();  is deleted, and each cp_async_wait<N>() also becomes cp_async_wait<N + 1>(). Comments are left alone.

For each mutant a folder {work} is made, with the changed file under {overlay} at the path that --source has under --root; the
build command, a line for the shell, must find it there before the original (-I{overlay} first). A mutant is KILLED when one of
the runs fails or takes longer than --timeout, and SURVIVED when all succeed. The unchanged file goes first and must succeed.

A barrier may be needed by the device's rules although no test on the host can tell. Such a line is named by
--equivalent REGEX, matched against its text: its mutant may survive. It is an error when such a mutant is killed after all,
when no line matches, or when a mutant does not compile.

Exit status: 0 all killed, but for the equivalent ones; 1 some survived, or an error above; 2 the unchanged file fails.
Standard library only.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

QUALIFIER = r"(?:\btypeformer::|\bsimt::)*"
STATEMENTS = re.compile(
    r"\b__sync(?:threads|warp)\s*\([^;()]*\)\s*;|\b__threadfence(?:_block|_system)?\s*\(\s*\)\s*;|"
    + QUALIFIER + r"\bcp_async_(?:wait\s*<\s*(?P<pending>\d+)\s*>|wait_all|commit)\s*\(\s*\)\s*;")
COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)


def mutants(text):
    """(line number, description, changed text) of every mutant."""
    covered = [match.span() for match in COMMENTS.finditer(text)]
    for match in STATEMENTS.finditer(text):
        if any(first <= match.start() < last for first, last in covered):
            continue
        line = text.count("\n", 0, match.start()) + 1
        statement = " ".join(match.group().split())
        before, after = text[:match.start()], text[match.end():]
        yield line, f"without {statement}", before + ";" + after
        if match.group("pending") is not None:
            weaker = re.sub(r"<\s*\d+\s*>", f"<{int(match.group('pending')) + 1}>", match.group())
            yield line, f"{statement} as {' '.join(weaker.split())}", before + weaker + after


def shell(command, folder, timeout):
    """(succeeded, last lines of output)."""
    try:
        done = subprocess.run(command, shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        return done.returncode == 0, done.stdout.decode(errors="replace")[-1500:]
    except subprocess.TimeoutExpired:
        return False, f"longer than {timeout} s"


def judge(options, text):
    """'killed', 'survived' or 'broken' (does not compile), and why."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="mutant_"))
    try:
        overlay = work / "overlay"
        changed = overlay / options.source
        changed.parent.mkdir(parents=True)
        changed.write_text(text)

        def fill(command):
            return command.replace("{overlay}", str(overlay)).replace("{work}", str(work))

        good, output = shell(fill(options.build), options.folder, 600)
        if not good:
            return "broken", output
        for command in options.run:
            good, output = shell(fill(command), options.folder, options.timeout)
            if not good:
                return "killed", output
        return "survived", ""
    finally:
        shutil.rmtree(work, ignore_errors=True)


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
    parser.add_argument("--source", required=True, help="the kernel file, relative to the root")
    parser.add_argument("--build", required=True, help="shell command with {overlay} and {work}")
    parser.add_argument("--run", action="append", required=True, help="shell command with {work}; several may be given")
    parser.add_argument("--folder", default=".", help="where commands are run")
    parser.add_argument("--equivalent", action="append", default=[], help="lines whose mutants may survive")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one run")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    options = parser.parse_args()

    text = (pathlib.Path(options.root) / options.source).read_text()
    lines = text.splitlines()
    verdict, output = judge(options, text)
    if verdict != "survived":
        print(f"the unchanged {options.source} is {verdict}:\n{output}")
        return 2
    todo = list(mutants(text))
    counts = {"killed": 0, "survived": 0, "broken": 0}
    errors, excused = 0, set()
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        results = pool.map(lambda mutant: judge(options, mutant[2]), todo)
        for (line, what, _), (verdict, output) in zip(todo, results):
            counts[verdict] += 1
            rules = [rule for rule in options.equivalent if re.search(rule, lines[line - 1])]
            excused.update(rules)
            note = reason(output) if verdict == "killed" else output[-600:]
            wrong = verdict == "broken" or (verdict == "killed" if rules else verdict == "survived")
            errors += wrong
            print(f"{options.source}:{line}: {what}: {verdict.upper()}{' (equivalent)' if rules else ''} {note}".rstrip(), flush=True)
    for rule in options.equivalent:
        if rule not in excused:
            print(f"no mutant's line matches --equivalent {rule}")
            errors += 1
    print(f"{len(todo)} mutants: {counts['killed']} killed, {counts['survived']} survived, {counts['broken']} do not compile")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
