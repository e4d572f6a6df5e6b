"""One load run: Locust in a process of its own, its samples read, judged and reported.

Locust changes the standard library under everything in its process, so it never runs in anybody else's.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from load import report
from load.samples import Sample, read
from load.slo import Threshold, Verdict, judged

LOCUSTFILE = Path(__file__).with_name("locustfile.py")
CLASSES = {
    "answer": "Answer",
    "conversation": "Conversation",
    "stream": "Stream",
    "search": "Search",
    "mixed": "Mixed",
}
ENDING_S = 90.0  # what is open when a run ends may take a minute; Locust itself takes seconds to start


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do to whom. With `rate` requests arrive so many a second whatever happens, and `users` are not used."""

    url: str
    folder: Path
    users: int = 20
    seconds: float = 60.0
    mix: str = "mixed"
    rate: float | None = None
    think_s: float = 1.0
    seed: int = 7
    questions: Path | None = None
    key_file: Path | None = None  # a key in a file never stands in a list of processes

    @property
    def asked(self) -> str:
        """The run in one line."""
        how = f"{self.rate:g} arrivals a second" if self.rate else f"{self.users} users, {self.think_s:g} s of thought"
        return f"{self.url}: {self.mix}, {how}, {self.seconds:g} s, seed {self.seed}"


class NotRun(Exception):
    """Locust did not run: its words are in the message."""


def run(plan: Plan) -> list[Sample]:
    """The samples of a run. Raises NotRun when Locust itself failed; requests that fail are samples."""
    path = plan.folder / "samples.jsonl"
    path.unlink(missing_ok=True)
    log = plan.folder / "locust.log"
    # Whatever http_proxy says: where the load goes is what was typed.
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter
            command(plan, path, log), env=environment, capture_output=True, timeout=plan.seconds + ENDING_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NotRun(f"Locust did not end {ENDING_S:g} s after the run: see {log}.") from error
    # Locust says 1 when a request failed, which is for the thresholds to judge.
    if done.returncode not in (0, 1) or not path.exists():
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no word"]
        raise NotRun(f"Locust ended with {done.returncode} and made no request ({last[0][:300]}): see {log}.")
    return read(path)


def command(plan: Plan, samples: Path, log: Path) -> list[str]:
    """The command line of Locust for a plan."""
    questions = ["--questions", str(plan.questions)] if plan.questions else []
    key = ["--key-file", str(plan.key_file)] if plan.key_file else []
    return [
        *(sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary"),
        *("--host", plan.url, "--run-time", f"{max(1, round(plan.seconds))}s", "--stop-timeout", "60"),
        *("--users", str(1 if plan.rate else plan.users), "--spawn-rate", str(max(1, plan.users))),
        *("--samples", str(samples), "--think-s", f"{plan.think_s:g}", "--seed", str(plan.seed), *questions, *key),
        *("--csv", str(plan.folder / "locust"), "--logfile", str(log), "--mix", plan.mix),
        *(("--rate", f"{plan.rate:g}") if plan.rate else ()),
        "Arrivals" if plan.rate else CLASSES[plan.mix],
    ]


def reported(plan: Plan, thresholds: Sequence[Threshold], samples: Sequence[Sample]) -> tuple[list[Verdict], Path]:
    """The verdicts on a run, and its page."""
    verdicts = judged(samples, thresholds, plan.seconds)
    return verdicts, report.write(plan.folder, samples, verdicts, plan.asked)


def is_loopback(url: str) -> bool:
    """True for an address on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
