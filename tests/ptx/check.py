#!/usr/bin/env python3
"""Judges reports of PTX runs (TYPEFORMER_PTX_REPORT).

    check.py entries | coverage | agreement EXPECTED REPORT...

entries:   every entry that nvcc made is launched (that a launched kernel is no entry fails the run itself).
coverage:  of each entry's instructions at least 95 % ran.
agreement: all words that the host layer or the PTX wrote are equal.

EXPECTED, where it exists, and all.txt beside it list what may be otherwise; the first line whose regular expression matches an
entry's readable name counts, and what follows `#` says why:

    unused      <name>                                           # why nothing launches it
    coverage    <least percent> <name>                           # which instructions no test reaches
    agreement   <most percent of words> <largest error> <name>   # which arithmetic differs
    nvcc        <options>                                        # why; ptx.cmake reads these two
    filter      <test cases>                                     # why PTX runs leave them out (doctest's -tce)

The error is the largest difference of two numbers over the largest of their array; where that is less than a thousandth of
the largest number of the test's arrays, it is what sums that cancel leave, and the difference is over the latter.
"""
import pathlib
import re
import sys

LEAST_COVERAGE = 95.0
NUMBERS = {"unused": 0, "coverage": 1, "agreement": 2}


def read_expected(path):
    """{kind: [(numbers, compiled name)]}"""
    rules = {kind: [] for kind in NUMBERS}
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        line, _, reason = line.partition("#")
        if not line.strip() or line.split()[0] in ("nvcc", "filter"):
            continue
        kind, *words = line.split(maxsplit=NUMBERS.get(line.split()[0], 0) + 1)
        if kind not in NUMBERS or len(words) != NUMBERS[kind] + 1 or not reason.strip():
            raise SystemExit(f"{path}:{number}: not a rule with its reason")
        rules[kind].append(([float(word) for word in words[:-1]], re.compile(words[-1].strip())))
    return rules


def rule_for(rules, name, default):
    return next((numbers for numbers, pattern in rules if pattern.search(name)), default)


def check_entries(lines, rules):
    entries = [line for line in lines if line[0] == "entry"]
    for _, symbol, name, state in entries:
        if state != "launched" and rule_for(rules["unused"], name, None) is None:
            yield f"nvcc made an entry that nothing launches: {name} ({symbol})"
    print(f"{len(entries)} entries, {sum(line[3] == 'launched' for line in entries)} launched")


def check_coverage(lines, rules):
    total = [0, 0]
    for _, name, ran, all_lines, missed in (line for line in lines if line[0] == "coverage"):
        percent = 100 * int(ran) / int(all_lines)
        total[0] += int(ran)
        total[1] += int(all_lines)
        least = rule_for(rules["coverage"], name, [LEAST_COVERAGE])[0]
        print(f"{percent:5.1f} %  {name}")
        if percent < least:
            yield f"{percent:.1f} % of {all_lines} instructions ran, at least {least:g} % should: {name}; never: {missed}"
    print(f"{100 * total[0] / max(total[1], 1):5.1f} % of {total[1]} instructions in all")


def check_agreement(lines, rules):
    for _, name, words, different, error in (line for line in lines if line[0] == "agreement"):
        percent = 100 * int(different) / max(int(words), 1)
        most_percent, most_error = rule_for(rules["agreement"], name, [0, 0])
        print(f"{different:>8} of {words:>9} words differ ({percent:.3g} %), error {float(error):.2g}: {name}")
        if percent > most_percent or not float(error) <= most_error:
            yield (f"{percent:.3g} % of the words differ by up to {float(error):.2g}; "
                   f"{most_percent:g} % and {most_error:g} are allowed: {name}")


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("entries", "coverage", "agreement"):
        print(__doc__)
        return 2
    own = pathlib.Path(sys.argv[2])
    rules, common = read_expected(own), read_expected(own.parent / "all.txt")
    rules = {kind: rules[kind] + common[kind] for kind in rules}
    check = {"entries": check_entries, "coverage": check_coverage, "agreement": check_agreement}[sys.argv[1]]
    complaints = []
    for report in sys.argv[3:]:
        print(pathlib.Path(report).name)
        complaints += check([line.split("\t") for line in pathlib.Path(report).read_text().splitlines()], rules)
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
