"""What is looked for next, and when it is enough: two planners with one port, both pure bookkeeping.

`Rounds` searches, and once more and wider when that was thin. `Agent` also takes a question apart: it searches for what
no passage found so far speaks of, looks up passages that are named, keeps to the time that is named, and stops when
every part is covered, when nothing new is left to try, or when its steps are used up. Neither touches the world:
answering.py does what they say and tells them what came of it. How a question is taken apart is parting.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from domain.parting import Dates, dates_in, ids_in, parts_of
from domain.policies import coverage, trigger
from domain.types import Ask, Hit, Query, Rules


class Tool(StrEnum):
    """How a step looks for evidence."""

    SEARCH = "search"
    LOOKUP = "lookup"  # passages by their ids
    DATED = "dated"  # a search of what was published in a time


@dataclass(frozen=True, slots=True)
class Action:
    """One step to take: `k` chunks wanted. `wider` asks the rewriter for one more wording of the query first."""

    tool: Tool
    query: Query
    k: int
    wider: bool = False
    ids: tuple[str, ...] = ()
    dates: Dates = field(default_factory=Dates)

    @property
    def sameness(self) -> tuple[object, ...]:
        """Equal for steps that would find the same."""
        return self.tool, " ".join(self.query.text.casefold().split()), self.k, self.wider, self.ids, self.dates


@dataclass(frozen=True, slots=True)
class Step:
    """A step that was taken and what it found, best first."""

    action: Action
    found: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Next:
    """What follows: another action and why it is needed, or none and why it is enough."""

    action: Action | None
    why: str


class Planner(Protocol):
    """Decides from the steps taken so far, and so could be replayed."""

    def next(self, steps: Sequence[Step]) -> Next:
        """The next action. The first one always searches for the whole question."""
        ...

    def evidence(self, steps: Sequence[Step]) -> tuple[Hit, ...]:
        """What all steps found together, best first, each chunk once."""
        ...


ENOUGH = "every part is covered"


def planner(query: Query, ask: Ask, rules: Rules) -> Planner:
    """The planner that the rules ask for: the agent where they give it steps."""
    k = ask.k or rules.k
    return Agent(query, k, rules, ask.deeper) if rules.agent_steps else Rounds(query, k, rules, ask.deeper)


@dataclass(frozen=True, slots=True)
class Rounds:
    """One search, and a wider one of another wording when `trigger` says why. The last round is the evidence."""

    query: Query
    k: int
    rules: Rules
    deeper: bool

    def next(self, steps: Sequence[Step]) -> Next:
        """As Planner.next."""
        if not steps:
            return Next(Action(Tool.SEARCH, self.query, self.k), "")
        last = steps[-1]
        why = trigger(last.found, self.rules, len(steps), self.deeper and len(steps) == 1)
        if not why:
            return Next(None, "")
        k = max(self.rules.wide_k, last.action.k)
        return Next(Action(Tool.SEARCH, last.action.query, k, wider=True), why)

    def evidence(self, steps: Sequence[Step]) -> tuple[Hit, ...]:
        """As Planner.evidence."""
        return steps[-1].found if steps else ()


@dataclass(frozen=True, slots=True)
class Agent:
    """The whole question first; then, until every part is covered, whatever has not been tried for one that is not."""

    query: Query
    k: int
    rules: Rules
    deeper: bool

    def next(self, steps: Sequence[Step]) -> Next:
        """As Planner.next. A step that was taken already is never taken again."""
        if not steps:
            return Next(Action(Tool.SEARCH, self.query, self.k), "")
        if len(steps) >= self.rules.agent_steps:
            return Next(None, f"all {self.rules.agent_steps} steps are used up")
        missing = [part for part in self._parts() if not self._covered(part, steps)]
        tried = {step.action.sameness for step in steps}
        for action, why in self._ideas(missing, steps):
            if action.sameness not in tried:
                return Next(action, why)
        return Next(None, ENOUGH if not missing else "nothing new is left to try")

    def evidence(self, steps: Sequence[Step]) -> tuple[Hit, ...]:
        """As Planner.evidence: the best of every step, then the second best of every step, as many as a wide round."""
        depth = max((len(step.found) for step in steps), default=0)
        dealt = [step.found[i] for i in range(depth) for step in steps if i < len(step.found)]
        once = {hit.chunk.id: hit for hit in reversed(dealt)}
        order = list(dict.fromkeys(hit.chunk.id for hit in dealt))[: max(self.rules.wide_k, self.k)]
        return tuple(replace(once[chunk_id], rank=rank) for rank, chunk_id in enumerate(order, 1))

    def _parts(self) -> tuple[str, ...]:
        return parts_of(self.query.text) or (self.query.text,)

    def _covered(self, part: str, steps: Sequence[Step]) -> bool:
        """True when one passage has every name and number of the part and enough of its other words: two halves
        elsewhere do not do.
        """
        names = " ".join(_names(part))
        chunks = (hit.chunk for step in steps for hit in step.found)
        for text in (f"{chunk.source.title} {chunk.heading} {chunk.text}" for chunk in chunks):
            named, share = coverage(names, [text]), coverage(part, [text])
            if named in (None, 1.0) and (share is None or share >= self.rules.agent_covered):
                return True
        return False

    def _ideas(self, missing: Sequence[str], steps: Sequence[Step]) -> list[tuple[Action, str]]:
        """What could be done now, the most telling first."""
        ideas: list[tuple[Action, str]] = []
        if named := ids_in(self.query.text):
            ideas.append((Action(Tool.LOOKUP, self.query, len(named), ids=named), "the question names passages"))
        dates = dates_in(self.query.text)
        if dates != Dates():
            ideas.append((Action(Tool.DATED, self.query, self.k, dates=dates), f"the question names a time ({dates})"))
        ideas += [(Action(Tool.SEARCH, Query(part), self.k), "a part is not covered") for part in missing]
        first = steps[0].found
        why = trigger(first, self.rules, 1, self.deeper) or ("a part is not covered" if missing else "")
        if why:
            ideas.append((Action(Tool.SEARCH, self.query, max(self.rules.wide_k, self.k), wider=True), why))
        return ideas


def _names(part: str) -> list[str]:
    """The words that name something: with a capital, except the first, or with a digit."""
    words = part.split()
    return [w for i, w in enumerate(words) if (i and w[0].isupper()) or any(char.isdigit() for char in w)]
