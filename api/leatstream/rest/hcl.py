"""Values and blocks of Terraform's configuration language, formatted as ``terraform fmt`` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Expression(str):
    """HCL that is written as it is, such as a reference."""


class Address(Expression):
    """Type and name of a resource."""


class NameOf(Expression):
    """The name of another resource: ``ADDRESS.name``."""

    @property
    def address(self) -> str:
        """Of that resource."""
        return self.removesuffix(".name")


class InputVariable(Expression):
    """``var.NAME``"""

    @property
    def name(self) -> str:
        """Of the variable."""
        return self.removeprefix("var.")


class FileContent(Expression):
    """What a file beside the configuration holds; the base64 of it, if it is binary.

    Attributes:
        path: relative, with slashes.
        binary: whether it is no text.
    """

    path: str
    binary: bool

    @classmethod
    def of(cls, path: str, *, binary: bool) -> FileContent:
        """The content of one file."""
        reader, place = "filebase64" if binary else "file", quoted(f"/{path}")[1:-1]
        made = cls(f'{reader}("${{path.module}}{place}")')
        made.path, made.binary = path, binary
        return made


@dataclass(frozen=True, slots=True)
class Heredoc:
    """A text of several lines, written line by line."""

    text: str
    mark: str


def quoted(text: str) -> str:
    """A text as a string literal, in which nothing is interpolated."""
    plain = "".join(_ESCAPES.get(c, c if c.isprintable() else _escaped(c)) for c in text)
    return f'"{uninterpolated(plain)}"'


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def uninterpolated(text: str) -> str:
    """A text in which Terraform takes nothing for an expression."""
    return text.replace("${", "$${").replace("%{", "%%{")


def multiline(text: str, mark: str) -> str | Heredoc:
    """A text of several lines as a heredoc, where its meaning allows a line break at its end.

    Args:
        text: the text.
        mark: word that ends it.
    """
    lines = text.split("\n")
    odd = "\r" in text or any(line.strip() == mark for line in lines)
    return text if len(lines) == 1 or odd else Heredoc(text, mark)


def block(head: str, body: Mapping[str, Any]) -> str:
    """A block with its attributes.

    Args:
        head: its type and labels.
        body: attribute to value; a value of None is left out.
    """
    return f"{head} {{\n{_attributes(body, 1)}}}\n"


def _attributes(body: Mapping[str, Any], depth: int) -> str:
    """Attributes, the equals signs of neighbours below each other; what takes several lines stands alone."""
    out: list[str] = []
    group: list[tuple[str, list[str]]] = []
    for name, value in body.items():
        if value is None:
            continue
        lines = _value(value, depth).split("\n")
        if len(lines) > 1 and not isinstance(value, Heredoc):
            out += [*_aligned(group, depth), *_aligned([(_key(name), lines)], depth)]
            group = []
        else:
            group.append((_key(name), lines))
    return "".join(f"{line}\n" for line in [*out, *_aligned(group, depth)])


def _aligned(group: Sequence[tuple[str, list[str]]], depth: int) -> Iterator[str]:
    width = max((len(name) for name, _ in group), default=0)
    for name, (first, *rest) in group:
        yield f"{'  ' * depth}{name:{width}} = {first}"
        yield from rest


def _key(name: str) -> str:
    return (
        name
        if name.replace("_", "a").isalnum() and not name[0].isdigit() and name.isascii()
        else quoted(name)
    )


def _value(value: Any, depth: int) -> str:
    if isinstance(value, Expression):
        return str(value)
    if isinstance(value, Heredoc):
        return f"<<{value.mark}\n{uninterpolated(value.text)}\n{value.mark}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        return f"{{\n{_attributes(value, depth + 1)}{'  ' * depth}}}" if value else "{}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _list(value, depth)
    return quoted(str(value))


def _list(items: Sequence[Any], depth: int) -> str:
    if not any(isinstance(item, Mapping) for item in items) and len(items) < 4:
        return f"[{', '.join(_value(item, depth) for item in items)}]"
    indent = "  " * (depth + 1)
    return "[\n" + "".join(f"{indent}{line},\n" for line in _lines(items, depth)) + "  " * depth + "]"


def _lines(items: Sequence[Any], depth: int) -> Iterator[str]:
    for item in items:
        if isinstance(item, Mapping):
            shown = ", ".join(f"{_key(k)} = {_value(v, depth + 1)}" for k, v in item.items() if v is not None)
            yield f"{{ {shown} }}"
        else:
            yield _value(item, depth + 1)
