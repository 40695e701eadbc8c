"""From a place in the compiled SQL back to the user's text."""

from __future__ import annotations

from dataclasses import dataclass

from leatstream.errors import Position

Mark = tuple[int, int, Position]


@dataclass(frozen=True, slots=True)
class SpanMap:
    """What the renderer noted: compiled start and stop (inclusive) with the place each came from."""

    marks: tuple[Mark, ...]
    filters: tuple[Mark, ...] = ()

    def locate(self, start: int, stop: int, fragment: str) -> Position | None:
        """Position of the smallest piece that holds the compiled characters start..stop (inclusive).

        Args:
            start: the first character, from 0.
            stop: the last one, included.
            fragment: the compiled text there.
        """
        holding = [m for m in self.marks if m[0] <= start and m[1] >= stop]
        if holding:
            return min(holding, key=lambda m: m[1] - m[0])[2]
        inside = [m for m in self.marks if m[0] >= start and m[1] <= stop]
        return max(inside, key=lambda m: m[1] - m[0])[2] if inside else None

    def locate_filter(self, start: int, stop: int) -> Position | None:
        """Position of the outermost WHERE inside: Spark names the whole SELECT when a filter is at fault."""
        inside = [m for m in self.filters if m[0] >= start and m[1] <= stop]
        return max(inside, key=lambda m: m[1])[2] if inside else None
