"""`tidegate preflight`: what runs where under these settings, and what an AWS account still has to give. No call."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.aws_parts import PARTS, Part
from tidegate.config import AsJson
from tidegate.console import Code, complain, loaded, say, say_json

if TYPE_CHECKING:
    from tidegate.aws_access import Access
    from tidegate.settings import Settings

MachineRole = Annotated[
    bool, typer.Option("--machine-role", help="Credentials are those of the machine's role, which only a call shows.")
]
NO_CREDENTIALS = (
    "credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; where the machine has a role, say "
    "--machine-role"
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A part and where it runs: `where` is "here", "aws" or "address". `named` is what its setting names, on AWS."""

    part: Part
    where: str
    value: str
    named: str = ""


def preflight(ctx: typer.Context, as_json: AsJson = False, machine_role: MachineRole = False) -> Code:
    """Say what runs on AWS and what is missing.

    Reads settings, environment and the cloud client's files; opens no connection. Prints the least IAM policy for what
    runs on AWS. Exit code 1 when something is missing. What a model id contradicts is refused with the settings.
    """
    from tidegate.aws_access import access
    from tidegate.aws_policy import policy

    settings = loaded(ctx).settings
    placed = [place(settings, part) for part in PARTS]
    on_aws = [one for one in placed if one.where == "aws"]
    regions = {key: access(_value(settings, key), key) for key in dict.fromkeys(part.region for part in PARTS)}
    found = regions["generation.region"]
    used = {one.part.region: regions[one.part.region] for one in on_aws}
    lacking = missing(used, machine_role)
    allowed = policy([(one.part, one.named, regions[one.part.region].region) for one in on_aws])
    if as_json:
        say_json(_told(placed, found, machine_role, lacking, allowed))
    else:
        _print(placed, found, machine_role, allowed)
        for text in lacking:
            complain(f"missing: {text}")
    return Code.REFUSED if lacking else Code.DONE


def place(settings: "Settings", part: Part) -> Placed:
    """Where a part runs under these settings."""
    value = _value(settings, part.switch)
    if (part.to and value == part.to) or (not part.to and value and not part.by_hand):
        return Placed(part, "aws", value, _value(settings, part.model))
    address = (part.by_hand and "://" in value) or value == "openai_compatible"
    return Placed(part, "address" if address else "here", value)


def missing(used: "Mapping[str, Access]", machine_role: bool) -> list[str]:
    """What has to be given before the first call, with the way out; empty when all is there, or nothing is used.

    `used` has, by the setting of its region, what the clients of some parts would be made with.
    """
    lacking = [f"region: set {key} or AWS_DEFAULT_REGION" for key, found in used.items() if not found.region]
    found = next(iter(used.values()), None)  # all clients find the same credentials
    if found is not None and found.problem:
        lacking.append(f"credentials: {found.problem}")
    elif found is not None and not found.credentials_from and not machine_role:
        lacking.append(NO_CREDENTIALS)
    return lacking


def _value(settings: "Settings", key: str) -> str:
    from tidegate.effective import shown

    value: Any = settings  # Any: a section, and at the end whatever stands there
    for name in key.split("."):
        value = getattr(value, name)
    return "" if value is None else str(shown(key, value))


def _told(
    placed: list[Placed], found: "Access", machine_role: bool, lacking: list[str], allowed: dict[str, Any]
) -> dict[str, Any]:
    parts = [
        {
            "part": one.part.name,
            "where": one.where,
            "setting": one.part.switch,
            "value": one.value or None,
            "named": one.named or None,
            "here": one.part.here,
            "aws": one.part.aws,
            "actions": [*one.part.actions, *one.part.everywhere],
            "quota": one.part.quota or None,
            "ask": one.part.ask or None,
        }
        for one in placed
    ]
    return {
        "ok": not lacking,
        "parts": parts,
        "region": found.region or None,
        "region_from": found.region_from or None,
        "credentials_from": _source(found, machine_role) or None,
        "missing": lacking,
        "policy": allowed if allowed["Statement"] else None,
    }


def _source(found: "Access", machine_role: bool) -> str:
    return found.credentials_from or ("the role of the machine, not seen from here" if machine_role else "")


def _print(placed: list[Placed], found: "Access", machine_role: bool, allowed: dict[str, Any]) -> None:
    width = max(len(one.part.name) for one in placed)
    for one in placed:
        part = one.part
        runs = {"aws": part.aws, "here": part.here, "address": f"at the address of yours ({part.switch})"}[one.where]
        say(f"{part.name:<{width}}  {one.where:<7}  {runs}")
        if one.where != "aws":
            continue
        named = "" if part.model == part.switch else f", {part.model} = {one.named}"
        told = [f"{part.switch} = {one.value}{named}", ", ".join([*part.actions, *part.everywhere])]
        told += [f"quota: {part.quota}", f"to ask: {part.ask}"]
        for line in told:
            say(f"{'':<{width}}           {line}")
    if not allowed["Statement"]:
        say("nothing of this runs on AWS")
        return
    say(f"region {found.region or 'none'}{f', from {found.region_from}' if found.region_from else ''}")
    say(f"credentials from {_source(found, machine_role) or 'nowhere that can be seen from here'}")
    say(json.dumps(allowed, indent=2))
