"""Settings to a hosted model that writes answers, and what is proved about it before the first question.

Clients of the cloud are made in compose_bedrock.py and passed in.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from domain.errors import ConfigError
from domain.ports import Generator
from domain.prompt import SYSTEM
from generation.pacing import Paces
from tidegate.settings import Settings


@cache
def paces() -> Paces:
    """The paces of this process: whoever asks the same model in it shares what the model refused."""
    return Paces()


def make_hosted_generator(settings: Settings, bedrock_client: Callable[[Settings], Any]) -> Generator:  # boto3
    """The generator over the configured model. Raises CannotCache and ConfigError."""
    from generation.caching import minimum_tokens
    from generation.efforts import Effort

    chosen = settings.generation
    model_id = chosen.model_id or ""  # settings refuse a hosted backend without one
    check_hosted(settings)
    effort = Effort(attempts=chosen.attempts, deadline_s=chosen.deadline_s)
    if chosen.backend == "openai_compatible":
        from generation.openai_compatible import OpenAICompatibleGenerator

        return OpenAICompatibleGenerator(
            _chat_client(settings),
            model_id,
            max_tokens=chosen.max_tokens,
            temperature=chosen.temperature,
            read_timeout_s=chosen.read_timeout_s,
            effort=effort,
            pace=paces().of(model_id),
        )
    from generation.bedrock import BedrockGenerator

    known = chosen.cache_minimum if chosen.cache_minimum is not None else minimum_tokens(model_id)
    return BedrockGenerator(
        bedrock_client(settings),
        model_id,
        max_tokens=chosen.max_tokens,
        temperature=chosen.temperature,
        read_timeout_s=chosen.read_timeout_s,
        cache_prefix=known is not None,  # others refuse a request with a cache point
        effort=effort,
        pace=paces().of(model_id),
    )


def check_hosted(settings: Settings) -> None:
    """Raises CannotCache where the model would silently not cache our prefix, unless that was allowed."""
    chosen = settings.generation
    if not chosen.allow_uncached and chosen.model_id:
        from generation.caching import check_cacheable, least_tokens

        check_cacheable(chosen.model_id, least_tokens(SYSTEM), minimum=chosen.cache_minimum)


def check_credentials(session: Any) -> None:  # boto3
    """Raises ConfigError when the cloud client finds no credentials; none of them is ever shown."""
    from botocore.exceptions import BotoCoreError

    way_out = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role"
    try:
        found = session.get_credentials()
    except BotoCoreError as error:  # a profile that does not exist, half a key
        raise ConfigError(f"The cloud credentials cannot be used ({type(error).__name__}): {way_out}.") from error
    if found is None:
        raise ConfigError(f"No cloud credentials were found: {way_out}.")


def _chat_client(settings: Settings) -> Any:  # httpx2.AsyncClient
    """A client of the configured address. It calls once and sets no limit on silence: the generator has its own."""
    import httpx2

    chosen, key = settings.generation, _api_key(settings)
    return httpx2.AsyncClient(
        base_url=f"{(chosen.endpoint_url or '').rstrip('/')}/",
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=httpx2.Timeout(None, connect=chosen.connect_timeout_s),
        limits=httpx2.Limits(max_connections=None),
    )


def _api_key(settings: Settings) -> str | None:
    path = settings.generation.key_file
    if path is None:
        return None
    try:
        key = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(
            f"generation.key_file {path} cannot be read ({reason}): mend it, or remove the setting."
        ) from error
    if not key or not key.isascii() or len(key.split()) != 1:
        raise ConfigError(f"generation.key_file {path} holds no key: one word on one line is wanted.")
    return key
