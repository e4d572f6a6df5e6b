"""How the state of a rollout looks on the wire: the pointer, its ledger, the decisions, and what is known live.

Everything in it is somebody's record, so every string is scrubbed on its way out, once, at the end. Who may see or
change it is releases_http.py.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from domain.canary import Advice
from domain.errors import NotFound, StorageError
from domain.naming import Naming
from domain.ports import IndexRegistry
from domain.releases import Decision, Evidence, IndexVersion, LiveMetric, Move, Rollout
from domain.releasing import state_of
from serving.wire import Json, scrubbed, version_json

MOVES, DECISIONS = 50, 20  # the latest of each; the records themselves have them all


@dataclass(frozen=True, slots=True)
class Records:
    """What the registry says of a rollout. Where versions, ledger or decisions cannot be read, `troubles` says why: the
    pointer still stands, and somebody may have to turn it back just then, or has just done so.
    """

    rollout: Rollout
    versions: tuple[IndexVersion, ...]
    ledger: tuple[Move, ...] = ()
    decisions: tuple[Decision, ...] = ()
    troubles: dict[str, str] = field(default_factory=dict)


def read_records(registry: IndexRegistry) -> Records:
    """All of it, read once. Raises StorageError when the pointer cannot be read."""
    rollout = registry.rollout()
    troubles: dict[str, str] = {}
    versions: tuple[IndexVersion, ...] = ()
    ledger: tuple[Move, ...] = ()
    decisions: list[Decision] = []
    unread: list[str] = []
    try:
        versions = registry.versions()
    except StorageError as error:
        troubles["versions_error"] = str(error)
    try:
        ledger = registry.ledger()
    except StorageError as error:
        troubles["ledger_error"] = str(error)
    for version in versions:
        try:
            decisions += registry.decisions(version.id)
        except NotFound:
            continue  # removed since they were listed
        except StorageError as error:
            unread.append(str(error))
    if unread:
        troubles["decisions_error"] = " ".join(unread)
    return Records(rollout, versions, ledger, tuple(decisions), troubles)


def rollout_json(records: Records, live: tuple[Evidence, Advice] | None, naming: Naming) -> Json:
    """`GET /v1/rollout`. Ledger and decisions come newest first; `live` is what is known of the canary, if anything:
    about another one, or an earlier time of this one, it is left out.
    """
    rollout, ledger = records.rollout, records.ledger
    if live and (live[0].canary, live[0].began) != (rollout.canary, rollout.began):
        live = None
    about = {
        version.id: [d for d in records.decisions if d.binding.version == version.id] for version in records.versions
    }
    decided = sorted(records.decisions, key=lambda decision: decision.decided_at)[::-1]
    told = {
        "stable": rollout.stable,
        "canary": rollout.canary,
        "share": rollout.share,
        "previous": rollout.previous,
        "revision": rollout.revision,
        "auto": rollout.auto,
        "versions": [
            version_json(version) | {"state": state_of(version.id, rollout, ledger, about[version.id]).value}
            for version in records.versions
        ],
        "ledger": [move_json(move) for move in reversed(ledger[-MOVES:])],
        "decisions": [decision_json(decision) for decision in decided[:DECISIONS]],
        "evidence": evidence_json(*live, _since(ledger, rollout)) if live else None,
        **records.troubles,
    }
    return scrubbed(told, naming)


ON_RECORD = "The reason is on record, for the operator."
UNREAD = "The operator's log says why."


def for_reader(told: Json) -> Json:
    """The same for somebody without the operator's key: what happened, and neither who did it, nor why in their words,
    nor what a disk said. A verdict's reason may name a slice of questions that others asked, so it stays out too, and
    so does how many documents there are: most may be others'.
    """
    return told | {
        "versions": [uncounted(version) for version in told["versions"]],
        "ledger": [
            move | {"who": "", "reason": "", "decision": _without_reasons(move["decision"])} for move in told["ledger"]
        ],
        "decisions": [_without_reasons(decision) for decision in told["decisions"]],
        **{name: UNREAD for name in told if name.endswith("_error")},
    }


def uncounted(version: Json) -> Json:
    """A version for somebody who may see a part of it."""
    return version | {"documents": None, "chunks": None}


def _without_reasons(decision: Json | None) -> Json | None:
    if decision is None:
        return None
    verdicts = [verdict | {"reason": ""} for verdict in decision["verdicts"]]
    return decision | {"forced": decision["forced"] and ON_RECORD, "run_id": "", "verdicts": verdicts}


def move_json(move: Move) -> Json:
    """One line of the ledger. `took_ms` is the time from seeing to having acted; null where nobody had to see first."""
    return {
        "verb": move.verb.value,
        "at": move.at,
        "who": move.who,
        "from": _place_json(move.before),
        "to": _place_json(move.after),
        "reason": move.reason,
        "noticed_at": move.noticed_at,
        "took_ms": _between_ms(move.noticed_at, move.at),
        "decision": decision_json(move.decision) if move.decision else None,
    }


def decision_json(decision: Decision) -> Json:
    """A decision with all that was said for and against it."""
    return {
        "version": decision.binding.version,
        "outcome": decision.outcome.name,
        "forced": decision.forced,
        "decided_at": decision.decided_at,
        "run_id": decision.run_id,
        "binding": asdict(decision.binding),
        "verdicts": [
            {"gate": v.gate, "outcome": v.outcome.name, "reason": v.reason, "advisory": v.advisory}
            for v in decision.verdicts
        ],
    }


def evidence_json(evidence: Evidence, advice: Advice, since: str) -> Json:
    """What is known live about a canary that began at `since`, and what it asks for. Requests are those `kept`: one
    answer in so many by now, and so many observations lost.
    """
    return {
        "canary": evidence.canary,
        "stable": evidence.stable,
        "requests": {"canary": evidence.canary_n, "stable": evidence.stable_n},
        "kept": {"one_in": evidence.kept.one_in, "lost": evidence.kept.lost},
        "since": since,
        "outcome": evidence.outcome.name,
        "metrics": [_metric_json(metric) for metric in evidence.metrics],
        "advice": {"step": advice.step.value, "share": advice.share, "reason": advice.reason},
    }


def _metric_json(metric: LiveMetric) -> Json:
    return {
        "metric": metric.metric,
        "paired": metric.paired,
        "canary": {"mean": metric.canary_mean, "n": metric.canary_n},
        "stable": {"mean": metric.stable_mean, "n": metric.stable_n},
        "low": metric.low,
        "high": metric.high,
        "max_drop": metric.max_drop,
        "outcome": metric.outcome.name,
        "reason": metric.reason,
        "advisory": metric.advisory,
    }


def _place_json(rollout: Rollout) -> Json:
    return {"stable": rollout.stable, "canary": rollout.canary, "share": rollout.share}


def _since(ledger: Sequence[Move], rollout: Rollout) -> str:
    began = (move.at for move in ledger if (move.after.canary, move.after.began) == (rollout.canary, rollout.began))
    return next(began, "")


def _between_ms(earlier: str, later: str) -> float | None:
    try:
        return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds() * 1000
    except (ValueError, TypeError):  # nobody noticed anything, or a record without a zone
        return None
