"""Documents sent in over HTTP: who may, in which shapes, how much, and what is told of a job."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx2
import orjson
import pytest

from domain.errors import BadRequest, NotFound, Overloaded
from domain.naming import Naming
from domain.uploading import JobState, Upload, UploadedFile, UploadJob
from serving.schemas import Limits
from serving.uploads_http import form_files
from tests.serving.service import client, service

KEY = "k" * 40
ADMIN = {"Authorization": f"Bearer {KEY}"}
JOB = UploadJob("a" * 32, JobState.QUEUED, "2026-03-01T12:00:00.000+00:00", "", (UploadedFile("gate.md"),))


@dataclass
class FakeUploads:
    """Remembers what it was given."""

    max_bytes: int = 10_000
    error: Exception | None = None
    given: list[Upload] = field(default_factory=list)

    def accept(self, uploads: Sequence[Upload], who: str) -> UploadJob:
        assert "admin over HTTP" in who
        if self.error:
            raise self.error
        self.given += uploads
        return JOB

    def job(self, id: str) -> UploadJob:
        if id != JOB.id:
            raise NotFound("There is no upload of this id.", "id")
        return JOB


async def send(
    uploads: FakeUploads | None, body: Any = None, *, headers: dict[str, str] = ADMIN, method: str = "POST",
    path: str = "/v1/documents", naming: Naming | None = None, **others: Any,
) -> httpx2.Response:  # fmt: skip
    of = service(
        uploads=uploads, admin_key=KEY, limits=Limits(wrong_key_s=0.0, max_body_bytes=100), naming=naming or Naming(())
    )
    async with client(of) as http:
        if body is not None:
            others |= {"content": orjson.dumps(body)}
            headers = headers | {"Content-Type": "application/json"}
        return await http.request(method, path, headers=headers, **others)


async def test_a_text_is_taken_in_and_the_reply_says_where_to_ask() -> None:
    uploads = FakeUploads()
    reply = await send(uploads, {"name": "gate.md", "text": "The gate ☃ is shut.", "groups": ["staff"]})
    assert reply.status_code == 202
    assert (reply.json()["id"], reply.json()["state"]) == (JOB.id, "queued")
    assert reply.headers["Location"] == f"/v1/documents/jobs/{JOB.id}"
    assert uploads.given == [Upload("gate.md", "The gate ☃ is shut.".encode(), ("staff",))]


async def test_a_form_may_bring_several_files_of_any_bytes() -> None:
    uploads, raw = FakeUploads(), Random(7).randbytes(3000) + b"\r\n--\r\n\r\n"
    files = [("file", ("größe ☃.pdf", raw, "application/pdf")), ("file", ("b.txt", b"", "text/plain"))]
    reply = await send(uploads, data={"groups": "staff, board"}, files=files)
    assert reply.status_code == 202
    groups = ("staff", "board")
    assert uploads.given == [Upload("größe ☃.pdf", raw, groups), Upload("b.txt", b"", groups)]


@pytest.mark.parametrize("seed", range(30))
def test_a_form_gives_back_exactly_the_bytes_that_were_put_in(seed: int) -> None:
    random = Random(seed)
    pieces = [b"\r\n", b"--", b"--x", b"\r", b"\n", b"\r\n\r\n", b"\0", b"\xff", b"text"]
    content = b"".join(random.choices(pieces, k=random.randint(0, 40)))
    raw = b'--xyzzy\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n' + content
    (file,) = form_files("multipart/form-data; boundary=xyzzy", raw + b"\r\n--xyzzy--\r\n")
    assert file == Upload("a.bin", content)


@pytest.mark.parametrize(
    ("kind", "raw", "said"),
    [
        ("multipart/form-data", b"", "no boundary"),
        ("multipart/form-data; boundary=x", b"", "has no end"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n', "no end"),
        (
            "multipart/form-data; boundary=x",
            b'--x\r\nContent-Disposition: form-data; name="title"\r\n\r\n1\r\n--x--\r\n',
            "'title' is not known",
        ),
    ],
)
def test_what_is_no_form_is_refused_with_what_is_wrong(kind: str, raw: bytes, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        form_files(kind, raw)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"text": "x"}, "'name' is missing"),
        ({"name": "a.md", "text": 5}, "'text' is 5"),
        ({"name": "a.md", "text": "x", "groups": [" "]}, "blank name"),
        ({"name": "a.md", "text": "x", "group": ["a"]}, "did you mean 'groups'"),
    ],
)
async def test_a_body_that_is_none_is_refused_field_by_field(body: Any, said: str) -> None:
    reply = await send(FakeUploads(), body)
    assert reply.status_code == 400
    assert said in reply.json()["error"]["message"]


async def test_the_limit_is_that_of_uploads_and_not_of_questions() -> None:
    uploads = FakeUploads()
    assert (await send(uploads, {"name": "a.md", "text": "x" * 5000})).status_code == 202
    reply = await send(uploads, {"name": "a.md", "text": "x" * 10_000})
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "too_long")
    assert "10,000 bytes" in reply.json()["error"]["message"]


@pytest.mark.parametrize(("headers", "status"), [({}, 401), ({"Authorization": "Bearer wrong"}, 403)])
async def test_only_the_operator_sends_documents_and_asks_about_jobs(headers: dict[str, str], status: int) -> None:
    uploads = FakeUploads()
    assert (await send(uploads, {"name": "a.md", "text": "x"}, headers=headers)).status_code == status
    asked = await send(uploads, method="GET", path=f"/v1/documents/jobs/{JOB.id}", headers=headers)
    assert asked.status_code == status
    assert uploads.given == []


async def test_another_kind_of_body_is_refused() -> None:
    reply = await send(FakeUploads(), content=b"x", headers=ADMIN | {"Content-Type": "text/plain"})
    assert reply.status_code == 400
    assert "send application/json or multipart/form-data" in reply.json()["error"]["message"]


async def test_a_full_queue_says_when_to_come_back() -> None:
    reply = await send(
        FakeUploads(error=Overloaded("20 uploads wait.", "uploads", 30.0)), {"name": "a.md", "text": "x"}
    )
    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "30")


async def test_a_service_that_takes_no_documents_says_what_does() -> None:
    reply = await send(None, {"name": "a.md", "text": "x"})
    assert reply.status_code == 403
    assert "tidegate sync" in reply.json()["error"]["message"]


async def test_a_job_is_told_without_forbidden_words_and_an_unknown_one_is_404() -> None:
    asked = await send(FakeUploads(), method="GET", path=f"/v1/documents/jobs/{JOB.id}", naming=Naming(("gate.md",)))
    assert asked.status_code == 200
    assert "gate.md" not in asked.text
    missing = await send(FakeUploads(), method="GET", path="/v1/documents/jobs/nothing")
    assert missing.status_code == 404


def test_a_form_that_names_readers_twice_is_refused_rather_than_read_by_the_last_word() -> None:
    def part(head: str, content: str) -> str:
        return f"--X\r\nContent-Disposition: form-data; {head}\r\n\r\n{content}\r\n"

    raw = part('name="groups"', "hr") + part('name="groups"', "public") + part('name="file"; filename="a.md"', "x")
    with pytest.raises(BadRequest, match="'groups' twice"):
        form_files("multipart/form-data; boundary=X", f"{raw}--X--".encode())
