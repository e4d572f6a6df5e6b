"""A question set through a client: in order, complete, repeatable, and nothing left running."""

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from domain.errors import ConfigError, StageFailed
from eval.client import Failure
from eval.harness import ask, each, observe, score
from eval.journal import Header, Journal, read
from eval.observed import Limits
from eval.questions import Anchor, Question, fingerprint
from tests.eval.replies import QUESTION, answer, means, passage

QUESTIONS = tuple(
    replace(QUESTION, id=f"q{i}", query=f"question {i}", evidence=(Anchor(f"d{i}", "A sentence."),)) for i in range(20)
)
METRICS = ("recall@1", "answered", "success")


@dataclass
class FakeClient:
    """Answers each question from its own document after a random while; fails those in `failing`."""

    failing: frozenset[str] = frozenset()
    versions: tuple[str, ...] = ("v1",)
    error: Exception | None = None
    seed: int = 1
    asked: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    running: int = 0
    most: int = 0

    async def ask(self, question: str, scope: Any, history: Any = ()) -> Any:
        self.asked.append(question)
        self.running += 1
        self.most = max(self.most, self.running)
        number = int(question.split()[1])
        try:
            await asyncio.sleep(Random(f"{self.seed}{question}").random() / 100)
            if self.error:
                raise self.error
        finally:
            self.running -= 1
        self.finished.append(question)
        if f"q{number}" in self.failing:
            return Failure("timeout", f"question {number} was too slow")
        return answer(passage(f"d{number}"), index_version=self.versions[number % len(self.versions)])


async def run(
    client: FakeClient, questions: Any = QUESTIONS, names: Any = METRICS, limits: Limits | None = None, **more: Any
) -> Any:
    """Asked, observed and scored, as a version is measured."""
    replies = await ask(client, questions, **more)  # type: ignore[arg-type]  # a fake of the client
    observed = observe(questions, replies, limits)
    return score(observed, names), observed


async def test_results_stand_in_the_order_of_the_questions_whatever_finished_first() -> None:
    client = FakeClient()
    scorecard, observed = await run(client, workers=5)
    assert client.finished != [q.query for q in QUESTIONS], "the fake must finish out of order, or this shows nothing"
    assert [o.question for o in observed] == list(QUESTIONS)
    assert [o.response["consulted"][0]["doc_id"] for o in observed] == [f"d{i}" for i in range(20)]
    assert all(list(per) == [q.id for q in QUESTIONS] for per in scorecard.values.values())


async def test_two_runs_are_identical_whatever_the_timing() -> None:
    runs = [await run(FakeClient(frozenset({"q3"}), seed=seed), workers=workers) for seed, workers in ((1, 2), (2, 7))]
    timeless = [(scorecard, [replace(o, latency_ms=None) for o in observed]) for scorecard, observed in runs]
    assert repr(timeless[0]) == repr(timeless[1])


async def test_every_reply_has_the_time_it_took_and_the_limits_it_is_held_to() -> None:
    limits = Limits(slo_ms=0.001, cost_cap_usd=1.0)
    scorecard, observed = await run(FakeClient(), names=("within_slo",), limits=limits)
    assert all(o.latency_ms > 0 and o.limits == limits for o in observed)
    assert set(scorecard.values["within_slo"].values()) == {0.0}, "nobody answers within a microsecond"


async def test_at_most_so_many_questions_are_under_way_and_progress_counts_each() -> None:
    client, told = FakeClient(), list[tuple[int, int]]()
    await run(client, workers=3, progress=lambda done, total: told.append((done, total)))
    assert client.most == 3
    assert told == [(i, 20) for i in range(1, 21)]


async def test_a_failed_request_stays_in_and_scores_zero() -> None:
    scorecard, observed = await run(FakeClient(frozenset({"q3", "q7"})))
    assert len(observed) == 20
    assert scorecard.values["recall@1"]["q3"] == scorecard.values["answered"]["q7"] == 0
    # 18 of 20 were answered from the right document.
    assert means(scorecard) == {"recall@1": (0.9, 20), "answered": (0.9, 20), "success": (0.9, 20)}


async def test_when_every_question_fails_there_is_nothing_to_score() -> None:
    everything = frozenset(q.id for q in QUESTIONS)
    with pytest.raises(StageFailed, match="All 20 questions failed, the first with timeout: question 0 was too slow"):
        await run(FakeClient(everything))


async def test_the_scorecard_names_what_answered_and_what_was_asked() -> None:
    scorecard, _ = await run(FakeClient())
    assert (scorecard.version, scorecard.dataset) == ("v1", fingerprint(QUESTIONS))
    mixed, _ = await run(FakeClient(versions=("v2", "v1")))
    assert mixed.version == "v1, v2"


async def test_no_question_is_no_score_and_no_error() -> None:
    scorecard, observed = await run(FakeClient(), ())
    assert (means(scorecard), observed) == ({}, ())


