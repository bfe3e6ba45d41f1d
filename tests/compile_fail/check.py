"""Programs that must not compile, and what the compiler must say first.

  check.py case FILE INCLUDE_FOLDER KIND COMPILER [OPTION...]   compiles one file's cases; KIND is gnu, clang or nvcc
  check.py rules SOURCE_FOLDER                                  is there a case for every rule?
  check.py self-test COMPILER

A case file states what is expected, then the wrong programs and their twin that is right:

  // expect: RoPE rotates channels in pairs, so head_dim must be even. Change .head_dim or use ALiBi{}.
  #include "typeformer/typeformer.hpp"
  #ifdef WRONG
  ...
  #else
  ...
  #endif

A long sentence goes on in the comment lines that follow it. With several `// expect:` lines the n-th is what WRONG == n must say; such a file is compiled once per line and once as the
twin. The first line with an error must contain the sentence. A rule is a string of a static_assert in
include/typeformer/policy/: each must be expected by one case, and a sentence that is nowhere in the library by none.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

RULE_FOLDERS = ("policy",)
FLAGS = {
    # g++ leaves function templates uninstantiated with -fsyntax-only, so it goes on to assembly.
    "gnu": ["-std=c++20", "-O0", "-S", "-o", "/dev/null", "-x", "c++"],
    "clang": ["-std=c++20", "-fsyntax-only", "-x", "c++"],
    # As far as the front ends for host and device; no object.
    "nvcc": ["-std=c++20", "--expt-relaxed-constexpr", "-arch=sm_80", "-cuda", "-o", "/dev/null", "-x", "cu"],
}
STRING = r'"(?:\\.|[^"\\\n])*"'


def unquoted(literals):
    """The text of adjacent string literals."""
    return "".join(re.sub(r"\\(.)", r"\1", literal[1:-1]) for literal in re.findall(STRING, literals))


def plain(text):
    """A compiler's line without what quoting adds: clang escapes quotes, nvcc does not."""
    return text.replace('\\"', '"')


def expectations(text):
    """The sentences of a case, each on one line."""
    found = re.findall(r"^// expect: (.+(?:\n// (?!expect: ).+)*)", text, re.M)
    return [re.sub(r"\s*\n// ", " ", sentence).rstrip() for sentence in found]


def compile_case(path, include, kind, command, wrong):
    define = [f"-DWRONG={wrong}"] if wrong else []
    line = [*command, *FLAGS[kind], f"-I{include}", *define, str(path)]
    return subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, errors="replace")


def check_case(path, include, kind, command):
    """What is wrong with the case, as sentences."""
    sentences = expectations(path.read_text(encoding="utf-8"))
    complaints = [] if sentences else [f"{path}: no line '// expect: ...'"]
    twin = compile_case(path, include, kind, command, 0)
    if twin.returncode != 0:
        complaints.append(f"{path}: the twin does not compile:\n{twin.stderr[:4000]}{twin.stdout[:1000]}")
    for number, sentence in enumerate(sentences, 1):
        result = compile_case(path, include, kind, command, number)
        output = (result.stderr + result.stdout).splitlines()
        errors = [line for line in output if re.search(r"\berror\b", line)]
        if result.returncode == 0:
            complaints.append(f"{path}: compiles with WRONG={number}; expected: {sentence}")
        elif not errors or sentence not in plain(errors[0]):
            first = errors[0] if errors else "\n".join(output[:20])
            complaints.append(f"{path}: WRONG={number}\n  expected first: {sentence}\n  got first:      {first}")
        else:
            print(f"{path.name} WRONG={number}: {len(output)} lines: {errors[0]}")
    return complaints


