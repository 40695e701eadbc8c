"""The line editor of the prompt: several lines until a semicolon, TAB completion, history."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.shortcuts import CompleteStyle

from leatstream.cli.backslash import COMMANDS
from leatstream.cli.completion import Names, Offer, offers
from leatstream.services.statements.vocabulary import Vocabulary, read_vocabulary


class Editor:
    """Reads one statement after the other."""

    def __init__(
        self,
        is_finished: Callable[[str], bool],
        names: Names,
        history: History,
        *,
        source: Input | None = None,
        screen: Output | None = None,
    ) -> None:
        """Prepare.

        Args:
            is_finished: whether Enter ends what was typed, or begins its next line.
            names: of the catalog, for completion.
            history: what was typed before.
            source: of the keys; None = the terminal.
            screen: None = the terminal.
        """
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            completer=_StatementCompleter(names),
            complete_in_thread=True,
            complete_while_typing=False,
            complete_style=CompleteStyle.MULTI_COLUMN,
            history=history,
            key_bindings=_bindings(is_finished),
            # Results may go to a file while a person types.
            output=screen or create_output(always_prefer_tty=True),
            input=source,
            prompt_continuation=lambda width, _line, _soft: "-> ".rjust(width),
        )

    def read(self, label: str) -> str:
        """A statement or a command, as typed.

        Args:
            label: what stands before the cursor.

        Raises:
            EOFError: Ctrl-D on an empty line.
            KeyboardInterrupt: Ctrl-C; what was typed is dropped.
        """
        return self._session.prompt(label)


def _bindings(is_finished: Callable[[str], bool]) -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None  # Enter takes what the menu shows
        elif is_finished(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


class _StatementCompleter(Completer):
    """Reads the vocabulary once, when it is asked for the first time."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._vocabulary: Vocabulary | None = None

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterable[Completion]:
        """The candidates at the cursor."""
        if self._vocabulary is None:
            self._vocabulary = read_vocabulary()
        for offer in _offers(document.text_before_cursor, self._vocabulary, self._names):
            yield Completion(offer.text, -offer.replaces, display_meta=offer.about)


def _offers(text: str, vocabulary: Vocabulary, names: Names) -> Iterable[Offer]:
    if not text.startswith("\\"):
        return offers(text, vocabulary, names)
    command, blank, argument = text.partition(" ")
    if not blank:
        found: Any = ((c.word, c.about) for c in COMMANDS if c.word.startswith(command))
        return [Offer(word, len(text), about) for word, about in found]
    fitting = (r for r in names.relations() if r.fqn.startswith(argument))
    return [Offer(r.fqn, len(argument), r.kind) for r in fitting] if command == "\\d" else []
