"""What a configuration shows for questions whose evidence is known, and the calibration that follows from it.

Asks the real stages, so that the cosines and leads are those of a first round. The numbers are eval/calibrating.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from domain.calibration import Calibration, Curve, Order, Signal, lead
from domain.errors import BadRequest
from domain.ports import Reranker
from domain.searching import search
from domain.types import Hit, Mode
from eval.calibrating import (
    Error,
    Floats,
    Scored,
    calibration_error,
    cross_fitted,
    isotonic,
    left_out_share,
    log_loss,
    read,
    same_share,
    share_under,
)
from retrieval.calibration import REFERENCE
from tidegate.progress import Report

if TYPE_CHECKING:
    from eval.questions import Question
    from tidegate.settings import Settings

SAME = Curve((-1.0, 1.0), (-1.0, 1.0))  # the bundled encoder in its own terms


@dataclass(frozen=True, slots=True)
class Shown:
    """The hits a first round showed for one question, best first, and which of them hold evidence (1) or none (0)."""

    hits: tuple[Hit, ...]
    relevant: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """All questions under one configuration. `reference` is [n] the best cosine of each with the bundled encoder, None
    where no version of the same passages was built with it; `listwise` says that scores mean nothing outside a list.
    """

    embedder: str
    shown: tuple[Shown, ...]
    reference: Floats | None
    listwise: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """What is printed and written beside a calibration. `errors` is by what was read; "before" takes scores for
    chances as they are. Shares are of questions; `fires` is where the bar had not been fitted. None: not measured.
    """

    passages: int
    relevant: float
    errors: Mapping[str, Error | None]
    signal: str
    bar: float | None
    fires_as_written: float
    fires: float | None
    fires_reference: float | None


async def found_in(settings: "Settings", version: str, questions: "Sequence[Question]", report: Report) -> Found:
    """What `version` shows for the questions under these settings."""
    from tidegate.compose import make_registry

    there = {each.id: each for each in make_registry(settings).versions()}
    tag = there[version].embedder
    shown, listwise = await _shown(settings, version, questions, report)
    if tag.startswith(f"{REFERENCE}-"):
        return Found(tag, shown, best_cosines(shown), listwise)
    same = twin(settings, version)
    if same is None:
        return Found(tag, shown, None, listwise)
    bundled = settings.model_copy(
        update={
            "embedding": settings.embedding.model_copy(update={"backend": "minilm"}),
            "answering": settings.answering.model_copy(update={"calibration": None}),
        }
    )
    return Found(tag, shown, best_cosines((await _shown(bundled, same, questions, report))[0]), listwise)


def fitted(settings: "Settings", found: Found) -> tuple[Calibration, Facts]:
    """The calibration, and how good it is on questions left out of its fit."""
    seed, by_signal = settings.evaluation.seed, signals(found.shown)
    cosine, best = cosines(found.shown), best_cosines(found.shown)
    chances = {signal: cross_fitted(scored, seed) for signal, scored in by_signal.items()}
    allowed = [Signal.LEAD] if found.listwise else [Signal.LEAD, Signal.SCORE]
    signal = min(allowed, key=lambda each: log_loss(chances[each], by_signal[each]))
    order = Order(_method(found.shown), signal, isotonic(by_signal[signal].scores, by_signal[signal].relevant))
    bar = None
    if found.reference is not None:
        bar = SAME if found.embedder.startswith(f"{REFERENCE}-") else same_share(found.reference, best)
    calibration = Calibration(
        embedder=found.embedder, relevance=isotonic(cosine.scores, cosine.relevant), bar=bar, orders=(order,)
    )
    written, fires = settings.answering.trigger_cosine, None
    if found.reference is not None:
        fires = share_under(best, written) if bar is SAME else left_out_share(found.reference, best, written, seed)
    errors = _errors(found, chances[signal], cross_fitted(cosine, seed), signal, seed)
    return calibration, _facts(settings, found, errors, signal, bar.at(written) if bar else None, fires)


def held(settings: "Settings", found: Found) -> Facts:
    """How good the calibration in force is on these questions, on which nothing is fitted."""
    from tidegate.compose import make_rules
    from tidegate.compose_calibration import make_calibration

    calibration, seed = make_calibration(settings), settings.evaluation.seed
    order = next((o for o in calibration.orders if o.method == _method(found.shown)), None) if calibration else None
    signal = order.signal if order else Signal.LEAD
    scored, cosine = signals(found.shown)[signal], cosines(found.shown)
    errors = _errors(
        found,
        None if order is None else read(order.chance, scored.scores),
        None if calibration is None else read(calibration.relevance, cosine.scores),
        signal,
        seed,
    )
    bar = make_rules(settings).trigger_cosine
    fires = share_under(best_cosines(found.shown), bar)
    return _facts(settings, found, errors, signal, bar, fires)


# ---------------------------------------------------------------------------------------------- asking


async def _shown(
    settings: "Settings", version: str, questions: "Sequence[Question]", report: Report
) -> tuple[tuple[Shown, ...], bool]:
    from eval.ranking import contains
    from tidegate.compose import in_process_stages, make_library

    library = make_library(settings)
    stages, found = in_process_stages(settings, library, hurried=False), []
    try:
        for number, question in enumerate(questions):
            report(f"searching {version}", number, len(questions))
            query = (await stages.rewriter.rewrite(question.query, question.history)).query
            k, depth = settings.answering.k, settings.rerank.depth
            got, _ = await search(query, question.scope, version, k, Mode.HYBRID, stages, depth)
            passages = [{"doc_id": hit.chunk.source.doc_id, "quote": hit.chunk.text} for hit in got.hits]
            relevant = tuple(float(any(contains(p, a) for a in question.evidence)) for p in passages)
            found.append(Shown(got.hits, relevant))
        report(f"searching {version}", len(questions), len(questions))
    finally:
        library.close()
    return tuple(found), _listwise(stages.reranker, _method(found))


def _listwise(reranker: Reranker | None, method: str) -> bool:
    """False where the scorer that gave the hits of `method` their scores says that they mean something alone."""
    scorer = getattr(reranker, "scorer", None) or getattr(reranker, "engine", None)
    return scorer is None or scorer.tag != method or bool(scorer.listwise)


def twin(settings: "Settings", version: str) -> str | None:
    """The newest version of the same passages that was built with the bundled encoder; None when there is none."""
    from tidegate.compose import make_registry

    registry = make_registry(settings)
    texts = (registry.folder(version) / "texts.npy").read_bytes()
    bundled = [v.id for v in registry.versions() if v.embedder.startswith(f"{REFERENCE}-")]
    return next((v for v in reversed(bundled) if (registry.folder(v) / "texts.npy").read_bytes() == texts), None)


# ---------------------------------------------------------------------------------------------- arrays


def cosines(shown: Sequence[Shown]) -> Scored:
    """The cosine of every passage that has one."""
    known = [{i: hit.cosine for i, hit in enumerate(each.hits) if hit.cosine is not None} for each in shown]
    return _scored(shown, known)


def signals(shown: Sequence[Shown]) -> dict[Signal, Scored]:
    """Score and lead of every passage that was ranked by the method that ranked the first one."""
    own = [[place for place, hit in enumerate(each.hits) if hit.method == each.hits[0].method] for each in shown]
    asked = list(zip(shown, own, strict=True))
    leads = [{place: lead(each.hits, place) for place in places} for each, places in asked]
    scores = [{place: each.hits[place].score for place in places} for each, places in asked]
    return {Signal.LEAD: _scored(shown, leads), Signal.SCORE: _scored(shown, scores)}


def best_cosines(shown: Sequence[Shown]) -> Floats:
    """[n_questions] the best cosine, which the trigger looks at; 1 where there is none, because that is not thin."""
    return np.array([max((h.cosine for h in each.hits if h.cosine is not None), default=1.0) for each in shown])


def _scored(shown: Sequence[Shown], values: Sequence[Mapping[int, float]]) -> Scored:
    """The values by place, with what they are to mean."""
    rows = [
        (value, each.relevant[place], number)
        for number, (each, by_place) in enumerate(zip(shown, values, strict=True))
        for place, value in by_place.items()
    ]
    if not rows:
        raise BadRequest("No question found a passage whose score is known: there is nothing to calibrate.", "version")
    scores, relevant, question = (np.array(column) for column in zip(*rows, strict=True))
    return Scored(scores.astype(np.float64), relevant.astype(np.float64), question.astype(np.int64))


# ---------------------------------------------------------------------------------------------- facts


def _errors(
    found: Found, ranked: Floats | None, by_cosine: Floats | None, signal: Signal, seed: int
) -> dict[str, Error | None]:
    """The errors that are told: of scores taken for chances, of chances, and of those of passages that stand first."""
    order, cosine = signals(found.shown), cosines(found.shown)
    scores = order[Signal.SCORE]
    errors: dict[str, Error | None] = {
        "cosine as it is": calibration_error(np.clip(cosine.scores, 0, 1), cosine, seed),
        "score as a log-odds": calibration_error(1 / (1 + np.exp(-scores.scores)), scores, seed),
    }
    for name, chances, scored in (("cosine", by_cosine, cosine), (signal.value, ranked, order[signal])):
        what = f"{name}, calibrated"
        errors[what] = None if chances is None else calibration_error(chances, scored, seed)
        first = np.flatnonzero(np.diff(scored.question, prepend=-1))
        errors[f"{what}, first passage"] = (
            None if chances is None else calibration_error(chances[first], scored.at(first), seed)
        )
    return errors


def _facts(
    settings: "Settings",
    found: Found,
    errors: Mapping[str, Error | None],
    signal: Signal,
    bar: float | None,
    fires: float | None,
) -> Facts:
    written, relevant = settings.answering.trigger_cosine, [r for each in found.shown for r in each.relevant]
    return Facts(
        passages=len(relevant),
        relevant=float(np.mean(relevant)),
        errors=errors,
        signal=signal.value,
        bar=bar,
        fires_as_written=share_under(best_cosines(found.shown), written),
        fires=fires,
        fires_reference=None if found.reference is None else share_under(found.reference, written),
    )


def _method(shown: Sequence[Shown]) -> str:
    """The method that ranked the first passage of a question; they are all ranked alike."""
    return next((each.hits[0].method for each in shown if each.hits), "")
