"""What became of the files of a version: for the operator alone, worst first, and unknown is not zero."""

from dataclasses import dataclass, field
from typing import Any

from domain.ingestion import FileOutcome, FileStatus
from domain.naming import Naming
from serving.outcomes_http import TOLD
from serving.schemas import Limits
from tests.serving.service import client, service

KEY = "k" * 40
ADMIN = {"Authorization": f"Bearer {KEY}"}
FILES = (
    FileOutcome("a.txt", FileStatus.INDEXED, "ok", "1 of 1 indexed"),
    FileOutcome("half.pdf", FileStatus.WARNING, "remarks", "page 2 of 2 has no text"),
    FileOutcome("empty.txt", FileStatus.SKIPPED, "blank", "is empty"),
    FileOutcome("zanzibrand.pdf", FileStatus.FAILED, "no_text", "1 page without any text"),
    FileOutcome("b.jsonl:3", FileStatus.FAILED, "not_json", "is not JSON", record=True),
)


@dataclass
class FakeOutcomes:
    """Reports by version."""

    reports: dict[str, tuple[FileOutcome, ...]] = field(default_factory=lambda: {"v1": FILES})

    def read(self, version: str) -> tuple[FileOutcome, ...] | None:
        return self.reports.get(version)


async def asked(version: str, headers: dict[str, str] | None = None, **changes: Any) -> Any:
    of = service(**{"outcomes": FakeOutcomes(), "admin_key": KEY, "limits": Limits(wrong_key_s=0.0), **changes})
    async with client(of) as http:
        return await http.get(f"/v1/versions/{version}/outcomes", headers=ADMIN if headers is None else headers)


async def test_the_operator_hears_counts_that_add_up_and_the_worst_first() -> None:
    told = (await asked("v1")).json()
    assert told["files"] == {"indexed": 1, "warning": 1, "skipped": 1, "failed": 1, "records": 1, "total": 4}
    assert [one["status"] for one in told["outcomes"]] == ["failed", "failed", "skipped", "warning"]
    assert told["outcomes"][0]["code"] == "no_text"


async def test_nobody_else_hears_anything() -> None:
    for headers, status in (({}, 401), ({"Authorization": "Bearer wrong"}, 403)):
        reply = await asked("v1", headers)
        assert reply.status_code == status
        assert "pdf" not in reply.text


async def test_a_version_without_a_report_is_not_known_rather_than_faultless() -> None:
    assert (await asked("v0")).json() == {"version": "v0", "files": None, "outcomes": [], "more": 0}
    assert (await asked("v1", outcomes=None)).json()["files"] is None


async def test_an_unknown_version_is_not_found() -> None:
    assert (await asked("v9")).status_code == 404


async def test_of_very_many_the_first_are_told_and_the_rest_counted() -> None:
    many = tuple(FileOutcome(f"{i}.pdf", FileStatus.FAILED, "damaged", "x") for i in range(TOLD + 7))
    told = (await asked("v1", outcomes=FakeOutcomes({"v1": many}))).json()
    assert (len(told["outcomes"]), told["more"], told["files"]["failed"]) == (TOLD, 7, TOLD + 7)


async def test_names_of_files_are_scrubbed() -> None:
    told = await asked("v1", naming=Naming(["zanzibrand"]))
    assert "zanzibrand" not in told.text