def sentences_of(header):
    """The sentence of each static_assert of a header."""
    text = re.sub(rf"({STRING})|//[^\n]*|/\*.*?\*/", lambda m: m.group(1) or " ", header.read_text(encoding="utf-8"), flags=re.S)
    found = []
    for match in re.finditer(r"\bstatic_assert\s*\(", text):
        depth, at = 1, match.end()
        while depth and at < len(text):
            token = re.compile(rf"{STRING}|'(?:\\.|[^'\\])+'|[()]").search(text, at)
            if token is None:
                break
            depth += {"(": 1, ")": -1}.get(token.group(), 0)
            at = token.end()
        tail = re.search(rf"((?:{STRING}\s*)+)\)$", text[match.end():at])
        if tail:
            found.append(unquoted(tail.group(1)))
    return found


def check_rules(root):
    include = root / "include" / "typeformer"
    headers = [path for path in sorted(include.rglob("*")) if path.suffix in {".hpp", ".cuh"}]
    everywhere = {sentence for header in headers for sentence in sentences_of(header)}
    rules = [sentence for header in headers if header.relative_to(include).parts[0] in RULE_FOLDERS
             for sentence in sentences_of(header)]
    complaints, cases = [], {}
    for path in sorted((root / "tests" / "compile_fail").glob("*.cpp")):
        for sentence in expectations(path.read_text(encoding="utf-8")):
            cases.setdefault(sentence, []).append(path.name)
    for sentence in rules:
        count = len(cases.get(sentence, []))
        if count < 1:
            complaints.append(f"{count} cases expect: {sentence}")
    for sentence, names in cases.items():
        if sentence not in everywhere and not any(sentence in other for other in everywhere):
            complaints.append(f"{', '.join(names)}: no static_assert of the library says: {sentence}")
    print(f"{len(rules)} rules, {sum(map(len, cases.values()))} cases")
    return complaints


def self_test(compiler):
    """A rule without its case, a stale case, a wrong sentence, a program that compiles and a broken twin must all be found."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        policy, cases = root / "include/typeformer/policy", root / "tests/compile_fail"
        policy.mkdir(parents=True)
        cases.mkdir(parents=True)
        (policy / "rule.hpp").write_text('#pragma once\ntemplate <int N> struct Even {\n  static_assert(N % 2 == (0), "N must be even (and "\n'
                                         '                              "\\"whole\\").");  // static_assert(false, "no")\n};\n')
        sentence = 'N must be even (and "whole").'

        def case(expect, wrong, right):
            path = cases / "even.cpp"
            path.write_text(f'// expect: {expect}\n#include "typeformer/policy/rule.hpp"\n#ifdef WRONG\n{wrong}\n#else\n{right}\n#endif\n')
            return check_case(path, root / "include", "gnu", [compiler])

        wrong, right = "Even<3> x;", "Even<4> x;"
        judged = {
            "a rule without a case": (bool(check_rules(root)), True),
            "a good case": (bool(case(sentence, wrong, right)), False),
            "a sentence over two lines": (bool(case(sentence.replace(" even", "\n// even"), wrong, right)), False),
            "a rule with its case": (bool(check_rules(root)), False),
            "another sentence": (bool(case("N must be odd.", wrong, right)), True),
            "a stale case": (bool(check_rules(root)), True),
            "a wrong program that compiles": (bool(case(sentence, right, right)), True),
            "a twin that does not": (bool(case(sentence, wrong, wrong)), True),
            "another error first": (bool(case(sentence, "int y = z;\n" + wrong, right)), True),
        }
    bad = [what for what, (got, expected) in judged.items() if got != expected]
    print("\n".join(f"misjudged: {what}" for what in bad) or f"{len(judged)} judged as expected")
    return bad


def main():
    match sys.argv[1:]:
        case ["case", path, include, kind, *command] if command and kind in FLAGS:
            complaints = check_case(pathlib.Path(path), include, kind, command)
        case ["rules", root]:
            complaints = check_rules(pathlib.Path(root))
        case ["self-test", compiler]:
            complaints = self_test(compiler)
        case _:
            print(__doc__)
            return 2
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
