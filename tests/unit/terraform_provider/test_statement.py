"""What a plan makes known by asking the service, with a service of a few words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from leatstream_terraform.codec import UNKNOWN
from leatstream_terraform.foresee import Foreseen
from leatstream_terraform.rest import ProblemError
from leatstream_terraform.schema import complete, load
from leatstream_terraform.statement import infer, preview, validate

TABLE = load().resources["leatstream_table"]
COLUMN = {"name": "item", "type": "VARCHAR", "not_null": True}
TOLD = {"columns": [COLUMN], "primary_key": ["item"]}


class Service:
    """Gives one plan to every statement, and keeps what it was asked."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.asked: list[str] = []

    def request(self, _method: str, _path: str, body: dict[str, Any]) -> Any:
        assert body["name"] == "prices"  # else the caller's SET DEFAULT counts, which PUT does not know
        self.asked.append(body["sql"])
        return SimpleNamespace(body={"valid": True, "statements": [{"plan": self.plan}]})


def planned(**values: Any) -> tuple[dict[str, Any], list[str]]:
    service = Service(TOLD)
    session: Any = SimpleNamespace(
        client=service, service=lambda: service, foreseen=Foreseen(), assume_refused=False
    )
    names = {"database": "d", "schema": "public", "name": "prices", "fqn": "d.public.prices", "store": "pg"}
    state = complete(TABLE.attributes, {**names, "columns": UNKNOWN, "primary_key": UNKNOWN, **values})
    preview(session, TABLE, state)
    return state, service.asked


def test_columns_and_key_that_are_left_out_are_those_of_the_store() -> None:
    state, asked = planned()
    assert asked == ["CREATE TABLE d.public.prices WITH ('store'=\"pg\")"]
    assert [one["name"] for one in state["columns"]] == ["item"]
    assert state["primary_key"] == ["item"]


def test_the_stores_key_is_not_foretold_of_a_table_with_columns_of_its_own() -> None:
    # The service gives such a table no key: a value told here would not be the one that is made.
    state, asked = planned(columns=[COLUMN])
    assert (state["primary_key"], asked) == (UNKNOWN, [])


def test_too_much_that_is_planned_is_left_out() -> None:
    """413 said that the statement cannot be checked, though it alone is small."""
    asked = []

    def request(_method: str, _path: str, body: dict[str, Any]) -> Any:
        asked.append(body)
        if "assume" in body:
            raise ProblemError(413, {"code": "too-large", "detail": "a request has at most 1 MiB"})
        return SimpleNamespace(body={"valid": True})

    session: Any = SimpleNamespace(
        service=lambda: SimpleNamespace(request=request), foreseen=Foreseen(), assume_refused=False
    )
    database = load().resources["leatstream_database"]
    session.foreseen.note(database, complete(database.attributes, {"name": "d"}))
    assert validate(session, {"sql": "SELECT 1"}) == {"valid": True}
    assert (len(asked), session.assume_refused) == (2, True)


def test_properties_of_a_query_are_planned_with() -> None:
    """They stand beside the SQL, and a fault in them is told there."""
    asked = []
    where = {"line": 1, "column": 1, "offset": 0, "length": 1}
    problem = {"code": "invalid-property", "detail": "mode is one of auto", "position": where}

    def request(_method: str, _path: str, body: dict[str, Any]) -> Any:
        asked.append(body.get("properties"))
        found = [{**problem, "pointer": "#/properties/mode"}] if "properties" in body else []
        return SimpleNamespace(body={"valid": not found, "statements": [{"plan": {}, "problems": found}]})

    service = SimpleNamespace(request=request)
    session: Any = SimpleNamespace(
        client=service, service=lambda: service, foreseen=Foreseen(), assume_refused=False
    )
    query = load().resources["leatstream_query"]
    state = complete(query.attributes, {"name": "q", "sql": "CREATE STREAM q AS SELECT a FROM t"})
    assert infer(session, query, state, None) == []
    [told] = infer(session, query, {**state, "properties": {"mode": "fast"}}, None)
    assert asked == [None, {"mode": "fast"}]
    assert (told.summary, told.path) == ("The properties are not valid", ("properties",))
    assert "line 1" not in told.detail
