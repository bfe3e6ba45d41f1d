# Sourced by the run scripts. need_packages PACKAGE...: installs the Debian packages that are missing. Needs root (or sudo
# without a password) only when something is missing; on another system, or without rights, it says what to install.
need_packages() {
  local missing=() package
  if ! command -v dpkg-query >/dev/null; then
    echo "not a Debian system: assuming that these are installed: $*" >&2
    return 0
  fi
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  local as_root=()
  if ((EUID != 0)); then
    if ! sudo -n true 2>/dev/null; then
      echo "missing packages: ${missing[*]}" >&2
      echo "install them once: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo -n)
  fi
  echo "installing ${missing[*]}" >&2
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -q && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -n 30 "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

# download_wheels FOLDER REQUIREMENT...: pip download without dependencies; pip comes from the system or from a new virtual environment.
download_wheels() {
  local folder=$1 python=python3 venv=
  shift
  if ! python3 -m pip --version >/dev/null 2>&1; then
    python3 -c 'import ensurepip' 2>/dev/null || need_packages python3-venv
    venv=$(mktemp -d)
    python3 -m venv "$venv" >&2
    python=$venv/bin/python
  fi
  local status=0
  "$python" -m pip download -q --no-deps --only-binary :all: -d "$folder" "$@" >&2 </dev/null || status=$?
  [[ -z $venv ]] || rm -rf "$venv"
  return $status
}
