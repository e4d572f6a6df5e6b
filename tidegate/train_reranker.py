"""`tidegate train-reranker`: questions and the passages that answer them to a reranker in a folder.

Made of steps that leave files, so that the same command goes on after a kill: hard negatives, checkpoints, and at last
the folder itself. Serving it is a change of settings, which goes through the gate like any other.
"""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest
from tidegate.config import AsJson
from tidegate.console import Code, loaded, say, say_json
from tidegate.progress import progress

if TYPE_CHECKING:
    from retrieval.pair_sets import TrainingSet
    from tidegate.settings import Settings


def train_reranker(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder to write; --kind features writes a file.")],
    questions: Annotated[
        Path | None, typer.Option(help="Question set, or BEIR folder: its dev questions.", show_default=False)
    ] = None,
    corpus: Annotated[Path | None, typer.Option(help="Library the questions ask about.", show_default=False)] = None,
    pairs: Annotated[Path | None, typer.Option(help="Folder of NAME/pairs.jsonl.gz.", show_default=False)] = None,
    only: Annotated[str, typer.Option(help="Of these pairs only the sets named, comma separated.")] = "",
    choose_by: Annotated[str, typer.Option(help="Sets that choose and are not learnt from.")] = "",
    kind: Annotated[str, typer.Option(help="pooled: a model that reads; features: eight weights.")] = "pooled",
    minutes: Annotated[float | None, typer.Option(min=0.05, help="How long.", show_default=False)] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="How many steps, to repeat exactly.", show_default=False)
    ] = None,
    most: Annotated[int, typer.Option(min=10, help="Questions of a set, at most.")] = 3000,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds draw and learn equally.")] = 7,
    processes: Annotated[int, typer.Option(min=1, max=64, help="Processes that learn, a core each.")] = 1,
    start: Annotated[
        Path | None, typer.Option(help="Trained folder to go on from; the bundled encoder when left out.")
    ] = None,
    wrong: Annotated[str, typer.Option(help="The wrong passages to learn from: fused or lexical order.")] = "fused",
    hardest: Annotated[int, typer.Option(min=4, max=30, help="Of those, how many to draw from.")] = 30,
    learning_rate: Annotated[float, typer.Option(min=1e-7, max=1e-2, help="At its highest.")] = 5e-5,
    beside_prior: Annotated[float, typer.Option(min=0, max=10, help="Weight of the prior in the loss.")] = 0.0,
    looks: Annotated[
        int | None, typer.Option(min=1, max=100, help="How often dev is asked.", show_default=False)
    ] = None,
    first_layer: Annotated[int, typer.Option(min=0, max=6, help="Layers below it stay as they are.")] = 1,
    max_tokens: Annotated[int, typer.Option(min=32, max=512, help="Tokens of question and passage together.")] = 160,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew, whatever is there.")] = False,
    as_json: AsJson = False,
) -> Code:
    """Train a reranker on questions, or on pairs.

    Only dev questions are learnt from. A killed training goes on when the same command is given again. To serve the
    result, set rerank.backend to cross_encoder and rerank.folder to it, and decide by `tidegate gate`.
    """
    from tidegate.training_work import check_memory, command_line, working

    settings = loaded(ctx).settings
    if kind == "features":
        from tidegate.train_features import train_features

        return train_features(settings, pairs, out, seed, command_line(ctx), as_json)
    if kind != "pooled":
        raise BadRequest(f"There is no kind {kind!r}: pooled or features.", "kind")
    if (questions is None) == (pairs is None):
        raise BadRequest("What to learn from is missing or double: give --questions PATH or --pairs DIR.", "questions")
    if (steps is None) == (minutes is None):
        raise BadRequest("How long is missing or double: give --minutes M or --steps N.", "minutes")
    from retrieval.pair_mining import ORDERS
    from tidegate.training import Learning, Wanted, trained

    if wrong not in ORDERS:
        raise BadRequest(f"There is no order {wrong!r}: {' or '.join(ORDERS)}.", "wrong")
    learning = Learning(wrong, hardest, learning_rate, beside_prior, looks)
    wanted = Wanted(steps, minutes, seed, processes, start, first_layer, max_tokens, out, command_line(ctx), learning)
    check_memory(processes)
    with working(out, fresh), progress() as report:
        if questions is not None:
            sets, left_out = _from_questions(settings, questions, corpus)
        else:
            sets, left_out = _from_pairs(pairs or Path(), only, choose_by, most, seed), {}
        made = trained(settings, wanted, sets, frozenset(_names(choose_by)), left_out, report)
    if as_json:
        say_json(made)
    else:
        say(f"{out} is trained: share {made['reading_share']}, nDCG@10 on dev {made['dev_ndcg10']}")
        say(
            f"Next: tidegate bench quality --rerank {shlex.quote(str(out))} --beir DIR, on a collection it has not seen"
        )
    return Code.DONE


def _from_questions(
    settings: "Settings", questions: Path, corpus: Path | None
) -> "tuple[list[TrainingSet], dict[str, int]]":
    from tidegate.training_sets import from_questions

    taken = from_questions(settings, questions, corpus)
    return [taken.training], taken.left_out


def _from_pairs(pairs: Path, only: str, choose_by: str, most: int, seed: int) -> "list[TrainingSet]":
    from retrieval.pair_sets import read_pair_sets

    names = [*_names(only), *_names(choose_by)] if only else []
    sets = read_pair_sets(pairs, names, most, seed)
    if lost := sorted(set(_names(choose_by)) - {one.name for one in sets}):
        raise BadRequest(f"--choose-by names {lost[0]!r}, which {pairs} does not have.", "choose_by")
    return [replace(one, source=source_of(pairs / one.name)) for one in sets]


def source_of(folder: Path) -> str:
    """What the SOURCE.md of a set says about origin and licence, on one line; "" when there is none."""
    file = folder / "SOURCE.md"
    if not file.is_file():
        return ""
    lines = [line.removeprefix("- ") for line in file.read_text("utf-8", errors="replace").splitlines()]
    return "; ".join(line.strip() for line in lines if line.startswith(("from:", "licence:", "license:")))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
