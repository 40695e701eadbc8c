"""The texts of errors in the source: what reaches ``detail`` and ``hint`` where a fault is raised or noted."""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from leatstream import errors

FAMILIES = frozenset(family.__name__ for family in errors.FAMILIES)
# Where a call has its texts; ``self`` and keywords apart.
_DETAIL_AT = {
    **dict.fromkeys(FAMILIES, 1),
    "Fault": 0,
    "AttemptBehindError": 0,
    "fail": 0,
    "wrong": 1,
    "OptionFault": 1,
}
_HINT_AT = {"wrong": 2, "unbuilt": 1, "refuse": 2, "UnfitPath": 1}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Text:
    """One text of one raise site: a string or f-string, or a sum of them.

    Attributes:
        path: the module.
        role: ``detail`` or ``hint``.
        node: the expression that gives the text.
    """

    path: Path
    role: str
    node: ast.expr

    @property
    def place(self) -> str:
        """The module and the line."""
        return f"{self.path}:{self.node.lineno}"


def texts(path: Path) -> list[Text]:
    """Every text of an error in a module that the source shows, also through names and helpers of the module."""
    return _Module(path).texts()


class _Module:
    def __init__(self, path: Path) -> None:
        self._path = path
        tree = ast.parse(path.read_text())
        self._parents: dict[ast.AST, ast.AST] = {}
        self._calls: list[ast.Call] = []
        self._calls_of: dict[str, list[ast.Call]] = defaultdict(list)
        self._functions: dict[str, ast.AST] = {}
        self._values: dict[ast.AST, dict[str, list[ast.expr]]] = {}
        # Breadth first, as ast.walk.
        waiting = deque[ast.AST]([tree])
        while waiting:
            node = waiting.popleft()
            if isinstance(node, ast.Call):
                self._calls.append(node)
                self._calls_of[_name(node)].append(node)
            elif isinstance(node, _FUNCTIONS):
                self._functions[node.name] = node
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node
                waiting.append(child)

    def texts(self) -> list[Text]:
        found: dict[ast.expr, Text] = {}
        for call in self._calls:
            for role, given in _texts_of(call):
                for node in self._leaves(given, frozenset()):
                    found.setdefault(node, Text(self._path, role, node))
        return list(found.values())

    def _leaves(self, node: ast.expr, seen: frozenset[ast.AST]) -> Iterator[ast.expr]:
        """The strings that an expression may be."""
        if node in seen:
            return
        seen |= {node}
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr() | ast.BinOp(op=ast.Add()):
                yield node
            case ast.IfExp(body=one, orelse=other):
                yield from self._leaves(one, seen)
                yield from self._leaves(other, seen)
            case ast.BoolOp(values=values):
                for value in values:
                    yield from self._leaves(value, seen)
            case ast.Name(id=name):
                for given in self._assigned(node, name):
                    yield from self._leaves(given, seen)
            case ast.Call(func=ast.Name(id=name)) if name in self._functions and name != "sentence":
                for inner in ast.walk(self._functions[name]):
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        yield from self._leaves(inner.value, seen)

    def _assigned(self, node: ast.AST, name: str) -> Iterator[ast.expr]:
        """What a name may stand for: in its function, else in the module, else where the function is called."""
        scope: ast.AST | None = node
        while scope is not None:
            scope = self._parents.get(scope)
            if isinstance(scope, (*_FUNCTIONS, ast.Module)) and (found := self._named(scope).get(name)):
                yield from found
                return
            if isinstance(scope, _FUNCTIONS):
                arguments = [a.arg for a in (*scope.args.posonlyargs, *scope.args.args)]
                named = [a.arg for a in scope.args.kwonlyargs]
                if scope.name != "__init__" and (name in arguments or name in named):
                    yield from self._given(scope.name, arguments, name)
                    return

    def _named(self, scope: ast.AST) -> dict[str, list[ast.expr]]:
        """What each name of a function or the module is set to, inner functions included."""
        if scope not in self._values:
            found = self._values[scope] = defaultdict(list)
            for inner in ast.walk(scope):
                for name, value in _values(inner):
                    found[name].append(value)
        return self._values[scope]

    def _given(self, function: str, arguments: list[str], name: str) -> Iterator[ast.expr]:
        for call in self._calls_of.get(function, ()):
            yield from (k.value for k in call.keywords if k.arg == name)
            if name in arguments:
                at = arguments.index(name) - (arguments[0] == "self" and isinstance(call.func, ast.Attribute))
                yield from call.args[at : at + 1]


def _values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
                yield from ((t.id, v) for t, v in pairs if isinstance(t, ast.Name))
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        target = node.target
        if isinstance(target, ast.Name) and node.value is not None:
            yield target.id, node.value


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _texts_of(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    name = _name(call)
    at = _DETAIL_AT.get(name)
    if name == "add" and len(call.args) >= 2 and "faults" in ast.unparse(call.func):
        at = 1
    if at is not None and len(call.args) > at:
        yield "detail", call.args[at]
    if name in _HINT_AT:
        yield from (("hint", given) for given in call.args[_HINT_AT[name] :][:1])
    for keyword in call.keywords:
        if keyword.arg == "hint" or (keyword.arg == "detail" and at is not None):
            yield keyword.arg, keyword.value
