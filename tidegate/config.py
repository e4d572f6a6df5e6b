"""`tidegate config show` and `config check`: what is in force, who set it, and what is wrong with it."""

import json
from pathlib import Path
from typing import Annotated

import typer

from domain.errors import BadRequest
from tidegate.console import Code, complain, loaded, say, say_json

# Options that several verbs have in the same words.
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
AnyVersion = Annotated[str, typer.Argument(help="Index version; the newest when left out.", show_default=False)]
QuestionSet = Annotated[
    Path | None,
    typer.Option(help="Question set (JSON lines, or a BEIR folder); that of the settings when left out."),
]


def show(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="A section or a key; all of them when left out.")] = "",
    as_json: AsJson = False,
) -> None:
    """Print the settings in force, each with who set it. Secrets are masked."""
    from tidegate.effective import digest, leaves, shown
    from tidegate.keys import nearest_key

    result = loaded(ctx)
    rows = [
        (path, shown(path, value), result.origins[path])
        for path, value in leaves(result.settings)
        if not key or path == key or path.startswith(f"{key}.")
    ]
    if not rows:
        near = nearest_key(key)
        raise BadRequest(f"There is no setting {key!r}" + (f": did you mean {near}?" if near else "."), "key")
    if as_json:
        say_json(
            {
                "file": str(result.file) if result.file else None,
                "digest": digest(result.settings),
                "values": {path: value for path, value, _ in rows},
                "origins": {path: origin for path, _, origin in rows},
            }
        )
        return
    texts = [(path, _text(value), origin) for path, value, origin in rows]
    widths = [max(len(row[column]) for row in texts) for column in (0, 1)]
    for path, text, origin in texts:
        say(f"{path:<{widths[0]}}  {text:<{min(widths[1], 32)}}  {origin}")
    if not key:
        say(f"# file {result.file or 'none'}, digest of what is served {digest(result.settings)}")


def check(ctx: typer.Context, as_json: AsJson = False) -> Code:
    """Name every problem of the settings, with its place.

    Nothing is started or written.
    """
    from tidegate.effective import digest
    from tidegate.loading import InvalidSettings

    try:
        result = loaded(ctx)
    except InvalidSettings as error:
        if as_json:
            rows = [{"place": p.place, "key": p.key, "text": p.text, "nearest": p.nearest} for p in error.problems]
            say_json({"ok": False, "problems": rows})
        else:
            complain(str(error))
        return Code.USAGE
    given = sum(origin != "default" for origin in result.origins.values())
    if as_json:
        file = str(result.file) if result.file else None
        say_json({"ok": True, "problems": [], "file": file, "given": given, "digest": digest(result.settings)})
    else:
        source = result.file or "no file"
        say(f"ok: {source}, {given} of {len(result.origins)} values set, digest {digest(result.settings)}")
    return Code.DONE


def _text(value: object) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
