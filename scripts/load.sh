#!/usr/bin/env bash
# `make load`: the sample library behind a model that is a stub with latency knobs, served and put under load. Everything
# is on this machine, on free ports, in a folder of its own, and ended afterwards.
#   FIRST_MS, PIECE_MS   milliseconds of the stub to its first piece, and between two (300 and 20)
#   ARGS                 options of `tidegate load`
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${BIN:-.venv/bin}
work=${LOAD_FOLDER:-.tidegate/load}
mkdir -p "$work"

free_port() { "$bin/python" -c 'from serving.address import free_port; print(free_port())'; }
stub_port=$(free_port)
"$bin/python" -m tests.bedrock_stub --port "$stub_port" --first-ms "${FIRST_MS:-300}" --piece-ms "${PIECE_MS:-20}" \
  >"$work/stub.log" 2>&1 &
stub=$!

cat >"$work/tidegate.yaml" <<YAML
data_dir: data
# The documents of the sample library, and so few questions of its own that the way to the load is short.
sample: {questions: 10}
evaluation: {attacks: false, gates: {attack_resistance: {advisory: true}}}
generation:
  backend: bedrock
  model_id: anthropic.claude-sonnet-4-5-20250929-v1:0
  region: eu-central-1
  endpoint_url: http://127.0.0.1:$stub_port
YAML
# Made-up credentials: the stub asks for none, and the client would otherwise look for some.
export AWS_ACCESS_KEY_ID=made-up-id AWS_SECRET_ACCESS_KEY=made-up-secret TIDEGATE_CONFIG=$work/tidegate.yaml
end() { "$bin/tidegate" down || true; kill "$stub" 2>/dev/null || true; wait "$stub" 2>/dev/null || true; }
trap end EXIT

# What answers here is a stub, so no gate could say anything about it.
"$bin/tidegate" up --port "$(free_port)" --force --reason "a stub answers, for a load test"
"$bin/tidegate" load --users 20 --duration 60s --report "$work/report" \
  --slo error_share=0.01 --slo citations_share=0.99 --slo p95_complete_ms=1500 ${ARGS:-}
