"""Follow-ups made to stand alone by a small hosted model over Bedrock's Converse.

Whatever the model says is checked by rewriting.accept; when it says nothing, domain/answering.py goes on without it.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from domain.types import Query, Rewrite, RewriteStatus, Role, Turn, Usage
from generation.bedrock import messages, used
from generation.bedrock_calls import call
from generation.bedrock_line import hear
from generation.efforts import Deadline, Effort, begun
from generation.pacing import Pace
from generation.rewriting import accept, widened, with_keywords

REWRITE = """\
You rewrite the last question of a conversation so that it can be searched for without the conversation.
Put in what its pronouns and omissions refer to. Copy names, numbers and identifiers exactly. Do not answer it, do not
add anything nobody said, keep its language. Reply with the one question and nothing else.
"""
PARAPHRASE = """\
You say a search query in other words: synonyms, the wording an expert or a manual would use. Copy names, numbers and
identifiers exactly. Do not answer it. Reply with the one query and nothing else.
"""
STAGE = "rewrite"


class BedrockRewriter:
    """The Rewriter over Converse. `client` and `pace` as for BedrockGenerator.

    `timeout_s` bounds one rewrite. The model is asked once, because a rewrite that fails leaves the
    question as typed. Only the last `history_turns` turns are sent.
    """

    def __init__(
        self,
        client: Any,  # boto3
        model_id: str,
        *,
        timeout_s: float = 4.0,
        pace: Pace | None = None,
        max_tokens: int = 120,
        max_chars: int = 300,
        history_turns: int = 6,
        calls: int = 16,
    ) -> None:
        hear(client)
        self._client = client
        self._pace = pace or Pace()
        self._model_id = model_id
        self._timeout_s = timeout_s
        self._max_tokens = max_tokens
        self._max_chars = max_chars
        self._history_turns = history_turns
        self._threads = ThreadPoolExecutor(calls, thread_name_prefix="bedrock-rewrite")

    async def rewrite(self, question: str, history: Sequence[Turn]) -> Rewrite:
        """NOT_NEEDED on a first turn, without a call; else USED, UNCHANGED or FALLBACK with the reason.

        Raises StageFailed and its kinds when the model does not answer, as `paraphrase` does.
        """
        if not any(turn.role is Role.USER for turn in history):
            return Rewrite(Query(question), RewriteStatus.NOT_NEEDED)
        recent = history[-self._history_turns :]
        told = "\n".join(f"{turn.role.value}: {turn.text}" for turn in recent)
        said, usage = await self._say(REWRITE, f"Conversation:\n{told}\n\nLast question: {question}")
        return replace(accept(question, history, said, self._max_chars), usage=usage)

    async def paraphrase(self, query: Query) -> Rewrite:
        """With the model's wording as one more variant; with the keywords instead when it says nothing usable."""
        text, usage = await self._say(PARAPHRASE, query.text)
        said = accept(query.text, (), text, self._max_chars, same_words=False)
        known = {text.casefold() for text in (query.text, *query.variants)}
        if said.status is not RewriteStatus.USED or said.query.text.casefold() in known:
            return widened(query, with_keywords(query), usage)
        return widened(query, Query(query.text, (*query.variants, said.query.text)), usage)

    async def _say(self, prompt: str, content: str) -> tuple[str, Usage]:
        """The model's text, blank when it has none, and its tokens. Raises StageFailed and its kinds."""
        asked = partial(
            self._client.converse,
            modelId=self._model_id,
            system=[{"text": prompt}],
            messages=messages([(Role.USER, content)]),
            inferenceConfig={"maxTokens": self._max_tokens, "temperature": 0.0},
        )
        deadline = Deadline(self._timeout_s)
        calling = partial(self._call, asked, deadline)
        once = Effort(attempts=1, deadline_s=self._timeout_s)
        reply = await begun(calling, self._model_id, once, deadline, self._pace, STAGE)
        text = "".join(block.get("text", "") for block in reply["output"]["message"]["content"])
        return text, used(reply.get("usage", {}))

    async def _call(self, asked: Callable[[], dict[str, Any]], deadline: Deadline) -> dict[str, Any]:
        return await call(self._threads, asked, deadline.left(), self._model_id, STAGE)
