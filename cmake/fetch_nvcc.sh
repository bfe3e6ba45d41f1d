#!/usr/bin/env bash
# Fetches the CUDA compiler and headers from PyPI into ${TYPEFORMER_CACHE:-~/.cache/typeformer}, for machines without a
# toolkit, and prints the toolkit's folder (bin/nvcc below it). Enough to compile; running needs a driver.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

version=13.0.88
cache=${TYPEFORMER_CACHE:-$HOME/.cache/typeformer}
toolkit=$cache/cuda-$version

if [[ ! -x $toolkit/bin/nvcc ]]; then
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "fetching nvcc $version" >&2
  download_wheels "$work" nvidia-cuda-nvcc==$version nvidia-nvvm==$version nvidia-cuda-crt==$version \
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-cublas==13.1.1.3
  for wheel in "$work"/*.whl; do python3 -m zipfile -e "$wheel" "$work/site"; done
  root=$work/site/nvidia/cu13
  chmod +x "$root"/bin/* "$root"/nvvm/bin/*
  ln -sfn lib "$root/lib64"
  for library in "$root"/lib/lib*.so.*; do ln -sfn "${library##*/}" "${library%%.so.*}.so"; done
  "$root/bin/nvcc" --version >/dev/null
  rm -rf "$toolkit"
  mv "$root" "$toolkit"
fi
echo "$toolkit"
