"""Users for Locust: single questions, conversations, streams, searches, a mixture of all, and arrivals at a rate.

    locust -f load/locustfile.py --headless --users 20 --run-time 60s --host http://127.0.0.1:8000 Mixed

`tidegate load` types that for you. Every request leaves a Sample (samples.py) and shows in Locust as series of its own:
first visible text, time a token, citations, tokens and cost beside the complete time. A failed request is an error
there without a time, so that no percentile has it.
"""

import json
import random
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import gevent
import gevent.pool
from geventhttpclient.response import HTTPParseError
from locust import events, task
from locust.contrib.fasthttp import FastHttpUser
from locust.env import Environment
from locust.event import EventHook
from locust.exception import StopUser

from load.arrivals import due_times
from load.replies import Heard, citations_complete, spent
from load.samples import Sample, write

QUESTIONS = Path(__file__).with_name("questions.jsonl")
PATIENCE_S = 60.0  # for one reply; also for what is open when a run ends
CUT = (OSError, HTTPParseError)  # what reading from a connection that breaks raises
AT_ONCE = 2000  # requests that arrivals may have open; beyond it one is counted as failed, and not left out
# Of ten requests in a mixture, so many are asked one way; a follow-up is two requests.
MIXTURE = ("answer", "answer", "answer", "stream", "stream", "stream", "stream", "search", "search", "follow_up")


class Run:
    """One run: its questions, its clock, and where its samples go. Made when the test starts."""

    def __init__(self, environment: Environment) -> None:
        chosen: Any = environment.parsed_options  # Any: Locust's, with our options
        self.environment, self.path = environment, Path(chosen.samples)
        self.rate, self.seconds, self.seed = chosen.rate, float(chosen.run_time or 60), chosen.seed
        self.think_s, self.mix = chosen.think_s, chosen.mix
        self.began = time.perf_counter()
        asked = [json.loads(line) for line in Path(chosen.questions).read_text("utf-8").splitlines()]
        random.Random(self.seed).shuffle(asked)
        self._asked = cycle(asked)

    def now(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.began

    def next(self) -> tuple[str, str]:
        """A question and its follow-up."""
        one = next(self._asked)
        return one["question"], one.get("follow_up", "And why?")

    def tell(self, sample: Sample) -> None:
        """Keeps a sample, and shows it to Locust."""
        write(self.path, [sample])
        fire = self.environment.events.request.fire
        fire(**series(sample.kind, sample.complete_ms, failure=sample.failure))
        for name, value in (
            ("first visible text", sample.first_ms),
            ("time a token", sample.token_ms),
            ("citations", sample.citations_ms),
            ("tokens in", sample.input_tokens),
            ("tokens out", sample.output_tokens),
            ("cost, millionths of a dollar", None if sample.cost_usd is None else sample.cost_usd * 1e6),
        ):
            if value is not None:
                fire(**series(f"{sample.kind}: {name}", value))
        if sample.citations_complete is False:
            fire(**series(f"{sample.kind}: citations", None, failure="citations incomplete"))


def series(name: str, value: float | None, failure: str = "") -> dict[str, Any]:
    """What Locust takes for one request. A value of None is counted and in no percentile."""
    exception = RuntimeError(failure) if failure else None
    return {
        "request_type": "load",
        "name": name,
        "response_time": None if failure else value,
        "response_length": 0,
        "exception": exception,
        "context": {},
    }


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]  # Locust
def _options(parser: ArgumentParser) -> None:
    parser.add_argument("--samples", default="samples.jsonl", help="file that samples are added to")
    parser.add_argument("--questions", default=str(QUESTIONS), help="JSON lines with question and follow_up")
    parser.add_argument("--rate", type=float, default=10.0, help="arrivals a second, for Arrivals")
    parser.add_argument("--mix", default="mixed", help="what Arrivals ask: answer, stream, search, follow_up, mixed")
    parser.add_argument("--think-s", type=float, default=1.0, help="seconds between two questions of a user, mean")
    parser.add_argument("--key-file", default="", help="file with the API key that requests show")
    parser.add_argument("--seed", type=int, default=7, help="the same seed asks the same, in the same order")


