"""Shows a start-up: one line for each part with its state and seconds, and a box at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.panel import Panel
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

NAME_WIDTH = 16


class _Seconds(ProgressColumn):
    """Seconds with one decimal; a running task counts on."""

    def render(self, task: Task) -> Text:
        elapsed = task.finished_time if task.finished else task.elapsed
        return Text(f"{elapsed or 0.0:6.1f} s", style="dim")


class _Mark(SpinnerColumn):
    """A spinner, then a check mark or a cross."""

    def render(self, task: Task) -> Text:
        if task.fields.get("failed"):
            return Text("✗", style="red")
        if task.finished:
            return Text("✓", style="green")
        return Text.assemble(super().render(task))  # type: ignore[arg-type]


class Display:
    """Progress on a terminal, plain lines elsewhere. A context manager around the whole start-up."""

    def __init__(self, console: Console | None = None) -> None:
        """Show on ``console``; standard error when not given, as standard output is for results."""
        self.console = console or Console(stderr=True, highlight=False)
        self._progress = Progress(
            _Mark("dots"),
            TextColumn(f"{{task.description:<{NAME_WIDTH}}}"),
            _Seconds(),
            TextColumn("[dim]{task.fields[note]}"),
            console=self.console,
        )

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop() if self.console.is_terminal else None

    @contextmanager
    def part(self, name: str) -> Iterator[Callable[[str], None]]:
        """Show one part while the body runs.

        Args:
            name: a few words, such as ``Kafka``.

        Yields:
            A function that sets the note behind the seconds, such as an address or a count.
        """
        if self.console.is_terminal:
            with self._live_part(name) as note:
                yield note
        else:
            with self._plain_part(name) as note:
                yield note

    def box(self, title: str, text: Text) -> None:
        """The closing box."""
        self.console.print(Panel(text, title=title, expand=False, border_style="green", padding=(0, 2)))

    @contextmanager
    def _live_part(self, name: str) -> Iterator[Callable[[str], None]]:
        task = self._progress.add_task(name, total=1, note="", failed=False)
        try:
            yield lambda note: self._progress.update(task, note=note)
        except BaseException:
            self._progress.update(task, failed=True)
            self._progress.stop_task(task)
            raise
        self._progress.update(task, completed=1)

    @contextmanager
    def _plain_part(self, name: str) -> Iterator[Callable[[str], None]]:
        notes = [""]
        began = time.monotonic()
        self.console.print(f"{name}: starting", markup=False)
        outcome = "failed"
        try:
            yield lambda note: notes.__setitem__(0, note)
            outcome = "ready"
        finally:
            tail = f" ({notes[0]})" if notes[0] else ""
            taken = time.monotonic() - began
            self.console.print(f"{name}: {outcome} after {taken:.1f} s{tail}", markup=False, soft_wrap=True)
