"""What the page offers to try: questions about what is served now, in a file beside the versions."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import ConfigError

if TYPE_CHECKING:
    from tidegate.settings import Settings

FILE = "suggestions.json"


def offer(settings: "Settings", questions: Path | None) -> None:
    """Write down questions of a set that the anonymous reader can get answered; without a set, none."""
    from eval.collection import load_questions
    from eval.questions import suggestions
    from tidegate.compose import anonymous

    reader = anonymous(settings)
    chosen = suggestions(load_questions(questions, reader), reader) if questions else ()
    text = json.dumps([question.query for question in chosen], ensure_ascii=False)
    (settings.data_dir / FILE).write_text(text, "utf-8")


def offered(data_dir: Path) -> tuple[str, ...]:
    """The questions written down; none when there is no such file. Raises ConfigError for one that is damaged."""
    try:
        return tuple(str(question) for question in json.loads((data_dir / FILE).read_text("utf-8")))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{data_dir / FILE} cannot be read ({error}): delete it or mend it.") from error
