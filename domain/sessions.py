"""A conversation as somebody else carried it: what of its pool can be believed, and what goes back for the next turn.

Pure functions over what a client or a store hands in. Nothing here looks anything up: the chunks that the reader may
see in the version that answered come from outside. How many chunks a conversation remembers is policies.py: join_pool.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from domain.naming import Naming
from domain.policies import revalidate
from domain.types import PoolEntry, PoolTally, Role, Rules, Session, Turn


def check_pool(
    claimed: Sequence[PoolEntry], visible_ids: Collection[str], cap: int, *, moved: bool
) -> tuple[tuple[PoolEntry, ...], PoolTally]:
    """The entries that may stay, in their order, and how many went for which reason.

    `moved` says that the session was last answered from another version: what is not there then is counted as stale. A
    forged id and one that this reader may not see are one count on purpose: telling them apart tells what exists.
    """
    pool = revalidate(claimed, visible_ids, cap)
    unique = dict.fromkeys(entry.chunk_id for entry in claimed)
    gone = sum(chunk_id not in visible_ids for chunk_id in unique)
    tally = PoolTally(
        kept=len(pool),
        unknown=0 if moved else gone,
        stale=gone if moved else 0,
        duplicate=len(claimed) - len(unique),
        over_cap=len(unique) - gone - len(pool),
    )
    return pool, tally


def told(tally: PoolTally) -> str:
    """What was dropped, in words; empty when nothing was."""
    reasons = (
        (tally.unknown, "unknown or not visible"),
        (tally.stale, "not in the version that answered now"),
        (tally.duplicate, "duplicate"),
        (tally.over_cap, "over the cap"),
    )
    return ", ".join(f"{count} {reason}" for count, reason in reasons if count)


def next_session(
    session: Session, question: str, answer: str, pool: Sequence[PoolEntry], version: str, naming: Naming, rules: Rules
) -> Session:
    """What to send with the next question: the turn that ended is in it, every string scrubbed, within the limits.

    The oldest turns leave in pairs of question and answer once there are more than `rules.session_turns` of them, or
    more than `rules.session_chars` characters; the last turn always stays. `earlier` counts the questions that left, so
    that a chunk's turn keeps its number. An id with a forbidden term in it would be shown, so it is not carried on.
    """
    said = (*session.turns, Turn(Role.USER, question))
    turns = (*(replace(turn, text=naming.scrub(turn.text)) for turn in said), Turn(Role.ASSISTANT, answer))
    kept = turns[_first_kept(turns, rules) :]
    left = sum(turn.role is Role.USER for turn in turns) - sum(turn.role is Role.USER for turn in kept)
    shown = tuple(entry for entry in pool if not naming.contains(entry.chunk_id))
    return replace(session, turns=kept, pool=shown, version=version, earlier=session.earlier + left)


def _first_kept(turns: Sequence[Turn], rules: Rules) -> int:
    """The index of the oldest turn that stays: a user's, as early as both limits allow."""
    first, chars = len(turns) - 2, 0
    for i in range(len(turns) - 1, -1, -1):
        chars += len(turns[i].text)
        if len(turns) - i > rules.session_turns or chars > rules.session_chars:
            break
        if turns[i].role is Role.USER or i == 0:
            first = min(first, i)
    return max(first, 0)
