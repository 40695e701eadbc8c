"""Applications: queries and streams that are made together, all or none, and go together.

Each statement runs as a query of its own. A virtual relation is written into the statements that read it.
That means the same unless it remembers something or gives another value at each call: such a one may be read
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from leatstream.errors import CatalogError, LeatstreamError, RequestError
from leatstream.model.names import Fqn, quote
from leatstream.model.objects import DesiredState, Query
from leatstream.model.registered import Application
from leatstream.ports import UnitOfWork
from leatstream.services import queries, relations
from leatstream.services.atomic import all_or_nothing
from leatstream.services.authorization import OPERATE, READ, WRITE, authorize
from leatstream.services.catalog_view import CatalogView
from leatstream.services.environment import Environment, Page, Precondition, Principal, new_meta
from leatstream.services.pages import repository_page
from leatstream.services.planning import analyze, with_types
from leatstream.services.query_removal import delete_query
from leatstream.services.query_restart import restart_query
from leatstream.services.statement_bodies import single
from leatstream.services.statement_results import Run, StatementResult
from leatstream.sql import statements as ast
from leatstream.sql.applications import CHANGING, Written, key, moved, references, write_in
from leatstream.sql.binder import bind
from leatstream.sql.lexer import Source, scan
from leatstream.sql.parser import parse

RunOne = Callable[[Run, ast.Statement], StatementResult]


@dataclass(slots=True)
class _Virtuals:
    """The virtual relations so far: their texts, why one may be read once only, and how often each is."""

    texts: dict[str, Written] = field(default_factory=dict)
    once: dict[str, str] = field(default_factory=dict)
    reads: Counter[str] = field(default_factory=Counter)
    of: dict[str, Counter[str]] = field(default_factory=dict)


def create_application(
    env: Environment, run: Run, s: ast.CreateApplication, whole: str, run_one: RunOne
) -> Application:
    """Make everything an application says, or nothing.

    Args:
        env: the environment, staged if the whole text is.
        run: who asks, and in which context.
        s: the application.
        whole: the text that its positions count in.
        run_one: runs one statement.

    Raises:
        LeatstreamError: of the first statement that fails, with its place in ``whole``.
    """
    name = single(s.name)
    authorize(run.principal, WRITE, "application", name)

    def work(inner: Environment) -> Application:
        return _make(Run(inner, run.principal, run.context, 0.0), name, s, whole, run_one)

    return work(env) if env.staged else all_or_nothing(env, work)


def _make(run: Run, name: str, s: ast.CreateApplication, whole: str, run_one: RunOne) -> Application:
    with run.env.open_unit(write=False) as unit:
        if unit.applications.find(name) is not None:
            raise CatalogError("already-exists", f"application {quote(name)} exists already")
    context, virtuals = run.context, _Virtuals()
    results = [_run(run, one, whole, virtuals, run_one) for one in s.statements]
    made = [result for result in results if result is not None]
    with run.env.open_unit() as unit:
        application = Application(
            meta=new_meta("app", run.principal, run.env.clock.now()),
            name=name,
            sql=s.text,
            context=replace(context, role=None).as_json(),
            queries=tuple(r.query for r in made if r.query is not None),
            relations=tuple(
                str(r.object["name"])
                for r in made
                if r.query is None and r.object and r.kind.startswith("create")
            ),
            virtual=tuple(virtuals.texts),
        )
        unit.applications.add(application)
        unit.commit()
    return application


def _run(
    run: Run, s: ast.Statement, whole: str, virtuals: _Virtuals, run_one: RunOne
) -> StatementResult | None:
    if isinstance(s, ast.Use) and virtuals.texts:
        raise RequestError(
            "unsupported",
            "USE after a virtual relation would change what its names mean",
            position=s.position,
            hint="write USE at the beginning of the application",
        )
    try:
        if not isinstance(s, ast.CreateVirtual) and not _reads_virtual(s):
            return run_one(run, s)
        if isinstance(s, ast.CreateVirtual):
            _refuse_declaration(s, virtuals)
        written = write_in(whole, s, virtuals.texts)
        _count(s, virtuals)
    except LeatstreamError as error:
        raise error.at(s.position) from None
    try:
        if isinstance(s, ast.CreateVirtual):
            _declare(run, s, written, virtuals)
            return None
        return run_one(run, parse(written.text)[0])
    except LeatstreamError as error:
        moved(error, written, Source(whole), s.position)
        raise error.at(s.position) from None


def _reads_virtual(s: ast.Statement) -> TypeGuard[ast.CreateAs | ast.InsertInto]:
    return isinstance(s, ast.CreateAs | ast.InsertInto) and any(True for _ in references(s.select))


def _refuse_declaration(s: ast.CreateVirtual, virtuals: _Virtuals) -> None:
    if s.changelog:
        raise RequestError(
            "unsupported",
            "virtual changelogs are not built: what one takes back would have to reach its readers",
            position=s.name.position,
            hint="make it a changelog with a topic: CREATE CHANGELOG … AS SELECT",
        )
    if key(s.name) in virtuals.texts:
        detail = f"virtual relation {key(s.name)} is declared twice"
        raise CatalogError("already-exists", detail, position=s.name.position)


def _count(s: ast.CreateVirtual | ast.CreateAs | ast.InsertInto, virtuals: _Virtuals) -> None:
    """How often each virtual relation is written into a query, through others too."""
    mine: Counter[str] = Counter()
    for table in references(s.select):
        name = key(table.meta["name"])
        mine += Counter([name]) + virtuals.of[name]
    if isinstance(s, ast.CreateVirtual):
        virtuals.of[key(s.name)] = mine
        return
    virtuals.reads += mine
    for name, why in virtuals.once.items():
        if virtuals.reads[name] > 1:
            raise RequestError(
                "unsupported",
                f"virtual relation {name} {why}, so it can be read by one statement once: each reader would "
                "see a result of its own",
                hint="make it a stream with a topic: CREATE STREAM … AS SELECT",
            )


def _declare(run: Run, s: ast.CreateVirtual, written: Written, virtuals: _Virtuals) -> None:
    """Check a virtual relation, whether it is read or not."""
    select = parse(written.text)[0]
    if not isinstance(select, ast.Select):
        raise RequestError("sql-syntax", "a virtual relation is a SELECT", position=s.position)
    with run.env.open_unit(write=False) as unit:
        view = CatalogView(unit)
        logical = bind(select.select, lambda name: view.resolve(name, run.context), select.text)
        logical = with_types(run.env, logical)
        analyze(run.env, logical)
    virtuals.texts[key(s.name)] = written
    if logical.stateful or logical.operator is not None:
        virtuals.once[key(s.name)] = "remembers rows (a join, a window or groups)"
    elif any(token.text.lower() in CHANGING for token in scan(written.text)):
        virtuals.once[key(s.name)] = "gives another value at each call"


def get_application(env: Environment, principal: Principal, name: str) -> Application:
    """The application; CatalogError not-found."""
    authorize(principal, READ, "application", name)
    with env.open_unit(write=False) as unit:
        return require_application(unit, name)


def require_application(unit: UnitOfWork, name: str) -> Application:
    """The application inside a unit; CatalogError not-found."""
    found = unit.applications.find(name)
    if found is None:
        raise CatalogError("not-found", f"application {quote(name)} does not exist")
    return found


def list_applications(
    env: Environment, principal: Principal, page_size: int = 100, page_token: str | None = None
) -> Page[Application]:
    """One page of applications by name."""
    authorize(principal, READ, "applications")
    with env.open_unit(write=False) as unit:
        return repository_page(unit.applications, lambda a: a.name, "applications", page_size, page_token)


def application_queries(env: Environment, principal: Principal, name: str) -> list[Query]:
    """Its queries that are still there, in the order they were made."""
    found = get_application(env, principal, name)
    with env.open_unit(write=False) as unit:
        return [q for q in map(unit.queries.find, found.queries) if q is not None]


def stop_application(env: Environment, principal: Principal, name: str) -> None:
    """Stop every query of it."""
    authorize(principal, OPERATE, "application", name)

    def work(inner: Environment) -> None:
        for query in application_queries(inner, principal, name):
            queries.patch_query(inner, principal, query.name, {"desired_state": DesiredState.STOPPED})

    _whole(env, work)


def restart_application(env: Environment, principal: Principal, name: str) -> None:
    """Start every query of it again, from its checkpoint."""
    authorize(principal, OPERATE, "application", name)

    def work(inner: Environment) -> None:
        for query in application_queries(inner, principal, name):
            restart_query(inner, principal, query.name)

    _whole(env, work)


def delete_application(
    env: Environment,
    principal: Principal,
    name: str,
    pre: Precondition = Precondition(),  # noqa: B008
) -> None:
    """End and delete its queries and the streams it made; topics stay. CatalogError if others use them."""
    authorize(principal, WRITE, "application", name)

    def work(inner: Environment) -> None:
        found = get_application(inner, principal, name)
        pre.check(found.meta.generation, "application", name)
        with inner.open_unit() as unit:
            unit.applications.delete(found.meta.id)
            unit.commit()
        for query in reversed(application_queries_of(inner, found)):
            delete_query(inner, principal, query.name)
        for relation in reversed(found.relations):
            try:
                relations.delete_relation(inner, principal, Fqn.parse(relation))
            except CatalogError as error:
                if error.code != "not-found":
                    raise

    _whole(env, work)


def application_queries_of(env: Environment, application: Application) -> list[Query]:
    """The queries of an application that are still there and are not going."""
    with env.open_unit(write=False) as unit:
        found = [unit.queries.find(name) for name in application.queries]
    return [query for query in found if query is not None and not query.deleting]


def _whole(env: Environment, work: Callable[[Environment], None]) -> None:
    if env.staged:
        work(env)
    else:
        all_or_nothing(env, work)
