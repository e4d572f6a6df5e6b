"""Tidegate on AWS in one command, and away again in one: `make deploy ARGS="..."`, `make teardown ARGS="..."`.

`up` makes or updates the stack of cloudformation.yaml, looks whether the bucket is as private as it was declared,
brings the payload there - corpus, questions, settings, forbidden terms - and starts or updates the cluster of
../ray_cluster.yaml. `down` ends the cluster, empties the bucket with all its versions and deletes the stack. Each may
be said again at any point: what is there already is kept, what is gone already is no error. `fetch` is what the head
does to get its payload. Nothing of Tidegate is imported here: an image and three files are all that this knows of it.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3
import yaml
from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

HERE = Path(__file__).parent
TEMPLATE, CLUSTER = HERE / "cloudformation.yaml", HERE.parent / "ray_cluster.yaml"
PREFIX = "payload/"
ADMIN_KEY = "admin.key"
AT_ONCE = 1000  # objects that S3 deletes in one call
DIGEST = "sha256"  # name of the metadata that says whether an object is what the file is


class Refused(Exception):
    """Something that whoever typed the command must change; the message says what."""


class Cloud:
    """The clients of one region, and the names that follow from a stack's."""

    def __init__(self, stack: str, region: str) -> None:
        self.stack, self.region = stack, region
        session = boto3.session.Session(region_name=region)
        self.stacks: Any = session.client("cloudformation")  # Any: boto3 makes its clients as it goes
        self.s3: Any = session.client("s3")
        self.secrets: Any = session.client("secretsmanager")
        self.sts: Any = session.client("sts")

    @property
    def bucket(self) -> str:
        """The bucket that the template names."""
        return f"{self.stack}-payload-{self.sts.get_caller_identity()['Account']}-{self.region}"

    @property
    def secret(self) -> str:
        """The name of the secret with the admin key."""
        return f"{self.stack}/admin-key"


# ---------------------------------------------------------------------------------------------- up


def up(cloud: Cloud, chosen: argparse.Namespace) -> None:
    """Everything in order; each step leaves alone what is already as it should be."""
    payload = payload_of(chosen)
    parameters = {
        "VpcId": chosen.vpc,
        "SubnetId": chosen.subnet,
        "ClientCidr": chosen.client_cidr,
        "OperatorCidr": chosen.operator_cidr,
        "ModelArn": chosen.model_arn,
    }
    say(f"stack {cloud.stack}: {make_stack(cloud, {key: value for key, value in parameters.items() if value})}")
    check_guarded(cloud)
    sent, kept, removed = send(cloud, payload)
    say(f"payload in {cloud.bucket}: {sent} sent, {kept} already there, {removed} removed")
    if chosen.storage_only:
        return
    run_ray("up", cluster_file(cloud, chosen.image_cpu, chosen.image_gpu), cloud)


def payload_of(chosen: argparse.Namespace) -> dict[str, Path]:
    """The files of a payload by their keys. Raises Refused for all that are missing at once."""
    files = {"tidegate.yaml": chosen.settings, "questions.jsonl": chosen.questions, "terms.txt": chosen.terms}
    missing = [f"{path} ({name})" for name, path in files.items() if not path.is_file()]
    documents = sorted(path for path in chosen.corpus.rglob("*") if path.is_file()) if chosen.corpus.is_dir() else []
    if not documents:
        missing.append(f"{chosen.corpus} (a folder with documents)")
    if missing:
        raise Refused(f"The payload lacks {', '.join(missing)}: name others, or make them.")
    files |= {f"corpus/{path.relative_to(chosen.corpus).as_posix()}": path for path in documents}
    return {f"{PREFIX}{name}": path for name, path in files.items()}


def make_stack(cloud: Cloud, parameters: dict[str, str]) -> str:
    """The stack, made or brought up to date; what was done comes back."""
    asked = {
        "StackName": cloud.stack,
        "TemplateBody": TEMPLATE.read_text("utf-8"),
        "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        "Capabilities": ["CAPABILITY_NAMED_IAM"],
    }
    status = status_of(cloud)
    if status == "ROLLBACK_COMPLETE":  # AWS lets nobody update what was never whole
        raise Refused(f"Stack {cloud.stack} failed when it was first made: `make teardown`, then again.")
    if status is None:
        cloud.stacks.create_stack(**asked)
        cloud.stacks.get_waiter("stack_create_complete").wait(StackName=cloud.stack)
        return "made"
    try:
        cloud.stacks.update_stack(**asked)
    except ClientError as error:
        if "No updates are to be performed" in str(error):
            return "as it was"
        raise
    cloud.stacks.get_waiter("stack_update_complete").wait(StackName=cloud.stack)
    return "up to date"


def status_of(cloud: Cloud) -> str | None:
    """How the stack is; None when there is none."""
    try:
        return str(cloud.stacks.describe_stacks(StackName=cloud.stack)["Stacks"][0]["StackStatus"])
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise


