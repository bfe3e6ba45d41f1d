#!/usr/bin/env bash
# Chats with SmolLM2-135M-Instruct: installs what is missing, fetches the model, builds examples/generate for this CPU, runs it.
#
#   examples/run.sh ["prompt"] [--greedy] [--max-tokens N] [--ids "1 2 3"] [--dump FILE.safetensors]
#
# On Debian 12 with git, g++ and python3 nothing else is needed; root only while packages are missing.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/cmake/packages.sh"

need_packages g++ cmake ninja-build nlohmann-json3-dev libpcre2-dev libutf8proc-dev
model=$("$root/examples/fetch_smollm2.sh")

build=$root/build/run
mkdir -p "$build"
if ! { cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTYPEFORMER_NATIVE=ON -DTYPEFORMER_CUDA=OFF \
  -DTYPEFORMER_TESTS=OFF -DTYPEFORMER_BENCHMARKS=OFF && cmake --build "$build" --target generate; } >"$build/log" 2>&1; then
  cat "$build/log" >&2
  exit 1
fi
exec "$build/examples/generate" "$model" "$@"
