"""The reranker on one device, in under five minutes: `python load/reranker_bench.py --device cuda`.

Starts `tidegate bench rerank-load` in a process of its own and passes on what it prints, one JSON object a line.
Nothing here knows what is measured, as nothing in load/ does.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence

LIMIT_S = 300


def main(argv: Sequence[str] | None = None) -> int:
    """The bench's exit code: 0 when every aim is reached, 1 when one is missed, 4 when it could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--pairs", type=int, help="pairs to read; 200000 on cuda and 2000 on cpu when left out")
    parser.add_argument("--model", help="folder of a cross-encoder; MiniLM-L6 with a made-up head when left out")
    given = vars(parser.parse_args(argv))
    options = [word for name, value in given.items() if value is not None for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "tidegate", "bench", "rerank-load", "--json", *options]
    try:
        return subprocess.run(command, timeout=LIMIT_S, check=False).returncode  # noqa: S603 - this interpreter
    except subprocess.TimeoutExpired:
        print(f"error: not done within {LIMIT_S} s: ask for fewer --pairs", file=sys.stderr)  # noqa: T201
        return 4


if __name__ == "__main__":
    sys.exit(main())
