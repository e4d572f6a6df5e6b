"""`deploy/aws.py` against an AWS on loopback: everything comes, comes once, and goes; and Ray takes what it made."""

import os
import runpy
import stat
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.deploy import cloud

ROOT = Path(__file__).parents[2]
NAMED = runpy.run_path(str(ROOT / "deploy" / "aws.py"))
BUCKET = f"tidegate-payload-{cloud.ACCOUNT}-{cloud.REGION}"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # inside moto and what it imports
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # boto3 keeps its connections until the process ends
]

Deploy = Callable[..., int]


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An empty AWS for one test, and an environment that knows no other."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with cloud.aws() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "made-up-id")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "made-up-secret")
        monkeypatch.setenv("HOME", str(tmp_path))
        urllib.request.urlopen(urllib.request.Request(f"{url}/moto-api/reset", method="POST"), timeout=30).close()
        yield


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "tides.md").write_text("# Tides\n\nHigh water comes twice a day.\n")
    (folder / "gates.md").write_text("# Gates\n\nThe gate opens at four metres.\n")
    return folder


@pytest.fixture
def deploy(aws: None, corpus: Path, tmp_path: Path) -> Deploy:
    """Runs a verb; `up` with a small payload and the network that is there."""
    vpc, subnet = cloud.network()
    (tmp_path / "questions.jsonl").write_text("{}\n")
    (tmp_path / "terms.txt").write_text("")
    payload = ["--vpc", vpc, "--subnet", subnet, "--client-cidr", "10.0.0.0/16", "--operator-cidr", "10.1.0.0/16"]
    payload += [
        "--corpus",
        str(corpus),
        "--questions",
        f"{tmp_path}/questions.jsonl",
        "--terms",
        f"{tmp_path}/terms.txt",
    ]

    def run(verb: str, *more: str) -> int:
        shared = ["--region", cloud.REGION]
        alone = [] if verb == "fetch" else ["--storage-only"]
        return int(NAMED["main"]([verb, *shared, *alone, *(payload if verb == "up" else []), *more]))

    return run


def keys() -> set[str]:
    found = boto3.client("s3", region_name=cloud.REGION).list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return {one["Key"] for one in found}


def test_up_brings_everything_and_said_again_brings_nothing(deploy: Deploy, capsys: pytest.CaptureFixture[str]) -> None:
    assert deploy("up") == 0
    files = {"corpus/tides.md", "corpus/gates.md", "tidegate.yaml", "questions.jsonl", "terms.txt"}
    assert keys() == {f"payload/{name}" for name in files}
    assert "5 sent, 0 already there" in capsys.readouterr().out
    assert deploy("up") == 0
    assert "0 sent, 5 already there, 0 removed" in capsys.readouterr().out


def test_a_document_that_is_gone_here_goes_there_and_a_changed_one_is_sent(
    deploy: Deploy, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy("up")
    (corpus / "gates.md").unlink()
    (corpus / "tides.md").write_text("# Tides\n\nNow three times.\n")
    capsys.readouterr()
    assert deploy("up") == 0
    assert "1 sent, 3 already there, 1 removed" in capsys.readouterr().out
    assert "payload/corpus/gates.md" not in keys()


def test_the_head_gets_what_was_sent_and_the_key_and_nobody_else_may_read_it(deploy: Deploy, tmp_path: Path) -> None:
    deploy("up")
    there = tmp_path / "payload"
    (there / "corpus").mkdir(parents=True)
    (there / "corpus" / "old.md").write_text("of a payload before")
    assert deploy("fetch", "--to", str(there)) == 0
    assert (there / "corpus" / "tides.md").read_text().startswith("# Tides")
    assert not (there / "corpus" / "old.md").exists()
    assert len((there / "admin.key").read_text().strip()) == 48
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in there.rglob("*") if path.is_file())


