"""A version without what was forgotten, made out of another: the steps behind `tidegate compact`."""

from typing import TYPE_CHECKING

from domain.amending import Amendments
from domain.errors import CorpusError, IncompatibleIndex, NotReady
from retrieval.stored import manifest_of

if TYPE_CHECKING:
    from retrieval.building import BuildReport
    from tidegate.settings import Settings


def compacted(settings: "Settings", version: str = "") -> "tuple[BuildReport, int]":
    """The new version, and how many documents were left out; of the stable version when none is named.

    Raises IncompatibleIndex for a version of another encoder, whose readers would find other things in a new one,
    CorpusError when everything was forgotten, StorageError when the version is damaged.
    """
    from retrieval.building import build
    from retrieval.compacting import Compaction
    from retrieval.dense_choice import part
    from tidegate.compose import make_embedder, make_registry, make_tokenizer

    registry = make_registry(settings)
    name = version or registry.rollout().stable
    if name is None:
        raise NotReady("No index version is stable: name the one to compact.", "index")
    folder = registry.folder(name)
    embedder, manifest = make_embedder(settings), manifest_of(folder)
    if manifest["embedder"]["tag"] != embedder.tag:
        raise IncompatibleIndex(
            f"Index {name} was built with embedder '{manifest['embedder']['tag']}', settings ask for '{embedder.tag}': "
            "set embedding back, or build a version from the documents."
        )
    work = Compaction(folder, Amendments(registry.tombstones(), registry.access()), embedder)
    how = manifest["chunker"]
    try:
        built = build(
            (),
            embedder=embedder,
            registry=registry,
            staging=settings.data_dir / "staging",
            chunker=how["name"],
            chunk_tokens=how["tokens"],
            overlap=how["overlap"],
            parent=name,
            tokenizer=make_tokenizer(settings),
            extra=(part(settings.retrieval.dense),),
            workers=work,
        )
    except CorpusError as error:
        if not work.left_out:
            raise
        raise CorpusError(
            f"All {work.left_out} documents of {name} were forgotten: nothing is left to index."
        ) from error
    return built, work.left_out