def test_an_unknown_metric_is_no_score_even_where_nothing_was_asked() -> None:
    with pytest.raises(ConfigError, match="no metric 'recal@6' or 'answerd'"):
        score((), ("recal@6", "answerd", "success"))


async def test_a_bug_in_a_metric_comes_out_as_itself() -> None:
    class Hollow(FakeClient):
        async def ask(self, question: str, scope: Any, history: Any = ()) -> Any:
            reply = await super().ask(question, scope, history)
            return {name: value for name, value in reply.items() if name != "consulted"}

    with pytest.raises(KeyError, match="consulted"):
        await run(Hollow(), names=("success", "recall@6"))


async def test_an_exception_comes_out_as_itself_and_ends_the_other_questions() -> None:
    client = FakeClient(error=ConfigError("Nothing answers there."))
    with pytest.raises(ConfigError, match="Nothing answers there"):
        await run(client, workers=4)
    assert client.running == 0
    assert len(client.asked) <= 8, "no question is begun after the first one has failed"


async def test_cancelling_leaves_nothing_running() -> None:
    client = FakeClient()
    before = asyncio.all_tasks()
    task = asyncio.create_task(run(client, workers=4))
    while not client.asked:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert client.running == 0
    assert asyncio.all_tasks() == before


async def test_means_leave_out_who_is_not_eligible_and_metrics_without_anybody() -> None:
    null = replace(QUESTION, id="q1", query="question 1", answer="", type="null", evidence=(), hops=0)
    scorecard, _ = await run(FakeClient(), (QUESTIONS[0], null), ("recall@1", "abstention", "grounded"))
    assert means(scorecard) == {"recall@1": (1.0, 1), "abstention": (0.0, 1), "grounded": (1.0, 2)}
    only: tuple[Question, ...] = (null,)
    assert "recall@1" not in means((await run(FakeClient(), only, ("recall@1",)))[0])


async def test_each_keeps_order_for_any_delays() -> None:
    for seed in range(5):
        random = Random(seed)
        delays = [random.random() / 200 for _ in range(12)]

        async def work(i: int, delays: list[float] = delays) -> int:
            await asyncio.sleep(delays[i])
            return i * i

        assert await each(range(12), work, random.randint(1, 6)) == [i * i for i in range(12)]


# ---------------------------------------------------------------------------------------------- with a journal

HEADER = Header("v1", fingerprint(QUESTIONS), "settings", "code")


async def test_only_what_the_journal_does_not_hold_is_asked(tmp_path: Path) -> None:
    path, told = tmp_path / "key.jsonl", list[tuple[int, int]]()
    undisturbed, _ = await run(FakeClient(frozenset({"q3"})))
    with Journal(path, HEADER) as journal:
        await ask(FakeClient(frozenset({"q3"})), QUESTIONS[:5], journal=journal)  # type: ignore[arg-type]  # a fake
    second = FakeClient()
    with Journal(path, HEADER) as journal:
        resumed, _ = await run(second, journal=journal, progress=lambda *step: told.append(step))
    assert sorted(second.asked) == sorted(q.query for q in QUESTIONS[5:]), "the failed q3 is not asked again"
    assert told == [(i, 20) for i in range(6, 21)]
    assert resumed == undisturbed
    third = FakeClient()
    with Journal(path, HEADER) as journal:
        assert (await run(third, journal=journal))[0] == undisturbed
    assert third.asked == []


async def test_what_was_answered_before_an_error_is_kept(tmp_path: Path) -> None:
    class Leaving(FakeClient):
        async def ask(self, question: str, scope: Any, history: Any = ()) -> Any:
            self.error = ConfigError("Nothing answers there.") if len(self.finished) >= 7 else None
            return await super().ask(question, scope, history)

    with Journal(tmp_path / "key.jsonl", HEADER) as journal, pytest.raises(ConfigError):
        await run(Leaving(), workers=1, journal=journal)
    assert len(read(tmp_path / "key.jsonl", HEADER).replies) == 7


async def test_a_journal_of_nothing_but_failures_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "key.jsonl"
    with Journal(path, HEADER) as journal, pytest.raises(StageFailed):
        await run(FakeClient(frozenset(q.id for q in QUESTIONS)), journal=journal)
    mended = FakeClient()
    with Journal(path, HEADER) as journal:
        scorecard, _ = await run(mended, journal=journal)
    assert len(mended.asked) == 20
    assert means(scorecard)["success"] == (1.0, 20)


async def test_a_new_metric_needs_no_new_asking(tmp_path: Path) -> None:
    with Journal(tmp_path / "key.jsonl", HEADER) as journal:
        replies = await ask(FakeClient(), QUESTIONS, journal=journal)  # type: ignore[arg-type]  # a fake of the client
    stored = read(tmp_path / "key.jsonl", HEADER).replies
    assert stored == replies
    assert means(score(observe(QUESTIONS, stored), ("mrr@3",))) == {"mrr@3": (1.0, 20)}
