#!/bin/sh
# Makes a virtual environment and installs locked packages, or says what this machine lacks and how
# to get it. Nothing that is half made stays.
#
#   tools/venv.sh FOLDER LOCK [PYTHON]
#
# PYTHON: the interpreter; else the first of python3.11 to python3.14 and python3 that serves.
set -eu
folder=$1 lock=$2 wanted=${3-}
supported='Python 3.11, 3.12, 3.13 or 3.14'
room_mb=1500

say() { printf '%s\n' "$@" >&2; }

in_range() {
  "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null
}

has_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

how_to_get_python() {
  say "To get it:" \
    "  Debian, Ubuntu  sudo apt install python3 python3-venv" \
    "  Fedora          sudo dnf install python3" \
    "  macOS           brew install python@3.12" \
    "  uv              make PYTHON=\"\$(uv python find 3.12)\" TARGET, after: uv python install 3.12" \
    "An interpreter that is elsewhere: make PYTHON=/path/to/python TARGET"
}

# Prints the interpreter, or explains on stderr why there is none.
interpreter() {
  without_venv='' too_old=''
  for each in ${wanted:-python3.11 python3.12 python3.13 python3.14 python3}; do
    command -v "$each" >/dev/null 2>&1 || continue
    if ! in_range "$each"; then
      too_old="$each is Python $(version_of "$each" || echo 'of an unknown version')"
    elif ! has_venv "$each"; then
      without_venv=${without_venv:-$each}
    else
      command -v "$each"
      return
    fi
  done
  if [ -n "$without_venv" ]; then
    version=$(version_of "$without_venv")
    say "error: $without_venv (Python $version) cannot make virtual environments: its modules venv and ensurepip are a package of their own." \
      "To get them:" \
      "  Debian, Ubuntu  sudo apt install python$version-venv" \
      "  others          the package of Python $version with venv and ensurepip"
  else
    say "error: ${wanted:+PYTHON=$wanted: }want $supported, and ${too_old:-no such program is in PATH}."
    how_to_get_python
  fi
  return 1
}

if ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
  rm -rf "$folder"
  python=$(interpreter)
  free_mb=$(df -Pk . | awk 'NR == 2 {print int($4 / 1024)}')
  if [ "$free_mb" -lt "$room_mb" ]; then
    say "error: $free_mb MB are free in $(pwd), and the packages need $room_mb MB."
    exit 1
  fi
  if ! "$python" -m venv "$folder"; then
    rm -rf "$folder"
    say "error: $python could not make a virtual environment in $folder (its reason is above)."
    exit 1
  fi
fi
if ! "$folder/bin/python" -m pip install --quiet --require-hashes -r "$lock"; then
  say "error: the packages of $lock could not be installed (pip's reason is above)." \
    "If pip could not reach a registry, say which one it may use: export PIP_INDEX_URL=…, and PIP_CERT=… for an authority of your own; a proxy is HTTPS_PROXY=…" \
    "The same command goes on from here."
  exit 1
fi
