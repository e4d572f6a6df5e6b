"""Pictures of text as text, by the program tesseract where it is installed. Off unless settings ask for it."""

import io
import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

DPI = 300  # what tesseract was trained on


@cache
def is_there() -> bool:
    """True when tesseract is on the path."""
    return shutil.which("tesseract") is not None


def read(picture: "Image") -> str:
    """The text in a picture, empty when there is none or tesseract gave up."""
    png = io.BytesIO()
    picture.save(png, "PNG")
    program = shutil.which("tesseract")
    if program is None:
        return ""
    done = subprocess.run(  # noqa: S603 - a program of the path with arguments of ours
        [program, "stdin", "stdout", "--dpi", str(DPI)], input=png.getvalue(), capture_output=True, check=False
    )
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
