"""`tidegate forget`, `restore`, `readers` and `compact`: documents that are in a version already.

The first three act on every version at once and wait for no gate; running servers follow within two seconds.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest
from tidegate.config import AsJson
from tidegate.console import Code, loaded, note, say, say_json
from tidegate.who import group_names, who

if TYPE_CHECKING:
    from domain.amending import Amending
    from tidegate.settings import Settings

Documents = Annotated[list[str], typer.Argument(help="Ids, as search names them in doc_id.", show_default=False)]
Why = Annotated[str, typer.Option("--reason", help="Why; it is recorded.", show_default=False)]


def forget(ctx: typer.Context, documents: Documents, reason: Why = "", as_json: AsJson = False) -> None:
    """Take documents out of every version, at once.

    Running servers return and cite them no more within 2 seconds. Building again does not bring them back; restore
    does. Their text stays in the folders of versions until compact has made one without it and gc removed the others.
    """
    from domain.amending import as_kept

    documents = list(as_kept(documents))
    gone = _amending(ctx).forget(documents, who(), reason)
    if as_json:
        say_json({"forgotten": documents, "changed": list(gone)})
    else:
        _tell(documents, gone, "forgotten", "was forgotten before")
        note("running servers follow within 2 s; `tidegate compact` makes a version without the text")


def restore(ctx: typer.Context, documents: Documents, reason: Why = "", as_json: AsJson = False) -> None:
    """Let versions return forgotten documents again."""
    from domain.amending import as_kept

    documents = list(as_kept(documents))
    back = _amending(ctx).restore(documents, who(), reason)
    if as_json:
        say_json({"restored": documents, "changed": list(back)})
    else:
        _tell(documents, back, "restored", "was not forgotten")


def readers(
    ctx: typer.Context,
    document: Annotated[str, typer.Argument(help="Its id, as search names it in doc_id.", show_default=False)],
    groups: Annotated[
        str | None, typer.Option(help="Groups, comma separated, instead of those it has.", show_default=False)
    ] = None,
    nobody: Annotated[bool, typer.Option("--nobody", help="Let nobody read it.")] = False,
    as_built: Annotated[bool, typer.Option("--as-built", help="Go back to the groups it was built with.")] = False,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Say which groups may read a document from now on.

    In every version at once; running servers follow within 2 seconds, and building again changes nothing about it.
    """
    named = group_names(groups or "")
    if sum((bool(named), nobody, as_built)) != 1:
        raise BadRequest("Name who may read it: one of --groups NAME,NAME, --nobody and --as-built.", "groups")
    wanted = None if as_built else named
    _amending(ctx).set_readers(document, wanted, who(), reason)
    if as_json:
        say_json({"id": document, "groups": None if wanted is None else sorted(wanted)})
    else:
        now = "those it was built with" if wanted is None else ", ".join(sorted(wanted)) or "nobody"
        say(f"{document}: read by {now}")


def compact(
    ctx: typer.Context,
    version: Annotated[str, typer.Argument(help="Version; the stable one when left out.", show_default=False)] = "",
    as_json: AsJson = False,
) -> Code:
    """Build a version without what was forgotten.

    Its text is then in no file of that version, and documents have the readers that were said of them. Every reader
    finds in it what he finds now. It goes to people by gate and canary like any other.
    """
    from tidegate.compacting import compacted

    built, left_out = compacted(loaded(ctx).settings, version)
    told = built.version
    if as_json:
        from dataclasses import asdict

        say_json({"version": asdict(told), "new": built.new, "left_out": left_out, "embedded": built.embedded})
    else:
        say(f"{told.id}  {told.documents} documents, {told.chunks} chunks; {left_out} forgotten documents left out")
    return Code.DONE


def _amending(ctx: typer.Context) -> "Amending":
    from tidegate.compose_documents import make_amending

    settings: Settings = loaded(ctx).settings
    return make_amending(settings)


def _tell(documents: list[str], changed: tuple[str, ...], done: str, before: str) -> None:
    for doc_id in documents:
        say(f"{doc_id}: {done if doc_id in changed else before}")
