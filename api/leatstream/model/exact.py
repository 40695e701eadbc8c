"""DECIMAL without loss.

Python's own context keeps 28 digits, and not only sums follow it: ``-x`` and ``abs(x)`` round to it, and
``quantize`` fails. Signs are therefore set by ``copy_abs`` and ``copy_negate``,
and all else is computed here.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

# Room for a DOUBLE that is written out (309 digits and a fraction) and for what is computed of DECIMAL.
EXACT = Context(prec=400)


def scaled(value: Decimal, scale: int, rounding: str = ROUND_HALF_EVEN) -> Decimal:
    """A number with a fixed number of digits after its point.

    Args:
        value: the number.
        scale: digits after the point.
        rounding: a rounding mode of ``decimal``.

    Raises:
        decimal.InvalidOperation: ``value`` is no number, or has more digits than any DECIMAL or DOUBLE.
    """
    return value.quantize(Decimal((0, (1,), -scale)), rounding, context=EXACT)
