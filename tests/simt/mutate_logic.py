#!/usr/bin/env python3
"""Changes the logic of kernel files, one expression at a time, and asks whether an operation's tests notice.

    mutate_logic.py                                     all mutants of all kernel files: hours
    mutate_logic.py loss norm                           of the kernel files of these operations
    mutate_logic.py loss --sample 100 --seed 7          some of them
    mutate_logic.py heads --only rotation.cuh --show    what would be changed
    mutate_logic.py --list                              operations and their kernel files

A comparison gets its neighbour (< as <=), true and false; a condition true and false; a product, quotient or remainder
loses an operand; a sum becomes a difference or is off by one (of floats: loses its right operand); a shift and a mask
move; += subtracts, does nothing, or forgets what was there; min and max become either operand; a literal grows by one
or becomes zero; an assignment or a call is left out. Synchronization is mutate_synchronization.py's.

A kernel file is rewritten so that the environment chooses the mutant (mutant.hpp). An operation's test program is built
once with the rewritten files, then run for each mutant: KILLED when it fails or takes too long. What survives runs
again in a random order, and then with AddressSanitizer, where accesses out of bounds show. A mutant that may survive
stands in tests/cuda/mutation/FILE.txt, one a line: a piece of its line with the change marked, ` # ` and why nothing
can tell it from the original:

    if (most [> as >=] highest) # then it multiplies by one

A reason that begins with `AddressSanitizer` says that it finds the mutant, which survives without; --plain believes it.
A file of several operations counts what any of them kills, and a survivor is an error when all of them have run.

Expressions that the tests do not reach are listed as such; constant expressions, and those that do not compile when
rewritten, are left alone. Exit status: 0 all reached mutants are killed or explained; 1 some survived, or an
explanation is wrong; 2 no program. Standard library only. The compiler is $CXX, or g++.
"""
import argparse
import hashlib
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

import mutate_sites

ROOT = pathlib.Path(__file__).resolve().parents[2]
CUDA_TESTS = ROOT / "tests/cuda"
KERNELS = "typeformer/kernel/cuda"

# The kernel files that an operation's tests judge, and sources that are not <operation>_kernels and <operation>_test.
OPERATIONS = {
    "norm": {"files": ["norm.cuh", "rows.cuh", "column_sums.cuh"]},
    "loss": {"files": ["loss.cuh", "threads.cuh"]},
    "embedding": {"files": ["embedding.cuh", "threads.cuh"]},
    "elementwise": {"files": ["elementwise.cuh", "flat.cuh"]},
    "feedforward": {"files": ["feedforward.cuh"]},
    "sampling": {"files": ["sampling.cuh", "../token_choice.hpp"]},
    "heads": {"files": ["heads.cuh", "heads_work.cuh", "heads_backward.cuh", "rotation.cuh", "threads.cuh"]},
    "attention": {
        "files": ["attention.cuh", "attention_tile.cuh", "attention_forward.cuh", "attention_backward.cuh",
                  "attention_decode.cuh", "attention_work.cuh", "../score.hpp", "threads.cuh"],
        "kernels": "mutation_attention_kernels", "tests": "mutation_attention_test"},
}
FILES = {}  # the operations of each file
for _operation, _what in OPERATIONS.items():
    for _file in _what["files"]:
        FILES.setdefault(_file, []).append(_operation)
ORDER = ["killed", "killed by AddressSanitizer", "explained", "survived", "unreached"]


def path_of(file):
    return os.path.normpath(f"{KERNELS}/{file}")


def fail(message):
    print(message)
    sys.exit(2)


