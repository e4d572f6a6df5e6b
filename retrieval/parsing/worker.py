"""The process that reads files for another one: `python -P -m retrieval.parsing.worker`, requests on stdin.

It gives itself limits before it touches a file and ends with its parent. Frames are a length and JSON, in both
directions: what comes out of here may have been made by a hostile file, so it is never unpickled.
"""

import ctypes
import gc
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from retrieval.parsing.formats import parse
from retrieval.parsing.parsed import Limits, Refused

HEAD = 8  # bytes of a length, little-endian
GRACE_S = 5  # longer than the parent waits, so that only a worker without a parent ends itself

Json = dict[str, Any]


def main() -> None:
    """Answers one request after another until stdin ends."""
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    while request := read_frame(requests):
        write_frame(replies, answer(orjson.loads(request)))
        tidy()  # while the other side works on the reply


def tidy() -> None:
    """Gives back what the last file took: libraries leave cycles behind, and malloc keeps what was freed."""
    gc.collect()
    gc.freeze()  # what is left is modules: the next collection need not walk through them again
    with suppress(OSError, AttributeError):  # not every C library has it
        ctypes.CDLL(None).malloc_trim(0)


def answer(request: Json) -> Json:
    """The reply to one request: what was parsed, or code and reason of a refusal."""
    limits = Limits(**request["limits"])
    confine(limits)
    try:
        content = Path(request["path"].encode("latin-1").decode(errors="surrogateescape")).read_bytes()
        parsed = parse(content, request["ending"], limits)
    except Refused as refused:
        return {"code": refused.code, "reason": refused.reason}
    except OSError as error:
        return {"code": "unreadable", "reason": f"cannot be read: {error.strerror or error}"}
    except MemoryError:
        return {"code": "too_big", "reason": out_of_memory(limits)}
    finally:
        signal.alarm(0)
    return {
        "text": parsed.text,
        "marks": [[mark.start, mark.name] for mark in parsed.marks],
        "fields": dict(parsed.fields),
        "remarks": list(parsed.remarks),
        "records": list(parsed.records),
    }


def confine(limits: Limits) -> None:
    """Limits of this process, which no file it reads can lift."""
    signal.alarm(int(limits.seconds) + GRACE_S)  # an orphan in an endless loop ends too
    size = limits.memory_mb * 1_000_000
    for what, wanted in ((resource.RLIMIT_AS, size), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        _, most = resource.getrlimit(what)
        allowed = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(what, (allowed, most))


def out_of_memory(limits: Limits) -> str:
    """The reason when memory ends."""
    return f"needs more than {limits.memory_mb} MB of memory to read: split it, or raise ingestion.memory_mb"


def read_frame(stream: BinaryIO) -> bytes:
    """The next frame, empty at the end of the stream."""
    head = stream.read(HEAD)
    return stream.read(int.from_bytes(head, "little")) if len(head) == HEAD else b""


def write_frame(stream: BinaryIO, message: Json) -> None:
    """Writes a frame."""
    content = orjson.dumps(message)
    stream.write(len(content).to_bytes(HEAD, "little") + content)
    stream.flush()


if __name__ == "__main__":
    main()
