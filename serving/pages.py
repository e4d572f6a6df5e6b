"""The web pages: a few files and what they need to know, under a content policy that runs nothing but them."""

from functools import cache, partial
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from domain.errors import NotFound
from serving.edge import json_response
from serving.service import Service

PAGES = {"/": "index.html", "/versions": "versions.html"}
FILES = frozenset(
    {
        *PAGES.values(), "page.js", "page.css", "icon.svg", "account.js", "elements.js", "versions.css",
        "versions.js", "versions_files.js", "versions_moves.js", "versions_plots.js", "versions_view.js",
    }
)  # fmt: skip
TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
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
    """The routes of the pages."""

    async def about(_: Request) -> Response:
        """What the page says before anybody asked: a title and questions to try."""
        scrub = service.naming.scrub
        said = {"title": scrub(service.title), "suggestions": [scrub(text) for text in service.suggestions]}
        return json_response(said | {"max_question_chars": service.rules.max_question_chars})

    pages = [Route(path, partial(file, name=name)) for path, name in PAGES.items()]
    return [*pages, Route("/page/about.json", about), Route("/page/{name}", file)]


async def file(request: Request, name: str = "") -> Response:
    """A file of a page. Names are looked up, never joined to a path."""
    name = name or request.path_params["name"]
    if name not in FILES:
        raise NotFound("There is no such file: the pages are at / and /versions.")
    return Response(_read(name), headers={**HEADERS, "Content-Type": TYPES[name.rpartition(".")[2]]})


@cache
def _read(name: str) -> bytes:
    return files("serving").joinpath("page", name).read_bytes()