@events.init.add_listener  # type: ignore[untyped-decorator]  # Locust
def _catch_up(**_: object) -> None:
    """gevent's clock stood still while everything was imported; a run of 5 s would end before it began."""
    gevent.get_hub().loop.update_now()


@events.test_start.add_listener  # type: ignore[untyped-decorator]  # Locust
def _begin(environment: Environment, **_: object) -> None:
    environment.tidegate = Run(environment)


class Asks(FastHttpUser):  # type: ignore[misc]  # Locust is not typed
    """What every user can do. A kind of user is a subclass with a task."""

    abstract = True
    network_timeout = connection_timeout = PATIENCE_S
    default_headers = {"Accept-Encoding": "identity"}  # noqa: RUF012 - Locust's own form

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        file = environment.parsed_options.key_file
        self.authorization = {"Authorization": f"Bearer {Path(file).read_text('ascii').strip()}"} if file else {}
        self.client.request_event = EventHook()  # nobody listens: each request is told once, by Run.tell

    def wait_time(self) -> float:
        """Exponential around the mean, as people are; 0 asks again at once."""
        mean: float = self.current.think_s
        return random.expovariate(1 / mean) if mean else 0.0

    @property
    def current(self) -> Run:
        """The run that this user is part of."""
        found: Run = self.environment.tidegate
        return found

    def ask(self, kind: str, due_s: float) -> None:
        """One request of a kind, timed from when it was due."""
        if kind == "follow_up":
            self._converse(due_s)
            return
        question, _ = self.current.next()
        if kind == "stream":
            self.current.tell(self._stream(due_s, question))
        elif kind == "search":
            self.current.tell(self._whole("search", "/v1/search", {"query": question}, due_s)[0])
        else:
            self.current.tell(self._whole("answer", "/v1/answers", {"question": question}, due_s)[0])

    def _converse(self, due_s: float) -> None:
        """A question, and then a follow-up in the same session, which is due when the first answer is there."""
        question, follow_up = self.current.next()
        first, session = self._whole("answer", "/v1/answers", {"question": question}, due_s)
        self.current.tell(first)
        if session:
            asked = {"question": follow_up, "session": session}
            self.current.tell(self._whole("follow_up", "/v1/answers", asked, self.current.now())[0])

    def _whole(self, kind: str, path: str, asked: dict[str, Any], due_s: float) -> tuple[Sample, Any]:
        """The sample of a reply in one piece, and the session that it carries, if any."""
        reply = self._post(path, asked)
        status, body = reply.status_code, _json(reply)
        if status != 200 or body is None:
            return Sample(kind, due_s, failure=refusal(status, body, reply)), None
        complete_ms = (self.current.now() - due_s) * 1000
        if kind == "search":
            return Sample(kind, due_s, complete_ms), None
        tokens_in, tokens_out, cost = spent(body)
        complete = citations_complete(body)
        sample = Sample(kind, due_s, complete_ms, None, None, None, complete, tokens_in, tokens_out, cost)
        session = {name: body["session"][name] for name in ("id", "turns", "pool")}
        return sample, session

    def _stream(self, due_s: float, question: str) -> Sample:
        """The sample of a streamed answer, read to its end."""
        heard = Heard(self.current.now)
        reply = self._post("/v1/answers", {"question": question, "stream": True}, stream=True)
        if reply.status_code != 200:
            return Sample("stream", due_s, failure=refusal(reply.status_code, _json(reply), reply))
        try:
            for line in lines(reply):
                heard.line(line)
        except CUT as error:
            heard.failure = heard.failure or f"cut: {type(error).__name__}"
        if reason := heard.closed():
            return Sample("stream", due_s, failure=reason)
        return streamed(heard, due_s, self.current.now())

    def _post(self, path: str, asked: dict[str, Any], stream: bool = False) -> Any:  # Any: Locust's response
        body = json.dumps(asked)
        headers = {"Content-Type": "application/json", **self.authorization}
        return self.client.request("POST", path, data=body, headers=headers, stream=stream)


