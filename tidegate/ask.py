"""`tidegate ask` and `tidegate search`: one question from the terminal, over the path that the service runs."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest, NotReady, TidegateError
from domain.types import Ask, Done, Failed, Mode, Query, Retrieval, Scope, Session, TextDelta
from tidegate.config import AsJson
from tidegate.console import Code, complain, exit_code, loaded, note, say, say_json, say_piece

if TYPE_CHECKING:
    from tidegate.settings import Settings

Version = Annotated[str, typer.Option(help="Index version; stable when left out.", show_default=False)]
Tenant = Annotated[str, typer.Option(help="Ask as a reader of this tenant.", show_default=False)]
Groups = Annotated[str, typer.Option(help="Ask as a reader of these groups, comma separated.", show_default=False)]


def ask(
    ctx: typer.Context,
    question: Annotated[str, typer.Argument(help="What you want to know.", show_default=False)],
    deeper: Annotated[bool, typer.Option("--deeper", help="Search a second, wider round.")] = False,
    k: Annotated[int | None, typer.Option(help="Passages to answer from, 1 or more.", show_default=False)] = None,
    version: Version = "",
    tenant: Tenant = "",
    groups: Groups = "",
    as_json: AsJson = False,
) -> Code:
    """Answer one question, with its sources underneath."""
    from serving.wire import answer_json

    settings = loaded(ctx).settings
    question, wanted = _checked(settings, question, k, version)
    request = Ask(question, Session("terminal"), reader_of(settings, tenant, groups), wanted, "terminal", k, deeper)
    shown = False

    def show(text: str) -> None:
        nonlocal shown
        shown = True
        say_piece(text)

    end = asyncio.run(_answered(settings, request, (lambda _: None) if as_json else show))
    if shown:
        say("")
    if isinstance(end, Failed):
        complain(end.message)
        return exit_code(end.error) if isinstance(end.error, TidegateError) else Code.REFUSED
    if as_json:
        say_json(answer_json(end.answer))
        return Code.DONE
    if end.answer.citations:
        say("")
    for citation in end.answer.citations:
        about = ", ".join(part for part in (citation.place, citation.source, citation.published) if part)
        say("  ".join(part for part in (f"[{citation.sid}] {citation.label}", about, citation.uri) if part))
    for text in end.answer.trace.notes:
        note(text)
    note(f"{end.answer.grounding.value}, {end.answer.status.value}, index version {end.answer.trace.version}")
    return Code.DONE


def search(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(help="What to look for.", show_default=False)],
    k: Annotated[int, typer.Option(help="Hits, at most; 1 or more.")] = 10,
    mode: Annotated[Mode, typer.Option(help="Which arms search.")] = Mode.HYBRID,
    rerank: Annotated[bool, typer.Option(help="Rerank the hits.")] = True,
    version: Version = "",
    tenant: Tenant = "",
    groups: Groups = "",
    as_json: AsJson = False,
) -> None:
    """List the passages a question would be answered from."""
    from serving.wire import hit_json
    from tidegate.compose import make_naming

    settings = loaded(ctx).settings
    query, wanted = _checked(settings, query, k, version)
    naming = make_naming(settings)
    found = asyncio.run(_found(settings, query, reader_of(settings, tenant, groups), wanted, k, mode, rerank))
    hits = [hit_json(hit, naming) for hit in found.hits]
    notes = [naming.scrub(text) for text in found.notes]
    if as_json:
        say_json({"hits": hits, "index_version": found.version, "notes": notes})
        return
    for text in notes:
        note(text)
    if not hits:
        note("nothing found")
    for hit in hits:
        where = ", ".join(part for part in (hit["title"], hit["place"]) if part)
        say(f"{hit['rank']:>3}  {hit['score']:.4f}  {where}  ({hit['chunk_id']})")
        say(f"     {' '.join(hit['text'].split())[:200]}")


async def _answered(settings: "Settings", request: Ask, show: Callable[[str], None]) -> Done | Failed:
    from domain.answering import answer
    from tidegate.compose import in_process_stages, make_library, make_naming, make_rules

    library = make_library(settings)
    await library.refresh()
    stages = in_process_stages(settings, library)
    async for event in answer(request, stages, make_rules(settings), make_naming(settings)):
        if isinstance(event, TextDelta):
            show(event.text)
        elif isinstance(event, Done | Failed):
            return event
    raise RuntimeError("the answer ended without saying how")


async def _found(
    settings: "Settings", query: str, reader: Scope, version: str, k: int, mode: Mode, rerank: bool
) -> Retrieval:
    from domain.searching import search
    from tidegate.compose import in_process_stages, make_library

    library = make_library(settings)
    await library.refresh()
    stages = in_process_stages(settings, library)
    if not rerank:
        stages = replace(stages, reranker=None)
    found, _ = await search(Query(query), reader, version, k, mode, stages, settings.rerank.depth)
    return found


def reader_of(settings: "Settings", tenant: str, groups: str) -> Scope:
    """The scope named on the command line; whoever has the files in hand may read as anybody."""
    from tidegate.who import group_names

    named = group_names(groups)
    return Scope(tenant or settings.access.tenant, named or frozenset(settings.access.groups))


def _checked(settings: "Settings", question: str, k: int | None, version: str) -> tuple[str, str]:
    """The question and the version that answers it, refused before an encoder is loaded, which takes seconds."""
    from domain.policies import check_question
    from tidegate.compose import make_registry, make_rules

    if k is not None and not 1 <= k <= settings.retrieval.max_k:
        raise BadRequest(f"--k is {k}: a whole number from 1 to {settings.retrieval.max_k} is wanted.", "k")
    question = check_question(question, make_rules(settings))
    registry = make_registry(settings)
    chosen = version or registry.rollout().stable
    if not chosen:
        raise NotReady("No index version is admitted yet: run `tidegate up`, or name one with --version.")
    registry.folder(chosen)
    return question, chosen
