"""`tidegate bench quality`: nDCG@10 of the first stage against the same lists reranked, on public collections.

Query by query, with a paired interval. A model's readings are kept in the data folder, so another share of them costs
no second pass. Shares are compared on dev splits only: what is chosen on a test split says nothing about others.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest
from tidegate.config import AsJson
from tidegate.console import Code, complain, loaded, say, say_json_line
from tidegate.progress import Report, progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from domain.types import Hit
    from eval.beir import Qrels
    from eval.ranking_gain import Gain
    from tidegate.settings import Settings

    Floats = NDArray[np.float64]

PRIORS = ("features", "fusion")
SHARES = tuple(round(0.1 * tenth, 1) for tenth in range(11))
WORST_LOSS = 0.005  # nDCG@10 that a reranker may cost on any collection
BETTER_ON = 3  # collections on which it has to be better, where so many are measured


@dataclass(frozen=True, slots=True)
class Reader:
    """A model that reads pairs: logits of a question with hits, the share they get, and a name for exactly this."""

    digest: str
    share: float
    script: str  # "latin": questions in another script are not read
    read: "Callable[[str, Sequence[Hit]], Sequence[float]]"


@dataclass(frozen=True, slots=True)
class Lists:
    """The first-stage lists of a collection by query, the best `depth` of each scored by each prior and the reader."""

    name: str
    split: str
    hits: "Mapping[str, tuple[Hit, ...]]"
    priors: "Mapping[str, Mapping[str, Floats]]"  # prior -> query -> [depth]
    readings: "Mapping[str, Floats]"  # [depth] logits; a query that was not read is not in here
    script: str  # that was read
    qrels: "Qrels"


@dataclass(frozen=True, slots=True)
class Result:
    """What one way of reranking gains on one collection."""

    name: str
    split: str
    prior: str
    share: float
    gain: "Gain"


def quality(
    ctx: typer.Context,
    beir: Annotated[list[Path], typer.Option(help="Collection in BEIR's layout; may be given again.")],
    rerank: Annotated[str, typer.Option(help="Folder of train-reranker, features, or none.")] = "features",
    split: Annotated[str, typer.Option(help="Split of the collections.", show_default=False)] = "",
    queries: Annotated[str, typer.Option(help="Another file of queries in them.", show_default=False)] = "",
    depth: Annotated[int, typer.Option(min=2, max=100, help="Hits that are reranked.")] = 50,
    share: Annotated[
        float | None, typer.Option(min=0, max=1, help="Share of the reading; the model's own when left out.")
    ] = None,
    prior: Annotated[str, typer.Option(help="What has the other share: features or fusion.")] = "features",
    sweep: Annotated[bool, typer.Option("--sweep", help="All shares and both priors; on dev splits only.")] = False,
    questions: Annotated[int, typer.Option(min=0, help="Ask only so many, drawn by their ids; 0 is all.")] = 0,
    as_json: AsJson = False,
) -> Code:
    """Measure what reranking gains over the first stage.

    In nDCG@10, paired, with 95 % intervals. Documents are indexed once per collection and encoder, pairs are read once
    per model.
    """
    settings = loaded(ctx).settings
    if prior not in PRIORS:
        raise BadRequest(f"There is no prior {prior!r}: features or fusion.", "prior")
    reader = _reader(rerank)
    if share is None:
        share = reader.share if reader else 0.0
    elif reader is None:
        raise BadRequest(f"--share {share} needs a model that reads: name its folder with --rerank.", "share")
    ways = [(p, s) for p in PRIORS for s in SHARES] if sweep else [("fusion" if rerank == "none" else prior, share)]
    results = []
    for folder in beir:
        _check_split(folder, split, sweep)
        with progress() as report:
            lists = _lists(settings, folder, split, queries, depth, questions, reader, report)
        for way in ways:
            results.append(_result(lists, *way))
            _tell(results[-1], as_json, aim=not sweep)
    return Code.DONE if sweep else _verdict(results, as_json)


def reordered(hits: "Sequence[Hit]", scores: "Floats") -> list[str]:
    """The documents of `hits`, its head in the order of `scores` [depth], ties by chunk id; the rest stays below."""
    head = sorted(zip(hits, scores, strict=False), key=lambda pair: (-pair[1], pair[0].chunk.id))
    return [hit.chunk.source.doc_id for hit in [*(hit for hit, _ in head), *hits[len(head) :]]]


def _scores(lists: Lists, query: str, prior: str, share: float) -> "Floats":
    """[depth]: what the reranker in service would score."""
    import numpy as np

    from retrieval.mixing import mixed, readable
    from retrieval.reranking import passage

    expected, logits = lists.priors[prior][query], lists.readings.get(query)
    if logits is None:
        return expected
    head = lists.hits[query][: len(logits)]
    foreign = np.array([not readable(passage(hit.chunk), lists.script) for hit in head], np.bool_)
    return mixed(expected, logits, foreign, share)


def _result(lists: Lists, prior: str, share: float) -> Result:
    from eval.ranking_gain import gain, ndcg10

    fused = {query: [hit.chunk.source.doc_id for hit in hits] for query, hits in lists.hits.items()}
    after = {query: reordered(hits, _scores(lists, query, prior, share)) for query, hits in lists.hits.items()}
    found = gain(ndcg10(fused, lists.qrels), ndcg10(after, lists.qrels))
    return Result(lists.name, lists.split, prior, share, found)


# ---------------------------------------------------------------------------------------------- lists


def _lists(
    settings: "Settings",
    folder: Path,
    split: str,
    queries: str,
    depth: int,
    questions: int,
    reader: Reader | None,
    report: Report,
) -> Lists:
    """Index, search and read a collection."""
    import numpy as np

    from domain.types import Query
    from eval.collection import load_beir
    from retrieval.mixing import readable
    from retrieval.reranking import FeatureReranker, read_weights
    from tidegate.build import build_version
    from tidegate.compose import anonymous, make_embedder, open_index, word_vectors_of

    home = settings.data_dir / "bench" / "quality"
    at_home = settings.model_copy(update={"data_dir": home / folder.resolve().name})
    version = build_version(at_home, folder, report).version.id
    index = open_index(at_home, make_embedder(at_home), version)
    texts, qrels = load_beir(folder, split or None, queries or None)
    asked = drawn([q for q, grades in qrels.items() if q in texts and max(grades.values()) > 0], questions)
    hits = {}
    for done, query in enumerate(asked, 1):
        hits[query] = index.search(Query(texts[query]), anonymous(at_home), 100)
        report("searching", done, len(asked))
    features = FeatureReranker(read_weights(), word_vectors_of(settings))

    priors = {
        "fusion": {q: np.array([hit.score for hit in found[:depth]]) for q, found in hits.items()},
        "features": {q: np.array(features.score(texts[q], found[:depth])) for q, found in hits.items()},
    }
    heads = {q: found[:depth] for q, found in hits.items() if reader and readable(texts[q], reader.script)}
    raw = _read(home / "readings", reader, texts, heads, report) if reader else {}
    name = split or next(iter((folder / "qrels").glob("*.tsv"))).stem
    judged = {q: qrels[q] for q in asked}
    return Lists(folder.resolve().name, name, hits, priors, raw, reader.script if reader else "", judged)


def drawn(queries: Sequence[str], count: int) -> list[str]:
    """`count` of the queries, all for 0: those whose ids have the lowest digests, in the order given."""
    if not 0 < count < len(queries):
        return list(queries)
    kept = set(sorted(queries, key=lambda query: hashlib.sha256(query.encode()).digest())[:count])
    return [query for query in queries if query in kept]


def _read(
    kept: Path, reader: Reader, texts: Mapping[str, str], heads: "Mapping[str, Sequence[Hit]]", report: Report
) -> "dict[str, Floats]":
    """The logits of every head, from the file that an earlier run of the same model on the same lists has left."""
    import numpy as np

    digest = hashlib.sha256(reader.digest.encode())
    for query, head in heads.items():
        digest.update("\0".join([texts[query], *(hit.chunk.id for hit in head)]).encode(errors="replace"))
    file, sizes = kept / f"{digest.hexdigest()[:24]}.npy", [len(head) for head in heads.values()]
    if file.is_file():
        values = np.load(file, allow_pickle=False)
    else:
        values = np.array(list(_logits(reader, texts, heads, report)), np.float32)
        kept.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part.npy")  # a file cut short by a kill would fail every later run
        np.save(part, values, allow_pickle=False)
        part.replace(file)
    parts = np.split(values.astype(np.float64), np.cumsum(sizes)[:-1]) if sizes else []
    return dict(zip(heads, parts, strict=True))


def _logits(
    reader: Reader, texts: Mapping[str, str], heads: "Mapping[str, Sequence[Hit]]", report: Report
) -> Iterator[float]:
    for done, (query, head) in enumerate(heads.items(), 1):
        yield from reader.read(texts[query], head)
        report("reading pairs", done, len(heads))


def _reader(rerank: str) -> Reader | None:
    """What reads pairs under this name; None for features and none. Raises BadRequest when there is no such folder."""
    if rerank in ("features", "none"):
        return None
    folder = Path(rerank)
    if not folder.is_dir():
        raise BadRequest(f"--rerank {rerank!r} is no folder of a model: name one, or features, or none.", "rerank")
    from retrieval.cross_encoder import CrossEncoder
    from retrieval.mixing import reader_of

    model, said = CrossEncoder(folder), reader_of(folder)
    return Reader(model.tag, said.share, said.script, model.score)


def _check_split(folder: Path, split: str, sweep: bool) -> None:
    """Refuse to compare shares where others will be held to the figures."""
    from eval.collection import OPEN_SPLITS

    there = sorted(path.stem for path in (folder / "qrels").glob("*.tsv"))
    chosen = split or (there[0] if len(there) == 1 else "")  # none chosen of several: reading them says so
    if sweep and chosen and chosen not in OPEN_SPLITS:
        raise BadRequest(
            f"--sweep on split {chosen} of {folder.name} would tune on what measures others: choose one of "
            f"{', '.join(OPEN_SPLITS)} with --split, or give one --share.",
            "sweep",
        )


# ---------------------------------------------------------------------------------------------- told


def _tell(result: Result, as_json: bool, aim: bool) -> None:
    g = result.gain
    if as_json:
        say_json_line(
            {
                "name": f"quality.{result.name}",
                "value": round(g.after, 4),
                "unit": "ndcg@10",
                "peers": {"fusion": round(g.before, 4)},
                "ratio": {"fusion": round(g.after / g.before, 4) if g.before else None},
                "aim": f"difference >= -{WORST_LOSS}" if aim else "",
                "met": g.difference >= -WORST_LOSS if aim else None,
                **{key: round(value, 4) for key, value in asdict(g).items() if key not in ("before", "after")},
                "split": result.split,
                "prior": result.prior,
                "share": result.share,
            }
        )
    else:
        how = f"{result.prior} + {result.share:g} reading" if result.share else result.prior
        say(
            f"{result.name:<20} {result.split:<5} {how:<22} {g.before:.4f} -> {g.after:.4f}  {g.difference:+.4f} "
            f"[{g.low:+.4f}, {g.high:+.4f}]  over {g.n} queries"
        )


def _verdict(results: Sequence[Result], as_json: bool) -> Code:
    """REFUSED when a collection lost more than it may, or too few of three and more gained beyond doubt."""
    worse = [result.name for result in results if result.gain.difference < -WORST_LOSS]
    better = [result.name for result in results if result.gain.low > 0]
    few = len(results) >= BETTER_ON > len(better)
    if as_json and len(results) >= BETTER_ON:
        say_json_line(
            {
                "name": "quality.collections_better",
                "value": len(better),
                "unit": "collections",
                "peers": {},
                "ratio": {},
                "aim": f">= {BETTER_ON}",
                "met": not few,
            }
        )
    for name in worse:
        complain(f"{name} loses more than {WORST_LOSS} nDCG@10 by reranking")
    if few:
        complain(f"{len(better)} collections gain with the whole interval above 0, the aim is {BETTER_ON}")
    return Code.REFUSED if worse or few else Code.DONE
