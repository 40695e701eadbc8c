"""What a Python text offers, read from its syntax tree: the text is never run here."""

from __future__ import annotations

import ast

from leatstream.errors import RequestError

_METHODS = {"create": 0, "accumulate": None, "merge": 2, "finish": 1}


def check_syntax(text: str, file: str) -> None:
    """Refuse what is no Python; RequestError with the line in the file."""
    _tree(text, file)


def check_handler(text: str, file: str, handler: str, arguments: int) -> bool:
    """Check that a function may be made of what is called so.

    Args:
        text: the source.
        file: its name, for messages.
        handler: name of a top-level function or class.
        arguments: how many SQL will give.

    Returns:
        whether it is an aggregate.

    Raises:
        RequestError: validation, with the line in the file.
    """
    body = _tree(text, file).body
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    found = next((n for n in reversed(body) if isinstance(n, kinds) and n.name == handler), None)
    if found is None:
        names = [n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        hint = f"It has: {', '.join(names)}." if names else "It has no function."
        raise _wrong(f"{file} has no top-level function or class {handler}.", hint)
    where = f"line {found.lineno} of {file}"
    if isinstance(found, ast.ClassDef):
        _check_class(found, arguments, where)
        return True
    if isinstance(found, ast.AsyncFunctionDef) or _yields(found):
        raise _wrong(f"{handler} ({where}) must return its value: no async def, no yield.")
    _check_arity(found, arguments, f"{handler} ({where})")
    return False


def _tree(text: str, file: str) -> ast.Module:
    try:
        return ast.parse(text, file)
    except SyntaxError as error:
        raise _wrong(f"{file} is no Python: {error.msg} in line {error.lineno}.") from None
    except (ValueError, RecursionError, MemoryError):
        raise _wrong(f"{file} is no Python that can be read.") from None


def _check_class(found: ast.ClassDef, arguments: int, where: str) -> None:
    methods = {n.name: n for n in found.body if isinstance(n, ast.FunctionDef)}
    missing = [name for name in _METHODS if name not in methods]
    if missing:
        detail = f"The class {found.name} ({where}) has no method {', '.join(missing)}."
        raise _wrong(detail, "An aggregate has create, accumulate, merge and finish.")
    for name, wanted in _METHODS.items():
        count = 1 + arguments if wanted is None else wanted
        _check_arity(methods[name], count + 1, f"{found.name}.{name} ({where})", method=True)
    if "__init__" in methods:
        _check_arity(methods["__init__"], 1, f"{found.name}.__init__ ({where})", method=True)


def _check_arity(found: ast.FunctionDef, count: int, shown: str, *, method: bool = False) -> None:
    given = found.args
    positional = [*given.posonlyargs, *given.args]
    least = len(positional) - len(given.defaults)
    needed = [a.arg for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d is None]
    if needed:
        raise _wrong(f"{shown} has arguments that can be given by name only: {', '.join(needed)}.")
    if count < least or (count > len(positional) and given.vararg is None):
        own = 1 if method else 0
        detail = f"{shown} takes {len(positional) - own} arguments, SQL would give {count - own}."
        raise _wrong(detail)


def _yields(found: ast.FunctionDef) -> bool:
    waiting: list[ast.AST] = list(found.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return False


def _wrong(detail: str, hint: str | None = None) -> RequestError:
    return RequestError("validation", detail, hint=hint)
