"""Training: the same bytes twice, on after a kill, something learnt, and the right weights kept."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from domain.errors import StorageError
from retrieval.pair_checkpoint import Checkpoints
from retrieval.pair_lists import DevList
from retrieval.pair_looks import SHARES, Chosen, Look, look, under_share
from retrieval.pair_processes import Training, train
from retrieval.pair_training import Plan, Trainer
from retrieval.pooled_pair import PooledPair
from tests.retrieval.tiny_pairs import tiny_lists, tiny_model

FAST = Plan(steps=3, learning_rate=3e-3, warmup_steps=1, looks=2)


def trainer(model: PooledPair, plan: Plan = FAST, **more: Any) -> Trainer:
    torch.set_num_threads(1)
    learn, dev, texts = tiny_lists(model)
    return Trainer(model, learn, dev, texts, plan, **more)


def written(model: PooledPair, folder: Path) -> bytes:
    model.save(folder, reading_share=0.3)
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_so_many_steps_give_the_same_bytes_twice(tmp_path: Path) -> None:
    models = [tiny_model(), tiny_model()]
    for model in models:
        trainer(model).run()
    assert written(models[0], tmp_path / "a") == written(models[1], tmp_path / "b")


def test_another_seed_gives_other_weights(tmp_path: Path) -> None:
    models = [tiny_model(), tiny_model()]
    trainer(models[0]).run()
    trainer(models[1], replace(FAST, seed=8)).run()
    assert written(models[0], tmp_path / "a") != written(models[1], tmp_path / "b")


class Killed(BaseException):
    """What a test does to a training: no code can catch it."""


def killed_at(step: int) -> Callable[[int, float, float], None]:
    def tell(now: int, _done: float, _loss: float) -> None:
        if now == step:
            raise Killed

    return tell


@pytest.mark.parametrize("step", [2, 4])
def test_a_killed_training_goes_on_and_ends_with_the_same_bytes(tmp_path: Path, step: int) -> None:
    plan = replace(FAST, steps=4, keep_s=0)
    whole = tiny_model()
    trainer(whole, plan).run()
    with pytest.raises(Killed):
        trainer(tiny_model(), plan, checkpoints=Checkpoints(tmp_path / "work", "t")).run(killed_at(step))
    again, told = tiny_model(), []
    trainer(again, plan, checkpoints=Checkpoints(tmp_path / "work", "t")).run(lambda s, d, loss: told.append(s))
    assert told[0] == step, "the last step before the kill was not kept yet and is done again"
    assert written(again, tmp_path / "a") == written(whole, tmp_path / "b")


class KilledAtDev(list[DevList]):
    """Lists of dev at which the training is killed."""

    def __iter__(self) -> Iterator[DevList]:
        raise Killed


def test_a_training_killed_while_it_looks_loses_no_step_and_looks_again(tmp_path: Path) -> None:
    plan = replace(FAST, steps=4, looks=2, keep_s=300)  # looks are due after the steps 2 and 4
    whole = tiny_model()
    seen = trainer(whole, plan).run()
    model = tiny_model()
    learn, dev, texts = tiny_lists(model)
    cut = Trainer(model, learn, KilledAtDev(dev), texts, plan, checkpoints=Checkpoints(tmp_path / "work", "t"))
    with pytest.raises(Killed):
        cut.run()
    again, told = tiny_model(), []
    looks = trainer(again, plan, checkpoints=Checkpoints(tmp_path / "work", "t")).run(lambda s, d, loss: told.append(s))
    assert told == [3, 4]
    assert [look.step for look in looks] == [look.step for look in seen] == [2, 4]
    assert written(again, tmp_path / "a") == written(whole, tmp_path / "b")


def test_what_another_training_has_kept_takes_no_place(tmp_path: Path) -> None:
    plan = Plan(steps=5, warmup_steps=1, looks=1, keep_s=0)
    trainer(tiny_model(), plan, checkpoints=Checkpoints(tmp_path, "one")).run()
    for rank, steps in ((0, 3), (1, 2)):  # rank 0 was a step ahead when both were killed
        plan = Plan(steps=steps, warmup_steps=1, looks=1, keep_s=0)
        trainer(tiny_model(), plan, checkpoints=Checkpoints(tmp_path, "two", rank, 2), rank=0).run()
    told: list[int] = []
    plan = Plan(steps=4, warmup_steps=1, looks=1)
    trainer(tiny_model(), plan, checkpoints=Checkpoints(tmp_path, "two", 0, 2)).run(lambda s, d, loss: told.append(s))
    assert told == [3, 4]


def test_time_before_a_kill_counts(tmp_path: Path) -> None:
    plan = Plan(steps=2, warmup_steps=1, looks=1, keep_s=0)
    for steps in (2, 4):
        now = iter(range(0, 1000, 10))
        looks = trainer(
            tiny_model(),
            replace(plan, steps=steps),
            checkpoints=Checkpoints(tmp_path, "t"),
            clock=lambda now=now: float(next(now)),  # type: ignore[misc]
        ).run()
    # steps 1 and 2 end after 10 and 20 s; after the kill 3 and 4 at 30 and 40, and the clock is read once more
    assert [look.seconds for look in looks] == [20, 50]


def test_a_checkpoint_of_another_training_is_not_gone_on_with(tmp_path: Path) -> None:
    plan = Plan(steps=3, warmup_steps=1, looks=1, keep_s=0)
    trainer(tiny_model(), plan, checkpoints=Checkpoints(tmp_path, "one")).run()
    told: list[int] = []
    trainer(tiny_model(), plan, checkpoints=Checkpoints(tmp_path, "two")).run(lambda s, d, loss: told.append(s))
    assert told == [1, 2, 3]


def test_processes_go_on_from_a_step_that_all_of_them_have_kept(tmp_path: Path) -> None:
    for rank, steps in ((0, 3), (1, 2)):  # the second one was killed earlier
        plan = Plan(steps=steps, warmup_steps=1, looks=1, keep_s=0)
        trainer(tiny_model(), plan, checkpoints=Checkpoints(tmp_path, "t", rank, 2)).run()
    told: list[int] = []
    plan = Plan(steps=4, warmup_steps=1, looks=1)
    trainer(tiny_model(), plan, checkpoints=Checkpoints(tmp_path, "t", 0, 2)).run(lambda s, d, loss: told.append(s))
    assert told == [3, 4]


def test_a_disk_that_cannot_be_written_is_told_with_the_folder(tmp_path: Path) -> None:
    (tmp_path / "work").write_text("a file where the folder should be")
    plan = Plan(steps=2, warmup_steps=1, looks=1, keep_s=0)
    with pytest.raises(StorageError, match="work"):
        trainer(tiny_model(), plan, checkpoints=Checkpoints(tmp_path / "work", "t")).run()


def test_training_learns_what_only_the_lists_know() -> None:
    model = tiny_model()
    looks = trainer(model, Plan(steps=30, learning_rate=5e-3, warmup_steps=1, looks=2)).run()
    # The prior has every right passage last of three: 1 / log2(4) = .5.
    assert looks[-1].mean(0.0) == pytest.approx(0.5)
    assert looks[-1].best > 0.9
    assert looks[-1].loss < looks[0].loss


def test_time_ends_a_training_of_minutes() -> None:
    now = iter(range(0, 10_000, 20))  # every look at the clock takes 20 seconds
    looks = trainer(tiny_model(), Plan(minutes=1, warmup_steps=1, looks=1), clock=lambda: float(next(now))).run()
    assert looks[-1].step == 3


def test_the_weights_of_the_best_look_are_the_ones_kept() -> None:
    model = tiny_model()
    looks = trainer(model, Plan(steps=12, learning_rate=5e-3, warmup_steps=1, looks=4)).run()
    best = max(looks, key=lambda one: one.best)
    _, dev, texts = tiny_lists(model)
    assert look(model, dev, texts).ndcg10 == best.ndcg10


def test_what_a_share_adds_is_told_list_by_list() -> None:
    dev = tiny_lists(tiny_model())[1][:2]  # each with its right passage last of three: 1 / log2(4) = .5
    seen = Look(1, 0.0, {"harbour": {0.0: (0.5, 0.5), 0.3: (1.0, 0.6309)}})
    assert under_share(seen, dev, 0.3) == [Chosen("harbour", 0.5, 0.5, 1.0), Chosen("harbour", 0.5, 0.5, 0.6309)]


def test_the_smallest_of_equally_good_shares_is_taken_and_no_set_counts_more_than_another() -> None:
    flat = dict.fromkeys(SHARES, (0.5,))
    # at .3 the mean of the sets is (.9 + .5) / 2 = .7, as at .6; at 1 it is (.95 + .4) / 2
    one = flat | {0.3: (0.8, 1.0), 0.6: (0.9, 0.9), 1.0: (0.95, 0.95)}
    seen = Look(1, 0.0, {"large": one, "small": flat | {1.0: (0.4,)}})
    assert (seen.share, seen.best) == (0.3, pytest.approx(0.7))


def test_frozen_layers_and_embeddings_are_neither_moved_nor_stored(tmp_path: Path) -> None:
    model = tiny_model(first_layer=1)
    before = {name: tensor.clone() for name, tensor in model._weights.items()}
    trainer(model).run()
    moved = {name for name, tensor in model._weights.items() if not torch.equal(tensor, before[name])}
    assert moved
    assert all(name.startswith(("encoder.layer.1.", "head.")) for name in moved)


def test_every_list_is_seen_once_in_a_round() -> None:
    one = trainer(tiny_model())
    one._learn = one._learn[:7]
    # 7 lists, 10 a step: seven steps are ten rounds
    seen = [lists.right for step in range(7) for lists in one._next_lists(step)]
    every = sorted(lists.right for lists in one._learn)
    assert [sorted(seen[start : start + 7]) for start in range(0, 70, 7)] == [every] * 10


@pytest.mark.slow
def test_two_processes_train_one_model(tmp_path: Path) -> None:
    model = PooledPair.starting_from(None, 32, first_layer=5)
    learn, dev, texts = tiny_lists(model)
    plan = Plan(steps=2, warmup_steps=1, looks=1)
    training = Training(None, 32, 5, tuple(learn), tuple(dev), texts, plan, tmp_path / "work", "t", processes=2)
    trained, looks = train(training)
    assert looks[-1].step == 2
    assert any(not torch.equal(tensor, model.trained[name]) for name, tensor in trained.trained.items())
