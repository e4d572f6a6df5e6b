"""Settings to the weights that decide whether evidence covers a question, or to none: then the generator decides.

Part of compose.py. Weights know the cosines of one encoder, so under another one the shipped ones are left out.
"""

from dataclasses import replace

from domain.covering import Covering
from domain.errors import ConfigError
from tidegate.settings import Settings


def encoder_name(settings: Settings) -> str:
    """What the encoder of these settings is called in a file of weights."""
    chosen = settings.embedding
    if chosen.backend == "hashing":
        return f"hashing-{chosen.dimensions}"
    if chosen.backend == "folder" and chosen.folder is not None:
        return f"folder-{chosen.folder.name}"
    return f"bedrock-{chosen.model_id}" if chosen.backend == "bedrock" else chosen.backend


def make_covering(settings: Settings) -> Covering | None:
    """The weights in force; None where the generator decides.

    Raises ConfigError for a file that is no such file, and for one that was named and learned from another encoder.
    """
    from retrieval.covering_file import read

    chosen, encoder = settings.abstaining, encoder_name(settings)
    if chosen.mode == "generator" or settings.retrieval.knowledge_base is not None:
        return None
    covering = read() if chosen.weights is None else read(chosen.weights)
    if covering.encoder != encoder:
        if chosen.weights is None:
            return None
        raise ConfigError(
            f"abstaining.weights {chosen.weights} were learned with the encoder '{covering.encoder}', these settings "
            f"search with '{encoder}': learn others with `tidegate train-abstention`, or remove the setting."
        )
    return covering if chosen.bar is None else replace(covering, bar=chosen.bar)
