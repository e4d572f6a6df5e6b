"""An AWS on loopback: moto's server, with what its CloudFormation leaves out of a bucket and of a secret.

moto makes a bucket from a template without its versioning, its public access block and its policy, and knows no secret
there; the calls themselves it has. What is added here passes the template's words on to those calls. And as moto
answers without TLS and reads no conditions, the policy that refuses everything but TLS would refuse everything: it is
kept and shown, and not obeyed.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import boto3
from moto.core.common_models import CloudFormationModel
from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket, s3_backends
from moto.secretsmanager.models import secretsmanager_backends
from moto.server import ThreadedMotoServer
from moto.ssm.models import Parameter, ssm_backends

REGION = "eu-central-1"
ACCOUNT = "123456789012"  # moto's
IMAGE = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"


class BucketPolicy(CloudFormationModel):
    """AWS::S3::BucketPolicy."""

    def __init__(self, bucket: str) -> None:
        self.physical_resource_id = bucket

    @staticmethod
    def cloudformation_name_type() -> str:
        return ""

    @staticmethod
    def cloudformation_type() -> str:
        return "AWS::S3::BucketPolicy"

    @classmethod
    def create_from_cloudformation_json(
        cls, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **kwargs: Any
    ) -> "BucketPolicy":
        properties = cloudformation_json["Properties"]
        policy = json.dumps(properties["PolicyDocument"]).encode()
        s3_backends[account_id]["aws"].put_bucket_policy(properties["Bucket"], policy)
        return cls(properties["Bucket"])

    @classmethod
    def delete_from_cloudformation_json(cls, *_: Any, **__: Any) -> None:
        """The policy goes with its bucket."""


class Secret(CloudFormationModel):
    """AWS::SecretsManager::Secret."""

    def __init__(self, arn: str) -> None:
        self.physical_resource_id = arn

    @staticmethod
    def cloudformation_name_type() -> str:
        return "Name"

    @staticmethod
    def cloudformation_type() -> str:
        return "AWS::SecretsManager::Secret"

    @classmethod
    def create_from_cloudformation_json(
        cls, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str, **kwargs: Any
    ) -> "Secret":
        made = secretsmanager_backends[account_id][region_name].create_managed_secret(
            service_name="",
            secret_id=cloudformation_json["Properties"]["Name"],
            secret_string="m" * cloudformation_json["Properties"]["GenerateSecretString"]["PasswordLength"],
        )
        return cls(made.arn)

    @classmethod
    def delete_from_cloudformation_json(cls, *_: Any, **__: Any) -> None:
        """Whoever tears down deletes it first, so that its name is free at once."""


def _guarded(create: Any) -> Any:
    """moto's way of making a bucket, with its versioning and its public access block."""

    def make(
        cls: Any, resource_name: str, cloudformation_json: Any, account_id: str, region: str, **kwargs: Any
    ) -> Any:
        bucket = create(resource_name, cloudformation_json, account_id, region, **kwargs)
        properties, backend = cloudformation_json["Properties"], s3_backends[account_id]["aws"]
        backend.put_bucket_versioning(resource_name, properties["VersioningConfiguration"]["Status"])
        backend.put_public_access_block(resource_name, properties["PublicAccessBlockConfiguration"])
        return bucket

    return classmethod(make)


@contextmanager
def aws() -> Iterator[str]:
    """The address of such an AWS; it ends with the block."""
    make, permit = FakeBucket.create_from_cloudformation_json, FakeBucket.get_permission
    FakeBucket.create_from_cloudformation_json = _guarded(make)
    FakeBucket.get_permission = lambda *_: PermissionResult.NEUTRAL
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
        FakeBucket.create_from_cloudformation_json, FakeBucket.get_permission = make, permit


def network() -> tuple[str, str]:
    """A network and a subnet that are there, with the machine image that the template asks for."""
    ec2 = boto3.client("ec2", region_name=REGION)
    # Nobody but AWS may write under this name, so that moto refuses the call.
    known = Parameter(
        ACCOUNT,
        IMAGE,
        ec2.describe_images()["Images"][0]["ImageId"],
        "String",
        None,
        None,
        None,
        datetime.now(UTC),
        1,
        "text",
    )
    ssm_backends[ACCOUNT][REGION]._parameters[IMAGE].append(known)
    subnet = ec2.describe_subnets()["Subnets"][0]
    return subnet["VpcId"], subnet["SubnetId"]
