"""How a SELECT's columns become a sink's: new ones for CREATE … AS, checked ones for INSERT INTO."""

from __future__ import annotations

from collections.abc import Sequence

from leatstream.errors import Faults, Position
from leatstream.model.names import quote
from leatstream.model.objects import DELETED, ROWKEY, ROWTIME, Column
from leatstream.model.types import DataType, from_spark
from leatstream.plan.logical import AnalyzedColumn

# Left fits into right without loss.
_WIDER = {
    "TINYINT": {"SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"},
    "SMALLINT": {"INTEGER", "BIGINT", "FLOAT", "DOUBLE"},
    "INTEGER": {"BIGINT", "DOUBLE"},
    "FLOAT": {"DOUBLE"},
    "DATE": {"TIMESTAMP"},
}
_KINDS = [
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DECIMAL"},
    {"FLOAT", "DOUBLE"},
    {"VARCHAR", "TIME"},
    {"BYTES", "VARBINARY"},
]
_SAME = [{"VARCHAR", "TIME"}, {"BYTES", "VARBINARY"}]


def new_columns(analyzed: Sequence[AnalyzedColumn], position: Position) -> tuple[Column, ...]:
    """Columns of a new stream.

    Raises:
        RequestError: ``type-mismatch`` for a type without counterpart, ``validation`` for a doubled name.
    """
    faults = Faults()
    columns: list[Column] = []
    seen: set[str] = set()
    for item in analyzed:
        if item.name.lower() in seen:
            faults.add(
                "ambiguous-column",
                f"Two columns of the result are called {quote(item.name)}.",
                position=position,
                hint="Give one of them another name: … AS other_name.",
            )
        seen.add(item.name.lower())
        try:
            columns.append(Column(item.name, from_spark(item.type), not item.nullable))
        except ValueError:
            faults.add(
                "type-mismatch",
                f"Column {quote(item.name)} is of Spark type {item.type}, which no stream column can have.",
                position=position,
                hint=f"CAST({quote(item.name)} AS VARCHAR)"
                if item.type != "void"
                else "CAST(NULL AS VARCHAR)",
            )
    faults.raise_if_any()
    return tuple(columns)


def check_comparable(analyzed: Sequence[AnalyzedColumn], position: Position) -> None:
    """Check that rows can be compared whole, as DISTINCT does.

    Raises:
        RequestError: ``type-mismatch`` naming every MAP.
    """
    faults = Faults()
    for item in analyzed:
        if "map<" in item.type:
            detail = f"Column {quote(item.name)} is or holds a MAP, which DISTINCT cannot compare."
            hint = "Select map_entries(…), or single values."
            faults.add("type-mismatch", detail, position=position, hint=hint)
    faults.raise_if_any()


def insert_columns(analyzed: Sequence[AnalyzedColumn], target: Sequence[Column], position: Position) -> None:
    """Check that a SELECT's columns fit a target's, by position.

    Args:
        analyzed: columns of the SELECT, as Spark types them.
        target: columns of the target.
        position: where a fault is shown.

    Raises:
        RequestError: ``type-mismatch`` naming every column that does not fit.
    """
    faults = Faults()
    if len(analyzed) != len(target):
        faults.add(
            "type-mismatch",
            f"The SELECT gives {len(analyzed)} columns, the target has {len(target)}: "
            f"{', '.join(quote(c.name) for c in target)}.",
            position=position,
        )
        faults.raise_if_any()
    for given, column in zip(analyzed, target, strict=True):
        if given.type != "void" and not _fits(from_spark(given.type), column.type):
            faults.add(
                "type-mismatch",
                f"Column {quote(given.name)} is {from_spark(given.type)} but {quote(column.name)} of the "
                f"target is {column.type}.",
                position=position,
                hint=f"CAST({quote(given.name)} AS {column.type})",
            )
        if column.not_null and given.nullable:
            faults.add(
                "type-mismatch",
                f"Column {quote(given.name)} may be NULL but {quote(column.name)} of the target is NOT NULL.",
                position=position,
                hint=f"COALESCE({quote(given.name)}, …)",
            )
    faults.raise_if_any()


def _fits(given: DataType, wanted: DataType) -> bool:
    if given.spark() == wanted.spark() or wanted.kind in _WIDER.get(given.kind, set()):
        return True
    if any({given.kind, wanted.kind} <= group for group in _SAME):
        return True
    if given.kind == wanted.kind == "DECIMAL":
        (gp, gs), (wp, ws) = _decimal(given), _decimal(wanted)
        return ws >= gs and wp - ws >= gp - gs
    return False


def _decimal(data_type: DataType) -> tuple[int, int]:
    precision, scale = (*data_type.parameters, 0)[:2] if data_type.parameters else (10, 0)
    return precision, scale


def wrap_insert(
    sql: str, analyzed: Sequence[AnalyzedColumn], target: Sequence[Column], *, deletes: bool = False
) -> str:
    """Rename and widen the SELECT's columns to the target's; hidden columns pass.

    Args:
        sql: compiled.
        analyzed: its columns, without hidden ones.
        target: the columns to be written, by position.
        deletes: whether it says which rows are deleted.
    """
    names = [f"leat_c{i}" for i in range(len(analyzed))]
    picked = [
        f"CAST({name} AS {column.type.spark()}) AS `{column.name.replace('`', '``')}`"
        for name, column in zip(names, target, strict=True)
    ]
    hidden = [DELETED, ROWKEY, ROWTIME] if deletes else [ROWKEY, ROWTIME]
    inner = ", ".join([*names, *hidden])
    return f"SELECT {', '.join([*picked, *hidden])} FROM ({sql}) AS leat_insert({inner})"  # noqa: S608 - names of our own


def same_kind(column: DataType, spark: str) -> bool:
    """Whether values of a Spark type equal those of a column without being made another kind of thing."""
    try:
        given = from_spark(spark)
    except ValueError:
        return False
    return given.spark() == column.spark() or any({given.kind, column.kind} <= kinds for kinds in _KINDS)
