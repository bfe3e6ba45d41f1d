"""Who may include whom, and how long things may be. Usage: layering.py SOURCE_FOLDER | --self-test

The table is the architecture of the library: a folder of include/typeformer/ may include what stands in its row, nothing else.
"""
import pathlib
import re
import sys
import tempfile

# Names are folders of include/typeformer/ ("kernel" alone: the files directly in kernel/, e.g. the contract) and entry headers.
MAY_INCLUDE = {
    "core": {"core"},
    "policy": {"core", "policy"},
    "kernel": {"core", "policy", "kernel"},
    "kernel/cpu": {"core", "policy", "kernel", "kernel/cpu"},
    "kernel/cuda": {"core", "policy", "kernel", "kernel/cuda", "simt"},
    "simt": {"core", "simt"},
    "model": {"core", "policy", "kernel", "model"},
    "family": {"core", "policy", "model", "family"},
    "report": {"core", "policy", "kernel", "model", "family", "report"},
    "train": {"core", "policy", "kernel", "model", "train"},
    "io": {"core", "policy", "kernel", "model", "report", "io"},
    "text": {"core", "policy", "kernel", "model", "report", "io", "text"},
    "typeformer.hpp": {"core", "policy", "kernel", "model", "family", "report"},
    "cpu.hpp": {"core", "kernel", "kernel/cpu", "model", "typeformer.hpp"},
    "cuda.cuh": {"core", "kernel", "kernel/cuda", "model", "simt", "typeformer.hpp"},
    "io.hpp": {"io", "typeformer.hpp"},
    "text.hpp": {"text", "io.hpp", "typeformer.hpp"},
    "io_impl.hpp": {"io", "io.hpp"},
    "text_impl.hpp": {"text", "text.hpp"},
    "train.hpp": {"model", "train", "typeformer.hpp"},
}

# Headers in <...> beyond the C++ standard library's, per folder. A name ending in / stands for everything below it.
SYSTEM = {
    "core": {"immintrin.h"},
    "kernel/cpu": {"immintrin.h", "arm_neon.h", "pthread.h", "sched.h", "unistd.h", "sys/"},
    "kernel/cuda": {"cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "cuda_bf16.h", "cuda_fp16.h", "cublasLt.h",
                    "library_types.h", "mma.h", "cooperative_groups.h"},
    "simt": {"dlfcn.h", "pthread.h", "sched.h", "signal.h", "ucontext.h", "unistd.h", "immintrin.h", "xmmintrin.h", "sys/",
             "sanitizer/", "cublasLt.h", "cuda_runtime.h", "vector_types.h", "vector_functions.h"},
    "io": {"nlohmann/", "fcntl.h", "unistd.h", "sys/"},
    "text": {"nlohmann/", "pcre2.h", "utf8proc.h"},
}

# Slow to compile or printing by themselves; the library does neither.
FORBIDDEN = {"iostream", "regex"}

MAX_LINES, MAX_COLUMNS = 500, 120
SOURCE_FOLDERS = ("include", "tests", "examples", "benchmarks")
SUFFIXES = {".hpp", ".cuh", ".cpp", ".cu"}
STANDARD = re.compile(r"[a-z][a-z0-9_]*")


def layer_of(path):
    """The row of the table for a path below include/typeformer/, or None."""
    parts = path.split("/")
    if len(parts) == 1:
        return path
    if parts[0] == "kernel" and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]


def without_comments(text):
    """Comments replaced by spaces, line breaks and strings kept."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.S)
    return pattern.sub(lambda m: m.group() if m.group()[0] == '"' else re.sub(r"[^\n]", " ", m.group()), text)


def balanced(text, start):
    """The text between the parenthesis at start and its partner; strings are skipped."""
    depth = 0
    for match in re.compile(r"""["](?:\\.|[^"\\])*["]|'(?:\\.|[^'\\])+'|[()]""").finditer(text, start):
        depth += {"(": 1, ")": -1}.get(match.group(), 0)
        if depth == 0:
            return text[start + 1:match.start()]
    return text[start + 1:]


