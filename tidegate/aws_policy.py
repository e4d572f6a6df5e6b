"""The least that IAM has to allow for the parts that run on AWS, as a policy document.

Accounts stand as `*` in it: an identity's policy reaches no further than what its own account shares with it.
"""

import re
from collections.abc import Sequence
from typing import Any

from tidegate.aws_parts import Part

# How the id of an inference profile begins, like eu.anthropic.claude-...
PROFILE = re.compile(r"^(us-gov|us|eu|apac|jp|au|ca|sa|me|af|global)\.(?=[a-z0-9-]+\.)")


def policy(parts: Sequence[tuple[Part, str, str]]) -> dict[str, Any]:
    """The document for `parts`, each with what its setting names - a model, a profile, a knowledge base, or its ARN -
    and its region.

    One statement a part; no statement for a part without actions. Without a region its place is `*`.
    """
    statements = [statement for part, named, region in parts for statement in _statements(part, named, region or "*")]
    return {"Version": "2012-10-17", "Statement": statements}


def _statements(part: Part, named: str, region: str) -> list[dict[str, Any]]:
    sid = "".join(word.capitalize() for word in part.name.split())
    found: list[dict[str, Any]] = []
    if part.actions:
        resources = resources_of(named, region, knowledge_base=part.switch == "retrieval.knowledge_base")
        found.append({"Sid": sid, "Effect": "Allow", "Action": list(part.actions), "Resource": resources})
    if part.everywhere:  # IAM binds these to no resource
        found.append({"Sid": f"{sid}Call", "Effect": "Allow", "Action": list(part.everywhere), "Resource": "*"})
    return found


def resources_of(named: str, region: str, *, knowledge_base: bool = False) -> list[str]:
    """The ARNs that `named` stands for. A profile also needs its model, in every region that it may go to."""
    partition = _partition(region)
    if knowledge_base:
        return [f"arn:{partition}:bedrock:{region}:*:knowledge-base/{named}"]
    if named.startswith("s3://"):
        bucket, _, prefix = named.removeprefix("s3://").partition("/")
        below = "/".join(filter(None, (bucket, prefix.strip("/"), "*")))
        return [f"arn:{partition}:s3:::{bucket}", f"arn:{partition}:s3:::{below}"]
    if named.startswith("arn:"):
        # The models behind a profile that is named by its ARN cannot be read off it.
        behind = [f"arn:{partition}:bedrock:*::foundation-model/*"] if "inference-profile/" in named else []
        return [named, *behind]
    if found := PROFILE.match(named):
        model = named[found.end() :]
        return [
            f"arn:{partition}:bedrock:{region}:*:inference-profile/{named}",
            f"arn:{partition}:bedrock:*::foundation-model/{model}",
        ]
    return [f"arn:{partition}:bedrock:{region}::foundation-model/{named}"]


def _partition(region: str) -> str:
    beginnings = {"us-gov-": "aws-us-gov", "cn-": "aws-cn"}
    return next((name for start, name in beginnings.items() if region.startswith(start)), "aws")
