#!/usr/bin/env bash
# Brings the documents of a payload to people: built, measured, and promoted when nobody is served anything yet. Said
# again it does nothing again. A later version stays admitted until somebody begins its canary: `tidegate canary`.
set -euo pipefail
payload=${1:?usage: admit.sh FOLDER [CORPUS], with tidegate.yaml, questions.jsonl and corpus/ in FOLDER}
corpus=${2:-$payload/corpus}
export TIDEGATE_CONFIG=$payload/tidegate.yaml

version=$(tidegate build "$corpus" --json | python -c 'import json, sys; print(json.load(sys.stdin)["version"]["id"])')
tidegate gate "$version"
stable=$(tidegate versions --json | python -c 'import json, sys; print(json.load(sys.stdin)["rollout"]["stable"] or "")')
if [ -z "$stable" ]; then
  tidegate promote "$version"
elif [ "$stable" != "$version" ]; then
  echo "version $version is admitted; give it to some people first: tidegate canary $version --auto"
fi
