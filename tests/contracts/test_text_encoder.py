"""What every encoder of a caller's texts promises."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from domain.ports import TextEncoder
from domain.types import TextSide
from retrieval.encoding import AT_A_TIME
from serving.deployments.retriever import RetrieverHost
from serving.noop import NoOpLibrary
from tests.contracts.test_retriever import library
from tests.fakes import FakeRetriever

ENCODERS: dict[str, Callable[[Path], tuple[TextEncoder, str]]] = {
    "library": lambda path: ((case := library(path)).libraries[0], case.version),
    "noop": lambda path: (NoOpLibrary(), "noop"),
    "fake": lambda path: (FakeRetriever(), "v1"),
}
SIDES = list(TextSide)


@pytest.fixture(params=sorted((*ENCODERS, "host")))
async def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[TextEncoder, str]:
    if request.param == "host":
        known = library(tmp_path)
        host = RetrieverHost(lambda: known.libraries[0], refresh_s=3600)
        request.addfinalizer(known.libraries[0].close)
        request.addfinalizer(host.close)
        return host, known.version
    encoder, version = ENCODERS[request.param](tmp_path)
    if request.param == "library":
        await encoder.refresh()  # type: ignore[attr-defined]  # the library alone has it
        request.addfinalizer(encoder.close)  # type: ignore[attr-defined]  # noqa: PT021
    return encoder, version


@pytest.mark.parametrize("side", SIDES)
async def test_every_text_gets_a_row_of_unit_length_in_their_order(
    case: tuple[TextEncoder, str], side: TextSide
) -> None:
    encoder, version = case
    texts = [f"The pump of gate {number}." for number in range(2 * AT_A_TIME + 1)]
    whole = await encoder.encode(texts, version, side)
    rows = np.stack([np.frombuffer(row, "<f4") for row in whole.rows])
    assert rows.shape == (len(texts), whole.dimensions)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    for place in (0, AT_A_TIME, 2 * AT_A_TIME):
        alone = await encoder.encode([texts[place]], version, side)
        assert np.allclose(np.frombuffer(alone.rows[0], "<f4"), rows[place], atol=1e-6)
    assert whole.version == version
    assert whole.encoder


@pytest.mark.parametrize("side", SIDES)
async def test_no_text_is_no_row(case: tuple[TextEncoder, str], side: TextSide) -> None:
    encoder, version = case
    assert (await encoder.encode([], version, side)).rows == ()