def streamed(heard: Heard, due_s: float, now_s: float) -> Sample:
    """The sample of a stream that was whole."""
    body = heard.body or {}
    tokens_in, tokens_out, cost = spent(body)
    units = (tokens_out or heard.pieces) - 1  # where nobody counted tokens, the pieces that came
    writing_s = (heard.last_text_at or 0.0) - (heard.first_at or 0.0)
    return Sample(
        "stream",
        due_s,
        (now_s - due_s) * 1000,
        None if heard.first_at is None else (heard.first_at - due_s) * 1000,
        writing_s * 1000 / units if units > 0 else None,
        None if heard.citation_at is None else (heard.citation_at - due_s) * 1000,
        citations_complete(body),
        tokens_in,
        tokens_out,
        cost,
    )


def _json(reply: Any) -> Any:
    """What a reply says; None when it is cut, or no JSON."""
    try:
        return json.loads(reply.text or "")
    except (ValueError, *CUT):
        return None


def refusal(status: int, body: Any, reply: Any) -> str:  # Any: JSON of whoever answered, and Locust's reply
    """Why a reply counts as failed, in words that group well."""
    if status == 200:
        return "the reply is no JSON"
    if status == 0:
        return f"no reply: {type(getattr(reply, 'error', None)).__name__}"
    code = body.get("error", {}).get("code", "") if isinstance(body, dict) else ""
    return f"HTTP {status} {code}".strip()


def lines(reply: Any) -> Iterator[str]:
    """The lines of a stream as soon as each is there; Locust's own ways wait for a block of bytes."""
    while line := reply.stream.readline(b"\n"):
        yield line.decode("utf-8", "replace").rstrip("\r\n")


def _user(name: str, kinds: tuple[str, ...], text: str) -> type[Asks]:
    """A user that asks in one of these ways each time."""

    def asking(self: Asks) -> None:
        self.ask(random.choice(kinds), self.current.now())

    return type(name, (Asks,), {"__doc__": text, "asking": task(asking), "__module__": __name__})


Answer = _user("Answer", ("answer",), "Asks single questions.")
Conversation = _user("Conversation", ("follow_up",), "Asks, and asks on.")
Stream = _user("Stream", ("stream",), "Asks single questions and reads along.")
Search = _user("Search", ("search",), "Searches, and asks nothing.")
Mixed = _user("Mixed", MIXTURE, "All of it.")
KINDS: dict[str, tuple[str, ...]] = {
    "answer": ("answer",),
    "conversation": ("follow_up",),
    "stream": ("stream",),
    "search": ("search",),
    "mixed": MIXTURE,
}


class Arrivals(Asks):
    """One user that lets requests arrive at a rate, each on its own, and times every one from when it was due."""

    fixed_count = 1
    concurrency = AT_ONCE

    @task  # type: ignore[untyped-decorator]  # Locust
    def arrive(self) -> None:
        """All arrivals of the run, and then the end."""
        run, kinds, draw = self.current, KINDS[self.current.mix], random.Random(self.current.seed)
        run.began, pool = time.perf_counter(), gevent.pool.Pool()  # not before this user was there to send any
        for due_s in due_times(run.rate, run.seconds, run.seed):
            kind = draw.choice(kinds)
            gevent.sleep(max(0.0, due_s - run.now()))
            if len(pool) >= AT_ONCE:
                run.tell(Sample(kind, due_s, failure=f"not sent: {AT_ONCE} are open"))
            else:
                pool.spawn(self._alone, kind, due_s)
        pool.join(timeout=PATIENCE_S)
        pool.kill()
        self.environment.runner.quit()
        raise StopUser

    def _alone(self, kind: str, due_s: float) -> None:
        try:
            self.ask(kind, due_s)
        except gevent.GreenletExit:
            self.current.tell(Sample(kind, due_s, failure=f"not complete {PATIENCE_S:g} s after the end"))
            raise
