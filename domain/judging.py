"""What a judge of answers is asked and what it says, and whose model a judge is.

A judge gives an answer one of four grades by a rubric. What it could not grade it does not grade: that is no grade, and
never a low one. Who judges is behind the port `Judge`; whether it may decide anything is its calibration's business.
"""

import re
from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """What an answer is worth, in a rubric's words. The rubric says what each grade means and what it counts."""

    RIGHT = "right"
    PARTLY = "partly"
    WRONG = "wrong"
    UNGROUNDED = "ungrounded"


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that an answer cites under `marker`, like S1."""

    marker: str
    title: str
    quote: str


@dataclass(frozen=True, slots=True)
class Submission:
    """One answer before a judge, with what is known to be true.

    `accepted` are the spellings of the gold answer and `facts` the gold sentences; both are empty where the library has
    no answer. `declined` says that the service itself said so instead of answering.
    """

    question: str
    accepted: tuple[str, ...]
    facts: tuple[str, ...]
    answer: str
    passages: tuple[Passage, ...]
    declined: bool = False

    @property
    def answerable(self) -> bool:
        """True when the library holds the answer."""
        return bool(self.facts)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A grade with its reason; None is "not judged", and the reason says why."""

    grade: Grade | None
    reason: str


# ---------------------------------------------------------------------------------------------- families

NO_MODEL = frozenset({"no model"})  # rules have no taste that another rule could share

# Words of model ids, version numbers aside. A model trained from another's answers is named after both, and is of both
# families.
_FAMILIES = {
    "ai21": ("ai21", "jamba"),
    "amazon": ("amazon", "nova", "titan"),
    "anthropic": ("anthropic", "claude"),
    "cohere": ("cohere", "command"),
    "deepseek": ("deepseek",),
    "google": ("google", "gemini", "gemma"),
    "meta": ("meta", "llama"),
    "microsoft": ("microsoft", "phi"),
    "mistral": ("mistral", "mistralai", "mixtral", "ministral", "magistral", "codestral", "devstral", "pixtral"),
    "moonshot": ("moonshot", "moonshotai", "kimi"),
    "openai": ("openai", "gpt", "chatgpt", "o1", "o3", "o4"),
    "qwen": ("qwen", "qwq"),
    "xai": ("xai", "grok"),
    "zhipu": ("zhipu", "glm", "chatglm"),
}


def families(model_id: str) -> frozenset[str]:
    """Who made the model, read off its id: `eu.anthropic.claude-...` is {"anthropic"}. Empty when nobody can tell.

    An id that names two, as of a model distilled from one into another, is of both.
    """
    words = set(re.findall(r"[a-z0-9]+", model_id.casefold()))
    plain = words | {re.sub(r"\d+[a-z]?$", "", word) for word in words}  # llama3, qwen2
    return frozenset(family for family, names in _FAMILIES.items() if not plain.isdisjoint(names))


def kin(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """The families that both are of: a judge of them would be judging its own. Rules are nobody's kin."""
    return (one & other) - NO_MODEL
