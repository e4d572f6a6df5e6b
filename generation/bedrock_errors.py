"""Errors of Bedrock as ours, by who must act. Messages never repeat the vendor's: they may hold accounts and keys."""

from typing import Any

from domain.errors import StageFailed, StageTimeout, Throttled, UpstreamDenied, UpstreamInterrupted


def translated(error: Exception, model_id: str, begun: bool, stage: str) -> StageFailed:
    """A vendor's error as ours. `begun`: the reply had started."""
    from botocore import exceptions as vendor
    from botocore.eventstream import ParserError
    from botocore.parsers import ResponseParserError
    from urllib3.exceptions import HTTPError
    from urllib3.exceptions import TimeoutError as SocketTimeout

    if isinstance(error, vendor.ClientError):  # EventStreamError included
        return _by_code(error, model_id, begun, stage)
    if isinstance(error, vendor.ReadTimeoutError | vendor.ConnectTimeoutError | SocketTimeout):
        return StageTimeout(f"Model {model_id} did not answer in time: try again.", stage)
    if isinstance(error, _denials(vendor)):
        name = type(error).__name__
        return UpstreamDenied(
            f"Model {model_id} cannot be called ({name}): set the cloud credentials and generation.region.", stage
        )
    if isinstance(error, ParserError | ResponseParserError):
        return garbled(model_id, type(error).__name__, stage)
    if isinstance(error, vendor.BotoCoreError | HTTPError | OSError):
        if begun:
            return UpstreamInterrupted(f"The reply of model {model_id} broke off half-way: ask again.", stage)
        return StageFailed(f"Model {model_id} cannot be reached ({type(error).__name__}): try again.", stage)
    raise error  # not the vendor's: a bug, and it must be seen


def garbled(model_id: str, what: str, stage: str) -> UpstreamInterrupted:
    """An event that cannot be read: text may be missing, so what came is not a whole answer."""
    return UpstreamInterrupted(f"The reply of model {model_id} cannot be read ({what}): ask again.", stage)


def _by_code(error: Any, model_id: str, begun: bool, stage: str) -> StageFailed:  # botocore
    code = str(error.response.get("Error", {}).get("Code", "unknown"))
    kind = code.removesuffix("Exception").casefold()
    if kind in _THROTTLES:
        wait = _retry_after(error)
        return Throttled(f"Model {model_id} is throttled ({code}): try again a little later.", stage, wait)
    if kind in _TIMEOUTS:
        return StageTimeout(f"Model {model_id} did not answer in time ({code}): try again.", stage)
    if kind in _FAILS or _status(error) >= 500:
        if begun:
            return UpstreamInterrupted(f"The reply of model {model_id} broke off half-way ({code}): ask again.", stage)
        return StageFailed(f"Model {model_id} failed ({code}): try again.", stage, _retry_after(error))
    if begun and kind not in _REFUSES:
        return UpstreamInterrupted(f"The reply of model {model_id} broke off half-way ({code}): ask again.", stage)
    return UpstreamDenied(
        f"Model {model_id} refuses the call ({code}): check credentials, generation.region and generation.model_id.",
        stage,
    )


def _retry_after(error: Any) -> float | None:  # botocore
    """Seconds the vendor asks to wait; None when it names none."""
    said = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("retry-after", "")
    return float(said) if said.replace(".", "", 1).isdigit() else None


def _status(error: Any) -> int:  # botocore
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _denials(vendor: Any) -> tuple[type[Exception], ...]:  # botocore
    return (
        vendor.NoCredentialsError,
        vendor.PartialCredentialsError,
        vendor.CredentialRetrievalError,
        vendor.TokenRetrievalError,
        vendor.UnauthorizedSSOTokenError,
        vendor.NoRegionError,
        vendor.InvalidRegionError,
        vendor.ParamValidationError,
    )


_THROTTLES = {"throttling", "toomanyrequests", "servicequotaexceeded", "requestlimitexceeded", "slowdown"}
_TIMEOUTS = {"modeltimeout", "requesttimeout"}
_FAILS = {"internalserver", "serviceunavailable", "modelerror", "modelstreamerror", "modelnotready", "internalfailure"}
_REFUSES = {"accessdenied", "validation", "resourcenotfound", "unrecognizedclient", "expiredtoken"}
