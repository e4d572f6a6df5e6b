"""What a library of any size needs, from constants that were measured on a small one: arithmetic, nothing else.

Everything here is extrapolated in proportion to the chunks of a shard. What it leaves out is said in docs/scaling.md;
the constants come from bench_scaling.py.
"""

from bisect import bisect_left
from dataclasses import dataclass
from math import ceil, floor, sqrt

MONTH_H = 730
ROUNDS = 3  # over all shards, for one search: survey, shortlists, hits
BUSY = 0.7  # of a core's time may be work before waiting grows out of hand


@dataclass(frozen=True, slots=True)
class Constants:
    """Measured, per chunk or per shard; milliseconds are those of one core."""

    searched_bytes: float  # a chunk, in files that every search reads: must be in memory
    kept_bytes: float  # a chunk, in files that only hits are read from: may be on disk
    heap_bytes: float  # a chunk, of the process itself
    process_mb: float  # a replica without any chunk
    fixed_ms: float  # a shard's share of a search, however small the shard
    ms_per_million: float  # the same, for a million chunks
    merge_ms: float  # at the gateway, however few shards
    merge_ms_per_shard: float  # at the gateway, for each further one
    embed_ms: float  # a question, once


@dataclass(frozen=True, slots=True)
class Machine:
    """What is rented. `hop_ms` is one call to a replica and back."""

    memory_gb: float = 64.0
    cores: int = 16
    hop_ms: float = 2.0
    price_per_hour: float = 0.0  # in whatever currency; 0 means that costs are told as hours


@dataclass(frozen=True, slots=True)
class Need:
    """What so many chunks need; memory is what must stay in it, disk what a shard's folder takes."""

    shards: int
    chunks_per_shard: int
    memory_gb_per_shard: float
    disk_gb_per_shard: float
    machines: int
    latency_ms: float
    searches_per_s: float
    machine_hours: float  # a month
    cost: float  # a month, in the currency of the price


def need(chunks: float, constants: Constants, machine: Machine, within_ms: float = 100.0, replicas: int = 2) -> Need:
    """The fewest shards that fit and answer within `within_ms`, one replica of a shard on a core.

    Where no number of shards is quick enough, because rounds and merging alone take longer, it is the quickest number:
    the latency that comes back is then above the limit, and says so.
    """
    shards = _fewest(chunks, constants, machine, within_ms)
    part = ceil(chunks / shards)
    memory_gb = _memory_gb(part, constants)
    beside = max(1, min(machine.cores, int(machine.memory_gb * BUSY / memory_gb)))  # replicas on a machine
    machines = ceil(shards * replicas / beside)
    busy_ms = _work(part, constants)
    return Need(
        shards=shards,
        chunks_per_shard=part,
        memory_gb_per_shard=memory_gb,
        disk_gb_per_shard=part * (constants.searched_bytes + constants.kept_bytes) / 1e9,
        machines=machines,
        latency_ms=_latency(part, shards, constants, machine),
        searches_per_s=replicas * BUSY * 1000 / busy_ms,
        machine_hours=machines * MONTH_H,
        cost=machines * MONTH_H * machine.price_per_hour,
    )


def _fewest(chunks: float, constants: Constants, machine: Machine, within_ms: float) -> int:
    """By halving: more shards always fit better, and are quicker until merging costs more than they save."""

    def fits(shards: int) -> bool:
        return _memory_gb(chunks / shards, constants) <= machine.memory_gb * BUSY

    def latency(shards: int) -> float:
        return _latency(chunks / shards, shards, constants, machine)

    counts = range(1, max(1, ceil(chunks)) + 1)
    least = counts[min(bisect_left(counts, True, key=fits), len(counts) - 1)]
    if least == 1 and latency(1) <= within_ms:
        return 1
    # The sum of work / shards and merging * shards is lowest where both are equal.
    work_ms, merging_ms = constants.ms_per_million * chunks / 1e6, constants.merge_ms_per_shard
    even = sqrt(work_ms / merging_ms) if merging_ms else chunks
    quickest = min((min(max(2, least, round_(even)), counts[-1]) for round_ in (floor, ceil)), key=latency)
    several = range(min(max(2, least), quickest), quickest + 1)
    place = bisect_left(several, True, key=lambda shards: latency(shards) <= within_ms)
    if place < len(several):
        return several[place]
    return 1 if least == 1 and latency(1) <= latency(quickest) else quickest


def _memory_gb(part: float, constants: Constants) -> float:
    """What must stay in memory for one shard."""
    return part * (constants.searched_bytes + constants.heap_bytes) / 1e9 + constants.process_mb / 1e3


def _work(part: float, constants: Constants) -> float:
    """Milliseconds that one search keeps a core of every shard busy."""
    return constants.fixed_ms + constants.ms_per_million * part / 1e6


def _latency(part: float, shards: int, constants: Constants, machine: Machine) -> float:
    rounds = ROUNDS if shards > 1 else 1
    merging = constants.merge_ms + constants.merge_ms_per_shard * shards if shards > 1 else 0.0
    return constants.embed_ms + rounds * machine.hop_ms + _work(part, constants) + merging
