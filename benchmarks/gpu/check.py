#!/usr/bin/env python3
"""The steps of benchmarks/gpu_check.sh."""
import argparse
import concurrent.futures
import contextlib
import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CUDA_TESTS = ROOT / "tests" / "cuda"
LIMIT = 480  # seconds for everything
# Programs of tests/cuda: name -> sources besides support.cpp and main.cpp. The first column is compiled by nvcc.
OPERATIONS = ("norm", "linear", "device", "embedding", "feedforward", "elementwise", "loss", "sampling", "heads")
PROGRAMS = {name: ([f"{name}_kernels.cpp", "mode_kernels.cpp"], [f"{name}_test.cpp"]) for name in OPERATIONS}
PROGRAMS["attention"] = (["attention_f32_kernels.cpp", "attention_bf16_kernels.cpp", "mode_kernels.cpp"],
                         ["attention_test.cpp", *sorted(path.name for path in CUDA_TESTS.glob("attention_*_test.cpp"))])
for family in ("llama", "gemma3", "t5"):
    PROGRAMS[f"model_{family}"] = ([f"model_{family}_kernels.cpp"], [f"model_{family}_test.cpp"])
for name in ("decode_graph", "limits", "own_policies", "smollm2"):
    PROGRAMS[name] = ([f"{name}_kernels.cpp"], [f"{name}_test.cpp"])
MODEL = "TYPEFORMER_SMOLLM2"  # the environment's name for smollm2's file
# The other tests there, and why a GPU cannot run them.
EXCLUDED = {
    "budget": "counts calls by the host layer's tally",
    "failure": "fails calls by the host layer's injection",
    "memory_budget": "counts accesses by the race checker",
    "mutation_attention": "a choice of attention's tests for mutate_logic.py",
}
LEAST = 20  # seconds that are worth beginning a program
# By compute-sanitizer, and which test cases: every barrier, asynchronous copy and shared list is among them.
SANITIZED = {
    "attention": "-tc=attend_backward: scores,attend_backward: unaligned*,decode: rings*,decode: two*",
    "norm": "-tce=*thousand*",
    "heads": "-tce=*thousand*,*angles*",
    "embedding": "-tc=embedding: tokens*",
    "loss": "-tce=*random*",
    "sampling": "-tc=sampling: kept*,sampling: rows*",
}


def run(command, timeout, **more):
    """(exit code, output, seconds); code 124 when it took too long. Nothing that it started goes on."""
    started = time.monotonic()
    with subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", start_new_session=True, **more) as process:
        try:
            output, code = process.communicate(timeout=max(1, timeout))[0], process.returncode
        except BaseException as reason:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(reason, subprocess.TimeoutExpired):
                raise
            output, code = process.communicate()[0], 124
    return code, output, time.monotonic() - started


def unlisted():
    """Tests that are neither programs nor excluded, programs and exclusions without a test."""
    there = {path.name for path in CUDA_TESTS.glob("*_test.cpp")}
    excluded = {f"{name}_test.cpp" for name in EXCLUDED}
    listed = {source for _, tests in PROGRAMS.values() for source in tests}
    return sorted(there ^ (excluded | listed) | excluded & listed)


