"""One hierarchy of errors; each class says who must act: the caller, the operator or the author.

A class exists only where somebody acts differently on it. `code` is stable and public; HTTP statuses and exit codes
are tables keyed by class at the edges, and a subclass inherits its parent's. Messages are one sentence: the thing,
the value, what is wanted, the way out.
"""


class TidegateError(Exception):
    """Root of everything Tidegate raises on purpose."""

    code = "internal"
    retryable = False


# ---------------------------------------------------------------------------------------------- the caller acts


class BadRequest(TidegateError):
    """The caller sent something that cannot be answered as it stands. `field` names the offending input, if one."""

    code = "bad_request"

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class TooLong(BadRequest):
    """The input is longer than the stated limit."""

    code = "too_long"


class NotFound(BadRequest):
    """The named thing does not exist, or the reader may not know that it does."""

    code = "not_found"


class Unauthenticated(TidegateError):
    """The caller did not say, in an acceptable way, who is asking."""

    code = "unauthenticated"


class Forbidden(TidegateError):
    """The caller is known and may not do this."""

    code = "forbidden"


# ---------------------------------------------------------------------------------------------- the operator acts


class ConfigError(TidegateError):
    """Settings contradict themselves, the files or the machine. Raised at load, never at first use."""

    code = "config"


class IncompatibleIndex(ConfigError):
    """An index version was built with another encoder or analyser than the settings ask for."""

    code = "incompatible_index"


class CannotCache(ConfigError):
    """The chosen provider and model would silently not cache the prompt prefix."""

    code = "cannot_cache"


class CorpusError(TidegateError):
    """The corpus has nothing to index, or cannot be read."""

    code = "corpus"


class StorageError(TidegateError):
    """A folder or store cannot be written or read: full, read-only, damaged."""

    code = "storage"


class PointerMoved(TidegateError):
    """Somebody else moved the rollout pointer first. Read it again and decide again."""

    code = "pointer_moved"
    retryable = True


class NotAdmitted(TidegateError):
    """A version may not reach people: no passing decision is bound to what would be served."""

    code = "not_admitted"


class AddressTaken(ConfigError):
    """A port is in use by somebody else."""

    code = "address_taken"


# ---------------------------------------------------------------------------------------------- wait, or try again


class StageFailed(TidegateError):
    """A stage of the answering path failed. `stage` names it; a failed search never looks like an empty one."""

    code = "stage_failed"
    retryable = True

    def __init__(self, message: str, stage: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.stage = stage
        self.retry_after_s = retry_after_s


class StageTimeout(StageFailed):
    """A stage did not answer within its limit."""

    code = "timeout"


class Throttled(StageFailed):
    """The model vendor asks to slow down."""

    code = "throttled"


class Overloaded(StageFailed):
    """More work is queued than can be done in time."""

    code = "overloaded"


class UpstreamInterrupted(StageFailed):
    """The model's stream broke after it had begun; what was shown is not a whole answer."""

    code = "upstream_interrupted"


class UpstreamDenied(StageFailed):
    """The model vendor refused the credentials, region or model: the operator must act, a retry does not help."""

    code = "upstream_denied"
    retryable = False


class NotReady(StageFailed):
    """A stage has not started yet, or no version is admitted."""

    code = "not_ready"
