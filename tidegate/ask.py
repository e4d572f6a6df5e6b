"""`tidegate ask` and `tidegate search`: one question from the terminal, over the path that the service runs."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest, NotReady, StageFailed
from domain.types import Ask, Done, Failed, Hit, Mode, Query, Scope, Session, TextDelta
from tidegate.config import AsJson
from tidegate.console import Code, complain, loaded, note, say, say_json

if TYPE_CHECKING:
    from tidegate.settings import Settings

Version = Annotated[str, typer.Option(help="Index version; stable when left out.", show_default=False)]
Tenant = Annotated[str, typer.Option(help="Ask as a reader of this tenant.", show_default=False)]
Groups = Annotated[str, typer.Option(help="Ask as a reader of these groups, comma separated.", show_default=False)]


def ask(
    ctx: typer.Context,
    question: Annotated[str, typer.Argument(help="What you want to know.", show_default=False)],
    deeper: Annotated[bool, typer.Option("--deeper", help="Search a second, wider round.")] = False,
    k: Annotated[int | None, typer.Option(min=1, help="Passages to answer from.", show_default=False)] = None,
    version: Version = "",
    tenant: Tenant = "",
    groups: Groups = "",
    as_json: AsJson = False,
) -> Code:
    """Answer one question, with its sources underneath."""
    from domain.answering import answer
    from serving.wire import answer_json
    from tidegate.compose import in_process_stages, make_library, make_naming, make_rules

    settings = loaded(ctx).settings
    wanted = _version(settings, version)
    reader = reader_of(settings, tenant, groups)

    async def work() -> Done | Failed:
        library = make_library(settings)
        await library.refresh()
        stages = in_process_stages(settings, library)
        request = Ask(question, Session("terminal"), reader, wanted, "terminal", k, deeper)
        async for event in answer(request, stages, make_rules(settings), make_naming(settings)):
            if isinstance(event, TextDelta) and not as_json:
                sys.stdout.write(event.text)
                sys.stdout.flush()
            elif isinstance(event, Done | Failed):
                return event
        raise StageFailed("The answer ended without saying how: this is a bug.")

    end = asyncio.run(work())
    if isinstance(end, Failed):
        complain(end.message)
        return Code.USAGE if isinstance(end.error, BadRequest) else Code.REFUSED
    if as_json:
        say_json(answer_json(end.answer))
        return Code.DONE
    say("\n")
    for citation in end.answer.citations:
        say(f"[{citation.sid}] {citation.label}{f'  {citation.uri}' if citation.uri else ''}")
    for text in end.answer.trace.notes:
        note(text)
    note(f"{end.answer.grounding.value}, {end.answer.status.value}, index version {end.answer.trace.version}")
    return Code.DONE


def search(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(help="What to look for.", show_default=False)],
    k: Annotated[int, typer.Option(min=1, help="Hits, at most.")] = 10,
    mode: Annotated[Mode, typer.Option(help="Which arms search.")] = Mode.HYBRID,
    rerank: Annotated[bool, typer.Option(help="Rerank the hits.")] = True,
    version: Version = "",
    tenant: Tenant = "",
    groups: Groups = "",
    as_json: AsJson = False,
) -> None:
    """List the passages that a question would be answered from."""
    from serving.wire import hit_json
    from tidegate.compose import in_process_stages, make_library, make_naming, make_rules

    settings = loaded(ctx).settings
    if k > settings.retrieval.max_k:
        raise BadRequest(f"k {k} is more than retrieval.max_k ({settings.retrieval.max_k}): ask for fewer.", "k")
    if len(query) > settings.answering.max_question_chars:
        raise BadRequest(
            f"The query has {len(query)} characters, the limit is {settings.answering.max_question_chars}."
        )
    wanted, naming = _version(settings, version), make_naming(settings)

    async def work() -> tuple[Hit, ...]:
        library = make_library(settings)
        await library.refresh()
        stages = in_process_stages(settings, library)
        reranker = stages.reranker if rerank else None
        n = max(k, make_rules(settings).rerank_depth) if reranker else k
        found = await library.retrieve(Query(query), reader_of(settings, tenant, groups), wanted, n, mode)
        return await reranker.rerank(Query(query), found.hits) if reranker and found.hits else found.hits

    hits = [hit_json(hit, naming) for hit in asyncio.run(work())[:k]]
    if as_json:
        say_json({"hits": hits, "index_version": wanted})
        return
    if not hits:
        note("nothing found")
    for hit in hits:
        say(f"{hit['rank']:>3}  {hit['score']:.4f}  {hit['title']}  ({hit['chunk_id']})")
        say(f"     {' '.join(hit['text'].split())[:200]}")


def reader_of(settings: "Settings", tenant: str, groups: str) -> Scope:
    """The scope named on the command line; whoever has the files in hand may read as anybody."""
    named = frozenset(name.strip() for name in groups.split(",") if name.strip())
    return Scope(tenant or settings.access.tenant, named or frozenset(settings.access.groups))


def _version(settings: "Settings", version: str) -> str:
    from tidegate.compose import make_registry

    registry = make_registry(settings)
    chosen = version or registry.rollout().stable
    if not chosen:
        raise NotReady("No index version is admitted yet: run `tidegate up`, or name one with --version.")
    registry.folder(chosen)
    return chosen
