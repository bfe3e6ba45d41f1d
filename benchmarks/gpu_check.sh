#!/usr/bin/env bash
# Everything that only a GPU can confirm, in under eight minutes: conformance of the host layer, every CUDA test,
# compute-sanitizer, and the speed of each operation beside PyTorch's.
#
#   benchmarks/gpu_check.sh [--host] [--out FILE.json]
#
# Needs nvcc (PATH or /usr/local/cuda), g++, python3, doctest and nlohmann_json's headers; PyTorch where it is to be compared.
# --host: a dry run without a GPU, by the host layer, on small shapes: shows that this script works, and measures nothing.
# The results are JSON, with hardware and date; those worth keeping belong into benchmarks/results/.
set -euo pipefail
exec python3 "$(dirname "${BASH_SOURCE[0]}")/gpu/check.py" "$@"
