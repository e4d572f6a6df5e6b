"""What a library of any size needs, by arithmetic that can be done on paper."""

from dataclasses import replace

import pytest

from tidegate.sizing import Constants, Machine, need

# A million chunks: 2 GB in files, 0.5 GB in the process, 100 ms of a core.
PLAIN = Constants(
    searched_bytes=2000, kept_bytes=1000, heap_bytes=500, process_mb=100, fixed_ms=2, ms_per_million=100,
    merge_ms=1, merge_ms_per_shard=0.1, embed_ms=4,
)  # fmt: skip
MACHINE = Machine(memory_gb=64, cores=16, hop_ms=2, price_per_hour=0.5)


def test_a_library_that_one_replica_answers_in_time_is_not_cut() -> None:
    one = need(500_000, PLAIN, MACHINE, within_ms=100)
    assert (one.shards, one.chunks_per_shard) == (1, 500_000)
    assert one.latency_ms == pytest.approx(4 + 2 + 2 + 50)  # embed, one hop, the search
    assert one.memory_gb_per_shard == pytest.approx(0.5 * 2.5 + 0.1)


def test_ten_times_the_chunks_take_about_ten_times_the_shards_and_machines() -> None:
    ten, hundred = (need(size, PLAIN, MACHINE, within_ms=100, replicas=2) for size in (10e6, 100e6))
    assert ten.latency_ms <= 100
    assert hundred.latency_ms <= 100
    assert 9 < hundred.shards / ten.shards < 14  # merging takes a part of the time, the more the more shards
    assert 8 < hundred.machines / ten.machines < 14


def test_shards_are_cut_for_memory_too() -> None:
    quick = replace(PLAIN, ms_per_million=0.001)
    small = need(1e8, quick, replace(MACHINE, memory_gb=4), within_ms=1000)
    assert small.memory_gb_per_shard <= 4 * 0.7
    assert small.shards > 80  # 250 GB in parts of at most 2.8


def test_costs_are_hours_times_the_price_that_was_given() -> None:
    of = need(10e6, PLAIN, MACHINE, replicas=1)
    assert of.machine_hours == of.machines * 730
    assert of.cost == pytest.approx(of.machine_hours * 0.5)


def test_a_limit_that_no_number_of_shards_can_keep_is_not_hidden() -> None:
    late = need(1e9, PLAIN, MACHINE, within_ms=5)
    assert late.latency_ms > 5
    assert late.shards < 1e9


@pytest.mark.parametrize("within_ms", [20, 33.5, 40, 70])
@pytest.mark.parametrize("memory_gb", [0.5, 4, 64])
def test_no_number_of_shards_is_fewer_or_quicker(within_ms: float, memory_gb: float) -> None:
    # 10 million: work 1000 ms / shards and merging 0.1 ms * shards, lowest at 100 shards: 4 + 6 + 2 + 1 + 10 + 10 = 33
    machine = replace(MACHINE, memory_gb=memory_gb)
    found = need(10e6, PLAIN, machine, within_ms=within_ms)
    fitting = [s for s in range(1, 2000) if 25 / s + 0.1 <= 0.7 * memory_gb]
    latency = {s: 13 + 1000 / s + 0.1 * s if s > 1 else 1008 for s in fitting}
    quick = [s for s in fitting if latency[s] <= within_ms]
    assert found.shards == (quick[0] if quick else min(fitting, key=lambda s: latency[s]))


def test_more_replicas_answer_more_and_cost_more() -> None:
    one, two = (need(10e6, PLAIN, MACHINE, replicas=replicas) for replicas in (1, 2))
    assert two.searches_per_s == pytest.approx(2 * one.searches_per_s)
    assert two.machines >= 2 * one.machines - 1
