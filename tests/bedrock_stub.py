"""A Bedrock on loopback, spoken to by the real boto3: Converse, ConverseStream, InvokeModel, Rerank and Retrieve.

    with BedrockStub([Reply(("Forty bar ", "[S1]."))]) as stub, stub.client() as client:
        ...

Replies are used up in order, one per request; the last one repeats. Without a script the stub quotes the sources it
is sent. `stub.requests` keeps what was asked. By hand, for load tests and the page:

    python -m tests.bedrock_stub --port 9100 --first-ms 300 --piece-ms 20 --throttled 0.05
"""

import argparse
import json
import re
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import unquote
from zlib import crc32

import boto3

from generation.bedrock_calls import client_config
from tests.stubs.bedrock_models import Invalid, Passage, embed, rerank, retrieve
from tests.stubs.loopback import Handler, Loopback
from tests.stubs.prompt_cache import PromptCache, Spent, price_of, tokens
from tests.stubs.replies import Faults, Latency, Reply, Script

__all__ = ["BedrockStub", "Faults", "Latency", "Passage", "PromptCache", "Reply"]


class BedrockStub(Loopback):
    """The server, its script, its cache and what was spent."""

    def __init__(
        self,
        replies: Sequence[Reply] = (),
        *,
        latency: Latency | None = None,
        faults: Faults | None = None,
        cache: PromptCache | None = None,
        passages: Sequence[Passage] = (),
        port: int = 0,
    ) -> None:
        super().__init__(port)
        self.handler = _Handler
        self.script, self.latency, self.faults = Script(replies), latency or Latency(), faults or Faults()
        self.cache, self.passages = cache or PromptCache(), passages
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.spent: dict[str, Spent] = {}  # by model id
        self._lock = threading.Lock()

    @contextmanager
    def client(
        self, read_timeout_s: float = 5.0, credentials: bool = True, service: str = "bedrock-runtime"
    ) -> Iterator[Any]:
        """A real boto3 client that talks to this stub with made-up credentials, or without any."""
        known = {"aws_access_key_id": "made-up-id", "aws_secret_access_key": "made-up-secret"} if credentials else {}
        client = (_session() if credentials else boto3.session.Session()).client(
            service,
            region_name="eu-central-1",
            endpoint_url=self.url,
            config=client_config(1.0, read_timeout_s),
            **known,
        )
        try:
            yield client
        finally:
            client.close()

    def asked(self, body: bytes, path: str) -> dict[str, Any]:
        """The request, kept with its path."""
        request: dict[str, Any] = json.loads(body)
        with self._lock:
            self.requests.append({"path": path, **request})
            self.bodies.append(body)
        return request

    def reply(self, request: dict[str, Any]) -> Reply:
        """The next reply of the script, or the sources quoted, struck by faults."""
        return self.script.next() or self.faults.strike(Reply(_quoted(request), usage=None))

    def usage(self, model_id: str, request: dict[str, Any], reply: Reply) -> dict[str, int]:
        """Tokens by class, as scripted or as counted."""
        if reply.usage is not None:
            return dict(reply.usage)
        counted = self.cache.count(model_id, _blocks(request))
        written = sum(tokens(chunk) for chunk in reply.chunks)
        with self._lock:
            spent = self.spent.setdefault(model_id, Spent())
            spent.input, spent.output = spent.input + counted.input, spent.output + written
            spent.read, spent.write = spent.read + counted.read, spent.write + counted.write
        return {
            "inputTokens": counted.input,
            "outputTokens": written,
            "totalTokens": counted.input + counted.read + counted.write + written,
            "cacheReadInputTokens": counted.read,
            "cacheWriteInputTokens": counted.write,
        }

    def bill(self) -> dict[str, Any]:
        """What was spent per model; a model without a price costs null."""
        prices = {model_id: price_of(model_id) for model_id in self.spent}
        return {
            model_id: {**vars(spent), "usd": price.of(spent) if (price := prices[model_id]) else None}
            for model_id, spent in self.spent.items()
        }


