"""What becomes of an answer while a canary runs: one observation, on the right side, whatever the answer came to."""

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from domain.errors import NotFound, StageFailed, UpstreamInterrupted
from domain.naming import Naming
from domain.releases import Observation, Rollout
from domain.types import StopReason
from eval.canary import LiveRules, weigh
from eval.client import Client, Failure
from serving.api import create_app
from serving.observing import WAITING, Observer
from serving.service import Service
from serving.telemetry import Prometheus
from tests.fakes import PUBLIC, FakeObservations, FakeRetriever, ReversingReranker, ScriptedGenerator, hits
from tests.serving.service import BELL, TIDE, FakeRegistry, Leaver, SilentGenerator, client, post, service, soon

QUESTION = {"question": "When does the gate open?"}
ALL, NONE = 1 - 1e-12, 1e-12  # shares that give every, or no session to the canary
FAILED = {"success": 0.0, "within_slo": 0.0, "answered": 0.0, "grounded": 0.0, "citations_resolved": 0.0}
GOOD = dict.fromkeys(FAILED, 1.0)


def observed(share: float = ALL, **changes: Any) -> tuple[Service, FakeObservations]:
    """A service with canary v2 of stable v1, begun at revision 5, and what it observes."""
    kept = changes.pop("observations", FakeObservations())
    registry = FakeRegistry(Rollout("v1", "v2", share, revision=7, began=5))
    return service(registry=registry, observations=kept, wall=lambda: 1000.0, **changes), kept


async def one(kept: FakeObservations, count: int = 1) -> Observation:
    """The last observation, when there are as many as there should be."""
    assert await soon(lambda: sum(map(len, kept.log.values())) >= count)
    assert {key: len(value) for key, value in kept.log.items()} == {("v2", 5): count}
    return kept.log["v2", 5][-1]


async def test_a_canaried_answer_is_observed_with_the_same_question_on_stable() -> None:
    retriever = FakeRetriever(hits(TIDE, BELL))
    of, kept = observed(retriever=retriever)
    body = (await post(of, "/v1/answers", QUESTION)).json()
    seen = await one(kept)
    assert (seen.trace_id, seen.at, seen.version) == (body["trace_id"], 1000.0, "v2")
    assert seen.values == GOOD
    assert seen.paired == {"found": (1.0, 1.0), "coverage": (0.5, 0.5), "overlap": (1.0, 1.0)}
    assert [version for _, _, version, _ in retriever.asked] == ["v2", "v1"]


async def test_an_answer_from_stable_is_observed_and_searched_once() -> None:
    retriever = FakeRetriever(hits(TIDE))
    of, kept = observed(NONE, retriever=retriever)
    await post(of, "/v1/answers", QUESTION)
    seen = await one(kept)
    assert (seen.version, seen.values, seen.paired) == ("v1", GOOD, {})
    assert len(retriever.asked) == 1


async def test_a_stream_is_observed_as_well() -> None:
    of, kept = observed()
    await post(of, "/v1/answers", QUESTION | {"stream": True})
    seen = await one(kept)
    assert (seen.version, seen.values) == ("v2", GOOD)
    assert set(seen.paired) == {"found", "coverage", "overlap"}


async def test_without_a_canary_or_with_a_chosen_version_nothing_is_observed() -> None:
    kept = FakeObservations()
    await post(service(observations=kept), "/v1/answers", QUESTION)
    of, _ = observed(observations=kept)
    for version in ("v1", "v2"):
        await post(of, "/v1/answers", QUESTION, X_Index_Version=version)
    await asyncio.sleep(0.05)
    assert kept.log == {}


@pytest.mark.parametrize("version", [None, "v1", "v2"])
async def test_what_an_evaluation_asks_a_served_address_is_not_observed(version: str | None) -> None:
    of, kept = observed()
    async with Client.in_process(create_app(of), version) as evaluation:
        assert not isinstance(await evaluation.ask("When does the gate open?", PUBLIC), Failure)
    await asyncio.sleep(0.05)
    assert kept.log == {}


