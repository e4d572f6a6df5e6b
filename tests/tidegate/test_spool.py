"""What waits for the tracker: whole or not there, in order, and gone only when the run is known."""

import errno
from pathlib import Path

import pytest

from domain.releases import Rollout
from eval.evaluation_files import read
from tests.eval.evaluations import evaluation
from tidegate.spool import Spool


def test_what_is_kept_waits_in_order_until_it_is_taken(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "tracking")
    assert (spool.waiting(), spool.used) == ((), False)
    first, second = spool.keep(evaluation("v1")), spool.keep(evaluation("v2", "v1"))
    assert spool.waiting() == (first, second)
    assert read(first) == evaluation("v1")
    spool.taken(first, "run-1")
    assert spool.waiting() == (second,)
    assert (spool.run_id(evaluation("v1").id), spool.run_id(evaluation("v2", "v1").id)) == ("run-1", "")


def test_an_evaluation_kept_twice_waits_twice_so_that_the_later_one_is_sent_last(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.keep(evaluation(verdicts=()))
    spool.keep(evaluation())
    assert [bool(read(folder).verdicts) for folder in spool.waiting()] == [False, True]


def test_a_full_disk_leaves_no_half_of_an_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        Spool(tmp_path).keep(evaluation())
    assert list((tmp_path / "pending").iterdir()) == []


def test_what_a_killed_process_left_half_written_does_not_wait(tmp_path: Path) -> None:
    (tmp_path / "pending" / ".00000000000000000001-abc").mkdir(parents=True)
    assert Spool(tmp_path).waiting() == ()


def test_the_aliases_are_told_once_and_a_later_pointer_wins(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    early, late = Rollout("v1", revision=1), Rollout("v2", previous="v1", revision=2)
    assert spool.pointed() is None
    spool.point(late, "v3")
    spool.point(early, None)  # written late by a process that was slow
    assert spool.pointed() == (late, "v3")
    spool.told(late, "v3")
    assert spool.pointed() is None
    spool.point(late, "v3")
    assert spool.pointed() is None
    spool.point(late, "v4")
    assert spool.pointed() == (late, "v4")


def test_what_is_wanted_meanwhile_stays_wanted(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.point(Rollout("v1", revision=1), None)
    spool.point(Rollout("v2", revision=2), None)
    spool.told(Rollout("v1", revision=1), None)  # a sender that began before the second move
    assert spool.pointed() == (Rollout("v2", revision=2), None)


@pytest.mark.parametrize(
    "content",
    ["{", "", "[]", "{}", '{"rollout": []}', '{"rollout": "v1", "candidate": null}', '{"rollout": {"stable": "v1"}}',
     '{"rollout": {"stable": "v1", "revision": "nine"}, "candidate": null}',
     '{"rollout": {"stable": 5, "revision": 9}, "candidate": null}'],
)  # fmt: skip
def test_a_damaged_note_about_the_pointer_is_written_anew(tmp_path: Path, content: str) -> None:
    (tmp_path / "pointer.json").write_text(content)
    spool = Spool(tmp_path)
    assert spool.pointed() is None
    spool.point(Rollout("v1", revision=1), None)
    assert spool.pointed() == (Rollout("v1", revision=1), None)