class Program:
    """An operation's tests with rewritten kernel files."""

    def __init__(self, operation, texts, sites, work, options):
        self.operation, self.texts, self.sites, self.work = operation, texts, sites, work
        self.compiler = os.environ.get("CXX", "g++").split()
        self.options, self.dropped = options, []
        self.judge = options.objects.split(":") if options.objects else None

    def rewrite(self):
        for file, text in self.texts.items():
            target = self.work / "overlay" / path_of(file)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(mutate_sites.rewritten(text, [site for site in self.sites if site.file == file]))

    def together(self, commands):
        """Runs compilers beside each other; the output of those that failed."""
        running, failed = [], ""
        for command in commands + [None] * self.options.jobs:
            if command is not None:
                running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
            if running and (command is None or len(running) >= self.options.jobs):
                process = running.pop(0)
                output = process.communicate()[0]
                failed += output if process.returncode else ""
        return failed

    def kernels(self):
        name = OPERATIONS[self.operation].get("kernels", f"{self.operation}_kernels")
        return [CUDA_TESTS / f"{name}.cpp", CUDA_TESTS / "mode_kernels.cpp"]

    def command(self, source, more, on_host):
        options = [f"-I{ROOT}/{folder}" for folder in ("include", "tests", "tests/cuda")]
        if on_host:
            mutant = str(ROOT / "tests/simt/mutant.hpp")
            options = ["-DTYPEFORMER_CUDA_ON_HOST", f"-I{self.work}/overlay", "-include", mutant, *options]
        return [*self.compiler, "-std=c++20", "-O1", "-w", *more, *options, "-c", str(source)]

    def compile_kernels(self, name, more):
        """Objects, once the sites that do not compile are dropped."""
        for _ in range(8):
            self.rewrite()
            objects, output = self.objects(name, self.kernels(), True, more)
            lines = set(re.findall(r"overlay/(\S+?):(\d+):\d+: error", output))
            lines = lines or set(re.findall(r"overlay/(\S+?):(\d+):\d+:   required from", output))
            if not lines:
                break
            self.dropped += [site for site in self.sites if (path_of(site.file), str(site.line)) in lines]
            self.sites = [site for site in self.sites if site not in self.dropped]
        if output:
            fail(f"{self.operation} does not compile:\n{output[:3000]}")
        return objects

    def objects(self, name, sources, on_host, more):
        """Object files, and what the compiler says when it fails."""
        folder = self.work / name
        folder.mkdir(exist_ok=True)
        objects = [str(folder / f"{source.stem}.o") for source in sources]
        commands = [self.command(source, more, on_host) for source in sources]
        return objects, self.together([[*command, "-o", target] for command, target in zip(commands, objects)])

    def build(self, name, more):
        """The program with kernels compiled with `more` options, and the judge as it is."""
        kernels, output = self.compile_kernels(name, more), ""
        if not self.judge:
            tests = CUDA_TESTS / f"{OPERATIONS[self.operation].get('tests', f'{self.operation}_test')}.cpp"
            sources = [tests, CUDA_TESTS / "support.cpp", ROOT / "tests/main.cpp"]
            self.judge, output = self.objects("judge", sources, False, [])
        program = str(self.work / name / "test")
        link = [*self.compiler, *more, *kernels, *self.judge, "-o", program, "-pthread", "-ldl"]
        output = output or self.together([link])
        if output:
            fail(f"{self.operation} does not build:\n{output[:3000]}")
        return program

    def run(self, program, mutant, seconds, **more):
        """(whether it succeeded, its seconds of processor time)."""
        environment = {"TYPEFORMER_GOLDEN": f"{ROOT}/tests/golden", **os.environ, **more,
                       "TYPEFORMER_SIMT_THREADS": "1", "TYPEFORMER_MUTANT": mutant}

        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))

        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        try:
            done = subprocess.run([program, "--abort-after=1", "--no-breaks"], env=environment, preexec_fn=limit,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20 * seconds + 20,
                                  check=False)
            good = done.returncode == 0
        except subprocess.TimeoutExpired:
            good = False
        return good, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    def survives(self, program, site, variant, seconds, **more):
        return self.run(program, f"{site.number}.{variant}", seconds, **more)[0]


def explanations(file):
    """(piece of a marked line, reason) of the mutants that may survive."""
    path = CUDA_TESTS / "mutation" / f"{pathlib.Path(file).stem}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [tuple(part.strip() for part in line.split(" # ", 1)) for line in lines if line and not line.startswith("#")]


def lot(seed, site, variant):
    """By what a sample is drawn: a mutant's own text, so that changes elsewhere in the file do not change the sample."""
    return hashlib.sha256(f"{seed} {site.file} {site.marked(variant)}".encode()).digest()


