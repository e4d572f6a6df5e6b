"""`tidegate preflight`: what runs where and what is missing, without a call to anybody."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.tidegate.tiny import sets
from tidegate import keys
from tidegate.aws_parts import PARTS
from tidegate.aws_policy import policy, resources_of
from tidegate.cli import main

MODEL = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
ALL = {
    "generation__backend": "bedrock", "generation__model_id": MODEL, "generation__region": "eu-central-1",
    "rewriting__backend": "bedrock", "rewriting__model_id": "eu.amazon.nova-micro-v1:0",
    "embedding__backend": "bedrock", "embedding__model_id": "amazon.titan-embed-text-v2:0",
    "rerank__backend": "bedrock", "rerank__model_id": "cohere.rerank-v3-5:0",
    "retrieval__knowledge_base": "ABCDEFGHIJ",
}  # fmt: skip
KEYS = {"AWS_ACCESS_KEY_ID": "made-up-id", "AWS_SECRET_ACCESS_KEY": "made-up-secret"}


@pytest.fixture(autouse=True)
def nobody_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket can be made, and nothing is known of any account."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was made")

    monkeypatch.setattr(socket.socket, "__init__", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for name in (*KEYS, "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_DEFAULT_REGION", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str, **others: str
) -> tuple[int, Mapping[str, Any], str]:
    """Exit code, the JSON, and all that was printed."""
    code = main(["preflight", "--json", *words, *sets(tmp_path / "data", **others)])
    out = capsys.readouterr()
    return code, json.loads(out.out), out.out + out.err


def test_settings_without_aws_need_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found, _ = told(tmp_path, capsys)
    assert (code, found["ok"], found["policy"], found["missing"]) == (0, True, None, [])
    assert {part["where"] for part in found["parts"]} == {"here"}
    assert not (tmp_path / "data").exists()


def test_every_part_on_aws_is_named_with_its_model_and_the_policy_is_the_least(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    code, found, printed = told(tmp_path, capsys, **ALL)
    assert (code, found["missing"], found["region_from"]) == (0, [], "generation.region")
    there = {part["part"]: part["named"] for part in found["parts"] if part["where"] == "aws"}
    assert there == {
        "writing": MODEL,
        "rewriting": "eu.amazon.nova-micro-v1:0",
        "embedding": "amazon.titan-embed-text-v2:0",
        "reranking": "cohere.rerank-v3-5:0",
        "retrieval": "ABCDEFGHIJ",
    }
    here = "arn:aws:bedrock:eu-central-1:"
    allowed = {line["Sid"]: (line["Action"], line["Resource"]) for line in found["policy"]["Statement"]}
    assert allowed == {
        "Writing": (
            ["bedrock:InvokeModelWithResponseStream"],
            [f"{here}*:inference-profile/{MODEL}", f"arn:aws:bedrock:*::foundation-model/{MODEL[3:]}"],
        ),
        "Rewriting": (
            ["bedrock:InvokeModel"],
            [
                f"{here}*:inference-profile/eu.amazon.nova-micro-v1:0",
                "arn:aws:bedrock:*::foundation-model/amazon.nova-micro-v1:0",
            ],
        ),
        "Embedding": (["bedrock:InvokeModel"], [f"{here}:foundation-model/amazon.titan-embed-text-v2:0"]),
        "Reranking": (["bedrock:InvokeModel"], [f"{here}:foundation-model/cohere.rerank-v3-5:0"]),
        "RerankingCall": (["bedrock:Rerank"], "*"),
        "Retrieval": (["bedrock:Retrieve"], [f"{here}*:knowledge-base/ABCDEFGHIJ"]),
    }
    assert "made-up" not in printed


def test_what_is_missing_is_named_with_the_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found, _ = told(tmp_path, capsys, **(ALL | {"generation__region": "null"}))
    assert (code, found["ok"]) == (1, False)
    region, credentials = found["missing"]
    assert "generation.region" in region
    assert "AWS_PROFILE" in credentials
    assert "--machine-role" in credentials


def test_a_role_of_the_machine_cannot_be_seen_and_is_taken_on_trust(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found, _ = told(tmp_path, capsys, "--machine-role", **ALL)
    assert (code, found["missing"]) == (0, [])
    assert "not seen" in found["credentials_from"]


@pytest.mark.parametrize(
    ("environment", "files", "source"),
    [
        (KEYS, {}, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ({}, {"credentials": "[default]\naws_access_key_id = made-up-id\naws_secret_access_key = made-up-secret\n"},
         "profile 'default' of the shared files"),
        ({"AWS_PROFILE": "work"}, {"config": "[profile work]\nsso_session = made-up\nregion = eu-west-1\n"},
         "profile 'work', single sign-on"),
        ({"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/made-up"}, {},
         "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, the role of a task or pod"),
    ],
)  # fmt: skip
def test_the_source_of_credentials_is_named_and_none_of_them_shown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    files: dict[str, str],
    source: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    code, found, printed = told(tmp_path, capsys, **ALL)
    assert (code, found["credentials_from"]) == (0, source)
    assert "made-up" not in printed


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({"AWS_ACCESS_KEY_ID": "made-up-id"}, "AWS_SECRET_ACCESS_KEY is not"),
        ({"AWS_PROFILE": "nowhere"}, "profile 'nowhere' cannot be used"),
    ],
)
def test_half_a_key_and_a_profile_that_is_not_there_are_no_credentials(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    problem: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    code, found, _ = told(tmp_path, capsys, "--machine-role", **ALL)
    assert code == 1
    assert any(problem in text for text in found["missing"])


def test_a_person_reads_what_runs_where_and_the_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = {**ALL, "sessions__store": "sql", "sessions__url": "postgresql://me:hunter2@db/tidegate"}
    assert main(["preflight", "--machine-role", *sets(tmp_path, **chosen)]) == 0
    out = capsys.readouterr().out
    assert f"generation.backend = bedrock, generation.model_id = {MODEL}" in out
    assert "sessions.url" in out
    assert "hunter2" not in out
    assert json.loads(out[out.index("{") :])["Version"] == "2012-10-17"


def test_a_model_that_is_missing_is_refused_with_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["preflight", *sets(tmp_path, generation__backend="bedrock")]) == 2
    assert "generation.model_id" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("named", "region", "expected"),
    [
        ("amazon.nova-pro-v1:0", "us-gov-west-1",
         ["arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model/amazon.nova-pro-v1:0"]),
        ("arn:aws:bedrock:us-east-1::foundation-model/m", "eu-west-1",
         ["arn:aws:bedrock:us-east-1::foundation-model/m"]),
        ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/p", "us-east-1",
         ["arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/p",
          "arn:aws:bedrock:*::foundation-model/*"]),
    ],
)  # fmt: skip
def test_what_a_setting_names_becomes_the_arns_it_stands_for(named: str, region: str, expected: list[str]) -> None:
    assert resources_of(named, region) == expected


def test_the_map_names_settings_that_exist_and_values_they_take() -> None:
    for part in PARTS:
        for key in filter(None, (part.switch, part.model)):
            assert keys.field_of(key) is not None, key
        assert part.by_hand or part.actions
        assert not part.to or part.to in str(keys.field_of(part.switch))


def test_nothing_on_aws_allows_nothing() -> None:
    assert policy([])["Statement"] == []


def test_a_judge_has_a_region_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged = {"judge__backend": "bedrock", "judge__model_id": "amazon.nova-pro-v1:0"}
    _, found, _ = told(tmp_path, capsys, "--machine-role", **ALL, **judged)
    assert found["missing"] == ["region: set judge.region or AWS_DEFAULT_REGION"]
    code, found, _ = told(tmp_path, capsys, "--machine-role", **ALL, **judged, judge__region="us-east-1")
    allowed = {line["Sid"]: line["Resource"] for line in found["policy"]["Statement"]}
    assert (code, allowed["Judging"]) == (0, ["arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0"])
