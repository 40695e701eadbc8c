"""What the provider shows to a person: one diagnostic per fault, at the attribute that caused it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from leatstream_terraform.codec import Key, Path
from leatstream_terraform.schema import Attribute

_SQL_EXCERPT = 160


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error or warning as Terraform shows it."""

    summary: str
    detail: str = ""
    path: Path = ()
    severity: Literal["error", "warning"] = "error"


class Failed(Exception):
    """An operation ended with these diagnostics; at least one is an error."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(diagnostics[0].summary if diagnostics else "failed")
        self.diagnostics = diagnostics


def has_error(diagnostics: Sequence[Diagnostic]) -> bool:
    """Tell whether any of them is an error."""
    return any(item.severity == "error" for item in diagnostics)


def from_problem(
    problem: Mapping[str, Any], attributes: Mapping[str, Attribute], summary: str, sql: str | None = None
) -> list[Diagnostic]:
    """Turn a problem document into diagnostics, one per fault.

    Args:
        problem: RFC 9457 document of the service.
        attributes: schema that ``errors[].pointer`` points into.
        summary: what was tried, such as ``Cannot create leatstream_stream "a.b.c"``.
        sql: the statement that ``errors[].position`` points into.
    """
    faults = problem.get("errors") or [problem]
    context = problem.get("detail") if len(faults) > 1 else None
    request = f"Request {problem['request_id']}." if problem.get("request_id") else None
    result = []
    for fault in faults:
        path = pointer_path(fault.get("pointer"), attributes)
        if not path and fault.get("position"):
            path = next(((name,) for name, item in attributes.items() if item.semantic == "sql"), ())
        code = fault.get("code") or problem.get("code")
        detail = fault_text(fault, code, sql)
        if context and context != fault.get("detail"):
            detail += f"\n\n{context}"
        if request and int(problem.get("status", 0)) >= 500:
            detail += f"\n\n{request}"
        result.append(Diagnostic(summary, detail, path))
    return result


def fault_text(fault: Mapping[str, Any], code: str | None, sql: str | None) -> str:
    """One fault as text: what, code, place in the SQL, hint."""
    state = fault.get("sqlstate")
    marks = ", ".join(part for part in (code, f"SQLSTATE {state}" if state else None) if part)
    text = f"{fault.get('detail') or fault.get('title') or 'no detail given'}"
    if marks:
        text += f" [{marks}]"
    position = fault.get("position")
    if position:
        text += "\n" + _excerpt(position, sql)
    if fault.get("hint"):
        text += f"\n\nHint: {fault['hint']}"
    return text


def _excerpt(position: Mapping[str, Any], sql: str | None) -> str:
    line, column = int(position.get("line", 1)), int(position.get("column", 1))
    place = f"At line {line}, column {column} of the SQL"
    lines = (sql or "").splitlines()
    if not 1 <= line <= len(lines):
        return place + "."
    source = lines[line - 1]
    start = max(0, column - 1 - _SQL_EXCERPT // 2)
    shown = source[start : start + _SQL_EXCERPT]
    at = min(max(column - 1 - start, 0), len(shown))
    width = max(1, min(int(position.get("length", 1)), len(shown) - at))
    # Tabs stay tabs under the text, so the caret stands under the same column in any terminal.
    indent = "".join("\t" if char == "\t" else " " for char in shown[:at])
    gutter = f"{line:>5} | "
    return f"{place}:\n{gutter}{shown}\n{' ' * (len(gutter) - 2)}| {indent}{'^' * width}"


def pointer_path(pointer: str | None, attributes: Mapping[str, Attribute]) -> Path:
    """Turn a JSON pointer such as ``#/kafka/sasl/password`` into an attribute path, as deep as it leads."""
    if not pointer:
        return ()
    path: list[str | int] = []
    level, element = attributes, None
    for raw in pointer.lstrip("#").strip("/").split("/"):
        part = raw.replace("~1", "/").replace("~0", "~")
        if element is not None:
            path.append(int(part) if element == "list" and part.isdigit() else Key(part))
            element = None
            continue
        item = next((a for a in level.values() if a.rest == part), None)
        if item is None:
            break
        path.append(item.name)
        level = item.attributes
        element = item.nesting if item.nesting in ("list", "map") else _plain_element(item)
    return tuple(path)


def _plain_element(item: Attribute) -> str | None:
    return item.type[0] if isinstance(item.type, list) else None
