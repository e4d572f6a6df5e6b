"""What models cost: part of settings.py. How a cost is worked out is domain/costs.py."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from domain.costs import Prices
from tidegate.section import Name, Section


class Price(Section):
    """What one model costs, in dollars per million tokens by class. Nothing has a default: a price is known or not."""

    model: Name = Field(description="Model id or a part of it; the longest part that fits counts.")
    input_usd: float = Field(ge=0, le=10_000, description="Dollars per million input tokens outside the cache.")
    output_usd: float = Field(ge=0, le=10_000, description="Dollars per million output tokens.")
    cache_read_usd: float = Field(ge=0, le=10_000, description="Dollars per million tokens read from the cache.")
    cache_write_usd: float = Field(ge=0, le=10_000, description="Dollars per million tokens written to the cache.")

    @property
    def prices(self) -> Prices:
        """The same as the domain has it."""
        return Prices(self.input_usd, self.output_usd, self.cache_read_usd, self.cache_write_usd)


PriceTable = Annotated[
    tuple[Price, ...],
    Field(strict=False, max_length=200),
    "a list of prices like [{model: claude-sonnet-4-5, input_usd: 3, output_usd: 15, cache_read_usd: 0.3, "
    "cache_write_usd: 3.75}]",
]


class Costs(Section):
    """What models cost."""

    prices: PriceTable = Field(
        default=(), description="What each model costs. Without the price of a model its cost is not measured."
    )

    def of(self, model: str) -> Prices | None:
        """The prices of a model by its id, or of a backend without one by its name; None when not known."""
        fitting = [price for price in self.prices if price.model in model]
        return max(fitting, key=lambda price: len(price.model)).prices if fitting else None

    def contradictions(self) -> Iterator[tuple[str, str]]:
        names = [price.model for price in self.prices]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            yield "prices", f"one price per model, {twice[0]!r} has several"
