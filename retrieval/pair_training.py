"""The training of a pooled pair model: listwise, on lists with hard negatives, within so many steps or minutes.

Every step is a function of the seed, the step's number and the weights, so a training that was killed goes on where
its last checkpoint was, and one of so many steps ends with the same bytes. Source of the loss: Cao et al., ICML 2007
(ListNet, top one). Lists come from pair_mining.py, what is kept of them is chosen by pair_looks.py, and the state on
disk is pair_checkpoint.py.
"""

import ctypes
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from retrieval.pair_checkpoint import Checkpoints, State
from retrieval.pair_lists import DevList, LearnList
from retrieval.pair_looks import Look, Texts, look
from retrieval.pooled_pair import PooledPair

WRONG = 5  # passages beside the right one in a list
AT_ONCE = 5  # lists of one pass: 30 pairs suit a core's caches
PASSES = 2  # before the weights move
GIVEN = 2  # of the wrong passages that came with the set, at most
QUESTION_TOKENS = 48  # of a question that are read: longer ones leave no room for passages
TOGETHER_EVERY = 10  # steps after which several processes average their weights


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how a model is trained. One of `steps` and `minutes` is given; only `steps` repeats exactly."""

    steps: int | None = None
    minutes: float | None = None
    seed: int = 7
    learning_rate: float = 5e-5
    hardest: int = 30  # of the wrong passages, from which all but one are drawn
    beside_prior: float = 0.0  # what a deviation of the prior counts in the loss; 0 teaches the reading by itself
    warmup_steps: int = 30
    dropout: float = 0.05
    weight_decay: float = 0.01
    looks: int = 8  # at dev, over the whole training
    keep_s: float = 300.0  # between two checkpoints


class Together(Protocol):
    """The other processes of a training."""

    def average(self, tensors: Sequence[Any]) -> None:  # torch.Tensor
        """Replace each tensor by its mean over all processes; waits for them."""
        ...

    def longest(self, seconds: float) -> float:
        """The largest value that any process gave."""
        ...


Tell = Callable[[int, float, float], None]  # step, share of the plan that is done, loss


class Trainer:
    """One process of a training; `learn` is its part of the lists. Only that of rank 0 looks at dev."""

    def __init__(
        self,
        model: PooledPair,
        learn: Sequence[LearnList],
        dev: Sequence[DevList],
        texts: Texts,
        plan: Plan,
        *,
        checkpoints: Checkpoints | None = None,
        together: Together | None = None,
        rank: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        import torch

        self._torch, self.model, self._learn, self._dev, self._texts = torch, model, learn, dev, texts
        if plan.beside_prior:
            self._learn = [one for one in learn if one.prior]
        self._plan, self._checkpoints, self._together = plan, checkpoints, together
        self._rank, self._clock = rank, clock
        for tensor in model.trained.values():
            tensor.requires_grad_(True)
        wide = [tensor for tensor in model.trained.values() if tensor.dim() > 1]
        narrow = [tensor for tensor in model.trained.values() if tensor.dim() == 1]
        groups = [{"params": wide, "weight_decay": plan.weight_decay}, {"params": narrow, "weight_decay": 0.0}]
        self._optimizer = torch.optim.AdamW(groups, lr=plan.learning_rate, betas=(0.9, 0.98), foreach=False)
        self._state = State()

    def run(self, tell: Tell = lambda step, done, loss: None) -> list[Look]:
        """Train to the end of the plan. The model then has the weights that were best on dev; all looks come back."""
        state = self._state
        if self._checkpoints:
            self._checkpoints.restore(state, self.model.trained, self._optimizer)
        began, kept = self._clock() - state.seconds, state.seconds
        self._look_when_due()  # a kill may have come while it was looking
        while (done := self._done()) < 1:
            loss = self._step(done)
            state.step += 1
            state.losses.append(loss)
            if self._meets():
                state.seconds = self._agreed(self._clock() - began)
                tell(state.step, self._done(), loss)
                if self._looks_done() > state.looked or state.seconds - kept >= self._plan.keep_s:
                    self._keep()
                    kept = state.seconds
                if self._look_when_due():
                    self._keep()
        if self._together:
            self._together.average(list(self.model.trained.values()))
        state.seconds = self._agreed(self._clock() - began)
        if not state.looks or state.looks[-1].step != state.step:
            self._look()
        with self._torch.no_grad():
            for name, tensor in state.best.items():
                self.model.trained[name].copy_(tensor)
        return list(state.looks)

    def _keep(self) -> None:
        if self._checkpoints:
            self._checkpoints.keep(self._state, self.model.trained, self._optimizer)

    # ------------------------------------------------------------------------------------------ time

    def _done(self) -> float:
        """The share of the plan that is done, 1 at its end."""
        if self._plan.steps is not None:
            return self._state.step / self._plan.steps
        return self._state.seconds / 60 / (self._plan.minutes or 1e-9)

    def _looks_done(self) -> int:
        """How many looks should have been taken by now."""
        return int(self._done() * self._plan.looks)

    def _meets(self) -> bool:
        """True where all processes have the same weights, and so may stop to look or to keep them."""
        if self._together is None:
            return True
        if self._state.step % TOGETHER_EVERY:
            return False
        self._together.average(list(self.model.trained.values()))
        return True

    def _agreed(self, seconds: float) -> float:
        return self._together.longest(seconds) if self._together else seconds

    # ------------------------------------------------------------------------------------------ a step

    def _step(self, done: float) -> float:
        """One move of the weights over PASSES * AT_ONCE lists; the mean loss of them."""
        torch, plan, step = self._torch, self._plan, self._state.step
        torch.manual_seed(_seed(plan.seed, self._rank, step))  # of dropout
        rng = random.Random(_seed(plan.seed, self._rank, step))  # noqa: S311 - a draw that repeats, not a secret
        rate = plan.learning_rate * min(1.0, (step + 1) / plan.warmup_steps) * max(0.02, 1 - done)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        total = 0.0
        lists = self._next_lists(step)
        for start in range(0, len(lists), AT_ONCE):
            drawn = [(one, self._drawn(one, rng)) for one in lists[start : start + AT_ONCE]]
            pairs = [pair for one, rows in drawn for pair in self._pairs(one, rows)]
            scores = self.model.scores(pairs, plan.dropout).view(-1, 1 + WRONG)  # [AT_ONCE, 1 + WRONG]
            if plan.beside_prior:
                scores = scores + plan.beside_prior * torch.tensor([_prior(one, rows) for one, rows in drawn])
            loss = -torch.log_softmax(scores, -1)[:, 0].mean() / PASSES
            loss.backward()
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(list(self.model.trained.values()), 1.0, foreach=False)
        self._optimizer.step()
        self._optimizer.zero_grad()
        give_back()
        return total

    def _next_lists(self, step: int) -> list[LearnList]:
        """The lists of a step: all of them in a new order each time round."""
        count, n = PASSES * AT_ONCE, len(self._learn)
        chosen = []
        for place in range(step * count, (step + 1) * count):
            chosen.append(self._learn[self._order(place // n)[place % n]])
        return chosen

    def _order(self, turn: int) -> list[int]:
        if self._state.order is None or self._state.order[0] != turn:
            order = list(range(len(self._learn)))
            random.Random(_seed(self._plan.seed, self._rank, -1 - turn)).shuffle(order)  # noqa: S311 - as above
            self._state.order = (turn, order)
        return self._state.order[1]

    def _drawn(self, one: LearnList, rng: random.Random) -> list[int]:
        """The right row first and WRONG others: given ones, hard ones, one further down.

        A given one was not found, so it has no prior, and is left out beside one.
        """
        given = rng.sample(one.given, min(GIVEN, len(one.given))) if not self._plan.beside_prior else []
        rest = list(one.wrong[self._plan.hardest :])
        further = rng.sample(rest, min(1, len(rest)))
        hard = [row for row in one.wrong[: self._plan.hardest] if row not in given]
        rng.shuffle(hard)
        rows = [*given, *hard[: WRONG - len(given) - len(further)], *further]
        while len(rows) < WRONG:  # a short list: some come twice
            rows.append(rng.choice(one.wrong))
        return [one.right, *rows]

    def _pairs(self, one: LearnList, rows: Sequence[int]) -> list[tuple[Any, Any]]:
        question = self._texts.questions[one.question]
        return [(question, self._texts.passages[one.set, row]) for row in rows]

    # ------------------------------------------------------------------------------------------ dev

    def _look_when_due(self) -> bool:
        """Whether it was time to look: a look takes minutes, so the state is kept before it and after."""
        due = self._looks_done() > self._state.looked
        if due:
            self._look()
            self._state.looked = self._looks_done()
        return due

    def _look(self) -> None:
        """What dev says now; the best weights so far are remembered."""
        state = self._state
        if self._rank == 0:
            seen = look(self.model, self._dev, self._texts, state.step, float(np.mean(state.losses or [0.0])))
            if not state.looks or seen.best > max(one.best for one in state.looks):
                state.best = {name: tensor.detach().clone() for name, tensor in self.model.trained.items()}
            state.looks.append(replace(seen, seconds=state.seconds))
        state.losses.clear()


def _prior(one: LearnList, rows: Sequence[int]) -> list[float]:
    """What the prior thinks of the rows of a list."""
    known = dict(zip((one.right, *one.wrong), one.prior, strict=True))
    return [known[row] for row in rows]


def give_back() -> None:
    """Give freed memory back to the system, where its allocator can be told to.

    No two passes have sequences of the same lengths, so their tensors leave holes of every size: a process that takes
    0.6 GB and 0.8 more during a pass has grown to 4 GB after two thousand passes. Takes 0.2 s of the 7 s of a step.
    """
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # glibc has it
        trim(0)


def _seed(*numbers: int) -> int:
    """One seed of several numbers: neighbours share nothing."""
    return int(np.random.SeedSequence([number % 2**32 for number in numbers]).generate_state(1)[0])
