"""The watch over a canary: what it does on which evidence, when it must not, and that nothing ends it unnoticed."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.canary import UNDECIDED, Ramp, Step
from domain.errors import NotAdmitted, PointerMoved, StorageError
from domain.releases import (
    Binding,
    Decision,
    Evidence,
    IndexVersion,
    LiveMetric,
    Observation,
    Outcome,
    Rollout,
    Verb,
    Verdict,
)
from domain.releasing import Releases
from tests.fakes import FakeObservations, MemoryRegistry
from tidegate.watching import BLIND_S, REFUSED_S, Look, Lookout, Watch, run, times, told

V1, V2 = (f"v{i:012x}" for i in (1, 2))
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
RAMP = Ramp(shares=(0.05, 0.5), min_requests=2, timeout_s=600)


def verdict(observed: Sequence[Observation], rollout: Rollout, widened_at: float) -> Evidence:
    """PASS while the last observation succeeded, FAIL when it did not, and nothing to say about none."""
    metrics: tuple[LiveMetric, ...] = ()
    if observed:
        outcome = Outcome.PASS if observed[-1].values["success"] else Outcome.FAIL
        metrics = (LiveMetric("success", False, len(observed), 0, 1.0, None, -1, 1, outcome, outcome.name),)
    since = sum(one.at > widened_at for one in observed)
    return Evidence(rollout.canary or "", rollout.stable or "", rollout.began, len(observed), 0, since, metrics)


@dataclass
class Library:
    """A stable version and a canary, with a clock that stands still until it is told to go on."""

    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    observations: FakeObservations = field(default_factory=FakeObservations)
    time: datetime = NOON
    settings: str = "s"

    def now(self) -> datetime:
        return self.time

    def go_on(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)

    def served(self, version: str, baseline: str | None) -> Binding:
        return Binding(version, "d", self.settings, "g", "c", baseline)

    @property
    def releases(self) -> Releases:
        return Releases(self.registry, self.served, self.now)

    @property
    def lookout(self) -> Lookout:
        return Lookout(self.registry, self.observations, verdict, RAMP, self.now)

    def watch(self, forward: bool = False) -> Watch:
        return Watch(self.lookout, self.releases, forward=forward)

    def see(self, *success: float) -> None:
        """So many requests on the canary, a millisecond apart."""
        rollout = self.registry.rollout()
        for value in success:
            self.go_on(0.001)
            one = Observation(f"t{self.time:%S%f}", self.time.timestamp(), V2, {"success": value})
            self.observations.write(rollout.canary or "", rollout.began, one)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """V1 is stable, V2 is a canary that nobody gave leave to go forward by itself."""
    library = Library()
    for id, baseline in ((V1, None), (V2, V1)):
        library.registry.publish(tmp_path, IndexVersion(id, None, "", "", "", 1, 1, ""))
        passed = (Verdict("recall@6", Outcome.PASS, ""),)
        library.registry.record(Decision(library.served(id, baseline), passed, "r", NOON.isoformat()))
    library.releases.promote(V1, "a test")
    begin(library)
    return library


def begin(library: Library, auto: bool = False) -> Rollout:
    return library.releases.begin(V2, 0.05, "a test", auto=auto)


def again(library: Library, auto: bool) -> None:
    """The same canary once more, with or without leave."""
    library.releases.roll_back("a test", "")
    begin(library, auto)


# ---------------------------------------------------------------------------------------------- one step


def test_without_a_canary_there_is_nothing_to_do(library: Library) -> None:
    library.releases.roll_back("a test", "")
    assert library.watch().step() is None
    assert library.lookout.look() is None


@pytest.mark.parametrize("auto", [False, True])
def test_a_canary_that_is_worse_is_turned_back_with_or_without_leave(library: Library, auto: bool) -> None:
    again(library, auto)
    library.see(0.0)
    library.watch().step()
    assert library.registry.rollout().canary is None
    last = library.registry.ledger()[-1]
    assert (last.verb, last.who, last.after.stable) == (Verb.ROLLBACK, "tidegate watch", V1)
    assert "success: FAIL" in last.reason


def test_a_canary_that_is_good_stays_as_it_is_without_leave(library: Library) -> None:
    library.see(1.0, 1.0)
    before = library.registry.rollout()
    step = library.watch().step()
    assert step is not None
    assert (step[0].advice.step, step[1]) == (Step.WIDEN, before)
    assert library.registry.rollout() == before


@pytest.mark.parametrize(("auto", "forward"), [(True, False), (False, True)])
def test_with_leave_it_widens_step_by_step_and_is_promoted(library: Library, auto: bool, forward: bool) -> None:
    again(library, auto)
    watch, shares = library.watch(forward), []
    for _ in range(2):  # min_requests is 2: at .05, then at .5
        library.go_on(1)
        library.see(1.0)
        watch.step()
        shares.append(library.registry.rollout().share)
        library.see(1.0)
        watch.step()
        shares.append(library.registry.rollout().share)
    assert shares == [0.05, 0.5, 0.5, 0.0]
    assert (library.registry.rollout().stable, library.registry.rollout().canary) == (V2, None)


def test_a_restart_goes_on_where_the_last_watch_was(library: Library) -> None:
    again(library, auto=True)
    library.see(1.0, 1.0)
    library.watch().step()
    library.go_on(1)
    library.see(1.0)
    library.watch().step()  # one request since it was widened, two are wanted
    assert library.registry.rollout().share == 0.5
    library.see(1.0)
    library.watch().step()
    assert library.registry.rollout().stable == V2


def test_a_canary_nobody_asked_is_never_promoted_and_ends_when_its_time_is_over(library: Library) -> None:
    again(library, auto=True)
    watch = library.watch()
    library.go_on(599)
    watch.step()
    assert library.registry.rollout().canary == V2
    library.go_on(1)
    watch.step()
    assert library.registry.rollout() == replace(library.registry.rollout(), stable=V1, canary=None)
    assert library.registry.ledger()[-1].reason.startswith(UNDECIDED)


def test_traffic_that_stops_midway_widens_nothing_and_ends_at_stable(library: Library) -> None:
    again(library, auto=True)
    library.see(1.0, 1.0)
    watch = library.watch()
    watch.step()
    for _ in range(10):
        library.go_on(59)
        watch.step()
        assert library.registry.rollout().share == 0.5
    library.go_on(59)
    watch.step()
    assert library.registry.rollout().canary is None


def test_a_clock_set_back_neither_ends_a_canary_nor_lets_it_forward(library: Library) -> None:
    again(library, auto=True)
    library.go_on(-86_400)
    library.see(1.0, 1.0)  # before the canary began, as the clock now has it
    watch = library.watch()
    watch.step()
    assert library.registry.rollout().share == 0.05
    library.see(0.0)
    watch.step()
    assert library.registry.rollout().canary is None


def test_what_an_earlier_time_of_the_same_canary_has_shown_counts_for_nothing(library: Library) -> None:
    library.see(0.0)
    again(library, auto=True)
    library.watch().step()
    assert library.registry.rollout().canary == V2


# ---------------------------------------------------------------------------------------------- how late


def test_the_ledger_tells_from_the_last_look_that_was_fine(library: Library) -> None:
    watch = library.watch()
    library.see(1.0)
    watch.step()
    library.go_on(0.4)
    library.see(0.0)
    library.go_on(0.6)
    watch.step()
    last = library.registry.ledger()[-1]
    # The first look saw nothing wrong, the one a second and a request later did; the truth is somewhere between.
    assert (last.noticed_at, last.at) == ("2026-01-31T12:00:00.001+00:00", "2026-01-31T12:00:01.002+00:00")


def test_a_look_at_an_earlier_canary_says_nothing_about_this_one(library: Library) -> None:
    watch = library.watch()
    watch.step()
    library.go_on(50)
    again(library, auto=False)
    library.see(0.0)
    watch.step()
    assert library.registry.ledger()[-1].noticed_at == "2026-01-31T12:00:50.001+00:00"


def test_a_move_forward_says_no_time_of_noticing(library: Library) -> None:
    again(library, auto=True)
    library.see(1.0, 1.0)
    library.watch().step()
    assert (library.registry.ledger()[-1].verb, library.registry.ledger()[-1].noticed_at) == (Verb.WIDEN, "")


# ---------------------------------------------------------------------------------------------- trouble


def test_when_somebody_else_is_faster_the_watch_does_nothing(library: Library) -> None:
    again(library, auto=True)
    library.see(1.0, 1.0)

    def slow(observed: Sequence[Observation], rollout: Rollout, widened_at: float) -> Evidence:
        library.releases.roll_back("keeper@pier-3", "I saw something")
        return verdict(observed, rollout, widened_at)

    with pytest.raises(PointerMoved):
        Watch(replace(library.lookout, weigh=slow), library.releases).step()
    assert [move.who for move in library.registry.ledger()][-1] == "keeper@pier-3"


def test_a_refused_move_is_not_tried_again_at_once_but_a_retreat_is_never_put_off(library: Library) -> None:
    again(library, auto=True)
    library.see(1.0, 1.0)
    library.settings = "changed"
    asked: list[str] = []
    watch = library.watch()
    watch.releases = replace(library.releases, served=lambda v, b: (asked.append(v), library.served(v, b))[1])
    for _ in range(3):
        with pytest.raises(NotAdmitted, match="settings s was measured, changed would be served"):
            watch.step()
    assert asked == [V2]
    library.go_on(REFUSED_S)
    with pytest.raises(NotAdmitted):
        watch.step()
    assert asked == [V2, V2]
    library.see(0.0)
    watch.step()
    assert library.registry.rollout().canary is None


def test_a_canary_that_cannot_be_seen_is_given_a_minute_and_then_turned_back(library: Library) -> None:
    library.observations.error = StorageError("a.jsonl, line 7 is damaged")
    watch = library.watch()
    for _ in range(2):
        with pytest.raises(StorageError, match="line 7"):
            watch.step()
        library.go_on(BLIND_S / 2)
    watch.step()
    last = library.registry.ledger()[-1]
    assert (last.verb, last.reason) == (
        Verb.ROLLBACK,
        "Nothing could be seen of it for 60 s: a.jsonl, line 7 is damaged",
    )


def test_a_canary_that_a_bug_hides_is_turned_back_too(library: Library) -> None:
    def weigh(observed: Sequence[Observation], rollout: Rollout, widened_at: float) -> Evidence:
        raise ZeroDivisionError("no requests")

    watch = Watch(replace(library.lookout, weigh=weigh), library.releases)
    with pytest.raises(ZeroDivisionError):
        watch.step()
    library.go_on(BLIND_S)
    watch.step()
    assert library.registry.rollout().canary is None
    assert library.registry.ledger()[-1].reason == (
        "Nothing could be seen of it for 60 s: This is a bug in Tidegate: ZeroDivisionError: no requests"
    )


@pytest.mark.parametrize("at", ["noon", "", "9999-12-31T23:59:59-12:00"])
def test_a_ledger_whose_time_is_none_says_nothing_about_a_canary(library: Library, at: str) -> None:
    began = library.registry.ledger()[-1]
    with pytest.raises(StorageError, match=f"does not say when canary {V2} began"):
        times([replace(began, at=at)], began.after)


def test_a_canary_that_is_seen_again_in_time_goes_on(library: Library) -> None:
    watch = library.watch()
    for _ in range(3):
        library.observations.error = StorageError("the file server is away")
        with pytest.raises(StorageError):
            watch.step()
        library.go_on(BLIND_S - 1)
        library.observations.error = None
        watch.step()
        library.go_on(1)
    assert library.registry.rollout().canary == V2


@dataclass
class Slow(FakeObservations):
    """A file server on which every look takes half a minute."""

    library: "Library | None" = None

    def read(self, canary: str, began: int) -> tuple[Observation, ...]:
        if self.library:
            self.library.go_on(BLIND_S / 2)
        return super().read(canary, began)


def test_a_folder_that_is_only_slow_turns_nothing_back_and_hides_nothing(library: Library) -> None:
    slow = Slow(library=library)
    library.observations = slow
    again(library, auto=True)
    watch = library.watch()
    for failing in (False, True, False, True, False):  # an error now and then, as when a mount comes back
        slow.error = StorageError("the file server is away") if failing else None
        with pytest.raises(StorageError) if failing else nullcontext():
            watch.step()
        library.go_on(1)
    assert library.registry.rollout().canary == V2
    library.see(0.0)
    watch.step()
    assert library.registry.rollout().canary is None


def test_a_canary_that_ended_while_observations_were_lost_says_how_many(library: Library) -> None:
    library.observations.full = True
    library.see(1.0, 1.0, 1.0)
    library.go_on(600)
    library.watch().step()
    last = library.registry.ledger()[-1]
    assert last.verb is Verb.ROLLBACK
    assert f"(0 requests on {V2}, 0 on {V1}, 3 observations lost)" in last.reason


def test_a_ledger_that_cannot_be_read_turns_the_canary_back_in_the_end(library: Library) -> None:
    library.registry.illegible = True
    watch = library.watch()
    with pytest.raises(StorageError):
        watch.step()
    library.go_on(BLIND_S)
    watch.step()
    assert library.registry.rollout().canary is None


# ---------------------------------------------------------------------------------------------- again and again


def after(*actions: Callable[[], object]) -> Callable[[float], bool]:
    """A wait that does one of these before each look, and ends after the last."""
    waiting = list(actions)

    def over(seconds: float) -> bool:
        if waiting:
            waiting.pop(0)()
            return False
        return True

    return over


def nothing() -> None:
    return None


def test_every_move_is_told_with_its_numbers(library: Library) -> None:
    again(library, auto=True)
    said: list[str] = []
    steps = (lambda: library.see(1.0, 1.0), nothing, lambda: library.see(0.0), nothing)
    run(library.watch(), after(*steps), 1.0, said.append)
    assert [line.partition(":")[0] for line in said] == [
        f"Canary {V2} widened from 0.05 to 0.5 of the sessions",
        f"Canary {V2} rolled back, everybody gets {V1}",
    ]


def test_a_promotion_is_told(library: Library) -> None:
    look = library.lookout.look()
    assert look is not None
    assert told(look, Rollout(stable=V2)).startswith(f"Canary {V2} promoted, everybody gets it: ")


def test_each_trouble_is_told_once_until_it_is_over(library: Library) -> None:
    said: list[str] = []

    def fail(text: str) -> Callable[[], None]:
        def act() -> None:
            library.observations.error = StorageError(text) if text else None

        return act

    run(library.watch(), after(fail("a"), nothing, fail("b"), nothing, fail(""), fail("a")), 1.0, said.append)
    assert [line.rpartition(" ")[2] for line in said] == ["a", "b", "a"]


def test_even_a_bug_does_not_end_the_watch(library: Library, caplog: pytest.LogCaptureFixture) -> None:
    wrong = True

    def weigh(observed: Sequence[Observation], rollout: Rollout, widened_at: float) -> Evidence:
        if wrong:
            raise ZeroDivisionError("no requests")
        return verdict(observed, rollout, widened_at)

    def mend() -> None:
        nonlocal wrong
        wrong = False
        library.see(0.0)

    said: list[str] = []
    watch = Watch(replace(library.lookout, weigh=weigh), library.releases)
    run(watch, after(nothing, nothing, mend), 1.0, said.append)
    assert "This is a bug in Tidegate: ZeroDivisionError: no requests" in said[0]
    assert said[1].startswith(f"Canary {V2} rolled back")
    assert len(said) == 2
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_a_log_that_cannot_be_written_does_not_end_the_watch(
    library: Library, caplog: pytest.LogCaptureFixture
) -> None:
    again(library, auto=True)
    said: list[str] = []

    def tell(text: str) -> None:
        said.append(text)
        raise OSError("the disk is full")

    run(library.watch(), after(lambda: library.see(1.0, 1.0), lambda: library.see(0.0)), 1.0, tell)
    assert len(said) == len(caplog.records) == 2
    assert library.registry.rollout().canary is None


def test_every_look_is_shown_to_who_wants_to_see(library: Library) -> None:
    looks: list[Look] = []
    run(library.watch(), after(nothing, nothing), 1.0, lambda _: None, looks.append)
    assert [look.advice.step for look in looks] == [Step.WAIT, Step.WAIT]


def test_two_watches_over_one_canary_make_each_move_once(library: Library) -> None:
    again(library, auto=True)
    first, second = library.watch(), library.watch(forward=True)
    library.see(1.0, 1.0)
    first.step()
    second.step()
    library.go_on(1)
    library.see(1.0, 1.0)
    second.step()
    first.step()
    verbs = [move.verb for move in library.registry.ledger() if move.before.began or move.after.began]
    assert verbs[-3:] == [Verb.CANARY, Verb.WIDEN, Verb.PROMOTE]
