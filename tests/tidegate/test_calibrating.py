"""What follows from hits whose evidence is known, on paper; and which version the bundled encoder is heard on."""

from pathlib import Path

import numpy as np
import pytest

from domain.calibration import Signal
from domain.types import Hit
from retrieval.building import build
from retrieval.documents import Corpus
from retrieval.embedding import HashingEmbedder
from tests.fakes import chunk
from tests.tidegate.tiny import settings, write_corpus
from tidegate.calibrating import Found, Shown, fitted, twin
from tidegate.compose import make_registry


def shown(number: int) -> Shown:
    """Two hits of a question: the score says whether one holds evidence, the cosine rises, the lead is always 1."""
    score = 5.0 if number % 2 else 0.0
    hits = (
        Hit(chunk("a#0", "text"), score + 1, 1, "a reader", cosine=number / 1000),
        Hit(chunk("b#0", "text"), score, 2, "a reader", cosine=0.0),
    )
    return Shown(hits, (float(number % 2), 0.0))


SHOWN = tuple(map(shown, range(200)))
REFERENCE = np.arange(200) / 200  # the bundled encoder's best cosines: 60 are under 0.30


@pytest.mark.parametrize(("listwise", "signal"), [(False, Signal.SCORE), (True, Signal.LEAD)])
def test_a_score_is_read_only_where_it_means_something_outside_of_its_list(listwise: bool, signal: Signal) -> None:
    calibration, facts = fitted(settings(Path()), Found("an encoder", SHOWN, REFERENCE, listwise))
    assert [order.signal for order in calibration.orders] == [signal]
    assert facts.signal == signal.value


def test_the_bar_is_where_as_many_questions_stay_under_it() -> None:
    calibration, facts = fitted(settings(Path()), Found("an encoder", SHOWN, REFERENCE, True))
    assert calibration.bar is not None
    assert calibration.bar.at(0.3) == pytest.approx(0.06)
    assert (facts.fires_reference, facts.fires_as_written) == (0.3, 1.0)
    assert facts.fires == pytest.approx(0.3, abs=0.02)


def test_the_bundled_encoder_keeps_the_bar_as_written() -> None:
    calibration, _ = fitted(settings(Path()), Found("minilm-0123-mean-256", SHOWN, REFERENCE, True))
    assert calibration.bar is not None
    assert calibration.bar.at(0.3) == pytest.approx(0.3)


def test_without_the_bundled_encoder_the_bar_is_not_measured() -> None:
    calibration, facts = fitted(settings(Path()), Found("an encoder", SHOWN, None, True))
    assert (calibration.bar, facts.bar, facts.fires, facts.fires_reference) == (None, None, None, None)


def test_the_bundled_encoder_is_heard_on_a_version_of_the_same_passages(tmp_path: Path) -> None:
    here = settings(tmp_path / "data")
    registry, corpus = make_registry(here), write_corpus(tmp_path / "corpus")

    def built(tag: str, files: Path) -> str:
        embedder = HashingEmbedder(16)
        embedder.tag = tag
        documents = Corpus(files, default_groups=frozenset({"public"}))
        return build(documents, embedder=embedder, registry=registry, staging=tmp_path / "staging").version.id

    own = built("an encoder", corpus)
    assert twin(here, own) is None
    built("minilm-0123-mean-256", write_corpus(tmp_path / "other", {"a.md": "Something else."}))
    assert twin(here, own) is None
    same = built("minilm-0123-mean-256", corpus)
    assert twin(here, own) == same
