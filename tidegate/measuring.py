"""A version, measured as it would be served: questions through the HTTP surface, every reply kept in a journal.

What a measurement says about people getting the version is decided in deciding.py.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from domain.errors import IncompatibleIndex, StageFailed
from domain.releases import Binding, Scorecard
from domain.releasing import stamp, utc_now
from eval.gates import CLOSED, Gate, digest
from eval.questions import Question, fingerprint
from tidegate import code, evaluations
from tidegate.effective import digest as settings_digest
from tidegate.progress import Report

if TYPE_CHECKING:
    from eval.beir import Retrieved
    from eval.client import Client
    from eval.journal import Header
    from eval.observed import Limits, Observed
    from tidegate.settings import Settings

# Reported beside the gates' own metrics, because a person asks for them first.
ALWAYS = (
    "answer_correctness", "sentence_citation_precision", "sentence_citation_recall", "abstention",
    "abstention_precision", "no_over_refusal", "answered", "success", "within_slo", "within_cost",
)  # fmt: skip
# Hangs on how busy the machine was: told, and kept out of what is compared from run to run.
TIMED = frozenset({"within_slo"})
BEIR_CHUNKS = 300  # per query: leaves room for 100 documents of three chunks each


@dataclass(frozen=True, slots=True)
class Measured:
    """An evaluation: what it is of, when it was whole, every question with its reply, and the values per question.

    `kept` counts the replies that had been there before this call.
    """

    header: "Header"
    finished_at: str
    observed: "tuple[Observed, ...]"
    scorecard: Scorecard
    kept: int

    @property
    def failures(self) -> Mapping[str, int]:
        """How many requests failed, by the code they failed with."""
        from eval.client import Failure

        codes = Counter(o.response.code for o in self.observed if isinstance(o.response, Failure))
        return dict(sorted(codes.items()))


def draw(questions: tuple[Question, ...], n: int, seed: int) -> tuple[Question, ...]:
    """At most `n` questions, drawn by seed and given in their own order; all of them when there are no more."""
    if len(questions) <= n:
        return questions
    chosen = set(Random(seed).sample(range(len(questions)), n))  # noqa: S311 - a reproducible draw, not a secret
    return tuple(question for position, question in enumerate(questions) if position in chosen)


def gate_list(settings: "Settings") -> tuple[Gate, ...]:
    """The gates of the settings."""
    return tuple(line.gate for line in settings.evaluation.gates)


def binding(settings: "Settings", version: str, questions: Sequence[Question], baseline: str | None = None) -> Binding:
    """What a decision about `version` must speak of to be about what would be served instead of `baseline`."""
    return Binding(
        version=version,
        dataset=fingerprint(questions),
        settings=settings_digest(settings),
        gates=digest(gate_list(settings)),
        code=code.measuring(),
        baseline=baseline,
    )


async def measure(
    settings: "Settings",
    version: str,
    questions: Sequence[Question],
    report: Report,
    *,
    url: str = "",
    fresh: bool = False,
) -> Measured:
    """`version` under these settings in this process, or, with `url`, what is served there, pinned to `version` if
    one is named. What a journal holds already is not asked again, unless `fresh`.

    The attacks are tried as well, unless evaluation.attacks says no, or an address is measured.
    A whole evaluation of an address is always begun anew: what is served there may have changed since.
    Raises StageFailed when every question fails, StorageError when another process measures the same.
    """
    from eval.attacking import with_attacks
    from eval.client import Client
    from eval.harness import ask, observe, score
    from eval.journal import Journal
    from tidegate import attacks

    of = evaluations.header(settings, version, questions, url)
    with Journal(evaluations.journal_path(settings, of), of) as journal:
        if fresh or (url and journal.finished_at):
            journal.start_over()
        kept, replies = len(journal.replies), dict(journal.replies)
        if not journal.finished_at:
            client = Client.to_url(url, version or None) if url else await local_client(settings, version)
            async with client:
                replies = await ask(
                    client,
                    questions,
                    workers=settings.evaluation.workers,
                    journal=journal,
                    progress=lambda done, total: report(f"evaluating {version or url}", done, total),
                )
        observed = observe(questions, replies, limits(settings))
        scorecard = score(observed, metric_names(settings))
        if not journal.finished_at:  # not before there is a score: what failed altogether is no evaluation
            journal.finish(stamp(utc_now()))
        finished_at = journal.finished_at
    if settings.evaluation.attacks and not url:  # whoever answers at an address cannot be shown poisoned passages
        suite = await attacks.tried(settings, version, report, fresh=fresh)
        scorecard, finished_at = with_attacks(scorecard, suite.values), max(finished_at, suite.finished_at)
    return Measured(of, finished_at, observed, scorecard, kept)


def recalled(settings: "Settings", version: str, questions: Sequence[Question]) -> Measured | None:
    """What `version` achieved on these questions under the settings and by the code that it was measured with last;
    None when it never was.
    """
    from eval.attacking import with_attacks
    from eval.harness import observe, score
    from tidegate import attacks

    there = evaluations.latest(settings, version, fingerprint(questions))
    if there is None:
        return None
    of, found = there
    observed = observe(questions, found.replies, limits(settings))
    scorecard = score(observed, metric_names(settings))
    if settings.evaluation.attacks and (resisted := attacks.recalled(settings, version)) is not None:
        scorecard = with_attacks(scorecard, resisted)
    return Measured(of, found.finished_at, observed, scorecard, len(observed))


def measured_or_recalled(
    settings: "Settings",
    version: str,
    questions: Sequence[Question],
    report: Report,
    note: Callable[[str], None],
    called: str = "",
) -> Measured:
    """`version` under these settings. Under another encoder it cannot be opened: then what it achieved under its own,
    which is noted. `called` is how messages begin; the id when left out.

    Raises StageFailed for a version that neither can be measured now nor was measured to the end before.
    """
    try:
        return asyncio.run(measure(settings, version, questions, report))
    except StageFailed as error:
        failed = f"{called or version} could not be measured: {error}"
        if can_open(settings, version):
            raise StageFailed(failed) from error
        if (earlier := recalled(settings, version, questions)) is None:
            raise StageFailed(
                f"{failed} Measure it to the end on these questions under the settings it was built for, tidegate "
                f"evaluate {version}, and do this again."
            ) from error
    note(
        f"{called or version} cannot be opened under these settings: compared with what it achieved on "
        f"{earlier.finished_at} under its own"
    )
    return earlier


def can_open(settings: "Settings", version: str) -> bool:
    """False for a version that was built with another encoder or analyser than these settings ask for."""
    from tidegate.compose import make_embedder, open_index

    if settings.retrieval.knowledge_base is not None:  # searched in its place, whatever encoder it was built with
        return True
    try:
        open_index(settings, make_embedder(settings), version)
    except IncompatibleIndex:
        return False
    return True


def metric_names(settings: "Settings") -> tuple[str, ...]:
    """What is measured of every question: the metrics of the gates, and those a person asks for first."""
    gated = (gate.metric for gate in gate_list(settings) if gate.metric not in CLOSED)
    return tuple(dict.fromkeys([*gated, *ALWAYS]))


def limits(settings: "Settings") -> "Limits":
    """What a good answer takes and costs at most."""
    from eval.observed import Limits
    from tidegate.compose_bedrock import prices_of, rewriter_prices_of

    chosen = settings.evaluation
    return Limits(
        slo_ms=chosen.slo_ms,
        cost_cap_usd=chosen.cost_cap_usd,
        prices=prices_of(settings),
        rewriter_prices=rewriter_prices_of(settings),
    )


async def measure_beir(
    settings: "Settings",
    folder: Path,
    *,
    client: "Client",
    split: str | None,
    queries_file: str | None,
    rerank: bool,
    k: int,
    report: Report,
) -> "Retrieved":
    """ndcg@10, recall@10 and recall@100 of a BEIR collection through `/v1/search`. Closes the client."""
    from eval.beir import measure as measure_collection
    from eval.collection import load_beir
    from tidegate.compose import anonymous

    async with client:
        queries, qrels = load_beir(folder, split, queries_file)
        return await measure_collection(
            client,
            queries,
            qrels,
            anonymous(settings),
            rerank=rerank,
            k=k,
            workers=settings.evaluation.workers,
            progress=lambda done, total: report("searching", done, total),
        )


async def local_client(settings: "Settings", version: str) -> "Client":
    """A client of the whole service in this process, pinned to `version`."""
    from eval.client import Client
    from serving.api import create_app
    from tidegate.compose import evaluation_service, make_library

    library = make_library(settings)
    await library.refresh()
    return Client.in_process(create_app(evaluation_service(settings, library)), version)
