#!/usr/bin/env bash
# Installs what is missing, builds everything with g++ and a subset with clang++, runs all tests in one CTest.
#
#   tests/run.sh [--require-nvcc] [CTEST_OPTION...]       e.g. tests/run.sh -R policy
#
# On Debian 12 with git, g++ and python3 nothing else is needed; root only while packages are missing. nvcc is taken from
# PATH or /usr/local/cuda; without it the CUDA compilation is skipped, and CTest's summary says so. --require-nvcc makes it
# an error, after trying to get nvcc from PyPI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/packages.sh
root=$PWD

require_nvcc=0
if [[ ${1-} == --require-nvcc ]]; then
  require_nvcc=1
  shift
fi

need_packages g++ cmake ninja-build clang-14 clang-format-14 doctest-dev libbenchmark-dev nlohmann-json3-dev libpcre2-dev \
  libutf8proc-dev pkg-config ccache

nvcc=$(command -v nvcc || true)
[[ -n $nvcc || ! -x /usr/local/cuda/bin/nvcc ]] || nvcc=/usr/local/cuda/bin/nvcc
if [[ -z $nvcc && $require_nvcc == 1 ]]; then
  nvcc=$(cmake/fetch_nvcc.sh)/bin/nvcc || { echo "tests/run.sh: nvcc is required; none in PATH, /usr/local/cuda or PyPI" >&2; exit 1; }
fi
cuda=OFF
nvdisasm=
if [[ -n $nvcc ]]; then
  cuda=ON
  export CUDACXX=$nvcc
  nvdisasm=$(command -v nvdisasm || ls "${nvcc%nvcc}nvdisasm" 2>/dev/null || cmake/fetch_nvdisasm.sh || true)
  [[ -n $nvdisasm || $require_nvcc == 0 ]] || { echo "tests/run.sh: nvdisasm is required; none in PATH, beside nvcc or on PyPI" >&2; exit 1; }
fi
echo "nvcc: ${nvcc:-none}, nvdisasm: ${nvdisasm:-none}"

model=$(examples/fetch_smollm2.sh)

launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi
# What clang++ builds and runs besides, every header alone among it: folders of tests/ ('.' is tests/ itself) that together instantiate every chapter once.
clang_folders='.;headers;core;policy;kernel;report;train'
cmake --preset ci-clang "${launcher[@]}" -DTYPEFORMER_SMOLLM2="$model" -DTYPEFORMER_TEST_FOLDERS="$clang_folders" --log-level=WARNING
cmake --preset ci "${launcher[@]}" -DTYPEFORMER_SMOLLM2="$model" -DTYPEFORMER_CUDA=$cuda -DTYPEFORMER_NVDISASM="$nvdisasm" \
  -DTYPEFORMER_SECOND_TREE="$root/build/ci-clang"

# A program that does not build is a test that does not run: CTest counts it, and everything else is still tested.
built=0
for preset in ci ci-clang; do
  cmake --build --preset $preset -j "$(nproc)" -- -k 0 || built=1
done
ctest --test-dir build/ci --output-on-failure --no-tests=error -j "$(nproc)" "$@" || exit 1
((built == 0)) || { echo "not everything was built, see above" >&2; exit 1; }
