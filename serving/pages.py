"""The web page: three files and what they need to know, under a content policy that runs nothing but them."""

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from domain.errors import NotFound
from serving.edge import json_response
from serving.service import Service

TYPES = {
    "index.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def page_routes(service: Service) -> list[Route]:
    """The routes of the page."""

    async def about(_: Request) -> Response:
        """What the page says before anybody asked: a title and questions to try."""
        scrub = service.naming.scrub
        said = {"title": scrub(service.title), "suggestions": [scrub(text) for text in service.suggestions]}
        return json_response(said | {"max_question_chars": service.rules.max_question_chars})

    return [Route("/", file), Route("/page/about.json", about), Route("/page/{name}", file)]


async def file(request: Request) -> Response:
    """A file of the page. Names are looked up, never joined to a path."""
    name = request.path_params.get("name", "index.html")
    if name not in TYPES:
        raise NotFound("There is no such file: the page is at /.")
    return Response(_read(name), headers={**HEADERS, "Content-Type": TYPES[name]})


@cache
def _read(name: str) -> bytes:
    return files("serving").joinpath("page", name).read_bytes()
