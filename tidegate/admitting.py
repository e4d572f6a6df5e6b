"""Documents brought to people: built, decided about, and the pointer moved, each unless that has been done already.

What `up` does before it serves. Each step alone is a verb of its own: `build`, `gate`, `canary`, `promote`.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import NotAdmitted
from domain.releases import Decision, Outcome, Rollout
from tidegate.console import note
from tidegate.progress import Report

if TYPE_CHECKING:
    from domain.releasing import Releases
    from eval.questions import Question
    from tidegate.settings import Settings


def build_and_admit(
    settings: "Settings", corpus: Path | None, *, groups: str, forced: str, at_once: bool, report: Report
) -> Rollout:
    """The pointer afterwards: the version built, gated and brought to people, each unless that has been done already.

    Raises NotAdmitted when the gate does not pass, and people keep getting what they got.
    """
    from domain.releasing import Releases
    from tidegate.build import build_version, tell
    from tidegate.compose import make_registry
    from tidegate.evaluate import question_set
    from tidegate.judging import bound
    from tidegate.measuring import binding
    from tidegate.sample import corpus_path, make_sample, questions_path
    from tidegate.suggestions import offer

    if corpus is None:
        report("writing the sample library", 0, 0)
        make_sample(settings)
    own = settings.evaluation.question_set
    asked = () if corpus is not None and own is None else question_set(settings, None)
    built = build_version(settings, corpus or corpus_path(settings), report, groups=groups)
    tell(built.outcomes)
    releases = Releases(make_registry(settings), lambda v, b: bound(settings, binding(settings, v, asked, b)))
    decision = decision_about(settings, releases, built.version.id, asked, forced, report)
    check_admitted(decision, releases.registry.rollout())
    # Only who forces it now wants it for everybody: an earlier force may have been for a canary, even one turned back.
    rollout = bring(settings, releases, decision, at_once=at_once or bool(forced and decision.forced))
    offer(settings, own if corpus is not None else own or questions_path(settings))
    return rollout


def decision_about(
    settings: "Settings",
    releases: "Releases",
    version: str,
    asked: "tuple[Question, ...]",
    forced: str,
    report: Report,
) -> Decision:
    """The latest decision about exactly what would be served if it admits the version; otherwise one made now.

    Without questions nothing can be measured, and only a forced decision admits.
    """
    from domain.rollout import against
    from tidegate.deciding import gate
    from tidegate.tracking import untracked

    served = releases.served(version, against(releases.registry.rollout(), version))
    about_it = [d for d in releases.registry.decisions(version) if d.binding == served]
    if about_it and about_it[-1].admits and not untracked(settings, about_it[-1].run_id):
        note(f"{version} was decided about on {about_it[-1].decided_at}, and nothing has changed since")
        return about_it[-1]
    if asked:
        # A first version has nothing to be compared with: what could be detected is no news to whoever begins.
        tell = note if served.baseline else (lambda _: None)
        decision, _ = gate(settings, version, asked, report, tell=tell, note=note)
        for verdict in decision.verdicts:
            if not verdict.advisory:
                note(f"{verdict.outcome.name} {verdict.gate}: {verdict.reason}")
        if decision.outcome is Outcome.PASS or not forced:
            return decision
    note(f"forced: {forced}")
    return releases.force(version, forced)


def check_admitted(decision: Decision, rollout: Rollout) -> None:
    """Raises NotAdmitted, with what was missed and the ways out, unless the decision admits its version."""
    if decision.admits:
        return
    binding = [v for v in decision.verdicts if not v.advisory and v.outcome is not Outcome.PASS]
    missed = "; ".join(f"{v.gate}: {v.reason}" for v in binding) or "no gate was measured"
    kept = (
        f"people keep getting {rollout.stable}, start it with tidegate serve"
        if rollout.stable
        else "nobody gets anything yet"
    )
    raise NotAdmitted(
        f"Version {decision.binding.version} may not be served under these settings, {decision.outcome.name} "
        f"({missed}); {kept}: mend the corpus, the questions or the settings, or overrule it with --force --reason "
        "TEXT."
    )


def bring(settings: "Settings", releases: "Releases", decision: Decision, *, at_once: bool) -> Rollout:
    """The pointer after the admitted version was brought to people: the first one, and one that is wanted `at_once`,
    to all of them; another to the first share of the sessions, with leave to widen by itself.

    Another canary makes way: whoever builds a newer version is not interested in how the older one would have done.
    """
    from tidegate.measuring import can_open
    from tidegate.tracking import follow
    from tidegate.who import who

    version, before = decision.binding.version, releases.registry.rollout()
    if version == before.stable or (version == before.canary and not at_once):
        return before
    if before.canary not in (None, version):
        before = releases.roll_back(who(), f"makes way for {version}", expected=before)
    if before.stable is not None and not at_once and not can_open(settings, before.stable):
        note(f"{before.stable} cannot be opened under these settings, so that there is no canary beside it")
        at_once = True
    if before.stable is None or at_once:
        after = releases.promote(version, who(), decision.forced, expected=before)
    else:
        after = releases.begin(version, settings.canary.shares[0], who(), auto=True)
    follow(settings)
    return after


def trial(settings: "Settings", rollout: Rollout) -> str:
    """What becomes of the canary, in two lines."""
    share = f"Version {rollout.canary} is on trial with {rollout.share:.0%} of the sessions"
    by_itself = settings.canary.watch and rollout.auto
    then = "widens by itself, or is turned back" if by_itself else "waits for tidegate canary --auto"
    promote = f"tidegate promote {rollout.canary}"
    return f"{share}; it {then}.\nSee how it does: tidegate observe. For everybody at once: {promote}"
