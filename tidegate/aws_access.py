"""Where region and credentials would come from, read off the environment and the shared files: nobody is asked.

The order is boto3's. What only a call can show - the role of a machine - is not found here, and said to be so.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """`region` and the source of each, empty where there is none. No value of a credential is ever in here."""

    region: str
    region_from: str
    credentials_from: str
    problem: str = ""  # half a key, a profile that is not there


KINDS = {
    "role_arn": "a role that it names",
    "sso_session": "single sign-on",
    "sso_start_url": "single sign-on",
    "login_session": "a login session",
    "credential_process": "a program that it names",
    "web_identity_token_file": "a web identity",
}

CONTAINER = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")


def access(region: str, setting: str) -> Access:
    """What a client would be made with. `region` is that of the settings by their key `setting`, stronger than any
    other; empty where they name none.
    """
    import botocore.session  # reads the environment of this process itself, so nothing else may be read here
    from botocore.exceptions import BotoCoreError

    session = botocore.session.Session()
    profile = str(session.get_config_variable("profile") or "default")
    try:
        known: Mapping[str, object] = session.get_scoped_config()
        elsewhere = session.get_config_variable("region")
    except BotoCoreError as error:  # a profile that is not there, a file that cannot be read
        problem = f"profile {profile!r} cannot be used ({type(error).__name__}): mend the file, or unset AWS_PROFILE"
        return Access(region, setting if region else "", "", problem)
    region_from = "AWS_DEFAULT_REGION" if os.environ.get("AWS_DEFAULT_REGION") else f"profile {profile!r}"
    found, problem = _credentials(os.environ, known, profile)
    if region:
        return Access(region, setting, found, problem)
    return Access(str(elsewhere or ""), region_from if elsewhere else "", found, problem)


def _credentials(environment: Mapping[str, str], known: Mapping[str, object], profile: str) -> tuple[str, str]:
    """The source and the problem with it; both empty for nothing."""
    kind = next((words for key, words in KINDS.items() if known.get(key)), "")
    container = next((name for name in CONTAINER if environment.get(name)), "")
    whole = environment.get("AWS_SECRET_ACCESS_KEY")
    half = "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not: set both, or neither"
    written = known.get("aws_secret_access_key")
    unwritten = f"profile {profile!r} has aws_access_key_id and no aws_secret_access_key: write both"
    found: tuple[tuple[object, str, str], ...] = (  # is it there, its source, what is wrong with it; the first counts
        (
            environment.get("AWS_ACCESS_KEY_ID"),
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" if whole else "",
            "" if whole else half,
        ),
        (
            environment.get("AWS_WEB_IDENTITY_TOKEN_FILE") and environment.get("AWS_ROLE_ARN"),
            "AWS_WEB_IDENTITY_TOKEN_FILE, the role of a pod",
            "",
        ),
        (kind, f"profile {profile!r}, {kind}", ""),
        (
            known.get("aws_access_key_id"),
            f"profile {profile!r} of the shared files" if written else "",
            "" if written else unwritten,
        ),
        (container, f"{container}, the role of a task or pod", ""),
    )
    return next(((source, problem) for there, source, problem in found if there), ("", ""))
