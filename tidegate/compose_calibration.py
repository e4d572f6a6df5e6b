"""Settings to what scores are worth, and to the trigger's bar in the cosines of the encoder that searches.

Part of compose.py. A calibration is only what the settings name, and its file is named by its content: so the digest of
the settings, to which every decision is bound, changes with it.
"""

from domain.calibration import Calibration, Curve
from domain.errors import ConfigError
from domain.ports import Embedder
from tidegate.settings import Settings


def make_calibration(settings: Settings) -> Calibration | None:
    """What scores are worth, as the file says that is named; None without one. Raises ConfigError for another file."""
    from retrieval.calibration import read

    path = settings.answering.calibration
    return None if path is None else read(path)


def make_bar(settings: Settings) -> Curve | None:
    """From the bundled encoder's cosines to those of the encoder in the settings: the calibration's, or the one that
    comes with the hashing encoder. None where both are one, and for an encoder that nobody measured: then the number of
    the settings is taken as it is.
    """
    from retrieval.calibration import shipped_bar
    from retrieval.embedding import HashingEmbedder

    calibration, chosen = make_calibration(settings), settings.embedding
    if calibration is not None:
        return calibration.bar
    return shipped_bar(HashingEmbedder(chosen.dimensions).tag) if chosen.backend == "hashing" else None


def check_calibration(settings: Settings, embedder: Embedder) -> None:
    """Raises ConfigError when the calibration that is named was made for another encoder than the one that searches."""
    calibration = make_calibration(settings)
    if calibration is not None and (made_for := calibration.embedder) != embedder.tag:
        raise ConfigError(
            f"answering.calibration {settings.answering.calibration} was made for the encoder '{made_for}', these "
            f"settings search with '{embedder.tag}': make another with `tidegate calibrate`, or remove the setting."
        )