def check_includes(own, code, complain):
    if own not in MAY_INCLUDE:
        complain(1, f"folder or entry header '{own}' is not in the table of tests/layering.py")
        return
    for number, line in enumerate(code.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if not match:
            continue
        quote, name = match.groups()
        if quote == '"' or name.startswith("typeformer/"):
            if not name.startswith("typeformer/"):
                complain(number, f'"{name}" is not written from the include root, as in "typeformer/..."')
            elif quote == "<":
                complain(number, f'<{name}> is our own: write "{name}"')
            elif layer_of(name.removeprefix("typeformer/")) not in MAY_INCLUDE[own]:
                complain(number, f"{own} must not include {name}; it may include {', '.join(sorted(MAY_INCLUDE[own]))}")
        elif name in FORBIDDEN:
            complain(number, f"<{name}> is not used in the library")
        elif not STANDARD.fullmatch(name):
            allowed = SYSTEM.get(own, set())
            if name not in allowed and name.split("/")[0] + "/" not in allowed:
                complain(number, f"{own} must not include <{name}>")


def check_header(relative, text, complain):
    code, own = without_comments(text), layer_of(relative)
    check_includes(own, code, complain)
    if "#pragma once" not in code:
        complain(1, "no #pragma once")
    for match in re.finditer(r"\bstatic_assert\s*\(", code):
        # A published parameter count next to its alias explains itself.
        if own != "family" and '"' not in balanced(code, match.end() - 1):
            complain(code.count("\n", 0, match.start()) + 1, "static_assert without a sentence")
    for match in re.finditer(r"^\s*#\s*define\s+(\w+)", code, re.M):
        cuda_keyword = own == "simt" and re.fullmatch(r"__\w+__", match.group(1))
        asked_for = own == "text" and match.group(1) == "PCRE2_CODE_UNIT_WIDTH"  # pcre2.h does not compile without it
        if not match.group(1).startswith("TYPEFORMER_") and not cuda_keyword and not asked_for:
            complain(code.count("\n", 0, match.start()) + 1, f"macro {match.group(1)} does not begin with TYPEFORMER_")


def check(root):
    """All complaints about the tree, as `file:line: sentence`."""
    complaints = []
    include = root / "include" / "typeformer"
    for folder in SOURCE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            text = path.read_text(encoding="utf-8")
            name = path.relative_to(root).as_posix()

            def complain(line, sentence):
                complaints.append(f"{name}:{line}: {sentence}")

            lines = text.splitlines()
            if len(lines) > MAX_LINES:
                complain(len(lines), f"{len(lines)} lines, at most {MAX_LINES}")
            for number, line in enumerate(lines, 1):
                if len(line) > MAX_COLUMNS:
                    complain(number, f"{len(line)} columns, at most {MAX_COLUMNS}")
            if path.is_relative_to(include):
                check_header(path.relative_to(include).as_posix(), text, complain)
    return complaints


# (file, text, what the complaint must contain; None: no complaint)
PLANTED = [
    ("core/a.hpp", '#include "typeformer/policy/norm.hpp"', "core must not include"),
    ("policy/a.hpp", '#include "typeformer/model/block.hpp"', "policy must not include"),
    ("kernel/contract.hpp", '#include "typeformer/kernel/cpu/norm.hpp"', "kernel must not include"),
    ("kernel/cpu/a.hpp", '#include "typeformer/kernel/cuda/norm.cuh"', "kernel/cpu must not include"),
    ("kernel/cuda/a.cuh", '#include "typeformer/kernel/cpu/norm.hpp"', "kernel/cuda must not include"),
    ("kernel/cuda/a.cuh", '#include "typeformer/model/block.hpp"', "kernel/cuda must not include"),
    ("model/a.hpp", '#include "typeformer/kernel/cpu/norm.hpp"', "model must not include"),
    ("model/a.hpp", '# include "typeformer/kernel/cuda/norm.cuh"', "model must not include"),
    ("model/a.hpp", '#include "typeformer/cpu.hpp"', "model must not include"),
    ("simt/a.hpp", '#include "typeformer/kernel/cuda/norm.cuh"', "simt must not include"),
    ("train/a.hpp", '#include "typeformer/io/safetensors.hpp"', "train must not include"),
    ("io/a.hpp", '#include "typeformer/text/tokenizer.hpp"', "io must not include"),
    ("typeformer.hpp", '#include "typeformer/io/safetensors.hpp"', "typeformer.hpp must not include"),
    ("elsewhere/a.hpp", "", "is not in the table"),
    ("core/a.hpp", '#include "error.hpp"', "include root"),
    ("core/a.hpp", "#include <typeformer/core/error.hpp>", "is our own"),
    ("model/a.hpp", "#include <nlohmann/json.hpp>", "model must not include <nlohmann"),
    ("policy/a.hpp", "#include <immintrin.h>", "policy must not include <immintrin.h>"),
    ("model/a.hpp", "#include <cuda_runtime.h>", "model must not include <cuda_runtime.h>"),
    ("io/a.hpp", "#include <pcre2.h>", "io must not include <pcre2.h>"),
    ("model/a.hpp", "#include <iostream>", "<iostream> is not used"),
    ("text/a.hpp", "#include <regex>", "<regex> is not used"),
    ("core/a.hpp", "static_assert(sizeof(int) == 4);", "without a sentence"),
    ("core/a.hpp", "static_assert(f('(') == 4\n);", "without a sentence"),
    ("core/a.hpp", "#define HD", "macro HD"),
    ("core/a.hpp", "\n" * 501, "at most 500"),
    ("core/a.hpp", "// " + "x" * 118, "121 columns"),
    ("model/a.hpp", '#include <vector>\n#include "typeformer/kernel/contract.hpp"\n// #include <regex>', None),
    ("kernel/cuda/a.cuh", '#include <cublasLt.h>\n#include "typeformer/simt/simt.hpp"', None),
    ("io/a.hpp", '#include <sys/mman.h>\n#include <nlohmann/json.hpp>\nstatic_assert(f(")") == 1, "one");', None),
    ("kernel/cuda/a.cuh", "#define __device__", "macro __device__"),
    ("core/a.hpp", "#define TYPEFORMER_X", None),
    ("simt/a.hpp", "#define __device__", None),
    ("family/a.hpp", "static_assert(A::parameter_count == 1);", None),
]


def self_test():
    """Every kind of breach is planted in an otherwise empty tree and must be found; what is allowed must pass."""
    failures = 0
    for name, text, expected in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "include", "typeformer", name)
            path.parent.mkdir(parents=True)
            path.write_text("#pragma once\n" + text + "\n", encoding="utf-8")
            found = check(pathlib.Path(folder))
        if (expected is None and found) or (expected is not None and not any(expected in line for line in found)):
            failures += 1
            print(f"planted in {name}: {text[:60]!r}: expected {expected!r}, got {found}")
    print(f"{len(PLANTED)} planted, {failures} not judged as expected")
    return failures


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 1 if self_test() else 0
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    complaints = check(pathlib.Path(sys.argv[1]))
    print("\n".join(complaints) or "every include, length and macro as agreed")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