@pytest.mark.parametrize("stream", [False, True])
async def test_no_header_or_body_of_a_client_chooses_the_trace_of_an_observation(stream: bool) -> None:
    of, kept = observed()
    headers = {"X-Request-Id": "mine", "X-Trace-Id": "mine", "Traceparent": "mine"}
    async with client(of) as http:
        for _ in range(2):
            body = QUESTION | {"stream": stream, "session": {"id": "mine"}}
            reply = await http.post("/v1/answers", json=body, headers=headers)
            assert reply.headers["X-Request-Id"] == "mine"
            refused = await http.post("/v1/answers", json=QUESTION | {"trace_id": "mine"})
            assert refused.status_code == 400
    await one(kept, 2)
    first, second = (seen.trace_id for seen in kept.log["v2", 5])
    assert "mine" not in {first, second}
    assert first != second


async def test_feedback_with_a_trace_of_somebody_else_or_of_nobody_adds_no_request() -> None:
    of, kept = observed()
    async with client(of) as http:
        answered = (await http.post("/v1/answers", json=QUESTION)).json()
        for trace_id in (answered["trace_id"], answered["trace_id"], "made-up"):
            await http.post("/v1/feedback", json={"trace_id": trace_id, "helpful": True})
    await one(kept, 3)  # the answer, what was said about it once, and what was said about nothing
    evidence = weigh(kept.read("v2", 5), of.registry.rollout(), 0.0, LiveRules())
    feedback = next(metric for metric in evidence.metrics if metric.metric == "feedback")
    assert (evidence.canary_n, evidence.stable_n, feedback.canary_n, feedback.stable_n) == (1, 0, 1, 0)


async def test_an_answer_by_a_version_that_stood_in_counts_for_neither_side() -> None:
    of, kept = observed(retriever=FakeRetriever(hits(TIDE), version="v1", notes=("v2 is not open here yet",)))
    await post(of, "/v1/answers", QUESTION)
    seen = await one(kept)
    assert (seen.version, seen.paired) == ("", {})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {"retriever": FakeRetriever(error=StageFailed("It broke.", "retriever"))},
        {"retriever": FakeRetriever(error=NotFound("Version v2 is gone."))},
        {"generator": ScriptedGenerator(("The gate ",), error=UpstreamInterrupted("cut", "generator"))},
        {"generator": ScriptedGenerator(("The gate ",), error=KeyError("a bug"))},  # type: ignore[arg-type]
        {"generator": ScriptedGenerator((), error=KeyError("a bug"))},  # type: ignore[arg-type]
    ],
    ids=["search", "version", "broken off", "bug", "bug before the first text"],
)
async def test_a_failure_of_ours_is_zero_in_everything(changes: dict[str, Any], stream: bool) -> None:
    of, kept = observed(**changes)
    await post(of, "/v1/answers", QUESTION | {"stream": stream})
    seen = await one(kept)
    assert (seen.version, seen.values, seen.paired) == ("v2", FAILED, {})


async def test_what_the_caller_got_wrong_is_not_observed() -> None:
    of, kept = observed()
    await post(of, "/v1/answers", {"question": "\x00"})
    await post(of, "/v1/answers", {"question": "When?", "k": -1})
    await asyncio.sleep(0.05)
    assert kept.log == {}


async def test_a_client_that_leaves_is_not_observed() -> None:
    generator, leaver = SilentGenerator(("The gate ",)), Leaver()
    of, kept = observed(generator=generator)
    asking = asyncio.create_task(leaver.ask(of, "/v1/answers", QUESTION | {"stream": True}))
    await generator.started.wait()
    leaver.leave()
    await asking
    await asyncio.sleep(0.05)
    assert kept.log == {}


async def test_a_slow_answer_is_a_success_outside_its_time() -> None:
    times = iter(range(1000))
    of, kept = observed(clock=lambda: float(next(times)), live_slo_ms=2000.0)  # a second at every look
    await post(of, "/v1/answers", QUESTION)
    assert (await one(kept)).values == GOOD | {"within_slo": 0.0}


