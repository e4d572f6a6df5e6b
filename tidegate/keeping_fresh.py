"""A library kept fresh: its source synced, the gate asked about what came of it, and people given it, if so wished.

What `sync` does, and what becomes of an upload. Every step is one that a person could take by a verb of its own; one
that was taken before is not taken again, so a run that was killed is made good by the next one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import TidegateError
from domain.releases import Decision, Outcome, Rollout, State
from tidegate.compose import make_registry
from tidegate.compose_source import make_source
from tidegate.console import Code, exit_code, note
from tidegate.progress import Report
from tidegate.syncing import Pruning, Synced, Tell, alone, records_folder, sync_version

if TYPE_CHECKING:
    from domain.releasing import Releases
    from eval.questions import Question
    from retrieval.documents import Corpus
    from retrieval.origins import Origin
    from tidegate.settings import Settings

UPLOADS = "uploads"  # where uploaded files lie in data_dir, and how their names begin


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to sync and how. `place` is a folder or s3://BUCKET/PREFIX; None is the source that was read last."""

    place: str | None
    format: str = "auto"
    groups: str = ""
    full: bool = False
    pruning: Pruning = field(default_factory=Pruning)
    auto: bool = False


@dataclass(frozen=True, slots=True)
class Fresh:
    """What came of it. `decision` is None when nobody could decide, and `undecided` says why."""

    synced: Synced
    decision: Decision | None
    rollout: Rollout
    undecided: str = ""


def keep_fresh(
    settings: "Settings",
    wanted: Wanted,
    report: Report,
    tell: Tell = note,
    see: Callable[[Synced], None] = lambda _: None,
) -> Fresh:
    """Everything, alone; `see` is shown what was synced before anything is decided. Raises what syncing raises.

    What keeps the gate from deciding is in the result: the version is there, and can be decided about later.
    """
    with alone(settings, tell):
        synced = synced_from(settings, wanted, report)
        see(synced)
        try:
            decision, rollout = decided(settings, synced, wanted.auto, report)
        except TidegateError as error:
            if exit_code(error) is not Code.REFUSED:
                raise
            return Fresh(synced, None, make_registry(settings).rollout(), str(error))
    without = f"there are no questions to decide about {synced.version.id}" if decision is None else ""
    return Fresh(synced, decision, rollout, without)


def synced_from(settings: "Settings", wanted: Wanted, report: Report) -> Synced:
    """The source and what was uploaded, as one version."""
    from retrieval.source_record import newest_record

    place, format, groups = wanted.place, wanted.format, wanted.groups
    if place is None and (last := newest_record(records_folder(settings))) is not None:
        place, format, groups = last.source, last.options.get("format", "auto"), last.options.get("groups", "")
    options = {"format": format, "groups": groups}
    uploads = uploads_folder(settings)
    if place is None or Path(place) == uploads.resolve():
        origin, documents = _uploaded(settings, uploads)
        origins = [origin]
    else:
        documents, first = make_source(settings, place, format, groups)
        origins = [first, *([_uploaded(settings, uploads)[0]] if uploads.is_dir() else [])]
    return sync_version(settings, origins, documents, wanted.pruning, report, full=wanted.full, options=options)


def uploads_folder(settings: "Settings") -> Path:
    """Where uploaded files lie."""
    return settings.data_dir / UPLOADS


def _uploaded(settings: "Settings", folder: Path) -> "tuple[Origin, Corpus]":
    from retrieval.documents import Corpus
    from retrieval.origins import FolderOrigin
    from tidegate.build import rules_of
    from tidegate.compose_ingestion import limits_of

    default = frozenset(settings.access.default_groups)
    documents = Corpus(folder, "folder", default, settings.access.tenant, limits_of(settings), rules_of(settings))
    return FolderOrigin(documents, f"{UPLOADS}/"), documents


# ---------------------------------------------------------------------------------------------- what is decided


def decided(settings: "Settings", synced: Synced, auto: bool, report: Report) -> tuple[Decision | None, Rollout]:
    """The decision about the synced version, made now unless it stands, and the pointer afterwards.

    A version that people have already is not asked about. `auto` brings one that passed to people: the first to all of
    them, another as a canary. One that was turned back is not brought again before the source has changed.
    """
    from domain.releasing import Releases
    from tidegate.admitting import bring, decision_about
    from tidegate.judging import bound
    from tidegate.measuring import binding

    registry, version = make_registry(settings), synced.version.id
    asked = _questions(settings)
    releases = Releases(registry, lambda v, b: bound(settings, binding(settings, v, asked, b)))
    rollout = registry.rollout()
    if version in (rollout.stable, rollout.canary):
        decisions = registry.decisions(version)
        return (decisions[-1] if decisions else None), rollout
    if not asked:
        return None, rollout
    stands = None if synced.changed else _standing(releases, version, rollout)
    decision = stands or decision_about(settings, releases, version, asked, "", report)
    wanted = synced.changed or releases.state(version) is not State.RETIRED
    if auto and decision.admits and wanted:
        rollout = bring(settings, releases, decision, at_once=False)
    return decision, rollout


def _standing(releases: "Releases", version: str, rollout: Rollout) -> Decision | None:
    """The last word about exactly what would be served, if there is one."""
    from domain.rollout import against

    served = releases.served(version, against(rollout, version))
    about_it = [d for d in releases.registry.decisions(version) if d.binding == served]
    return about_it[-1] if about_it and about_it[-1].outcome is not Outcome.ERROR else None


def _questions(settings: "Settings") -> "tuple[Question, ...]":
    """The questions to decide on; none where no set is named and the library is not the sample."""
    from tidegate.evaluate import question_set
    from tidegate.sample import questions_path

    there = settings.evaluation.question_set is not None or questions_path(settings).exists()
    return question_set(settings, None) if there else ()
