#!/bin/sh
# Makes the golden values anew: tests/golden/make.sh [--seed N] [--out DIR] [--only NAME]...
#
#   --seed N     seed of every random value (default 1, the seed of the committed files)
#   --out DIR    where to write (default: this folder, that is, over the committed files)
#   --only NAME  only this part; may be repeated. Parts: llama llama_tied gemma3 t5 t5_gated (together: tiny)
#                operations formulas families smollm2 text
#   --check      with the tiny models: print what each feature is worth in the logits
#
# The first run makes a virtual environment with the pinned packages of requirements.txt (a few minutes, several GB,
# since PyTorch's default wheel carries its CUDA libraries). It lies outside the source tree:
# $TYPEFORMER_GOLDEN_VENV, or ${XDG_CACHE_HOME:-$HOME/.cache}/typeformer/golden-venv. Nothing of it is needed by the tests.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/typeformer
venv=${TYPEFORMER_GOLDEN_VENV:-$cache/golden-venv}

if ! cmp -s "$here/requirements.txt" "$venv/requirements.installed"; then
  mkdir -p "$(dirname "$venv")"
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
  cp "$here/requirements.txt" "$venv/requirements.installed"
fi

seed=1 out=$here only='' check=''
while [ $# -gt 0 ]; do
  case $1 in
    --seed) seed=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --only) only="$only $2"; shift 2 ;;
    --check) check=--check; shift ;;
    *) echo "usage: make.sh [--seed N] [--out DIR] [--only NAME]... [--check]" >&2; exit 2 ;;
  esac
done
[ -n "$only" ] || only='tiny operations formulas families smollm2 text'
mkdir -p "$out"

export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 TOKENIZERS_PARALLELISM=false TQDM_DISABLE=1 CUDA_VISIBLE_DEVICES=''
export TYPEFORMER_GOLDEN_CACHE="$cache" PYTHONDONTWRITEBYTECODE=1
for part in $only; do
  case $part in
    tiny) "$venv/bin/python" "$here/tiny_models.py" --seed "$seed" --out "$out" $check ;;
    llama | llama_tied | gemma3 | t5 | t5_gated)
      "$venv/bin/python" "$here/tiny_models.py" --seed "$seed" --out "$out" --only "$part" $check ;;
    operations | formulas | families | smollm2 | text) "$venv/bin/python" "$here/$part.py" --seed "$seed" --out "$out" ;;
    *) echo "make.sh: unknown part '$part'" >&2; exit 2 ;;
  esac
done
