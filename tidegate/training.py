"""The steps of a training, from sets to a folder: hard negatives, steps of the model, weights and card.

Each leaves its files below the folder that is written, so that the next try of the same command goes on from them. The
verb is train_reranker.py; what is checked before and told meanwhile is training_work.py.
"""

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.console import note
from tidegate.progress import Report
from tidegate.reranker_card import gains
from tidegate.training_work import FEWEST_CHOSEN, HISTORY, WORK, check_enough, teller

if TYPE_CHECKING:
    from retrieval.pair_lists import Lists
    from retrieval.pair_looks import Chosen, Look, Texts
    from retrieval.pair_processes import Training
    from retrieval.pair_sets import TrainingSet
    from retrieval.pooled_pair import PooledPair
    from tidegate.settings import Settings

    Sides = Sequence[tuple[TrainingSet, TrainingSet]]  # of each set: what is learnt from, and what is chosen by

DEV_SHARE = 0.1  # of a set's questions that choose and are not learnt from
MOST_DEV = 240  # lists that choose: a look at them takes two minutes of a core
LOOK_MINUTES, LOOK_STEPS, MOST_LOOKS = 15, 100, 8


@dataclass(frozen=True, slots=True)
class Learning:
    """How wrong passages are chosen and how far a step goes, see pair_mining.ORDERS and pair_training.Plan."""

    wrong: str
    hardest: int
    rate: float
    beside_prior: float
    looks: int | None = None  # as long as the training asks for when left out


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for, in the words of the command line."""

    steps: int | None
    minutes: float | None
    seed: int
    processes: int
    start: Path | None
    first_layer: int
    max_tokens: int
    out: Path
    command: str  # for the card
    learning: Learning


def trained(
    settings: "Settings",
    wanted: Wanted,
    sets: "Sequence[TrainingSet]",
    choosing: frozenset[str],
    left_out: dict[str, int],
    report: Report,
) -> dict[str, object]:
    """Mine, train, and write the folder; what there is to tell comes back."""
    from retrieval.pair_looks import under_share
    from retrieval.pair_processes import train
    from retrieval.pair_sets import apart, held_out

    each = max(FEWEST_CHOSEN, MOST_DEV // len(sets))
    sides = apart(
        [
            (replace(one, asked=()), held_out(one, 1.0, each)[1])
            if one.name in choosing
            else held_out(one, DEV_SHARE, each)
            for one in sets
        ]
    )
    lists, encoder = _lists(settings, wanted, sides, report)
    check_enough(lists, wanted.processes)
    training = _training(wanted, sides, lists)
    history = wanted.out / WORK / f"{training.name}-{HISTORY}"  # an earlier training in this folder has another
    model, looks = train(training, teller(history, report))
    best = max(looks, key=lambda one: one.best)
    chosen = under_share(best, lists.dev, best.share)
    return _written(settings, wanted, sides, lists, encoder, left_out, model, looks, chosen, history)


def _lists(settings: "Settings", wanted: Wanted, sides: "Sides", report: Report) -> "tuple[Lists, str]":
    """The lists of all sets, and the encoder they were found with; those of a set stay for the next try once found."""
    from retrieval.pair_checkpoint import unwritable
    from retrieval.pair_lists import Lists, read_lists, write_lists
    from retrieval.pair_mining import mine
    from retrieval.reranking import FeatureReranker, read_weights
    from tidegate.compose import make_embedder, word_vectors_of

    embedder = make_embedder(settings)
    prior = FeatureReranker(read_weights(), word_vectors_of(settings))
    found = []
    for number, (learn, dev) in enumerate(sides):
        report("finding hard negatives", number, len(sides))
        order = wanted.learning.wrong
        digest = _digest([embedder.tag, prior.tag, order, asdict(learn), [asdict(asked) for asked in dev.asked]])
        file = wanted.out / WORK / f"lists-{digest}.jsonl"
        if not file.is_file():
            mined = mine(learn, dev, embedder, prior, order)
            try:
                write_lists(file, mined)
            except OSError as error:
                raise unwritable(file.parent, error) from error
        found.append(read_lists(file))
    report("finding hard negatives", len(sides), len(sides))
    return Lists(
        tuple(one for lists in found for one in lists.learn),
        tuple(one for lists in found for one in lists.dev),
        sum(lists.missed for lists in found),
    ), embedder.tag


def _training(wanted: Wanted, sides: "Sides", lists: "Lists") -> "Training":
    from retrieval.model_folder import sha256, weight_files
    from retrieval.pair_processes import Training
    from retrieval.pair_training import Plan

    long = wanted.steps / LOOK_STEPS if wanted.steps else (wanted.minutes or 0) / LOOK_MINUTES
    looks = wanted.learning.looks or max(1, min(MOST_LOOKS, round(long)))
    how = wanted.learning
    plan = Plan(
        wanted.steps,
        wanted.minutes,
        wanted.seed,
        how.rate,
        how.hardest,
        how.beside_prior,
        looks=looks,
    )
    start = sha256(weight_files(wanted.start)) if wanted.start else ""
    name = _digest([asdict(lists), asdict(plan), start, wanted.first_layer, wanted.max_tokens, wanted.processes])
    return Training(
        wanted.start,
        wanted.max_tokens,
        wanted.first_layer,
        lists.learn,
        lists.dev,
        texts_of(sides, lists, wanted.max_tokens),
        plan,
        wanted.out / WORK,
        name,
        wanted.processes,
    )


def texts_of(sides: "Sides", lists: "Lists", max_tokens: int) -> "Texts":
    """Everything the lists name, as token ids."""
    from retrieval.model_folder import minilm_folder
    from retrieval.pair_looks import Texts
    from retrieval.pair_training import QUESTION_TOKENS
    from retrieval.reranking import passage
    from retrieval.tokenizing import Tokenizer

    cut = Tokenizer(minilm_folder(), max_tokens).cut_all
    chunks = {one.name: one.chunks for one, _ in sides}
    asking = [*(one.question for one in lists.learn), *(one.question for one in lists.dev)]
    questions = list(dict.fromkeys(asking))
    learnt = [(one.set, row) for one in lists.learn for row in (one.right, *one.wrong, *one.given)]
    rows = list(dict.fromkeys([*learnt, *((one.set, row) for one in lists.dev for row in one.rows)]))
    asked = [ids[:QUESTION_TOKENS] for ids in cut(questions)]
    read = [ids[:max_tokens] for ids in cut([passage(chunks[name][row]) for name, row in rows])]
    return Texts(dict(zip(questions, asked, strict=True)), dict(zip(rows, read, strict=True)))


def _written(
    settings: "Settings",
    wanted: Wanted,
    sides: "Sides",
    lists: "Lists",
    encoder: str,
    left_out: dict[str, int],
    model: "PooledPair",
    looks: "Sequence[Look]",
    chosen: "Sequence[Chosen]",
    history: Path,
) -> dict[str, object]:
    """Write weights, configuration, card and history, in this order: a folder with a card is whole."""
    from retrieval.model_folder import MINILM
    from retrieval.pair_checkpoint import unwritable
    from tidegate.reranker_card import Facts, SetFacts, card
    from tidegate.training_runs import TrainingRun, track_training

    best = max(looks, key=lambda one: one.best)
    facts = Facts(
        command=wanted.command,
        base=MINILM,
        started_from=wanted.start.name if wanted.start else "",
        steps=looks[-1].step,
        minutes=looks[-1].seconds / 60,
        processes=wanted.processes,
        seed=wanted.seed,
        encoder=encoder,
        reading_share=best.share,
        sets=[
            SetFacts(
                one.name,
                sum(made.set == one.name for made in lists.learn),
                sum(made.set == one.name for made in lists.dev),
                one.source,
            )
            for one, _ in sides
        ],
        left_out=left_out,
        missed=lists.missed,
        gains=gains(chosen, "fusion"),
        over_prior=gains(chosen, "prior"),
    )
    try:
        model.save(wanted.out, best.share)
        (wanted.out / HISTORY).write_bytes(history.read_bytes())
        (wanted.out / "README.md").write_text(card(facts), "utf-8")
    except OSError as error:
        raise unwritable(wanted.out, error) from error
    run = TrainingRun.of(facts, looks, wanted.out)
    if told := track_training(settings, run, wanted.out):
        note(told)
    shutil.rmtree(wanted.out / WORK)
    return {
        "folder": str(wanted.out),
        "steps": looks[-1].step,
        "kept_step": best.step,
        "reading_share": best.share,
        "dev_ndcg10": round(best.best, 4),
        "dev_ndcg10_of_prior": round(best.mean(0.0), 4),
        "lists": len(lists.learn),
        "dev": {name: {k: round(v, 4) for k, v in asdict(gain).items()} for name, gain in facts.gains.items()},
    }


def _digest(content: object) -> str:
    """16 hex digits that change with the content."""
    text = json.dumps(content, sort_keys=True, default=sorted)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
