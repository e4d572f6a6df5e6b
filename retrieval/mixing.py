"""The reranker that reads: what a cross-encoder says of each hit, mixed with what was known before it read.

A small model that read much is better than the first stage on what it has seen, and worse elsewhere; the mix is better
on both. Where the model cannot read - another script, no time - it has no say. Batches and threads are pair_engine.py.
"""

import asyncio
import re
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from domain.errors import ConfigError
from domain.ports import PairScorer
from domain.types import Hit, Query, Reranking
from retrieval.model_folder import read_json
from retrieval.pair_engine import PairEngine
from retrieval.pair_features import Floats
from retrieval.pair_requests import Reading
from retrieval.reranking import passage, reorder, standardised

LATIN = "latin"
_LETTERS = re.compile(r"[^\W\d_]+")
_LATIN_LETTERS = re.compile(
    "[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a]+"
)


@dataclass(frozen=True, slots=True)
class Reader:
    """What a model folder says about itself: the share 0..1 of its reading in the mix, and the script it reads; an
    empty one is any."""

    share: float
    script: str


def reader_of(folder: Path) -> Reader:
    """What config.json says; a foreign cross-encoder says nothing, reads everything and has the whole say."""
    config = read_json(folder / "config.json")
    share, script = config.get("reading_share", 1.0), config.get("script", "")
    if not isinstance(share, int | float) or not isfinite(share) or not 0 <= share <= 1 or script not in ("", LATIN):
        raise ConfigError(
            f"{folder / 'config.json'} has reading_share {share!r} and script {script!r}, a number from 0 to 1 and "
            f"{LATIN!r} or nothing are wanted: write the model anew with `tidegate train-reranker`."
        )
    return Reader(float(share), script)


class ReadingReranker:
    """Reranker over the engine: the best `depth` hits are read, the rest keeps its order below.

    A read hit scores (1 - share) * z(prior) + share * z(logit), each standardised over the hits that were read; with
    `share` 1 its logit. The prior is a listwise scorer's, or the first stage's score where there is none. A passage in
    a script that the model does not read gets from the reading what the prior thinks of it, with `share` 1 as the logit
    that lies as far from the others' mean. A question in such a script leaves the prior alone, whose name the hits then
    bear where a score is a logit otherwise. A hit that was not read in time stays below, in the first stage's order.
    """

    def __init__(
        self,
        engine: PairEngine,
        depth: int,
        executor: Executor,
        *,
        share: float = 1.0,
        script: str = "",
        prior: PairScorer | None = None,
    ) -> None:
        self.engine, self._depth, self._executor = engine, depth, executor
        self._share, self._script, self._prior = share, script, prior
        told = prior.tag if prior else "first-stage"
        self.tag = engine.tag if share == 1 else f"{share:g}*{engine.tag}+{told}"
        self._unread = told if share == 1 else self.tag  # of hits that nobody read: no logit under the engine's name

    async def rerank(self, query: Query, hits: Sequence[Hit], within_s: float | None = None) -> Reranking:
        """A permutation of `hits`: never more, never fewer. The notes say what was not read, or only in part."""
        head, tail = tuple(hits[: self._depth]), tuple(hits[self._depth :])
        if not head:
            return Reranking(())
        if not self._reads(query.text):
            prior = await self._prior_of(query.text, head)
            note = f"the reranker reads {self._script} script and the question is in another: ordered without reading"
            return Reranking((*reorder(head, prior.tolist(), self._unread), *_below(tail, len(head))), (note,))
        reading = await self.engine.read(query.text, head, within_s)
        places = [place for place, logit in enumerate(reading.logits) if logit is not None]
        read = tuple(head[place] for place in places)
        scores = await self._scores(query.text, head, reading, places)
        unread = tuple(hit for hit, logit in zip(head, reading.logits, strict=True) if logit is None)
        best = reorder(read, scores.tolist(), self.tag)
        notes = tuple(_notes(reading, len(unread), self.engine.limit_s(within_s)))
        return Reranking((*best, *_below((*unread, *tail), len(best))), notes)

    def check(self) -> None:
        """Raises RuntimeError when the engine has ended."""
        self.engine.check()

    async def _scores(self, question: str, head: Sequence[Hit], reading: Reading, places: Sequence[int]) -> Floats:
        """float64 [len(places)]: the mix over the hits that were read."""
        logits = np.array([reading.logits[place] for place in places], np.float64)
        foreign = np.array([not self._reads(passage(head[place].chunk)) for place in places], np.bool_)
        if not places or (self._share == 1 and not foreign.any()):
            return logits
        prior = (await self._prior_of(question, head))[list(places)]
        if self._share == 1:
            return as_logits(prior, logits, foreign)
        return mixed(prior, logits, foreign, self._share)

    async def _prior_of(self, question: str, head: Sequence[Hit]) -> Floats:
        """float64 [len(head)], higher is better."""
        if self._prior is None:
            return np.array([hit.score for hit in head], np.float64)
        loop = asyncio.get_running_loop()
        return np.array(await loop.run_in_executor(self._executor, self._prior.score, question, head), np.float64)

    def _reads(self, text: str) -> bool:
        return readable(text, self._script)


def readable(text: str, script: str) -> bool:
    """True unless more than half of the text's letters are of a script that the model has not learned."""
    if script != LATIN or text.isascii():
        return True
    letters = sum(map(len, _LETTERS.findall(text)))
    return 2 * sum(map(len, _LATIN_LETTERS.findall(text))) >= letters


def mixed(prior: Floats, logits: Floats, foreign: NDArray[np.bool_], share: float) -> Floats:
    """float64 [n_hits]: (1 - share) * prior + share * logits, each standardised; `foreign` hits were not understood and
    get from the reading what the prior thinks of them."""
    expected = _z(prior)
    reads = expected.copy()
    reads[~foreign] = _z(logits[~foreign])
    return (1 - share) * expected + share * reads


def as_logits(prior: Floats, logits: Floats, foreign: NDArray[np.bool_]) -> Floats:
    """float64 [n_hits]: the logits, and for `foreign` hits the ones that `mixed` with the share 1 places them by."""
    if foreign.all():
        return _z(prior)
    placed, known = logits.copy(), logits[~foreign]
    placed[foreign] = known.mean() + (known.std() or 1.0) * _z(prior)[foreign]
    return placed


def _z(values: Floats) -> Floats:
    return standardised(values.reshape(-1, 1))[:, 0]


def _below(hits: Sequence[Hit], above: int) -> tuple[Hit, ...]:
    """The hits as they are, ranked from `above` + 1 on."""
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, above + 1))


def _notes(reading: Reading, unread: int, limit_s: float) -> list[str]:
    notes = []
    if unread:
        were = "was" if unread == 1 else "were"
        within = f"{limit_s * 1000:.0f} ms"
        notes.append(f"{unread} of {len(reading.logits)} hits {were} not read within {within}: fused order kept below")
    if reading.truncated:
        passages = "1 passage was" if reading.truncated == 1 else f"{reading.truncated} passages were"
        notes.append(f"{passages} read only in part")
    return notes
