"""The attack suite under some settings: what is kept, what is tried again, what is told of a generator that is led."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from eval.attack_suite import attacks
from tests.stubs.openai import OpenAIStub
from tests.stubs.replies import Reply
from tests.tidegate.tiny import settings
from tidegate.attacks import header, recalled, tried
from tidegate.settings import Settings

ALL = {attack.id for attack in attacks()}
LED, HONEST = Reply(("The P3 may be run at 900 bar [S3].",)), Reply(("The P3 pump is rated for 40 bar [S1].",))
REFUSED = Reply(refuse=(400, "bad_request"))


@dataclass
class Steps:
    """A report that remembers of how many attacks it was told."""

    totals: list[int] = field(default_factory=list)

    def __call__(self, step: str, done: int, total: int) -> None:
        assert step == "trying attacks"
        self.totals.append(total)


def hosted(folder: Path, stub: OpenAIStub) -> Settings:
    return settings(
        folder,
        generation__backend="openai_compatible",
        generation__model_id="m",
        generation__endpoint_url=f"{stub.url}/v1",
        generation__allow_uncached="true",
        generation__attempts="1",
        evaluation__workers="1",
    )


@pytest.fixture
def led(tmp_path: Path) -> Iterator[tuple[Settings, OpenAIStub]]:
    """Settings of a model that fails five times and then says what four of the six families want."""
    with OpenAIStub([*[REFUSED] * 5, LED]) as stub:
        yield hosted(tmp_path, stub), stub


async def test_the_default_generator_resists_and_is_not_tried_twice_until_wanted_fresh(tmp_path: Path) -> None:
    ours, steps = settings(tmp_path), Steps()
    first = await tried(ours, "v1", steps)
    assert (set(first.values), set(first.values.values())) == (ALL, {1.0})
    assert (len(steps.totals), bool(first.finished_at)) == (len(ALL), True)
    assert await tried(ours, "v1", steps) == first
    assert len(steps.totals) == len(ALL), "answers are kept"
    fresh = await tried(ours, "v1", steps, fresh=True)
    assert (fresh.values, len(steps.totals)) == (first.values, 2 * len(ALL))
    assert fresh.finished_at > first.finished_at


async def test_the_configured_generator_is_the_one_that_is_tried_and_what_never_answered_is_tried_again(
    led: tuple[Settings, OpenAIStub],
) -> None:
    ours, stub = led
    steps = Steps()
    first = await tried(ours, "v1", steps)
    values = list(first.values.values())
    assert (values.count(None), first.finished_at) == (5, ""), "no answer is neither good nor bad"
    assert recalled(ours, "v1") is None, "half a suite is none"
    again = await tried(ours, "v1", steps)
    assert (len(stub.requests), steps.totals[-1]) == (len(ALL) + 5, 5), "only those"
    # Four families of 21 attacks want 900 bar; two want an address and a code, which this model does not say.
    values = list(again.values.values())
    assert (values.count(0.0), values.count(1.0), bool(again.finished_at)) == (84, 42, True)
    assert recalled(ours, "v1") == again.values


async def test_an_answer_cut_short_counts_only_when_it_did_harm(tmp_path: Path) -> None:
    cut = [Reply(chunks, "tool_use") for chunks in (("The P3 pump is", " rated"), (*LED.chunks, " And it"))]
    with OpenAIStub([*cut, HONEST]) as stub:
        values = list((await tried(hosted(tmp_path, stub), "v1", Steps())).values.values())
    assert values[:2] == [None, 0.0]
    assert set(values[2:]) == {1.0}


def test_other_settings_or_another_version_have_answers_of_their_own(tmp_path: Path) -> None:
    ours, other = settings(tmp_path), settings(tmp_path, citations__unsupported="drop")
    assert len({header(ours, "v1"), header(ours, "v2"), header(other, "v1")}) == 3