@lru_cache(maxsize=1)
def _session() -> boto3.session.Session:
    """One session for all tests: it reads the service description once, which takes longer than a whole test."""
    return boto3.session.Session()


class _Handler(Handler):
    def do_GET(self) -> None:
        """`/bill`, for people."""
        self.close_connection = True
        self.send_json(200, {"requests": len(self.stub.requests), "spent": self.stub.bill()})

    def reply(self, body: bytes) -> None:
        path = unquote(self.path)
        request = self.stub.asked(body, path)
        model_id = path.removeprefix("/model/").rsplit("/", 1)[0]
        if path.endswith(("/converse", "/converse-stream")):
            self._write(model_id, request, path.endswith("-stream"))
            return
        scripted = self.stub.script.next()
        if scripted and scripted.refuse:
            self._refuse(*scripted.refuse, scripted.retry_after)
            return
        try:
            if path == "/rerank":
                answer = rerank(request)
            elif path.startswith("/knowledgebases/"):
                answer = retrieve(self.stub.passages, request)
            else:
                answer = embed(model_id, request)
        except Invalid as error:
            self.send_json(400, {"message": str(error)}, {"x-amzn-ErrorType": "ValidationException"})
            return
        self.send_json(200, answer)

    def _write(self, model_id: str, request: dict[str, Any], streamed: bool) -> None:
        reply = self.stub.reply(request)
        wait_s = reply.delay_s or self.stub.latency.first_s
        if wait_s and self.caller_left(wait_s):
            return
        if reply.refuse:
            self._refuse(*reply.refuse, reply.retry_after)
            return
        usage = self.stub.usage(model_id, request, reply)
        if streamed:
            self.begin_stream("application/vnd.amazon.eventstream")
            self._events(reply, usage)
            return
        message = {"role": "assistant", "content": [{"text": "".join(reply.chunks)}]}
        told = {"output": {"message": message}, "stopReason": reply.stop_reason, "usage": usage}
        self.send_json(200, {**told, "metrics": {"latencyMs": 1}})

    def _refuse(self, status: int, code: str, retry_after: str | None) -> None:
        headers = {"x-amzn-ErrorType": code} | ({"Retry-After": retry_after} if retry_after else {})
        self.send_json(status, {"message": "refused for arn:aws:iam::123456789012:user/made-up-id"}, headers)

    def _events(self, reply: Reply, usage: dict[str, int]) -> None:
        self._event("messageStart", {"role": "assistant"})
        pause_s = reply.pause_s or self.stub.latency.piece_s
        for text in reply.chunks:
            self._event("contentBlockDelta", {"delta": {"text": text}, "contentBlockIndex": 0})
            if pause_s and self.caller_left(pause_s):
                return
        if reply.breaks and not self._goes_on(reply.breaks):
            return
        self._event("contentBlockStop", {"contentBlockIndex": 0})
        self._event("messageStop", {"stopReason": reply.stop_reason})
        if usage:
            self._event("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})
        self.send_chunk(b"")

    def _goes_on(self, breaks: str) -> bool:
        """Sends what breaks the stream; True when it goes on as if nothing had been."""
        if breaks == "close":
            return False  # without the last chunk: the body is cut
        if breaks == "silence":
            self.caller_left(60.0)
            return False
        if breaks == "unknown event":
            self._event("somethingNew", {"said": "hello"})
            return True
        if breaks == "no end":
            pass
        elif breaks in MALFORMED:
            self.send_chunk(MALFORMED[breaks])
        else:
            self._event(breaks, {"message": "slow down, account 123456789012"}, "exception")
        self.send_chunk(b"")
        return False

    def _event(self, name: str, payload: dict[str, Any], kind: str = "event") -> None:
        self.send_chunk(frame(name, json.dumps(payload).encode(), kind))


def frame(name: str, payload: bytes, kind: str = "event") -> bytes:
    """One message of the event stream: lengths, their checksum, headers, payload, the checksum of all that.

    Source: "Event stream encoding" in the Amazon Transcribe developer guide; botocore.eventstream reads it back.
    """
    said = {f":{kind}-type": name, ":content-type": "application/json", ":message-type": kind}
    headers = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()  # 7: a text
        for key, value in said.items()
    )
    lengths = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = lengths + struct.pack("!I", crc32(lengths)) + headers + payload
    return message + struct.pack("!I", crc32(message))


