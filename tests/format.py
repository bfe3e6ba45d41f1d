"""Checks that sources are formatted by .clang-format. Usage: format.py CLANG_FORMAT SOURCE_FOLDER [--fix]"""
import pathlib
import re
import subprocess
import sys

FOLDERS = ("include", "tests", "examples", "benchmarks")
SUFFIXES = {".hpp", ".cuh", ".cpp", ".cu"}


def main():
    clang_format, root = sys.argv[1], pathlib.Path(sys.argv[2])
    files = [str(path) for folder in FOLDERS for path in sorted((root / folder).rglob("*")) if path.suffix in SUFFIXES]
    if not files:
        print("no sources")
        return 1
    if "--fix" in sys.argv[3:]:
        return subprocess.run([clang_format, "-i", *files], check=False).returncode
    result = subprocess.run([clang_format, "--dry-run", "-Werror", *files], capture_output=True, text=True, check=False)
    for path in dict.fromkeys(re.findall(r"^(.*?):\d+:\d+: ", result.stderr, re.M)):
        print(f"{path}: not formatted")
    if result.returncode:
        print(f"to mend: python3 tests/format.py {clang_format} . --fix")
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