def test_down_empties_the_bucket_with_all_its_versions_and_nothing_stays(
    deploy: Deploy, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy("up")
    (corpus / "tides.md").write_text("another version of it")
    deploy("up")
    s3: Any = boto3.client("s3", region_name=cloud.REGION)
    s3.delete_object(Bucket=BUCKET, Key="payload/corpus/gates.md")  # leaves a mark and the version before
    s3.create_multipart_upload(Bucket=BUCKET, Key="payload/never-ended")
    assert deploy("down", "--yes") == 0
    assert "7 objects and versions deleted" in capsys.readouterr().out  # 5 files, one twice, one mark
    assert s3.list_buckets()["Buckets"] == []
    assert boto3.client("secretsmanager", region_name=cloud.REGION).list_secrets()["SecretList"] == []
    assert boto3.client("efs", region_name=cloud.REGION).describe_file_systems()["FileSystems"] == []
    roles = boto3.client("iam", region_name=cloud.REGION).list_roles()["Roles"]
    assert [role for role in roles if role["RoleName"].startswith("tidegate")] == []
    assert deploy("down", "--yes") == 0
    assert "there is none" in capsys.readouterr().out


def test_after_a_teardown_it_can_be_deployed_again(deploy: Deploy) -> None:
    assert [deploy("up"), deploy("down", "--yes"), deploy("up")] == [0, 0, 0]


def test_down_asks_to_be_told_that_it_is_meant(deploy: Deploy, capsys: pytest.CaptureFixture[str]) -> None:
    deploy("up")
    assert deploy("down") == 1
    assert f"deletes bucket {BUCKET}" in capsys.readouterr().err
    assert keys()


def test_nothing_is_sent_to_a_bucket_that_is_not_as_private_as_declared(
    deploy: Deploy, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy("up")
    s3: Any = boto3.client("s3", region_name=cloud.REGION)
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Suspended"})
    (corpus / "secret.md").write_text("not for everybody")
    cloud_of = NAMED["Cloud"]("tidegate", cloud.REGION)
    with pytest.raises(NAMED["Refused"], match=f"{BUCKET} is not versioned: nothing was sent"):
        NAMED["check_guarded"](cloud_of)
    assert "payload/corpus/secret.md" not in keys()


def test_a_payload_that_lacks_something_is_refused_before_anything_is_made(
    deploy: Deploy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert deploy("up", "--questions", f"{tmp_path}/gone.jsonl", "--corpus", f"{tmp_path}/nowhere") == 1
    told = capsys.readouterr().err
    assert "gone.jsonl (questions.jsonl)" in told
    assert "nowhere (a folder with documents)" in told
    assert boto3.client("s3", region_name=cloud.REGION).list_buckets()["Buckets"] == []


def test_ray_finds_roles_network_rules_and_image_of_its_nodes_in_the_stack(deploy: Deploy) -> None:
    deploy("up")
    from ray.autoscaler._private.aws.config import bootstrap_aws
    from ray.autoscaler._private.util import prepare_config, validate_config

    wanted = NAMED["cluster_file"](NAMED["Cloud"]("tidegate", cloud.REGION), "shore/tidegate:cpu", "shore/tidegate:gpu")
    prepared = prepare_config(wanted)
    validate_config(prepared)
    made = bootstrap_aws(prepared)
    ec2: Any = boto3.client("ec2", region_name=cloud.REGION)
    (group,) = ec2.describe_security_groups(Filters=[{"Name": "description", "Values": ["Nodes of one*"]}])[
        "SecurityGroups"
    ]
    profiles = {}
    for name, node in made["available_node_types"].items():
        assert node["node_config"]["SecurityGroupIds"] == [group["GroupId"]], "Ray made none of its own"
        assert node["node_config"]["ImageId"].startswith("ami-")
        profiles[name] = node["node_config"]["IamInstanceProfile"]["Name"]
    assert profiles == {"head": "tidegate-head", "cpu_worker": "tidegate-worker", "gpu_worker": "tidegate-worker"}
    open_to = {rule["FromPort"]: [r["CidrIp"] for r in rule["IpRanges"]] for rule in group["IpPermissions"]}
    assert open_to == {8000: ["10.0.0.0/16"], 22: ["10.1.0.0/16"], 0: []}


def test_another_stack_has_its_own_names_everywhere(aws: None) -> None:
    wanted = NAMED["cluster_file"](
        NAMED["Cloud"]("harbour", "us-east-1"), "shore/tidegate-x:cpu", "shore/tidegate-x:gpu"
    )
    assert wanted["cluster_name"] == "harbour"
    assert wanted["provider"]["region"] == "us-east-1"
    assert wanted["docker"]["head_image"] == "shore/tidegate-x:cpu"
    assert wanted["available_node_types"]["gpu_worker"]["docker"]["worker_image"] == "shore/tidegate-x:gpu"
    configs = [node["node_config"] for node in wanted["available_node_types"].values()]
    assert {one["LaunchTemplate"]["LaunchTemplateName"] for one in configs} == {"harbour-node"}
    assert {one["IamInstanceProfile"]["Name"] for one in configs} == {"harbour-head", "harbour-worker"}
    assert "--stack harbour --region us-east-1" in wanted["head_setup_commands"][0]
