"""Vectors of the caller's own texts in the shape of OpenAI's clients, by the encoder of the version that is served.

Nothing of the library is read. They are comparable with each other, and with those of every reply that names the same
encoder; after the pointer has moved to a version of another encoder they are not, so a reply says which one it was.
"""

from array import array
from base64 import b64encode
from sys import byteorder

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from domain.errors import BadRequest
from domain.types import Encoded, TextSide
from serving.asking import Asking
from serving.auth import Right
from serving.compat_bodies import MODEL, EmbeddingsBody, read_embeddings
from serving.compat_openai import openai_failure
from serving.edge import FAILURE_SHAPE, json_response, read_body, unless_gone
from serving.wire import Json


def embedding_routes(asking: Asking) -> list[Route]:
    """The route."""
    return [Route("/v1/embeddings", _Embeddings(asking).embed, methods=["POST"])]


class _Embeddings:
    """The endpoint over one gateway."""

    def __init__(self, asking: Asking) -> None:
        self.asking, self.service = asking, asking.service

    async def embed(self, request: Request) -> Response:
        """A vector a text, in their order."""
        setattr(request.state, FAILURE_SHAPE, openai_failure)
        service, started = self.service, self.service.clock()
        service.authenticate(request.headers, Right.SEARCH)  # whose texts they are does not matter beyond that
        body = read_embeddings(await read_body(request, service.limits))
        if service.encoder is None:
            raise BadRequest("This service gives no vectors: its stages are not served by an encoder.", "model")
        version = await self.asking.assigned(request)
        with self.asking.place():
            encoding = service.encoder.encode(body.texts, version, TextSide(body.input_type))
            encoded = await unless_gone(request.receive, encoding)
        if body.dimensions not in (None, encoded.dimensions):
            raise BadRequest(
                f"'dimensions' is {body.dimensions}: the encoder here has {encoded.dimensions}, leave it out.",
                "dimensions",
            )
        headers = self.asking.headers(encoded.version, {}, started)
        return json_response(_told(body, encoded), 200, headers)


def _told(body: EmbeddingsBody, encoded: Encoded) -> Json:
    """The body. Tokens that nobody counted are null: they are not none."""
    vectors = [
        {"object": "embedding", "index": place, "embedding": _vector(row, body.encoding_format == "base64")}
        for place, row in enumerate(encoded.rows)
    ]
    return {
        "object": "list",
        "model": MODEL,
        "data": vectors,
        "usage": {"prompt_tokens": encoded.tokens, "total_tokens": encoded.tokens},
        "tidegate": {"encoder": encoded.encoder, "index_version": encoded.version},
    }


def _vector(row: bytes, packed: bool) -> str | list[float]:
    """A row as their clients read it: numbers, or the same little-endian float32 in base64."""
    if packed:
        return b64encode(row).decode()
    numbers = array("f", row)
    if byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
