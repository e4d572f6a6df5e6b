"""The system block: long enough to be cached, the same for everybody, and true to our own rules of citing."""

import re

from domain.instructions import SYSTEM
from generation.caching import MINIMUM_TOKENS, least_tokens


def test_the_block_is_longer_than_the_minimum_of_most_models_that_cache() -> None:
    """By a count that no tokenizer can go below; models that ask for more are refused at start."""
    enough = [model for model, minimum in MINIMUM_TOKENS.items() if least_tokens(SYSTEM) >= minimum]
    assert len(enough) > len(MINIMUM_TOKENS) / 2
    assert {"anthropic.claude-sonnet-4-5", "amazon.nova-pro"} <= set(enough)


def test_nothing_in_it_could_differ_between_two_machines_or_days() -> None:
    assert SYSTEM.isprintable() or set(SYSTEM) - {"\n"} == {c for c in SYSTEM if c.isprintable()}
    assert not re.search(r"[{}]", SYSTEM), "a placeholder would be filled in"
    assert SYSTEM.strip() + "\n" == SYSTEM


def test_its_examples_cite_only_sources_that_they_show() -> None:
    shown: set[str] = set()
    answers = 0
    for line in SYSTEM[SYSTEM.index("\nExamples") :].splitlines():
        if line.startswith("Sources:"):
            shown = set()
        if line.startswith("Answer:"):
            answers += 1
            assert set(re.findall(r"\[S\d+\]", line)) <= shown
        else:
            shown |= set(re.findall(r"\[S\d+\]", line))
    assert answers >= 5
