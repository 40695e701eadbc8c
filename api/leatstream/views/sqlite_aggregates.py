"""Aggregates as Spark computes them: of DECIMAL without loss, of doubles with not-a-number."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from leatstream.model.exact import EXACT
from leatstream.model.view_values import decode_decimal, decode_double, encode_decimal, encode_double


class _Sum:
    """Exact sum of DECIMAL."""

    def __init__(self) -> None:
        self.total, self.count = Decimal(0), 0

    def step(self, value: Any) -> None:
        """Take in one value."""
        if value is not None:
            self.total, self.count = EXACT.add(self.total, decode_decimal(value)), self.count + 1

    def finalize(self) -> Any:
        """The result; None without values."""
        return encode_decimal(self.total) if self.count else None


class _Mean(_Sum):
    """Exact mean of DECIMAL; the caller rounds it."""

    def finalize(self) -> Any:
        """The result; None without values."""
        return encode_decimal(EXACT.divide(self.total, Decimal(self.count))) if self.count else None


class _RealSum:
    """Sum of doubles, not-a-number included."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def step(self, value: Any) -> None:
        """Take in one value."""
        if value is not None:
            self.values.append(decode_double(value))

    def finalize(self) -> Any:
        """The result; None without values."""
        return encode_double(_total(self.values)) if self.values else None


class _RealMean(_RealSum):
    """Mean of doubles."""

    def finalize(self) -> Any:
        """The result; None without values."""
        return encode_double(_total(self.values) / len(self.values)) if self.values else None


def _total(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return sum(values)


AGGREGATES: dict[str, Any] = {
    "leat_sum_decimal": _Sum,
    "leat_avg_decimal": _Mean,
    "leat_sum_real": _RealSum,
    "leat_avg_real": _RealMean,
}