@pytest.mark.parametrize(
    ("generator", "expected"),
    [
        (ScriptedGenerator(("It opens [S1]. It shuts [S9].",)), {"grounded": 0.0, "citations_resolved": 0.0}),
        (ScriptedGenerator(("It opens.",)), {"grounded": 0.0, "citations_resolved": 0.0}),
        (ScriptedGenerator(("It opens [S1]. It shuts.",)), {"grounded": 0.0}),
        (
            ScriptedGenerator(("The library does not say.",), StopReason.NOT_COVERED),
            {"answered": 0.0, "grounded": None, "citations_resolved": None},
        ),
        (ScriptedGenerator(("It opens [S1",), StopReason.LENGTH), {"answered": 0.0}),
    ],
    ids=["a marker that names nothing", "no marker", "half of it", "declined", "cut short"],
)
async def test_the_values_say_how_an_answer_ended(
    generator: ScriptedGenerator, expected: dict[str, float | None]
) -> None:
    of, kept = observed(generator=generator)
    await post(of, "/v1/answers", QUESTION)
    values = (await one(kept)).values
    assert {name: values[name] for name in expected} == expected
    assert values["success"] == 1.0


async def test_an_answer_whose_reranker_failed_has_no_fair_comparison() -> None:
    of, kept = observed(reranker=ReversingReranker(StageFailed("It broke.", "reranker")))
    await post(of, "/v1/answers", QUESTION)
    seen = await one(kept)
    assert (seen.version, seen.paired) == ("v2", {})


async def test_nothing_that_anybody_wrote_is_kept() -> None:
    of, kept = observed(naming=Naming(()))
    await post(of, "/v1/answers", {"question": "Zebrawood kiln?", "session": {"id": "somebody"}})
    seen = await one(kept)
    assert all(isinstance(value, float) for value in seen.values.values())
    assert not [word for word in ("ebrawood", "gate", "somebody", "tides") if word in repr(seen)]


@dataclass
class Stuck(FakeObservations):
    """A log whose disk hangs until it is released, or which breaks."""

    release: threading.Event = field(default_factory=threading.Event)
    broken: bool = False

    def write(self, canary: str, began: int, observation: Observation) -> bool:
        if self.broken:
            raise OSError("broken")
        self.release.wait(10)
        return super().write(canary, began, observation)


async def test_a_log_that_hangs_delays_no_answer() -> None:
    kept = Stuck()
    of, _ = observed(observations=kept)
    for _ in range(3):
        assert (await post(of, "/v1/answers", QUESTION)).status_code == 200
    kept.release.set()
    await one(kept, 3)


async def test_what_could_not_even_wait_to_be_written_is_told_to_the_log_of_its_canary() -> None:
    kept = Stuck()
    of, _ = observed(observations=kept)
    observer, rollout = Observer(of), of.registry.rollout()
    for i in range(WAITING + 3):
        observer.keep(rollout, Observation(f"t{i}", 1.0, "v1", {}))
    kept.release.set()
    assert await soon(lambda: kept.log.keys() == {("v2", 5)} and len(kept.log["v2", 5]) == WAITING)
    assert kept.losses == {("v2", 5): 3}


@pytest.mark.parametrize("kept", [FakeObservations(full=True), Stuck(broken=True)], ids=["full", "broken"])
async def test_lost_observations_are_counted_and_told_once(
    kept: FakeObservations, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = Prometheus()
    of, _ = observed(observations=kept, telemetry=telemetry)
    async with client(of) as http:
        for _ in range(2):
            assert (await http.post("/v1/answers", json=QUESTION)).status_code == 200
    assert await soon(lambda: b"tidegate_observations_lost_total 2.0" in telemetry.exposition())
    assert len([m for m in caplog.messages if "Observations of the canary are lost" in m]) == 1


async def test_observations_are_counted_by_the_version_that_answered() -> None:
    telemetry = Prometheus()
    of, kept = observed(telemetry=telemetry)
    await post(of, "/v1/answers", QUESTION)
    await one(kept)
    assert await soon(lambda: b'tidegate_observations_total{version="v2"} 1.0' in telemetry.exposition())
    assert b'tidegate_shadow_searches_total{result="compared"} 1.0' in telemetry.exposition()
