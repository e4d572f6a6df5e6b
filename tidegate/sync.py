"""`tidegate sync`: a library brought up to its source, at the cost of what changed, and the gate asked about it."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.releases import Outcome
from tidegate.config import AsJson
from tidegate.console import Code, loaded, note, say, say_json
from tidegate.progress import progress

if TYPE_CHECKING:
    from tidegate.keeping_fresh import Fresh
    from tidegate.syncing import Synced

NAMED = 10  # documents that are named one by one


def sync(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(help="Folder of documents, or s3://BUCKET/PREFIX.", show_default=False)],
    auto: Annotated[
        bool, typer.Option("--auto", help="Give what passes to people: as a canary, the first to all.")
    ] = False,
    prune_limit: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Share of the documents that may be gone; 0.3, and always 3, when left out.",
            show_default=False,
        ),
    ] = None,
    keep_deleted: Annotated[
        bool, typer.Option("--keep-deleted", help="Leave what is gone readable in earlier versions.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Compare every file by content, whatever its time.")] = False,
    format: Annotated[str, typer.Option(help="auto, folder or beir.")] = "auto",
    groups: Annotated[str, typer.Option(help="Groups that may read documents which name none.")] = "",
    questions: Annotated[
        Path | None, typer.Option(help="Question set; that of the settings when left out.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> Code:
    """Bring the library in step with its source.

    Unchanged files are not read, unchanged text is not embedded, and the version is, byte for byte, that of a full
    rebuild. What is gone from the source is hidden from every version at once; then the gate decides about the new one.
    Exit code 0 PASS or unchanged, 1 FAIL, 3 INCONCLUSIVE, 4 not measured, 5 some files failed.
    """
    from tidegate.bound import check_server
    from tidegate.keeping_fresh import Wanted, keep_fresh
    from tidegate.syncing import Pruning
    from tidegate.up import with_question_set

    settings = with_question_set(loaded(ctx).settings, questions)
    wanted = Wanted(source, format, groups, full, Pruning(prune_limit, keep_deleted), auto)
    if auto:
        check_server(settings)
    with progress() as report:
        fresh = keep_fresh(settings, wanted, report, note, (lambda _: None) if as_json else _tell)
    if as_json:
        say_json(as_record(fresh))
    else:
        _tell_decision(fresh, shlex.quote(str(questions)) if questions else "")
    return code_of(fresh)


def code_of(fresh: "Fresh") -> Code:
    """What a sync exits with: that nothing changed is nothing to complain of, a file that cannot be read is."""
    from tidegate.gate import OUTCOME_CODES

    synced, decision = fresh.synced, fresh.decision
    settled = not synced.changed or synced.version.id in (fresh.rollout.stable, fresh.rollout.canary)
    if not settled and decision is None:
        return Code.NOT_MEASURED
    code = Code.DONE if settled or decision is None else OUTCOME_CODES[decision.outcome]
    failed = synced.built is not None and any(outcome.status == "failed" for outcome in synced.built.outcomes)
    return Code.PARTIAL if code is Code.DONE and failed else code


def as_record(fresh: "Fresh") -> dict[str, object]:
    """All of it as plain data."""
    from dataclasses import asdict

    synced, decision = fresh.synced, fresh.decision
    built, version = synced.built, synced.version.id
    return {
        "unchanged": not synced.changed,
        "version": asdict(synced.version),
        "parent": synced.parent,
        "new": built is not None and built.new,
        "files": counts(synced),
        "embedded": built.embedded if built else 0,
        "reused_vectors": built.reused_vectors if built else 0,
        "removed": list(synced.gone.removed),
        "hidden": list(synced.hidden),
        "restored": list(synced.restored),
        "forgotten": list(synced.forgotten),
        "narrowed": list(synced.narrowed),
        "unread": list(synced.gone.unread),
        "outcomes": [asdict(o) for o in built.outcomes if o.status != "indexed"] if built else [],
        "decision": decision.outcome.name if decision else None,
        "undecided": fresh.undecided,
        "verdicts": [asdict(v) | {"outcome": v.outcome.name} for v in decision.verdicts] if decision else [],
        "serving": {"stable": version == fresh.rollout.stable, "canary": version == fresh.rollout.canary},
        "rollout": asdict(fresh.rollout),
    }


def counts(synced: "Synced") -> dict[str, int]:
    """The files of a source by what became of them."""
    there = len(synced.look.files)
    gone = len(synced.look.missing) - synced.gone.moved
    read = synced.look.fresh
    return {"there": there, "read": read, "unchanged": there - read, "moved": synced.gone.moved, "gone": gone}


def _tell(synced: "Synced") -> None:
    from tidegate.build import tell

    version, built, files = synced.version, synced.built, counts(synced)
    if built is not None:
        tell(built.outcomes)
    if built is None or not synced.changed:
        say(f"{version.id}  unchanged: {files['there']} files are what they were")
        return
    _name("gone from every version", synced.hidden)
    _name("readable again, because the source has them again", synced.restored)
    _name("still forgotten, because somebody asked for that; tidegate restore ends it", synced.forgotten)
    _name("read by fewer in every version now, as the source says", synced.narrowed)
    _name("not readable now, and kept in earlier versions", synced.gone.unread)
    if not synced.hidden and synced.gone.removed:
        _name("gone from this version alone", synced.gone.removed)
    fresh = f"{built.embedded} embedded, {built.reused_vectors} re-used" if built.new else "was there already"
    told = ", ".join(f"{count} {what}" for what, count in files.items() if what != "there")
    say(f"{version.id}  {version.documents} documents, {version.chunks} chunks ({fresh}); files: {told}")


def _name(what: str, doc_ids: tuple[str, ...]) -> None:
    if doc_ids:
        more = f" and {len(doc_ids) - NAMED} more" if len(doc_ids) > NAMED else ""
        note(f"{len(doc_ids)} {what}: {', '.join(doc_ids[:NAMED])}{more}")


def _tell_decision(fresh: "Fresh", questions: str) -> None:
    from tidegate.gate import FIRST, NEXT

    version, decision, rollout = fresh.synced.version.id, fresh.decision, fresh.rollout
    if version == rollout.stable:
        say(f"Everybody gets {version}")
    elif version == rollout.canary:
        say(f"{version} is with {rollout.share:.0%} of the sessions; see how it does: tidegate observe")
    elif decision is None:
        note(
            f"{fresh.undecided}: name a set with --questions FILE, or give it to people unmeasured with tidegate "
            f"promote {version} --force --reason TEXT"
        )
    else:
        bound = decision.binding
        say(f"{decision.outcome.name}: version {version}{f' against {bound.baseline}' if bound.baseline else ''}")
        named = f" --questions {questions}" if questions else ""
        told = (NEXT if bound.baseline else FIRST)[Outcome(decision.outcome)]
        say(f"Next: {told.format(version=version, baseline=bound.baseline, questions=named)}")
