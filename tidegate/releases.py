"""`tidegate canary`, `promote`, `rollback` and `gc`: the moves a person asks for, and what they leave to clear away."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.errors import BadRequest
from tidegate.config import AsJson
from tidegate.console import Code, loaded, note, say, say_json
from tidegate.who import who

if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.ports import IndexRegistry
    from domain.releases import Leftover, Rollout
    from domain.releasing import Releases
    from tidegate.settings import Settings

Force = Annotated[bool, typer.Option("--force", help="Go ahead although no passing decision admits it.")]
Reason = Annotated[str, typer.Option(help="Why; it is recorded, and --force needs it.", show_default=False)]
Questions = Annotated[
    Path | None,
    typer.Option(help="Question set it was decided on; that of the settings when left out.", show_default=False),
]


def canary(
    ctx: typer.Context,
    version: Annotated[str, typer.Argument(help="Admitted version; with --auto alone, the canary there is.")] = "",
    share: Annotated[
        float | None, typer.Option(help="Share of the sessions, like 0.05; the first of canary.shares when left out.")
    ] = None,
    auto: Annotated[bool, typer.Option("--auto", help="Widen, promote or roll back by itself; stay and tell.")] = False,
    force: Force = False,
    reason: Reason = "",
    questions: Questions = None,
    as_json: AsJson = False,
) -> Code:
    """Give a share of the sessions an admitted version.

    Naming the canary there is and a larger --share widens it. With --auto it widens and is promoted by itself, on shown
    evidence alone, and the command stays until that is decided: exit code 0 promoted, 1 rolled back, 3 undecided when
    its time was over. Ctrl-C ends only the watching: a running server goes on, and without one `tidegate canary --auto`
    resumes.
    """
    from domain.rollout import told
    from tidegate.follow import follow

    settings = loaded(ctx).settings
    releases = make(settings, questions)
    rollout = releases.registry.rollout()
    if not version and (not auto or share is not None or force or questions):
        raise BadRequest("Name a version to begin a canary with, or --auto alone to watch the one there is.", "version")
    if auto and share is None and version in ("", rollout.canary):
        return follow(settings, rollout, as_json)
    check(settings, force, reason)
    if version == rollout.canary and share is not None:
        begun = releases.widen(share, who(), reason, expected=rollout, force=force)
    else:
        first = settings.canary.shares[0] if share is None else share
        begun = releases.begin(version, first, who(), auto=auto, reason=reason, force=force)
    if auto:
        note(told(begun))
        return follow(settings, begun, as_json)
    moved(settings, begun, as_json)
    note("`tidegate observe` shows how it does; `tidegate rollback` ends it")
    return Code.DONE


def promote(
    ctx: typer.Context,
    version: Annotated[str, typer.Argument(help="Admitted version.", show_default=False)],
    force: Force = False,
    reason: Reason = "",
    questions: Questions = None,
    as_json: AsJson = False,
) -> None:
    """Give everybody an admitted version."""
    settings = loaded(ctx).settings
    releases = make(settings, questions)
    before = releases.registry.rollout()
    if version != before.stable:
        check(settings, force, reason)
    after = releases.promote(version, who(), reason, expected=before, force=force)
    if after == before:
        note(f"version {version} is stable already: nothing changed")
    moved(settings, after, as_json)


def rollback(
    ctx: typer.Context,
    to: Annotated[str, typer.Option(help="Back to this earlier version, not the previous.", show_default=False)] = "",
    reason: Annotated[str, typer.Option(help="Why; it is recorded.", show_default=False)] = "",
    as_json: AsJson = False,
) -> None:
    """End the canary; without one go back a version. Waits for no decision."""
    settings = loaded(ctx).settings
    after = make(settings).roll_back(who(), reason, to=to or None)
    moved(settings, after, as_json)


def gc(
    ctx: typer.Context,
    keep: Annotated[int, typer.Option(min=0, help="Versions to keep beside stable, previous and canary.")] = 3,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    damaged: Annotated[bool, typer.Option("--damaged", help="Remove versions that are damaged, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove versions that nobody gets or goes back to.

    With them goes what was found out about them, and what killed builds, uploads and removals left behind. The newest
    are kept; decisions and the ledger stay. Damaged versions are named, and removed when that is asked for: a copy may
    be restored.
    """
    from tidegate.clearing import clear_leftovers, leftovers, unneeded
    from tidegate.compose import make_registry

    settings = loaded(ctx).settings
    registry = make_registry(settings)
    rows: list[dict[str, str | int]] = []
    for version, why in sorted(registry.damaged().items()):
        note(f"version {version} is damaged: {why}{'' if damaged else ' Or remove it with tidegate gc --damaged.'}")
        if damaged and _can_go(registry, version, dry_run):
            rows.append({"version": version, "bytes": 0})
    for each in unneeded(settings, registry, keep):
        rows.append({"version": each.version, "bytes": each.size(registry)})
        if not dry_run:
            each.clear(registry)
    left = leftovers(settings, registry) if dry_run else clear_leftovers(settings, registry)
    _tell_cleared(rows, left, dry_run, as_json)


def _can_go(registry: "IndexRegistry", version: str, dry_run: bool) -> bool:
    """Removes a damaged version; False, said to the person, when the pointer names it."""
    from domain.rollout import check_removable

    try:
        check_removable(version, registry.rollout())
        if not dry_run:
            registry.remove(version)
    except BadRequest as error:
        note(str(error))
        return False
    return True


def _tell_cleared(rows: list[dict[str, str | int]], left: "Sequence[Leftover]", dry_run: bool, as_json: bool) -> None:
    freed = sum(int(row["bytes"]) for row in rows) + sum(each.bytes for each in left)
    if as_json:
        over = [{"place": each.place, "bytes": each.bytes, "why": each.why} for each in left]
        say_json({"removed": rows, "leftovers": over, "bytes": freed, "dry_run": dry_run})
        return
    done = "would be removed" if dry_run else "removed"
    for row in rows:
        say(f"{row['version']}  {int(row['bytes']) / 1e6:.1f} MB {done}")
    for each in left:
        say(f"{each.place}  {each.bytes / 1e6:.1f} MB {done}: {each.why}")
    if rows or left:
        say(f"{freed / 1e6:.1f} MB {'would be freed' if dry_run else 'freed'}")
    else:
        say("nothing to remove")


# ---------------------------------------------------------------------------------------------- what they share


def make(settings: "Settings", questions: Path | None = None) -> "Releases":
    """The moves of this data folder's pointer."""
    from tidegate.compose_releases import make_releases

    return make_releases(settings, questions)


def check(settings: "Settings", force: bool, reason: str) -> None:
    """Raises what stands against a forward move before anything is looked at."""
    from tidegate.bound import check_server

    if force and not reason.strip():
        raise BadRequest("--force needs --reason: it is recorded, for whoever asks why.", "reason")
    check_server(settings)


def moved(settings: "Settings", rollout: "Rollout", as_json: bool) -> None:
    """Say where the pointer is now, to the person and to the tracker."""
    from dataclasses import asdict

    from domain.rollout import told
    from tidegate.tracking import follow

    follow(settings)
    if as_json:
        say_json({"rollout": asdict(rollout)})
    else:
        say(told(rollout))
