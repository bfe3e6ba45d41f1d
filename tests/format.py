"""Checks that sources are formatted by .clang-format. Usage: format.py CLANG_FORMAT SOURCE_FOLDER [--fix]"""
import pathlib
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
    bad = []
    for path in files:
        formatted = subprocess.run([clang_format, path], capture_output=True, check=True).stdout
        if formatted != pathlib.Path(path).read_bytes():
            bad.append(path)
    for path in bad:
        print(f"{path}: not formatted")
    if bad:
        print(f"to mend: tests/format.py {clang_format} . --fix")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
