"""`canary`, `observe`, `promote`, `rollback`, `gc` and `versions`: what a person asks of the pointer, and is told."""

import json
import os
import re
import shutil
import threading
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from domain.releases import Decision, Observation, Outcome, Rollout, Verb, Verdict
from retrieval.observations import FolderObservations
from tests.tidegate.tiny import served, sets, settings
from tests.waiting import wait_until_main_is_in
from tidegate import server
from tidegate.cli import main
from tidegate.compose import make_registry
from tidegate.compose_releases import make_observations, make_releases
from tidegate.console import Code
from tidegate.follow import follow
from tidegate.server import Server
from tidegate.who import who

Capture = pytest.CaptureFixture[str]
BOUND = ("success", "within_slo", "citations_resolved", "answered", "grounded")


@pytest.fixture(scope="session")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A data folder with a stable version and a newer one; copy it before changing it."""
    folder = tmp_path_factory.mktemp("two")
    data_dir, first = served(folder)
    (folder / "corpus" / "lock.txt").write_text("The canal lock opens at nine.\n")
    assert main(["build", str(folder / "corpus"), *sets(data_dir)]) == 0
    (second,) = {version.id for version in make_registry(settings(data_dir)).versions()} - {first}
    return data_dir, first, second


class Harbour:
    """A data folder of our own with two versions, and the command line over it."""

    def __init__(self, data_dir: Path, first: str, second: str, capsys: Capture) -> None:
        self.data_dir, self.first, self.second, self._capsys = data_dir, first, second, capsys
        self.settings = settings(data_dir)
        self.registry = make_registry(self.settings)
        self.root = data_dir / "registry"

    def run(self, *words: str, **others: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        self._capsys.readouterr()
        code = main([*words, *sets(self.data_dir, **others)])
        out, err = self._capsys.readouterr()
        return code, out, err

    def decide(self, version: str, outcome: Outcome = Outcome.PASS) -> None:
        """A decision about exactly what would be served."""
        rollout = self.registry.rollout()
        bound = make_releases(self.settings).served(version, rollout.stable if rollout.stable != version else None)
        verdicts = (Verdict("recall@6", outcome, "recall@6 .93, floor .70 (n = 900)"),)
        self.registry.record(Decision(bound, verdicts, "r1", "2026-01-31T12:00:00.000+00:00"))

    def observe(self, version: str, n: int, value: float) -> None:
        """So many requests that `version` answered, in which every metric had this value."""
        rollout, log = self.registry.rollout(), make_observations(self.settings)
        for i in range(n):
            both = {"found": (value, 1.0), "coverage": (value, 1.0)} if version == rollout.canary else {}
            one = Observation(f"{version}-{i}", 4e9 + i, version, dict.fromkeys(BOUND, value), both)
            log.write(rollout.canary or "", rollout.began, one)

    @property
    def pointer(self) -> Rollout:
        return self.registry.rollout()


@pytest.fixture
def harbour(here: Path, two: tuple[Path, str, str], capsys: Capture) -> Harbour:
    shutil.copytree(two[0], here / "data")
    return Harbour(here / "data", two[1], two[2], capsys)


@pytest.fixture
def on_trial(harbour: Harbour) -> Harbour:
    """The newer version is a canary with a twentieth of the sessions."""
    harbour.decide(harbour.second)
    assert harbour.run("canary", harbour.second)[0] == 0
    return harbour


# ---------------------------------------------------------------------------------------------- canary


def test_an_admitted_version_begins_as_a_canary_with_the_first_share(harbour: Harbour) -> None:
    harbour.decide(harbour.second)
    code, out, _ = harbour.run("canary", harbour.second, "--reason", "the new chunker", canary__shares="[0.1, 0.5]")
    assert (code, out) == (0, f"stable {harbour.first}, canary {harbour.second} at 10%\n")
    last = harbour.registry.ledger()[-1]
    assert (last.verb, last.who, last.reason, last.after.auto) == (Verb.CANARY, who(), "the new chunker", False)


def test_a_version_nobody_decided_about_is_refused_with_the_way_out(harbour: Harbour) -> None:
    code, out, err = harbour.run("canary", harbour.second)
    assert (code, out) == (Code.REFUSED, "")
    assert err == f"error: Version {harbour.second} was never decided about: tidegate gate {harbour.second}.\n"
    assert harbour.pointer.canary is None


@pytest.mark.parametrize("verb", ["canary", "promote"])
def test_a_version_that_failed_is_refused_with_its_numbers(harbour: Harbour, verb: str) -> None:
    harbour.decide(harbour.second, Outcome.FAIL)
    code, _, err = harbour.run(verb, harbour.second)
    assert code == Code.REFUSED
    assert f"{harbour.second} may not reach people (FAIL): recall@6: recall@6 .93, floor .70 (n = 900)" in err
    assert harbour.pointer.stable == harbour.first


@pytest.mark.parametrize("verb", ["canary", "promote"])
def test_a_decision_under_other_settings_admits_nothing(harbour: Harbour, verb: str) -> None:
    harbour.decide(harbour.second)
    code, _, err = harbour.run(verb, harbour.second, answering__k="3")
    assert code == Code.REFUSED
    assert "settings" in err
    assert "would be served" in err


@pytest.mark.parametrize("verb", ["canary", "promote"])
def test_forcing_needs_a_reason_and_leaves_it_in_the_record(harbour: Harbour, verb: str) -> None:
    code, _, err = harbour.run(verb, harbour.second, "--force")
    assert code == Code.USAGE
    assert "--force needs --reason" in err
    assert harbour.registry.decisions(harbour.second) == ()
    assert harbour.run(verb, harbour.second, "--force", "--reason", "the night shift waits")[0] == 0
    decision = harbour.registry.ledger()[-1].decision
    assert decision is not None
    assert decision.forced == "the night shift waits"


@pytest.mark.parametrize("words", [["--share", "1.5"], ["--share", "0"]])
def test_a_forced_move_that_is_refused_all_the_same_admits_nothing(harbour: Harbour, words: list[str]) -> None:
    code, _, err = harbour.run("canary", harbour.second, "--force", "--reason", "x", *words)
    assert code == Code.USAGE
    assert "is not between 0 and 1" in err
    assert harbour.registry.decisions(harbour.second) == ()


def test_the_canary_there_is_gets_a_larger_share_when_one_is_named(on_trial: Harbour) -> None:
    code, out, _ = on_trial.run("canary", on_trial.second, "--share", "0.25", "--json")
    assert (code, json.loads(out)["rollout"]["share"]) == (0, 0.25)
    assert on_trial.registry.ledger()[-1].verb is Verb.WIDEN
    code, _, err = on_trial.run("canary", on_trial.second, "--share", "0.25")
    assert code == Code.USAGE
    assert "already has 0.25" in err


@pytest.mark.parametrize("words", [[], ["--auto", "--share", "0.1"], ["--share", "0.1"], ["--auto", "--force"]])
def test_a_canary_without_a_name_is_asked_for_one(on_trial: Harbour, words: list[str]) -> None:
    code, _, err = on_trial.run("canary", *words)
    assert code == Code.USAGE
    assert "Name a version to begin a canary with, or --auto alone" in err


# ---------------------------------------------------------------------------------------------- canary --auto


def test_a_canary_that_shows_itself_good_is_promoted_while_the_command_waits(on_trial: Harbour) -> None:
    on_trial.observe(on_trial.first, 600, 1.0)
    on_trial.observe(on_trial.second, 600, 1.0)
    code, out, err = on_trial.run("canary", "--auto", canary__every_s="0.01", canary__min_requests="20")
    assert code == Code.DONE
    assert f"{on_trial.second} promoted, everybody gets {on_trial.second} by {who()} at " in out
    assert "widened from 0.05 to 0.25" in err
    assert "widened from 0.25 to 0.5" in err
    assert [move.verb for move in on_trial.registry.ledger()[-4:]] == ["canary", "widen", "widen", "promote"]


def test_a_canary_that_is_worse_is_rolled_back_and_the_code_is_1(on_trial: Harbour) -> None:
    on_trial.observe(on_trial.first, 300, 1.0)
    on_trial.observe(on_trial.second, 300, 0.0)
    code, out, _ = on_trial.run("canary", on_trial.second, "--auto", "--json", canary__every_s="0.01")
    assert code == Code.REFUSED
    told = json.loads(out)
    assert [move["verb"] for move in told["moves"]] == ["canary", "rollback"]
    assert told["rollout"]["stable"] == on_trial.first
    assert told["moves"][-1]["took_ms"] >= 0


def test_a_canary_without_traffic_ends_undecided_and_the_code_is_3(harbour: Harbour) -> None:
    harbour.decide(harbour.second)
    code, out, err = harbour.run("canary", harbour.second, "--auto", canary__every_s="0.05", canary__timeout_s="1")
    assert code == Code.INCONCLUSIVE
    assert "rolled back by" in out
    assert "Undecided after 1 s" in out
    assert err.count("waiting at 5%: 0 requests so far; nothing can be said yet\n") == 1
    assert harbour.pointer.stable == harbour.first
    assert harbour.registry.ledger()[-2].after.auto is True


def test_a_canary_that_somebody_else_ends_is_told_with_their_name(on_trial: Harbour) -> None:
    def end() -> None:
        wait_until_main_is_in(follow, knows="rollout")  # earlier, there would be no canary to watch
        make_releases(on_trial.settings).roll_back("keeper@pier-3", "I saw something")

    threading.Thread(target=end).start()
    code, out, _ = on_trial.run("canary", "--auto", canary__every_s="0.05")
    assert code == Code.REFUSED
    assert f"{on_trial.second} rolled back by keeper@pier-3 at " in out
    assert out.endswith(": I saw something\n")


def test_without_a_canary_there_is_none_to_watch(harbour: Harbour) -> None:
    code, _, err = harbour.run("canary", "--auto")
    assert code == Code.USAGE
    assert "There is no canary to watch: name a version" in err


# ---------------------------------------------------------------------------------------------- observe


def test_evidence_that_nobody_has_yet_is_inconclusive_and_not_zero(on_trial: Harbour) -> None:
    before = on_trial.pointer
    code, out, _ = on_trial.run("observe")
    assert code == Code.INCONCLUSIVE
    assert f"canary {on_trial.second} with 5% of the sessions, 0 requests (0 at this share)" in out
    assert "none (0)" in out
    assert "INCONCLUSIVE: wait. Not decided" in out
    assert on_trial.pointer == before


def test_what_is_undecided_stands_in_the_table_with_how_many_more_it_takes(on_trial: Harbour) -> None:
    on_trial.observe(on_trial.first, 120, 1.0)
    on_trial.observe(on_trial.second, 40, 1.0)
    lines = on_trial.run("observe")[1].splitlines()
    (row,) = (line for line in lines if line.startswith("success "))
    assert re.search(r"INCONCLUSIVE, about \d+ more$", row)
    assert lines[-1] == ("INCONCLUSIVE: wait. Not decided: success, within_slo, citations_resolved, found, coverage.")


def test_what_was_lost_and_what_was_left_out_is_told_beside_the_counts(on_trial: Harbour) -> None:
    began = on_trial.pointer.began
    assert "lost" not in on_trial.run("observe")[1]
    log = FolderObservations(on_trial.data_dir / "observations", every=10)
    for i in range(40):
        log.write(on_trial.second, began, Observation(f"t{i}", 4e9 + i, on_trial.first, {"success": 1.0}))
    log.lose(on_trial.second, began, 7)
    out = on_trial.run("observe")[1].splitlines()
    assert out[1] == "counted are the requests that were kept: all at first, by now one in 4"
    assert out[2].startswith("7 observations were lost: ")
    assert json.loads(on_trial.run("observe", "--json")[1])["kept"] == {"one_in": 4, "lost": 7}


def test_observing_a_good_canary_tells_what_would_be_done_and_does_it_only_when_asked(on_trial: Harbour) -> None:
    on_trial.observe(on_trial.first, 600, 1.0)
    on_trial.observe(on_trial.second, 600, 1.0)
    code, out, _ = on_trial.run("observe")
    assert code == Code.DONE
    assert "1.000 (600)" in out
    assert "PASS: widen to 25%. As good as stable" in out
    assert on_trial.pointer.share == 0.05
    code, out, _ = on_trial.run("observe", "--act")
    assert code == Code.DONE
    assert "widened from 0.05 to 0.25 of the sessions" in out
    assert (on_trial.pointer.share, on_trial.registry.ledger()[-1].who) == (0.25, who())


def test_observing_a_bad_canary_ends_with_1_and_acting_turns_it_back(on_trial: Harbour) -> None:
    on_trial.observe(on_trial.first, 300, 1.0)
    on_trial.observe(on_trial.second, 300, 0.0)
    code, out, _ = on_trial.run("observe", "--json", "--act")
    assert code == Code.REFUSED
    told = json.loads(out)
    assert told["requests"] == {"canary": 300, "stable": 300}
    assert told["outcome"] == "FAIL"
    assert told["advice"]["step"] == "roll_back"
    assert {m["metric"]: m["canary"] for m in told["metrics"]}["success"] == {"mean": 0.0, "n": 300}
    assert "rolled back" in told["done"]
    assert on_trial.pointer.canary is None


def test_requests_that_only_stable_answered_show_nothing_about_the_canary(on_trial: Harbour) -> None:
    on_trial.observe(on_trial.first, 500, 1.0)
    code, out, _ = on_trial.run("observe", "--act")
    assert code == Code.INCONCLUSIVE
    assert "0 requests (0 at this share)" in out
    assert out.endswith("nothing to do\n")
    assert on_trial.pointer.share == 0.05


def test_without_a_canary_nothing_can_be_observed(harbour: Harbour) -> None:
    code, out, err = harbour.run("observe")
    assert (code, out) == (Code.NOT_MEASURED, "")
    assert "there is no canary to observe: begin one with tidegate canary VERSION" in err
    code, out, _ = harbour.run("observe", "--json")
    assert (code, json.loads(out)) == (Code.NOT_MEASURED, {"canary": None})


def test_evidence_that_cannot_be_read_is_not_measured(on_trial: Harbour) -> None:
    on_trial.observe(on_trial.second, 1, 1.0)
    (log,) = (on_trial.data_dir / "observations").rglob("*.jsonl")
    log.write_text("nonsense\n")
    for words in (["observe"], ["observe", "--act"]):
        code, out, err = on_trial.run(*words)
        assert (code, out) == (Code.NOT_MEASURED, "")
        assert f"The evidence cannot be read: {log}, line 1 is damaged" in err
    assert on_trial.pointer.canary == on_trial.second


# ---------------------------------------------------------------------------------------------- promote, roll back


def test_a_promotion_is_for_everybody_and_going_back_is_one_word(harbour: Harbour) -> None:
    harbour.decide(harbour.second)
    assert harbour.run("promote", harbour.second)[:2] == (0, f"stable {harbour.second}, no canary\n")
    assert harbour.run("rollback", "--reason", "odd answers")[:2] == (0, f"stable {harbour.first}, no canary\n")
    last = harbour.registry.ledger()[-1]
    assert (last.verb, last.who, last.reason, last.noticed_at) == (Verb.ROLLBACK, who(), "odd answers", "")
    code, _, err = harbour.run("rollback")
    assert code == Code.USAGE
    assert f"There is no previous version to roll back to; earlier ones that exist: {harbour.second}" in err
    assert harbour.run("rollback", "--to", harbour.second)[0] == 0


def test_promoting_what_is_stable_changes_nothing_and_says_so(harbour: Harbour) -> None:
    before = harbour.pointer
    code, out, err = harbour.run("promote", harbour.first)
    assert (code, out) == (0, f"stable {harbour.first}, no canary\n")
    assert "is stable already: nothing changed" in err
    assert harbour.pointer == before


def test_a_rollback_ends_a_canary_and_leaves_stable(on_trial: Harbour) -> None:
    code, out, _ = on_trial.run("rollback", "--json")
    assert code == 0
    assert json.loads(out)["rollout"] == asdict(on_trial.pointer)
    assert (on_trial.pointer.stable, on_trial.pointer.canary) == (on_trial.first, None)


def test_a_canary_begun_on_other_questions_is_promoted_without_naming_them_again(on_trial: Harbour) -> None:
    (on_trial.data_dir / "sample").mkdir()  # the settings' own question set is another one by now
    code, _, err = on_trial.run("promote", on_trial.second)
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["promote", "v00000000000f"], Code.REFUSED),
        (["rollback", "--to", "v00000000000f"], Code.USAGE),
        (["canary", "../x"], Code.REFUSED),
    ],
)
def test_an_unknown_version_is_refused_naming_what_there_is(harbour: Harbour, words: list[str], code: Code) -> None:
    before = harbour.pointer
    ended, out, err = harbour.run(*words)
    assert (ended, out) == (code, "")
    assert err.startswith("error: ")
    assert "exist" in err
    assert harbour.pointer == before


# ---------------------------------------------------------------------------------------------- a running server


def test_a_move_forward_that_the_server_would_not_serve_is_refused_but_a_rollback_is_not(on_trial: Harbour) -> None:
    there = replace(Server.of(os.getpid(), "http://127.0.0.1:8123"), settings="another", code="another")
    server.record_path(on_trial.settings).write_text(json.dumps(asdict(there)))
    before = on_trial.pointer
    for words in (
        ["promote", on_trial.second],
        ["promote", on_trial.second, "--force", "--reason", "x"],
        ["canary", on_trial.second, "--share", "0.5"],
        ["canary", "--auto"],
    ):
        code, _, err = on_trial.run(*words)
        assert code == Code.REFUSED
        assert "The server at http://127.0.0.1:8123" in err
    assert on_trial.pointer == before
    assert on_trial.run("rollback")[0] == 0


# ---------------------------------------------------------------------------------------------- gc and versions


def test_gc_removes_what_nobody_goes_back_to_with_what_was_observed_of_it(on_trial: Harbour) -> None:
    on_trial.observe(on_trial.second, 3, 1.0)
    assert on_trial.run("gc", "--keep", "0")[:2] == (0, "nothing to remove\n")
    on_trial.run("rollback")
    code, out, _ = on_trial.run("gc", "--keep", "0", "--dry-run")
    lines = out.splitlines()
    assert (code, lines[0].split()[0], lines[0].endswith("MB would be removed")) == (0, on_trial.second, True)
    assert lines[1].endswith("MB would be freed")
    assert on_trial.registry.folder(on_trial.second).is_dir()
    assert on_trial.run("gc", "--keep", "1")[1] == "nothing to remove\n"
    code, out, _ = on_trial.run("gc", "--keep", "0", "--json")
    assert [row["version"] for row in json.loads(out)["removed"]] == [on_trial.second]
    assert [version.id for version in on_trial.registry.versions()] == [on_trial.first]
    assert list((on_trial.data_dir / "observations").iterdir()) == []
    assert len(on_trial.registry.ledger()) == 3


def test_gc_lists_and_removes_what_killed_builds_and_removals_left(harbour: Harbour) -> None:
    for left in (harbour.data_dir / "staging" / "build-killed", harbour.root / "versions" / ".removed-v00000000000a"):
        left.mkdir(parents=True)
        (left / "vectors.npy").write_bytes(b"x" * 300_000)
    pointer = (harbour.root / "rollout.json").read_bytes()
    told = json.loads(harbour.run("gc", "--dry-run", "--json")[1])
    assert [(Path(each["place"]).name, each["bytes"], each["why"]) for each in told["leftovers"]] == [
        ("build-killed", 300_000, "a build that was killed"),
        (".removed-v00000000000a", 300_000, "a removal that was killed"),
    ]
    code, out, _ = harbour.run("gc")
    assert (code, out.count("0.3 MB removed: "), out.splitlines()[-1]) == (0, 2, "0.6 MB freed")
    assert harbour.run("gc")[1] == "nothing to remove\n"
    assert (harbour.root / "rollout.json").read_bytes() == pointer


def test_a_damaged_version_is_named_and_stops_no_other_command(harbour: Harbour) -> None:
    (harbour.root / "versions" / harbour.second / "version.json").write_bytes(b"{")
    code, out, err = harbour.run("versions")
    assert (code, out.count("\n")) == (0, 1)
    assert f"note: version {harbour.second} is damaged: " in err
    assert harbour.run("gc", "--keep", "0")[1] == "nothing to remove\n"  # it may be restored
    corpus = harbour.data_dir.parent / "more"
    corpus.mkdir()
    (corpus / "quay.txt").write_text("The quay is lit until midnight.\n")
    assert harbour.run("build", str(corpus))[0] == 0
    code, out, _ = harbour.run("gc", "--damaged")
    assert (code, out.splitlines()[0]) == (0, f"{harbour.second}  0.0 MB removed")
    assert harbour.registry.damaged() == {}


def test_what_is_stable_is_not_removed_for_being_damaged(harbour: Harbour) -> None:
    (harbour.root / "versions" / harbour.first / "version.json").write_bytes(b"{")
    code, _, err = harbour.run("gc", "--damaged")
    assert code == 0
    assert f"{harbour.first} is stable and stays" in err
    assert (harbour.root / "versions" / harbour.first).is_dir()


def test_gc_clears_the_shards_of_what_is_gone(on_trial: Harbour) -> None:
    shards = on_trial.data_dir / "shards"
    for name in ("v00000000000f/0-of-2", f"{on_trial.first}/0-of-2"):
        (shards / name).mkdir(parents=True)
    on_trial.run("gc", "--keep", "0")
    assert [path.name for path in shards.iterdir()] == [on_trial.first]


def test_gc_clears_the_evaluations_of_what_it_removes_and_says_how_much_space_that_frees(on_trial: Harbour) -> None:
    data_dir, other = on_trial.data_dir, "v00000000000f"  # as a killed gc leaves it: the version is gone already
    for name in (on_trial.first, on_trial.second, other, "served"):
        (data_dir / "evaluations" / name).mkdir(parents=True)
        (data_dir / "evaluations" / name / "0123.jsonl").write_bytes(b" " * 5_000_000)
    (data_dir / "observations" / f"{other}-r7").mkdir(parents=True)
    (data_dir / "observations" / f"{other}-r7" / "a-1-2.jsonl").write_bytes(b" " * 1_000_000)
    on_trial.run("rollback")
    about_it = (on_trial.registry.folder(on_trial.second), data_dir / "outcomes" / on_trial.second)
    size = sum(path.stat().st_size for folder in about_it for path in folder.rglob("*") if path.is_file())
    told = json.loads(on_trial.run("gc", "--keep", "0", "--json", "--dry-run")[1])
    assert told["removed"] == [
        {"version": on_trial.second, "bytes": size + 5_000_000},
        {"version": other, "bytes": 6_000_000},
    ]
    assert told["bytes"] == size + 11_000_000
    assert len(list((data_dir / "evaluations").iterdir())) == 4
    code, out, _ = on_trial.run("gc", "--keep", "0")
    assert (code, out.splitlines()[-1]) == (0, f"{told['bytes'] / 1e6:.1f} MB freed")
    assert sorted(path.name for path in (data_dir / "evaluations").iterdir()) == sorted([on_trial.first, "served"])
    assert on_trial.run("gc", "--keep", "0")[1] == "nothing to remove\n"


def test_what_cannot_be_cleared_away_is_named_and_the_next_time_tried_again(on_trial: Harbour) -> None:
    on_trial.run("rollback")
    (on_trial.data_dir / "evaluations").mkdir()
    (on_trial.data_dir / "evaluations" / on_trial.second).symlink_to(on_trial.data_dir)  # rmtree follows none
    code, _, err = on_trial.run("gc", "--keep", "0")
    assert code == Code.REFUSED
    assert f"Cannot remove {on_trial.data_dir / 'evaluations' / on_trial.second}" in err
    (on_trial.data_dir / "evaluations" / on_trial.second).unlink()
    (on_trial.data_dir / "evaluations" / on_trial.second).mkdir()
    assert on_trial.run("gc", "--keep", "0")[1].startswith(f"{on_trial.second}  0.0 MB removed")


def listed(harbour: Harbour) -> dict[str, str]:
    """What `versions` says after the chunker, by version."""
    lines = harbour.run("versions")[1].splitlines()
    return {line.split()[0]: line.partition("heading-200-0  ")[2] for line in lines}


def test_versions_tell_where_each_stands_and_what_admitted_it(on_trial: Harbour) -> None:
    assert listed(on_trial) == {
        on_trial.first: "forced (a test) 2026-01-01T00:00:00  stable",
        on_trial.second: "passed 2026-01-31T12:00:00  canary",
    }
    on_trial.run("promote", on_trial.second)
    told = {v["id"]: v for v in json.loads(on_trial.run("versions", "--json")[1])["versions"]}
    assert {(v["state"], v["role"]) for v in told.values()} == {("retired", "previous"), ("stable", "stable")}
    by = {"decided_at": "2026-01-31T12:00:00.000+00:00", "run_id": "r1", "forced": ""}
    assert told[on_trial.second]["admitted_by"] == by
    assert listed(on_trial)[on_trial.first].endswith("retired, previous")


def test_a_version_that_was_only_built_and_one_that_was_admitted_are_told_apart(harbour: Harbour) -> None:
    assert listed(harbour)[harbour.second] == "not admitted  built"
    harbour.decide(harbour.second, Outcome.FAIL)
    assert listed(harbour)[harbour.second] == "not admitted  built"
    harbour.decide(harbour.second)
    assert listed(harbour)[harbour.second] == "passed 2026-01-31T12:00:00  admitted"


# ---------------------------------------------------------------------------------------------- who


def test_who_is_the_user_and_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "keeper")
    assert who().startswith("keeper@")
    assert len(who()) > len("keeper@")