class Check:
    def __init__(self, options):
        self.host = options.host
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="gpu_check_"))
        self.ends = time.monotonic() + LIMIT
        self.pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
        self.result = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                       "measured_on_a_gpu": not self.host, "steps": {}}
        if not self.host:
            self.nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
            if not os.access(self.nvcc, os.X_OK):
                sys.exit("gpu_check: no nvcc in PATH or /usr/local/cuda/bin (--host: a dry run without a GPU)")

    def left(self):
        return self.ends - time.monotonic()

    def skip(self, name, why, **more):
        self.result["steps"][name] = {"ok": None, "skipped": why, **more}
        print(f"SKIP {name}: {why}", flush=True)

    def step(self, name, ok, seconds, **more):
        self.result["steps"][name] = {"ok": ok, "seconds": round(seconds, 1), **more}
        print(f"{'ok  ' if ok else 'FAIL'} {name} ({seconds:.0f} s)", flush=True)
        if not ok and more.get("output"):
            print(more["output"][-3000:], flush=True)

    def hardware(self):
        cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                   platform.processor())
        self.result["hardware"] = {"cpu": cpu, "cores": os.cpu_count()}
        if not self.host:
            query = "name,driver_version,memory.total,clocks.max.sm,power.limit"
            code, output, _ = run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], 20)
            self.result["hardware"]["gpu"] = output.strip()
            self.result["hardware"]["nvcc"] = run([self.nvcc, "--version"], 20)[1].strip().splitlines()[-1]
            if code:
                sys.exit(f"gpu_check: no GPU: {output.strip()} (--host: a dry run without one)")

    def compile(self, source, out, kernels, link=True, extra=()):
        """An nvcc or g++ command. `kernels`: device code."""
        includes = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'tests'}"]
        end = [] if link else ["-c"]
        if kernels and not self.host:
            return [self.nvcc, "-std=c++20", "--expt-relaxed-constexpr", "-O3", "-lineinfo", "-arch=native", "-x", "cu",
                    *includes, *extra, source, *end, "-o", out, *(["-lcublasLt"] if link else [])]
        mode = ["-DTYPEFORMER_CUDA_ON_HOST"] if kernels else []
        return ["g++", "-std=c++20", "-O1", "-Wno-unknown-pragmas", *mode, *includes, *extra, source, *end, "-o", out,
                *(["-pthread", "-ldl"] if link else [])]

    def lists(self):
        missing = unlisted()
        self.step("every test is a program here or excluded", not missing, 0, output="\n".join(missing),
                  excluded=EXCLUDED)

    def conformance(self):
        program = self.work / "conformance"
        source = ROOT / "tests" / "simt" / ("conformance.cpp" if self.host else "conformance.cu")
        code, output, seconds = run(self.compile(source, program, True), self.left())
        if code == 0:
            code, output, more = run([program, ROOT / "tests" / "simt" / "conformance.golden.txt"], 60)
            seconds += more
        hashes = run([program], 60)[1].split("\n") if program.exists() else []
        self.step("conformance", code == 0, seconds, output=output, hashes=[h for h in hashes if h])

    def start(self, source, kernels):
        """Starts to compile it: a future of (code, output, seconds), and the object."""
        out = self.work / (pathlib.Path(source).stem + ".o")
        command = self.compile(CUDA_TESTS / source, out, kernels, link=False)
        return self.pool.submit(lambda: run(command, self.left())), out

    def build(self, names):
        """Starts to compile the programs: name -> what `start` gives for each source."""
        common, seen, jobs = [self.start(source, False) for source in ("support.cpp", "../main.cpp")], {}, {}
        for name in names:
            jobs[name] = list(common)
            for sources, kernels in zip(PROGRAMS[name], (True, False)):
                for source in sources:
                    if source not in seen:
                        seen[source] = self.start(source, kernels)
                    jobs[name].append(seen[source])
        return jobs

    def tests(self, names):
        environment = {**os.environ, "TYPEFORMER_GOLDEN": str(ROOT / "tests" / "golden")}
        linker = ["g++"] if self.host else [self.nvcc]
        libraries = ["-pthread", "-ldl"] if self.host else ["-lcublasLt"]
        if "smollm2" in names and not os.path.isfile(os.environ.get(MODEL, "")):
            self.skip("test smollm2", f"{MODEL} names no file; examples/fetch_smollm2.sh brings it")
            names = [name for name in names if name != "smollm2"]
        for name, jobs in self.build(names).items():
            outcomes = [future.result() for future, _ in jobs]
            failed = next((o for o in outcomes if o[0]), None)
            if failed and failed[0] != 124:
                self.step(f"test {name}", False, failed[2], output=failed[1])
                continue
            if failed or self.left() < LEAST:
                self.skip(f"test {name}", f"no time left: compiling took {max(o[2] for o in outcomes):.0f} s")
                continue
            program = self.work / f"test_{name}"
            code, output, seconds = run([*linker, *[out for _, out in jobs], *libraries, "-o", program], self.left())
            limit = min(self.left(), 120)
            if code == 0:
                code, output, more = run([program], limit, env=environment)
                seconds += more
            if code == 124 and limit < 120:
                self.skip(f"test {name}", f"not done when time was up, after {seconds:.0f} s", output=output)
                continue
            tail = output.strip().splitlines()[-3:]
            self.step(f"test {name}", code == 0, seconds, output=output if code else "", summary=tail)

    def sanitizer(self):
        tool = None
        if not self.host:
            tool = shutil.which("compute-sanitizer") or str(pathlib.Path(self.nvcc).parent / "compute-sanitizer")
        for kind in ("memcheck", "racecheck", "synccheck"):
            for name, cases in SANITIZED.items():
                program, step = self.work / f"test_{name}", f"{kind} {name}"
                if self.host:
                    self.skip(step, "no GPU")
                elif not os.access(tool, os.X_OK):
                    self.skip(step, "no compute-sanitizer")
                elif not program.exists():
                    self.skip(step, "the program was not built")
                elif self.left() < LEAST:
                    self.skip(step, "no time left")
                else:
                    self.sanitize(step, [tool, "--tool", kind, "--error-exitcode", "9", program, cases])

    def sanitize(self, step, command):
        code, output, seconds = run(command, min(60, self.left()),
                                    env={**os.environ, "TYPEFORMER_GOLDEN": str(ROOT / "tests" / "golden")})
        found = [line for line in output.splitlines() if line.startswith("========= ")
                 and "COMPUTE-SANITIZER" not in line and "ERROR SUMMARY: 0 errors" not in line]
        if code == 124 and not found:
            self.skip(step, f"nothing found in {seconds:.0f} s, and not done")
        else:
            self.step(step, code == 0, seconds, output=output if code else "")

    def speed(self):
        program = self.work / "operations"
        source = ROOT / "benchmarks" / "gpu" / "operations.cpp"
        code, output, seconds = run(self.compile(source, program, True), self.left())
        if code == 0:
            code, output, more = run([program, *(["--small"] if self.host else [])], self.left())
            seconds += more
        rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")] if code == 0 else []
        self.step("operations", code == 0 and len(rows) > 10, seconds, output=output if code else "")
        self.result["operations"] = rows

    def rivals(self):
        """PyTorch's times for the same shapes, where there is PyTorch with a GPU."""
        why = "no GPU" if self.host else "no time left" if self.left() < LEAST else None
        if not why and run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], 60)[0]:
            why = "no PyTorch with a GPU"
        if why:
            self.skip("pytorch", why)
            return
        code, output, seconds = run([sys.executable, ROOT / "benchmarks" / "gpu" / "pytorch.py"], self.left())
        self.result["pytorch"] = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        self.step("pytorch", code == 0, seconds, output=output if code else "")

    def summary(self):
        """Prints it; whether nothing failed."""
        steps = self.result["steps"]
        of = {ok: [name for name, step in steps.items() if step["ok"] is ok] for ok in (True, False, None)}
        text = f"{len(of[True])} ok, {len(of[False])} failed, {len(of[None])} skipped"
        for word, names in (("failed", of[False]), ("skipped", [] if self.host else of[None])):
            if names:
                text += f"; {word}: {', '.join(names)}"
        self.result["summary"] = text
        print(f"gpu_check: {text}", flush=True)
        return not of[False]


def main():
    parser = argparse.ArgumentParser(description="See benchmarks/gpu_check.sh.")
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    check = Check(options)
    try:
        check.hardware()
        check.lists()
        check.conformance()
        check.speed()
        check.tests(["norm"] if options.host else PROGRAMS)
        check.sanitizer()
        check.rivals()
    finally:
        shutil.rmtree(check.work, ignore_errors=True)
    check.result["seconds"] = round(LIMIT - check.left())
    passed = check.summary()
    text = json.dumps(check.result, indent=1)
    if options.out:
        options.out.write_text(text + "\n")
    else:
        print(text)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
