"""Which kind of rows a continuous statement makes, and its SELECT bound as such."""

from __future__ import annotations

from sqlglot import exp

from leatstream.errors import RequestError
from leatstream.model.objects import RelationKind
from leatstream.plan.logical import LogicalPlan
from leatstream.services.environment import Context
from leatstream.services.staging.catalog_view import CatalogView
from leatstream.sql.binder import bind
from leatstream.sql.passes.merging import Ctes
from leatstream.sql.passes.quotients import Settled
from leatstream.sql.statements import (
    CreateAs,
    CreateChangelogAs,
    CreateMaterializedViewAs,
    CreateTableAs,
    InsertInto,
)

ContinuousStatement = CreateAs | InsertInto


def bind_statement(
    view: CatalogView, statement: ContinuousStatement, context: Context, settled: Settled | None = None
) -> LogicalPlan:
    """The logical plan of the statement's SELECT.

    Args:
        view: the catalog.
        statement: whose SELECT it is.
        context: of names that are not whole.
        settled: the types of quotients that have been asked for.

    Raises:
        RequestError: every fault of the SELECT.
    """

    def bound(changelog: bool) -> LogicalPlan:
        # A tree is bound once. A changelog's key is identified by names.
        return bind(
            statement.select.copy(),
            lambda name: view.resolve(name, context),
            statement.text,
            named=isinstance(statement, CreateAs) or changelog,
            changelog=changelog,
            find_function=view.find_function,
            settled=settled,
        )

    if isinstance(statement, CreateTableAs) or writes_by_key(view, statement, context):
        return bound(_gives_changelog(view, statement, context))
    if not isinstance(statement, CreateMaterializedViewAs):
        return bound(isinstance(statement, CreateChangelogAs))
    # Of groups and of a changelog's rows a view holds the newest state; of a stream's rows all of them. A
    # window's groups are written before it closes.
    grouped = statement.select.args.get("group") is not None
    return bound(grouped or _gives_changelog(view, statement, context))


def _gives_changelog(view: CatalogView, statement: ContinuousStatement, context: Context) -> bool:
    """Whether rows of the result replace each other: of groups without a window, and of changelogs.

    Both count in the outermost SELECT, and in those that are taken up by it.
    """

    def gives(select: exp.Expression, ctes: Ctes) -> bool:
        source = select.args["from_"].this if select.args.get("from_") is not None else None
        if source is None:
            return False
        for cte, query in select.meta.get("ctes", ()):
            ctes = {**ctes, cte: (query, ctes)}
        name = source.meta.get("name")
        if "window" in source.meta or isinstance(source, exp.MatchRecognize):
            return False
        if name is not None and len(name.parts) == 1 and name.parts[0] in ctes:
            changes = gives(*ctes[name.parts[0]])
        elif name is not None:
            try:
                changes = view.resolve(name, context).kind is RelationKind.CHANGELOG
            except RequestError:
                return False  # binding reports it, with all other faults
        else:
            changes = isinstance(source, exp.Subquery) and gives(source.this, ctes)
        return changes or select.args.get("group") is not None

    return gives(statement.select, {})


def writes_by_key(view: CatalogView, statement: CreateAs | InsertInto, context: Context) -> bool:
    """Whether the statement is INSERT INTO a changelog, or a table with a primary key, that exists.

    Args:
        view: the catalog, with what is assumed.
        statement: as it was read.
        context: database, schema and store of the session.
    """
    if not isinstance(statement, InsertInto):
        return False
    try:
        target = view.resolve(statement.name, context)
        return target.kind in (RelationKind.CHANGELOG, RelationKind.TABLE) and bool(target.primary_key)
    except RequestError:
        return False  # the plan of the INSERT reports it
