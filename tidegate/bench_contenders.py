"""Contenders of a bench, each in a process of its own with one thread: nobody gains by what another one has loaded."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from domain.errors import ConfigError

ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")

Told = dict[str, Any]  # what a contender says, as JSON


def contender(module: str, who: str, job: Path) -> Told:
    """What contender `who` of a module such as tidegate.rerank_peers says of `job`, run with one thread.

    Raises ConfigError with the end of its log when it failed.
    """
    quiet = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"} | dict.fromkeys(ONE_THREAD, "1")
    ran = subprocess.run(  # noqa: S603 - this interpreter and a module of ours
        [sys.executable, "-m", module, who, str(job), "1"],
        env=os.environ | quiet,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        last = " ".join(ran.stderr.split())[-300:]
        raise ConfigError(
            f"The contender {who} of {module} ended with {ran.returncode} ({last}): install what it lacks, as "
            "`pip install -e .[dev]` does, or leave the others out with --no-peers."
        )
    answer: Told = json.loads(ran.stdout.splitlines()[-1])
    return answer
