"""The stack on AWS: encrypted, private, and with rights that name what they are for."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

TEMPLATE = Path(__file__).parents[2] / "deploy" / "cloudformation.yaml"

# EC2 binds these to no resource: what looks around can only be allowed everywhere.
# https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
CANNOT_BE_SCOPED = {
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeLaunchTemplateVersions",
    "ec2:DescribeSubnets",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeKeyPairs",
}
# Things that have no name before they are made; the kind of thing is all that can be named.
NOT_YET_NAMED = ("instance/*", "volume/*", "network-interface/*", "key-pair/ray-autoscaler_*")


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's functions, each as {name: argument}."""


def _function(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _function)
STACK: dict[str, Any] = yaml.load(TEMPLATE.read_text("utf-8"), _Loader)
RESOURCES: dict[str, dict[str, Any]] = STACK["Resources"]


def of(kind: str) -> dict[str, dict[str, Any]]:
    return {name: one["Properties"] for name, one in RESOURCES.items() if one["Type"] == kind}


def statements(effect: str = "Allow") -> Iterator[dict[str, Any]]:
    """Every statement of every policy that a role has."""
    for properties in of("AWS::IAM::ManagedPolicy").values():
        yield from (one for one in properties["PolicyDocument"]["Statement"] if one["Effect"] == effect)


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_the_linter_finds_nothing() -> None:
    linter = Path(sys.executable).with_name("cfn-lint")
    done = subprocess.run([linter, TEMPLATE], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_is_stored_is_encrypted() -> None:
    (bucket,) = of("AWS::S3::Bucket").values()
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    assert all(one["Encrypted"] is True for one in of("AWS::EFS::FileSystem").values())
    (template,) = of("AWS::EC2::LaunchTemplate").values()
    assert all(disk["Ebs"]["Encrypted"] is True for disk in template["LaunchTemplateData"]["BlockDeviceMappings"])


def test_the_bucket_is_private_versioned_and_for_tls_alone() -> None:
    (bucket,) = of("AWS::S3::Bucket").values()
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    blocked = bucket["PublicAccessBlockConfiguration"]
    assert len(blocked) == 4
    assert all(blocked.values())
    (policy,) = of("AWS::S3::BucketPolicy").values()
    (only,) = policy["PolicyDocument"]["Statement"]
    assert (only["Effect"], only["Action"]) == ("Deny", "s3:*")
    assert only["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert len(only["Resource"]) == 2, "the bucket, and what is in it"


def test_no_action_has_a_star() -> None:
    assert [action for one in statements() for action in listed(one["Action"]) if "*" in action] == []


def test_no_role_may_do_something_everywhere_but_look() -> None:
    everywhere = [one for one in statements() if "*" in listed(one["Resource"])]
    assert {action for one in everywhere for action in one["Action"]} == CANNOT_BE_SCOPED
    assert len(everywhere) == 1


def test_a_star_inside_a_name_stands_for_what_has_no_name_yet() -> None:
    for one in statements():
        for resource in listed(one["Resource"]):
            text = json.dumps(resource)
            if "*" not in text or resource == "*":
                continue
            in_bucket = re.search(r"Payload\.Arn\}/payload/\*", text)
            assert in_bucket or any(name in text for name in NOT_YET_NAMED), text
            if "instance/*" in text:
                assert "Condition" in one, "an instance is known by its tag alone"


def test_only_the_head_may_make_machines_and_pass_on_only_the_workers_role() -> None:
    roles = of("AWS::IAM::Role")
    growing = {"Ref": "GrowsTheCluster"}
    assert [name for name, role in roles.items() if growing in role["ManagedPolicyArns"]] == ["HeadRole"]
    (passing,) = (one for one in statements() if "iam:PassRole" in one["Action"])
    assert passing["Resource"] == {"GetAtt": "WorkerRole.Arn"}
    assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}


def test_nothing_is_open_but_the_proxy_and_what_sets_nodes_up() -> None:
    rules = [rule for group in of("AWS::EC2::SecurityGroup").values() for rule in group["SecurityGroupIngress"]]
    by_range = {rule["FromPort"]: rule["CidrIp"] for rule in rules if "CidrIp" in rule}
    assert by_range == {8000: {"Ref": "ClientCidr"}, 22: {"Ref": "OperatorCidr"}}
    assert all(rule["FromPort"] == rule["ToPort"] for rule in rules)
    within = of("AWS::EC2::SecurityGroupIngress").values()
    assert [set(rule) & {"CidrIp", "CidrIpv6"} for rule in within] == [set()]


@pytest.mark.parametrize("name", ["ClientCidr", "OperatorCidr"])
def test_nobody_can_open_it_to_everybody_by_a_parameter(name: str) -> None:
    parameter = STACK["Parameters"][name]
    assert "Default" not in parameter
    assert re.match(parameter["AllowedPattern"], "10.0.0.0/16")
    assert not re.match(parameter["AllowedPattern"], "0.0.0.0/0")


def test_the_metadata_of_a_node_is_given_to_nobody_without_a_session() -> None:
    (template,) = of("AWS::EC2::LaunchTemplate").values()
    assert template["LaunchTemplateData"]["MetadataOptions"]["HttpTokens"] == "required"


def test_no_secret_is_written_down() -> None:
    (secret,) = of("AWS::SecretsManager::Secret").values()
    assert "SecretString" not in secret
    assert secret["GenerateSecretString"]["PasswordLength"] >= 32
    assert all(not value.get("NoEcho") for value in STACK["Parameters"].values()), "no secret goes through a parameter"


def test_it_has_neither_aliases_nor_anchors() -> None:
    events = list(yaml.parse(TEMPLATE.read_text("utf-8")))
    assert [e for e in events if isinstance(e, yaml.AliasEvent) or getattr(e, "anchor", None)] == []