def judge(operation, options):
    """{(file, line, marked line): verdict} of an operation's mutants; exits where there is no program."""
    work = options.work / operation
    work.mkdir(parents=True, exist_ok=True)
    files = [file for file in OPERATIONS[operation]["files"] if not options.only or file in options.only]
    texts = {file: (ROOT / "include" / path_of(file)).read_text() for file in files}
    sites = []
    for file, text in texts.items():
        sites += mutate_sites.find(text, file, len(sites))
    if options.show:
        for site in sites:
            for variant in site.variants:
                print(f"{site.file}:{site.line}: {site.marked(variant)}")
        return {}
    program = Program(operation, texts, sites, work, options)
    plain = program.build("plain", [])
    reached_file = work / "reached.txt"
    reached_file.unlink(missing_ok=True)
    good, normal = program.run(plain, "", 600, TYPEFORMER_MUTANT_REACHED=str(reached_file))
    if not good:
        print(f"{operation}: the unchanged tests fail")
        sys.exit(2)
    for site in program.dropped if options.progress else []:
        print(f"  not mutable: {site.file}:{site.line}: {site.marked(min(site.variants))}", file=sys.stderr)
    reached = {int(line) for line in reached_file.read_text().split()}
    todo = [(site, variant) for site in program.sites for variant in site.variants
            if not options.match or any(piece in site.marked(variant) for piece in options.match)]
    of = f"{len(todo)} mutants"
    if options.sample and options.sample < len(todo):
        todo = sorted(todo, key=lambda mutant: lot(options.seed, *mutant))[:options.sample]
    print(f"{operation}: {len(todo)} of {of}, {len(program.dropped)} places not mutable; the tests take {normal:.1f} s",
          flush=True)

    start, survived = time.time(), []
    for number, (site, variant) in enumerate(todo):
        if (site.number in reached and program.survives(plain, site, variant, 2 * normal + 1) and
                program.survives(plain, site, variant, 3 * normal + 1, TYPEFORMER_SIMT_SEED="2")):
            survived.append((site, variant))
            if options.progress:
                print(f"  {site.file}:{site.line}: {site.marked(variant)}", file=sys.stderr, flush=True)
        if options.progress and number % 50 == 49:
            took = time.time() - start
            print(f"  {number + 1} after {took:.0f} s, {len(survived)} survived", file=sys.stderr, flush=True)
    by_sanitizer = []
    if survived and not options.plain:
        sanitized = program.build("sanitized", ["-fsanitize=address"])
        by_sanitizer = [mutant for mutant in survived if not program.survives(sanitized, *mutant, 15 * normal + 20)]

    verdicts = {}
    for site, variant in todo:
        mutant = site, variant
        verdict = ("unreached" if site.number not in reached else "killed" if mutant not in survived else
                   "killed by AddressSanitizer" if mutant in by_sanitizer else "survived")
        verdicts[site.file, site.line, site.marked(variant)] = verdict
    return verdicts


def report(verdicts, options):
    """Prints what is not killed, and counts; the number of errors. verdicts: of each operation that ran."""
    used, counts, errors = set(), {}, 0
    complete = {file for file in FILES if all(operation in verdicts for operation in FILES[file])}
    best = {}
    for of_operation in verdicts.values():
        for mutant, verdict in of_operation.items():
            best[mutant] = min(best.get(mutant, verdict), verdict, key=ORDER.index)
    known = {file: explanations(file) for file in FILES}
    for (file, line, marked), verdict in best.items():
        rules = [rule for rule in known[file] if rule[0] in marked]
        used.update((file, rule) for rule in rules)
        by_sanitizer = any(rule[1].startswith("AddressSanitizer") for rule in rules)
        if rules and verdict == "survived" and (options.plain or not by_sanitizer):
            verdict = "explained"
        killed = verdict in ("killed", "killed by AddressSanitizer")
        wrong = verdict == "survived" or killed and bool(rules) and not by_sanitizer
        errors += wrong and file in complete
        counts.setdefault(file, []).append(verdict)
        if wrong or verdict == "unreached" or verdict == ORDER[1] and not rules:
            print(f"{file}:{line}: {marked}: {verdict.upper()}{' although explained' if rules and wrong else ''}")
    if not options.sample and not options.only and not options.match:
        for file in complete:
            for rule in known[file]:
                if (file, rule) not in used:
                    print(f"{file}: no mutant is `{rule[0]}`")
                    errors += 1
    for file, of_file in counts.items():
        note = "" if file in complete else f" (without {' '.join(o for o in FILES[file] if o not in verdicts)})"
        each = ", ".join(f"{of_file.count(what)} {what}" for what in ORDER if what in of_file)
        print(f"{file}{note}: {len(of_file)} mutants: {each}")
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operations", nargs="*", help="all when there is none")
    parser.add_argument("--list", action="store_true", help="names operations and their kernel files")
    parser.add_argument("--only", action="append", metavar="FILE", help="mutants of this kernel file alone")
    parser.add_argument("--match", action="append", metavar="PIECE", help="mutants whose marked line has this piece alone")
    parser.add_argument("--sample", type=int, help="so many mutants, chosen by --seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="prints the mutants and runs nothing")
    parser.add_argument("--plain", action="store_true", help="survivors are not run with AddressSanitizer")
    parser.add_argument("--progress", action="store_true")
    parser.add_argument("--objects", help="the compiled tests, which know nothing of the kernels; separated by :")
    parser.add_argument("--jobs", type=int, default=1, help="compilers at a time")
    parser.add_argument("--work", help="folder for programs; a temporary one without")
    options = parser.parse_args()
    if options.list:
        for operation, what in OPERATIONS.items():
            print(f"{operation}: {' '.join(what['files'])}")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants_") as temporary:
        options.work = pathlib.Path(options.work or temporary).resolve()
        verdicts = {operation: judge(operation, options) for operation in options.operations or OPERATIONS}
    return 1 if not options.show and report(verdicts, options) else 0


if __name__ == "__main__":
    sys.exit(main())
