"""Several processes that train one model: each learns from its part of the lists, and now and then they average.

Source: Stich, Local SGD Converges Fast and Communicates Little, ICLR 2019. The only file with torch.distributed.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from domain.errors import StageFailed
from retrieval.pair_checkpoint import Checkpoints
from retrieval.pair_lists import DevList, LearnList
from retrieval.pair_looks import Look, Texts
from retrieval.pair_training import Plan, Tell, Trainer
from retrieval.pooled_pair import PooledPair

PATIENCE = timedelta(minutes=20)  # for the others: one of them may be looking at dev


class Meeting:
    """A Together over gloo, on this machine alone."""

    def __init__(self, meeting_place: Path, rank: int, processes: int) -> None:
        import torch
        from torch import distributed

        self._torch, self._distributed, self._processes = torch, distributed, processes
        distributed.init_process_group(
            "gloo", init_method=meeting_place.absolute().as_uri(), rank=rank, world_size=processes, timeout=PATIENCE
        )

    def average(self, tensors: Sequence[Any]) -> None:  # torch.Tensor
        """See Together.average: one message for all tensors."""
        torch = self._torch
        with torch.no_grad():
            flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
            self._reduce(flat, self._distributed.ReduceOp.SUM)
            flat /= self._processes
            start = 0
            for tensor in tensors:
                tensor.copy_(flat[start : start + tensor.numel()].view_as(tensor))
                start += tensor.numel()

    def longest(self, seconds: float) -> float:
        """See Together.longest."""
        value = self._torch.tensor([seconds], dtype=self._torch.float64)
        self._reduce(value, self._distributed.ReduceOp.MAX)
        return float(value[0])

    def end(self) -> None:
        """Leave the others."""
        self._distributed.destroy_process_group()

    def _reduce(self, tensor: Any, how: Any) -> None:
        try:
            self._distributed.all_reduce(tensor, op=how)
        except RuntimeError as error:  # gloo's word for a process that is gone
            raise StageFailed(
                "A process of the training has ended and the others cannot go on, perhaps for want of memory: give the "
                "same command again, with fewer --processes; it goes on from what all of them had kept.",
                stage="training",
            ) from error


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Everything that a process needs to take part; sent to it whole."""

    start: Path | None
    max_tokens: int
    first_layer: int
    learn: tuple[LearnList, ...]
    dev: tuple[DevList, ...]
    texts: Texts
    plan: Plan
    folder: Path  # of checkpoints
    name: str  # of exactly this training
    processes: int

    def take_part(self, rank: int, tell: Tell = lambda step, done, loss: None) -> tuple[PooledPair, list[Look]]:
        """Train as one of the processes, on one thread: the model with the weights that are kept, and the looks."""
        import torch

        torch.set_num_threads(1)
        model = PooledPair.starting_from(self.start, self.max_tokens, self.first_layer)
        meeting = Meeting(self.folder / "meeting", rank, self.processes) if self.processes > 1 else None
        trainer = Trainer(
            model,
            self.learn[rank :: self.processes],
            self.dev,
            self.texts,
            self.plan,
            checkpoints=Checkpoints(self.folder, self.name, rank, self.processes),
            together=meeting,
            rank=rank,
        )
        looks = trainer.run(tell)
        if meeting:
            meeting.end()
        return model, looks


def train(training: Training, tell: Tell = lambda step, done, loss: None) -> tuple[PooledPair, list[Look]]:
    """Train in all processes of the training, this one being the first, and see Training.take_part."""
    training.folder.mkdir(parents=True, exist_ok=True)
    (training.folder / "meeting").unlink(missing_ok=True)
    with _others(training):
        return training.take_part(0, tell)


@contextmanager
def _others(training: Training) -> Iterator[None]:
    """The other processes while the block runs; they end with it."""
    context = multiprocessing.get_context("spawn")
    there = [
        context.Process(target=training.take_part, args=(rank,), daemon=True) for rank in range(1, training.processes)
    ]
    for process in there:
        process.start()
    try:
        yield
        for process in there:
            process.join(60)
    finally:
        for process in there:
            if process.is_alive():
                process.terminate()
            process.join()
