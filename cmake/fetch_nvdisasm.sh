#!/usr/bin/env bash
# Fetches NVIDIA's disassembler from PyPI into ${TYPEFORMER_CACHE:-~/.cache/typeformer}, for toolkits without it, and prints
# the program's path.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

version=13.5.37
cache=${TYPEFORMER_CACHE:-$HOME/.cache/typeformer}
program=$cache/nvdisasm-$version

if [[ ! -x $program ]]; then
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "fetching nvdisasm $version" >&2
  download_wheels "$work" nvidia-cuda-nvdisasm==$version
  python3 -m zipfile -e "$work"/*.whl "$work/site"
  chmod +x "$work/site/nvidia/cu13/bin/nvdisasm"
  "$work/site/nvidia/cu13/bin/nvdisasm" --version >/dev/null
  mv "$work/site/nvidia/cu13/bin/nvdisasm" "$program"
fi
echo "$program"
