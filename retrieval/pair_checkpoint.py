"""The state of a training on disk: enough to go on after the process was killed at any moment.

Tensors as safetensors with the rest as JSON in its header; nothing is pickled. A file appears whole, and the one
before stays until every process has a newer one: several processes go on from the latest step that all of them have.
"""

import errno
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from domain.errors import StorageError
from retrieval.pair_looks import Look

Tensor = Any  # torch.Tensor
MOMENTS = ("exp_avg", "exp_avg_sq")  # what AdamW remembers of a tensor


@dataclass(slots=True)
class State:
    """Where a training stands. `best` are the weights of the best look; `order` is that of the lists in this round."""

    step: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)  # since the last look
    looks: list[Look] = field(default_factory=list)
    looked: int = 0  # looks that were due and are done, in every process
    best: dict[str, Tensor] = field(default_factory=dict)
    order: tuple[int, list[int]] | None = None


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of one process of a training, below `folder`. `training` names what is trained on and how:
    those of another one lie beside them and are neither gone on with nor counted."""

    folder: Path
    training: str
    rank: int = 0
    processes: int = 1

    def keep(self, state: State, trained: Mapping[str, Tensor], optimizer: Any) -> None:
        """Write the state down. Raises StorageError when the disk is full or cannot be written."""
        from safetensors.torch import save

        tensors = {f"trained.{name}": tensor.detach() for name, tensor in trained.items()}
        tensors |= {f"best.{name}": tensor for name, tensor in state.best.items()}
        for name, tensor in trained.items():
            moments = optimizer.state.get(tensor, {})
            tensors |= {f"{moment}.{name}": moments[moment] for moment in MOMENTS if moment in moments}
        about = {
            "step": state.step,
            "seconds": state.seconds,
            "losses": state.losses,
            "looked": state.looked,
            "looks": [asdict(one) for one in state.looks],
        }
        file, before = self._file(state.step), [step for step in self._steps(self.rank) if step != state.step]
        part = file.with_suffix(".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as out:
                out.write(save({n: t.contiguous() for n, t in tensors.items()}, {"about": json.dumps(about)}))
                out.flush()
                os.fsync(out.fileno())  # or a power cut leaves a name without its bytes
            part.replace(file)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise unwritable(self.folder, error) from error
        for step in before[:-1]:  # the one before may be the latest that all processes have
            self._file(step).unlink(missing_ok=True)

    def restore(self, state: State, trained: Mapping[str, Tensor], optimizer: Any) -> None:
        """Go on from the latest step that all processes have of this very training; without one nothing changes."""
        import torch
        from safetensors import safe_open

        for step in reversed(self._steps(self.rank)):
            if not all(step in self._steps(rank) for rank in range(self.processes)):
                continue
            with safe_open(self._file(step), "pt") as file:
                about = json.loads(file.metadata()["about"])
                held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (vendor)
            with torch.no_grad():
                for name, tensor in trained.items():
                    tensor.copy_(held[f"trained.{name}"])
                    if f"exp_avg.{name}" in held:
                        moments = {moment: held[f"{moment}.{name}"] for moment in MOMENTS}
                        optimizer.state[tensor] = {"step": torch.tensor(float(about["step"])), **moments}
            state.step, state.seconds, state.losses = about["step"], about["seconds"], about["losses"]
            state.looked = about["looked"]
            state.looks = [_look(one) for one in about["looks"]]
            state.best = {n.removeprefix("best."): tensor for n, tensor in held.items() if n.startswith("best.")}
            return

    def _file(self, step: int, rank: int | None = None) -> Path:
        return self.folder / f"{self.training}-step-{step:07}-of-{self.rank if rank is None else rank}.safetensors"

    def _steps(self, rank: int) -> list[int]:
        """The steps that a process has kept, ascending."""
        ours = self.folder.glob(f"{self.training}-step-*-of-{rank}.safetensors")
        return sorted(int(path.name.split("-")[-3]) for path in ours)


def _look(one: dict[str, Any]) -> Look:
    """JSON has turned the shares into texts."""
    sets = {name: {float(share): value for share, value in by.items()} for name, by in one["ndcg10"].items()}
    return Look(one["step"], one["loss"], sets, one["seconds"])


def unwritable(folder: Path, error: OSError) -> StorageError:
    """What to say when weights cannot be written."""
    if error.errno == errno.ENOSPC:
        return StorageError(
            f"The disk of {folder} is full: free 500 MB and give the same command again, it goes on from its last "
            "checkpoint."
        )
    return StorageError(f"Weights cannot be written to {folder} ({error.strerror}): choose another --out.")