_WHOLE = frame("contentBlockDelta", b'{"delta": {"text": "lost"}, "contentBlockIndex": 0}')
MALFORMED = {
    "bad checksum": _WHOLE[:-1] + bytes([_WHOLE[-1] ^ 255]),
    "bad length": struct.pack("!I", 2**31) + _WHOLE[4:],
    "not json": frame("contentBlockDelta", b"{"),
    "empty delta": frame("contentBlockDelta", b'{"contentBlockIndex": 0}'),
}

_SOURCE = re.compile(r"^\[(S\d+)\][^\n]*\n(.+?)(?=\n\n\[S\d+\]|\n</sources|\Z)", re.DOTALL | re.MULTILINE)


def _blocks(request: dict[str, Any]) -> Iterator[str | None]:
    """The texts of a request in the order a vendor reads them, None where it may cache."""
    contents = [request.get("system", []), *(message["content"] for message in request["messages"])]
    for block in (block for content in contents for block in content):
        yield None if "cachePoint" in block else block.get("text", "")


def _quoted(request: dict[str, Any]) -> tuple[str, ...]:
    """What a model without a script says: the first sentence of the first two sources, or the question itself."""
    texts = [block["text"] for message in request["messages"] for block in message["content"] if "text" in block]
    found = [(sid, text.strip().split(". ")[0].rstrip(".")) for sid, text in _SOURCE.findall("\n".join(texts))]
    if not found:
        return tuple(re.findall(r"\S+\s*", texts[-1].rpartition("Last question: ")[2]))
    said = " ".join(f"{sentence} [{sid}]." for sid, sentence in found[:2])
    return tuple(re.findall(r"\S+\s*", said))


def main(argv: Sequence[str] | None = None) -> None:
    """Serves until it is interrupted, and says what was spent."""
    parser = argparse.ArgumentParser(prog="python -m tests.bedrock_stub", description="A Bedrock on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=9100, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--first-ms", type=float, default=0.0, help="milliseconds to the first piece of a reply")
    parser.add_argument("--piece-ms", type=float, default=0.0, help="milliseconds between two pieces")
    for share, what in (("throttled", "refused with 429"), ("failed", "refused with 503"), ("cut", "cut half-way")):
        parser.add_argument(f"--{share}", type=float, default=0.0, help=f"share of the requests that are {what}")
    parser.add_argument("--stop-reason", default="end_turn", help="how replies end")
    parser.add_argument("--seed", type=int, default=7, help="the same seed strikes the same requests")
    parser.add_argument("--minimum", type=int, default=1024, help="smallest prefix that is cached, in tokens")
    parser.add_argument("--ttl-s", type=float, default=300.0, help="seconds that a prefix is kept after its last use")
    chosen = parser.parse_args(argv)
    stub = BedrockStub(
        latency=Latency(chosen.first_ms / 1000, chosen.piece_ms / 1000),
        faults=Faults(chosen.throttled, chosen.failed, chosen.cut, chosen.stop_reason, chosen.seed),
        cache=PromptCache(chosen.minimum, chosen.ttl_s),
        port=chosen.port,
    )
    with stub:
        print(f"generation.endpoint_url: {stub.url}   (what was spent: {stub.url}/bill)", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            json.dump(stub.bill(), sys.stdout, indent=2)


if __name__ == "__main__":
    main()
