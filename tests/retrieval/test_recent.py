"""What is kept of what was made lately."""

import tracemalloc

import numpy as np

from retrieval.recent import RecentArrays


def filled(n_bytes: int) -> tuple[np.ndarray]:
    return (np.zeros(n_bytes, np.uint8),)


def never() -> tuple[np.ndarray]:
    raise AssertionError


def test_what_is_kept_is_not_made_again():
    recent = RecentArrays(10_000)
    made = recent.get("a", lambda: filled(10))
    assert recent.get("a", never) is made


def test_the_least_recently_used_goes_when_room_runs_out():
    recent = RecentArrays(9200)  # four of 1700 bytes and what they take besides
    for key in "abc":
        recent.get(key, lambda: filled(1700))
    recent.get("a", never)
    for key in "de":
        recent.get(key, lambda: filled(1700))
    kept = recent.get("a", never)
    assert kept[0].size == 1700
    assert recent.get("b", lambda: filled(1))[0].size == 1  # made anew
    assert recent.used <= 9200


def test_what_would_push_out_everything_else_is_not_kept():
    recent = RecentArrays(10_000)
    recent.get("large", lambda: filled(5000))
    assert recent.used == 0


def test_views_take_no_room_for_what_they_show():
    recent = RecentArrays(10_000)
    recent.get("view", lambda: filled(5000), views=True)
    assert 0 < recent.used < 1000


def test_many_small_entries_take_no_more_memory_than_there_is_room():
    recent, shown = RecentArrays(1_000_000), np.zeros(10_000, np.int32)
    tracemalloc.start()
    for number in range(10_000):
        recent.get((1, f"token{number}"), lambda place=number: (shown[place : place + 2], shown[place:]), views=True)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken < 1_100_000