def check_guarded(cloud: Cloud) -> None:
    """Raises Refused unless the bucket is encrypted, versioned, private, and closed to everything but TLS.

    Asked of S3 itself, before the first byte of a library goes there: a template says what somebody wanted.
    """
    bucket, s3 = cloud.bucket, cloud.s3
    rules = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    blocked = s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
    policy = json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])
    tls = any(
        statement["Effect"] == "Deny"
        and statement.get("Condition", {}).get("Bool", {}).get("aws:SecureTransport") == "false"
        for statement in policy["Statement"]
    )
    wanted = {
        "encrypted by KMS": rules[0]["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms",
        "versioned": s3.get_bucket_versioning(Bucket=bucket).get("Status") == "Enabled",
        "closed to the public": len(blocked) == 4 and all(blocked.values()),
        "closed to everything but TLS": tls,
    }
    if lacking := [claim for claim, holds in wanted.items() if not holds]:
        raise Refused(f"Bucket {bucket} is not {', not '.join(lacking)}: nothing was sent; see {TEMPLATE.name}.")


def send(cloud: Cloud, payload: dict[str, Path]) -> tuple[int, int, int]:
    """How many files were sent, were there already, and were removed because the payload has them no more."""
    there = set(listed(cloud, PREFIX))
    sent = 0
    for key, path in payload.items():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        known = cloud.s3.head_object(Bucket=cloud.bucket, Key=key)["Metadata"].get(DIGEST) if key in there else None
        if known != digest:
            cloud.s3.upload_file(str(path), cloud.bucket, key, ExtraArgs={"Metadata": {DIGEST: digest}})
            sent += 1
    gone = sorted(there - set(payload))
    delete(cloud, [{"Key": key} for key in gone])
    return sent, len(payload) - sent, len(gone)


def cluster_file(cloud: Cloud, image_cpu: str, image_gpu: str) -> dict[str, Any]:
    """ray_cluster.yaml with this stack's names, region and images."""
    text = CLUSTER.read_text("utf-8")
    for known, wanted in {
        "tidegate-": f"{cloud.stack}-",
        "--stack tidegate ": f"--stack {cloud.stack} ",
        "cluster_name: tidegate\n": f"cluster_name: {cloud.stack}\n",
        "eu-central-1": cloud.region,
        "tidegate:0.1.0-cpu": image_cpu,
        "tidegate:0.1.0-gpu": image_gpu,
    }.items():
        text = text.replace(known, wanted)
    wanted_file: dict[str, Any] = yaml.safe_load(text)
    return wanted_file


def run_ray(verb: str, cluster: dict[str, Any], cloud: Cloud) -> None:
    """`ray up` or `ray down` for this cluster. Raises Refused when Ray says no."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ray_cluster.yaml"
        path.write_text(yaml.safe_dump(cluster, sort_keys=False), "utf-8")
        ray = Path(sys.executable).with_name("ray")
        environment = {**os.environ, "AWS_DEFAULT_REGION": cloud.region, "RAY_USAGE_STATS_ENABLED": "0"}
        done = subprocess.run([str(ray), verb, "--yes", str(path)], env=environment, check=False)  # noqa: S603
    if done.returncode:
        raise Refused(f"`ray {verb}` ended with {done.returncode}, its words are above: mend that and say it again.")


# ---------------------------------------------------------------------------------------------- down


def down(cloud: Cloud, chosen: argparse.Namespace) -> None:
    """The cluster, all versions of all objects, the secret and the stack, in that order."""
    if not chosen.yes:
        raise Refused(f"This deletes bucket {cloud.bucket} and every index version of {cloud.stack}: say --yes.")
    if status_of(cloud) is None:
        say(f"stack {cloud.stack}: there is none")
        return
    if not chosen.storage_only:
        run_ray("down", cluster_file(cloud, "none", "none"), cloud)
    say(f"bucket {cloud.bucket}: {empty(cloud)} objects and versions deleted")
    with suppress(cloud.secrets.exceptions.ResourceNotFoundException):
        # At once: by default a name is kept for 30 days, and the next deployment could not have it.
        cloud.secrets.delete_secret(SecretId=cloud.secret, ForceDeleteWithoutRecovery=True)
    cloud.stacks.delete_stack(StackName=cloud.stack)
    cloud.stacks.get_waiter("stack_delete_complete").wait(StackName=cloud.stack)
    say(f"stack {cloud.stack}: deleted")


def empty(cloud: Cloud) -> int:
    """How many objects, old versions and marks of deletion went, with every upload that never ended."""
    bucket, count = cloud.bucket, 0
    try:
        for page in cloud.s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            delete(cloud, [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in found])
            count += len(found)
        for page in cloud.s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket):
            for one in page.get("Uploads", []):
                cloud.s3.abort_multipart_upload(Bucket=bucket, Key=one["Key"], UploadId=one["UploadId"])
    except cloud.s3.exceptions.NoSuchBucket:
        return count
    return count


def delete(cloud: Cloud, objects: Sequence[dict[str, str]]) -> None:
    """Deletes these objects. Raises Refused for those that S3 would not let go: their bucket could not go either."""
    for start in range(0, len(objects), AT_ONCE):
        asked = {"Objects": objects[start : start + AT_ONCE], "Quiet": True}
        if errors := cloud.s3.delete_objects(Bucket=cloud.bucket, Delete=asked).get("Errors"):
            raise Refused(f"S3 kept {errors[0]['Key']} in {cloud.bucket} ({errors[0]['Code']}): may you delete there?")


# ---------------------------------------------------------------------------------------------- on the head


def fetch(cloud: Cloud, chosen: argparse.Namespace) -> None:
    """The payload and the admin key in a folder, readable by their owner alone."""
    folder: Path = chosen.to
    keys = list(listed(cloud, PREFIX))
    if not keys:
        raise Refused(f"Bucket {cloud.bucket} has no payload: `make deploy` sends it.")
    os.umask(0o077)
    for key in keys:
        path = folder / key.removeprefix(PREFIX)
        if not path.resolve().is_relative_to(folder.resolve()):
            raise Refused(f"Object {key} would lie outside {folder}: remove it from {cloud.bucket}.")
        path.parent.mkdir(parents=True, exist_ok=True)
        cloud.s3.download_file(cloud.bucket, key, str(path))
    here = {path for path in folder.rglob("*") if path.is_file()} - {folder / ADMIN_KEY}
    for path in here - {folder / key.removeprefix(PREFIX) for key in keys}:
        path.unlink()  # the payload has it no more
    key_file = folder / ADMIN_KEY
    key_file.write_text(cloud.secrets.get_secret_value(SecretId=cloud.secret)["SecretString"] + "\n", "ascii")
    say(f"{len(keys)} files in {folder}")


def listed(cloud: Cloud, prefix: str) -> Iterator[str]:
    """The keys below a prefix."""
    for page in cloud.s3.get_paginator("list_objects_v2").paginate(Bucket=cloud.bucket, Prefix=prefix):
        yield from (str(one["Key"]) for one in page.get("Contents", []))


# ---------------------------------------------------------------------------------------------- the command line


def say(text: str) -> None:
    """One line for whoever waits."""
    print(text, flush=True)  # noqa: T201


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line. Ends with exit code 2 for one that cannot be understood."""
    parser = argparse.ArgumentParser(prog="deploy/aws.py", description="Tidegate on AWS: up, down, fetch.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--stack", type=stack_name, default="tidegate", help="name of the stack and of the cluster")
    shared.add_argument("--region", required=True, help="like eu-central-1")
    storage = argparse.ArgumentParser(add_help=False)
    storage.add_argument("--storage-only", action="store_true", help="leave the Ray cluster alone")

    make = verbs.add_parser("up", parents=[shared, storage], help="make or update all of it")
    make.add_argument("--vpc", required=True, help="id of the network")
    make.add_argument("--subnet", required=True, help="id of the nodes' subnet")
    make.add_argument("--client-cidr", required=True, help="who may ask, like 10.0.0.0/16")
    make.add_argument("--operator-cidr", required=True, help="who may set nodes up by SSH, like 203.0.113.7/32")
    make.add_argument("--model-arn", default="", help="the Bedrock model that answers")
    make.add_argument("--corpus", type=Path, required=True, help="folder of documents")
    make.add_argument("--questions", type=Path, required=True, help="question set that the gate measures on")
    make.add_argument("--terms", type=Path, required=True, help="terms that are never shown; an empty file for none")
    make.add_argument("--settings", type=Path, default=HERE / "tidegate.yaml")
    make.add_argument("--image-cpu", default="tidegate:0.1.0-cpu", help="image of target cpu in a registry of yours")
    make.add_argument("--image-gpu", default="tidegate:0.1.0-gpu", help="image of target gpu")

    end = verbs.add_parser("down", parents=[shared, storage], help="delete all of it")
    end.add_argument("--yes", action="store_true", help="versions, records and the bucket really go")

    take = verbs.add_parser("fetch", parents=[shared], help="bring the payload to this machine")
    take.add_argument("--to", type=Path, required=True, help="folder for it")
    return parser.parse_args(argv)


def stack_name(text: str) -> str:
    """A name that is one of a stack, and short enough to begin a bucket's."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,19}", text):
        raise argparse.ArgumentTypeError(f"{text!r}, wanted up to 20 small letters, digits and hyphens")
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """0 when all is as asked, 1 with a sentence when it is not."""
    chosen = parse(argv)
    try:
        {"up": up, "down": down, "fetch": fetch}[chosen.verb](Cloud(chosen.stack, chosen.region), chosen)
    except (Refused, ClientError, BotoCoreError, Boto3Error) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
