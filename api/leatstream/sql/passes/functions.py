"""Which functions a statement may call; ``function_table`` lists them.

An allow list: what is not there never reaches Spark, whatever Spark could do with it.
"""

from __future__ import annotations

from sqlglot import exp

from leatstream.errors import Faults, sentence
from leatstream.model.objects import ROWTIME
from leatstream.sql.function_table import ROW as ROW_CATEGORY
from leatstream.sql.function_table import Function, functions, known_names, refusals
from leatstream.sql.json_paths import UnfitPath, steps_of
from leatstream.sql.passes.columns import near_input, suggestion
from leatstream.sql.passes.group_calls import GROUPINGS, counts_distinct
from leatstream.sql.passes.quoting import name as quoted
from leatstream.sql.passes.scope import Input, place
from leatstream.sql.passes.user_functions import check_call, is_user_aggregate, use_of

ROW = frozenset(n for n, f in functions().items() if f.category == ROW_CATEGORY)
AGGREGATES = frozenset(n for n, f in functions().items() if f.aggregate)
# Their arguments are read in forms of their own, which have checked the number.
_OWN_FORM = frozenset({"extract", "trim", "substring", "substr", "position", "overlay", "ceil", "floor"})


def is_aggregate(node: exp.Expression) -> bool:
    """Whether a call gives one value for many rows."""
    return str(node.this) in AGGREGATES or is_user_aggregate(node)


class Functions:
    """Checks the calls of one clause.

    ``no_aggregates`` says what to do where the clause takes no aggregates; None if it takes them. ``sets``
    tells that the groups are of GROUPING SETS or their kin.
    """

    def __init__(
        self, inputs: list[Input], faults: Faults, no_aggregates: str | None = None, *, sets: bool = False
    ) -> None:
        self.inputs = [given for given in inputs if given.unnested is None]
        self.sets = sets
        self.faults = faults
        self.no_aggregates = no_aggregates

    def check(self, node: exp.Expression) -> bool:
        """Check one call; False if its arguments are no expressions of their own."""
        name, at = str(node.this), place(node, "name_span")
        if name in ROW:
            self._row(node, name)
            return False
        use = use_of(node)
        if use is not None:
            check_call(node, use, self.faults, self.no_aggregates)
            return True
        if name in GROUPINGS:
            self._grouping(node, name)
            return True
        function = functions().get(name)
        if function is None:
            refused = refusals().get(name)
            if refused is not None:
                detail = f"{name.upper()} is not supported: {refused.reason}."
                self.faults.add("unsupported", detail, position=at, hint=refused.hint)
            else:
                near = suggestion(name, known_names())
                self.faults.add("unknown-function", f"There is no function {name}.", position=at, hint=near)
        elif function.aggregate:
            self._aggregate(node, function)
        else:
            self._arguments(node, function)
        return True

    def _grouping(self, node: exp.Expression, name: str) -> None:
        at = place(node, "name_span")
        if not self.sets:
            detail = f"{name.upper()} needs GROUPING SETS, ROLLUP or CUBE in GROUP BY."
            self.faults.add("not-grouped", detail, position=at)
        elif name == "grouping" and len(node.expressions) != 1:
            detail = f"The function grouping takes 1 argument, not {len(node.expressions)}."
            self.faults.add("type-mismatch", detail, position=at, hint="grouping_id takes several.")

    def _aggregate(self, node: exp.Expression, function: Function) -> None:
        name, at = str(node.this), place(node, "name_span")
        if self.no_aggregates is not None:
            detail = f"The aggregate {name.upper()} cannot stand here."
            self.faults.add("not-grouped", detail, position=at, hint=self.no_aggregates)
        elif counts_distinct(node):
            return
        elif node.meta.get("distinct"):
            detail = f"{name.upper()}(DISTINCT …) is not supported on streams."
            hint = "Name the values: COUNT(DISTINCT x)." if name == "count" else "Only COUNT takes DISTINCT."
            self.faults.add("unsupported", detail, position=at, hint=hint)
        elif not (name == "count" and [type(a) for a in node.expressions] == [exp.Star]):
            self._arguments(node, function)
        if self.inputs:
            node.meta["row_time"] = f"{quoted(self.inputs[0].ref)}.{quoted(ROWTIME)}"

    def _arguments(self, node: exp.Expression, function: Function) -> None:
        name, at = str(node.this), place(node, "name_span")
        count = len(node.expressions)
        if node.meta.get("distinct") or any(isinstance(a, exp.Star) for a in node.expressions):
            what = "DISTINCT" if node.meta.get("distinct") else "*"
            self.faults.add("type-mismatch", f"{name} takes no {what}.", position=at)
            return
        if any(isinstance(a, exp.Var) for a in node.expressions) and name in _OWN_FORM:
            return
        low, high = function.least, function.most
        if count < low or (high is not None and count > high):
            wanted = f"{low}" if low == high else f"at least {low}" if high is None else f"{low} to {high}"
            noun = "argument" if (high or low) == 1 else "arguments"
            self.faults.add(
                "type-mismatch",
                f"{name} takes {wanted} {noun}, not {count}.",
                position=at,
                hint=f"Write {name}({function.signature})." if count else None,
            )
        elif function.name == "get_json_object":
            self._path(name, node.expressions[1])

    def _path(self, name: str, path: exp.Expression) -> None:
        if not isinstance(path, exp.Literal) or not path.is_string:
            detail = f"The path of {name} is not written out."
            hint = "Write it as text, such as '$.a.b[0]'."
            self.faults.add("unsupported", detail, position=place(path), hint=hint)
            return
        try:
            steps_of(path.this)
        except UnfitPath as error:
            self.faults.add("unsupported", sentence(str(error)), position=place(path), hint=error.hint)

    def _row(self, node: exp.Expression, name: str) -> None:
        at = place(node)
        arguments = node.expressions
        given: Input | None = None
        if len(arguments) > 1 or any(not isinstance(a, exp.Column) for a in arguments):
            detail = f"{name} takes nothing or the alias of a relation."
            self.faults.add("type-mismatch", detail, position=at)
            return
        if arguments:
            wanted = tuple(part for part, _ in arguments[0].meta["parts"])
            given = next((i for i in self.inputs if i.names[-len(wanted) :] == wanted), None)
            if given is None:
                shown = ".".join(wanted)
                hint = near_input(wanted[-1], self.inputs)
                detail = f"Nothing in FROM is called {shown}."
                self.faults.add("unknown-relation", detail, position=place(arguments[0]), hint=hint)
                return
        elif len(self.inputs) > 1:
            hint = f"Write {name}({self.inputs[0].shown})."
            detail = f"{name} needs the alias of one of the joined relations."
            self.faults.add("ambiguous-column", detail, position=at, hint=hint)
            return
        given = given or self.inputs[0]
        if given.table:
            detail = f"{name} is for records; {given.shown} is a table, whose rows have none."
            self.faults.add("unsupported", detail, position=at)
            return
        if name == "rowheaders" and given.keyed:
            detail = (
                f"The function rowheaders is for streams; {given.shown} is a changelog, whose "
                "rows many records make."
            )
            self.faults.add("unsupported", detail, position=at)
            return
        if name in ("rowmeta", "rowheaders") and given.scan is None:
            detail = f"{name} is known for relations only, not for a sub-select."
            self.faults.add("unsupported", detail, position=at, hint="Select it inside and name it with AS.")
            return
        given.headers |= name == "rowheaders"
        node.meta["bound"] = (given.ref, f"__leat_{name}", [])
