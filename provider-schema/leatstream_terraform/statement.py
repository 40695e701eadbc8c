"""What ``POST /v1/statements:validate`` returns at plan time: faults, the sink, inferred properties."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from leatstream_terraform.codec import UNKNOWN, has_unknown
from leatstream_terraform.diagnostics import Diagnostic, fault_text
from leatstream_terraform.foresee import FOLLOWING, MISSING
from leatstream_terraform.impact import of_plan
from leatstream_terraform.rest import STORE_AWAY, STORE_FOR, Client, ProblemError
from leatstream_terraform.schema import Attribute, Resource
from leatstream_terraform.session import Session
from leatstream_terraform.wire import from_rest

#: Attributes that a statement's meaning depends on, beside its text.
CONTEXT = ("database", "schema", "store")
_HINT = (
    "If another resource of this configuration creates it, refer to that resource inside the SQL, such as "
    "${leatstream_stream.pageviews.fqn}, or name it in depends_on, so that Terraform plans it first."
)


def depends_on(resource: Resource) -> tuple[str, ...]:
    """Names of the attributes whose change makes the inferred values unknown."""
    sql = resource.with_semantic("sql")
    return (
        () if sql is None else (sql.name, *(n for n in (*CONTEXT, "properties") if n in resource.attributes))
    )


def validate(session: Session, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Ask the service about a statement, with what this run plans, where the service takes that.

    Raises:
        ProblemError: the service refused the request itself, not the statement.
    """
    client = session.service()
    assume = {} if session.assume_refused else session.foreseen.assume(request)
    if assume:
        try:
            return _answer(client, {**request, "assume": assume})
        except ProblemError as problem:
            if not _refuses_assume(problem):
                raise
            session.assume_refused = True
    return _answer(client, request)


def _answer(client: Client, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The service's answer; asked again while only a store did not answer it in time."""
    end: float | None = None
    while True:
        document = client.request("POST", "/v1/statements:validate", dict(request)).body
        answer = document if isinstance(document, dict) else {}
        faults = [fault for one in answer.get("statements") or [] for fault in one.get("problems") or []]
        unreachable = any(str(fault.get("code") or "").replace("_", "-") in STORE_AWAY for fault in faults)
        now = time.monotonic()
        end = now + STORE_FOR if end is None else end
        if not unreachable or now >= end:
            return answer
        client.sleep(1.0)


def _refuses_assume(problem: ProblemError) -> bool:
    pointers = [str(one.get("pointer") or "") for one in problem.problem.get("errors") or []]
    if problem.status == 413:
        return True  # too much is planned for one request; the statement alone may be small enough
    return problem.status in (400, 422) and any("assume" in pointer for pointer in pointers)


def request_for(
    resource: Resource, named: Mapping[str, Any], sql: str, value: Mapping[str, Any]
) -> dict[str, Any]:
    """The validation request for a statement in the context of ``value``, for ``named``."""
    given = {name: value.get(name) for name in CONTEXT if isinstance(value.get(name), str)}
    name = named.get(resource.key[-1])
    return {"sql": sql, **given, **({"name": name} if isinstance(name, str) else {})}


def same_meaning(
    session: Session, resource: Resource, planned: Mapping[str, Any], one: str, two: str
) -> bool:
    """Tell whether two texts are the same statement but for white space, comments and the like."""
    if one == two:
        return True
    if session.client is None:
        return False
    first = _meaning(session, resource, planned, one)
    return first is not None and first == _meaning(session, resource, planned, two)


def _meaning(session: Session, resource: Resource, value: Mapping[str, Any], sql: str) -> str | None:
    request = request_for(resource, value, sql, value)
    key = json.dumps(request, sort_keys=True)
    if key not in session.meanings:
        answer = validate(session, request)
        session.meanings[key] = answer.get("hash") or answer.get("canonical")
    return session.meanings[key]


def infer(
    session: Session, resource: Resource, planned: dict[str, Any], prior: Mapping[str, Any] | None
) -> list[Diagnostic]:
    """Make the values known, in place, that the service can tell before anything runs.

    Args:
        session: the configured provider.
        resource: type of the object.
        planned: the planned object; its inferred values are unknown so far.
        prior: the object before, when it is updated.

    Returns:
        What is wrong with the statement, and what its change does to a running job.
    """
    item = resource.with_semantic("sql")
    if item is None or session.client is None:
        return []
    sql = planned.get(item.name)
    if not isinstance(sql, str) or any(has_unknown(planned.get(name)) for name in depends_on(resource)):
        return []
    request = request_for(resource, prior or planned, sql, planned)
    if planned.get("properties"):
        request["properties"] = planned["properties"]
    answer = _ask(session, resource, request)
    statements = answer.get("statements") or []
    if not answer.get("valid") or not statements:
        faults = [fault for one in statements for fault in one.get("problems") or []]
        return _errors(session, item, sql, planned, faults)
    validated = statements[-1]
    for attribute in resource.attributes.values():
        if attribute.infer and attribute.mode == "computed":
            raw = _dig(validated, attribute.infer.split("."))
            if raw is not None:
                planned[attribute.name] = from_rest({"x": attribute}, {attribute.rest: raw}, None)["x"]
    plan = validated.get("plan") or {}
    if prior is None and plan.get("change"):
        _loosen(resource, planned)
    return of_plan(resource, planned, plan, item) if prior is not None else []


def preview(session: Session, resource: Resource, planned: dict[str, Any]) -> None:
    """Make known, in place, what a relation's configuration leaves to the service, such as its columns.

    What cannot be known now stays unknown; what is wrong is reported when the stream is made.
    """
    items = [a for a in resource.attributes.values() if a.preview]
    if any(planned.get(item.name) is not UNKNOWN for item in items):
        return  # the statement below gives none of them, so it would tell of another object
    given = {key: planned.get(name) for key, name in _RELATION_KEYS.items() if planned.get(name) is not None}
    given |= planned.get("properties") or {} if planned.get("properties") is not UNKNOWN else {"": UNKNOWN}
    if not items or session.client is None or has_unknown(given) or not isinstance(planned.get("fqn"), str):
        return
    options = ", ".join(f"{_quoted(key)}={_written(key, value)}" for key, value in given.items())
    kind = "TABLE" if resource.constants.get("kind") == "table" else "STREAM"
    request = {"sql": f"CREATE {kind} {planned['fqn']} WITH ({options})"}
    # Named, the text stands for a body: what the caller has set as defaults counts for statements only.
    name = planned.get(resource.key[-1])
    answer = validate(session, {**request, "name": name} if isinstance(name, str) else request)
    planned_stream = (answer.get("statements") or [{}])[-1].get("plan") or {}
    for item in items:
        raw = _dig(planned_stream, str(item.preview).split("."))
        if raw:
            planned[item.name] = from_rest({"x": item}, {item.rest: raw}, None)["x"]


_RELATION_KEYS = {
    "store": "store",
    "topic": "topic",
    "value.format": "value_format",
    "key.format": "key_format",
    "key.type": "key_type",
}


def _written(key: str, value: Any) -> str:
    return '"' + str(value).replace('"', '""') + '"' if key == "store" else _quoted(str(value))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _loosen(resource: Resource, planned: dict[str, Any]) -> None:
    """Make unknown, in place, what the end of the object that is replaced will change.

    The service still sees the old one. Once that is gone, a property comes from the topic that it leaves
    behind or, if the topic is deleted with it, from somewhere else altogether.
    """
    deletes = any(planned.get(text.strip("{}")) is True for text in resource.delete_query.values())
    for item in resource.attributes.values():
        inferred = planned.get(item.name)
        if item.infer and item.nesting == "map" and isinstance(inferred, dict):
            planned[item.name] = (
                UNKNOWN
                if deletes
                else {
                    key: {name: value if name == "value" else UNKNOWN for name, value in one.items()}
                    for key, one in inferred.items()
                }
            )


def _ask(session: Session, resource: Resource, request: dict[str, Any]) -> Mapping[str, Any]:
    """Validate; a sink that only stands in the way because the same plan replaces its query is no fault."""
    answer = validate(session, request)
    if resource.assume != "queries":
        return answer
    faults = [fault for one in answer.get("statements") or [] for fault in one.get("problems") or []]
    for fault in faults:
        leaving = session.foreseen.leaving(fault)
        if leaving is not None and leaving != request.get("name"):
            return validate(session, {**request, "name": leaving})
    return answer


def _errors(
    session: Session, item: Attribute, sql: str, planned: Mapping[str, Any], faults: list[Mapping[str, Any]]
) -> list[Diagnostic]:
    foreseen = session.foreseen
    explained = [fault for fault in faults if foreseen.explains(fault, sql, planned)]
    # A service that received planned objects knows their columns, but returns an existing one's old columns.
    waits = (
        bool(explained)
        or foreseen.touches(sql, changing=True)
        or (session.assume_refused and foreseen.touches(sql))
    )
    shown = []
    for fault in faults:
        code = str(fault.get("code") or "").replace("_", "-")
        if fault in explained or (waits and code in FOLLOWING):
            continue
        problem = dict(fault)
        if code in MISSING and not problem.get("hint"):
            problem["hint"] = _HINT
        summary, path = "The SQL is not valid", (item.name,)
        if str(problem.get("pointer") or "").startswith("#/properties"):
            summary, path = "The properties are not valid", ("properties",)
            problem.pop("position", None)  # that of the statement
        shown.append(Diagnostic(summary, fault_text(problem, code or None, sql), path))
    if not faults:
        shown.append(Diagnostic("The SQL is not valid", "The service does not say why.", (item.name,)))
    return shown


def _dig(value: Any, path: list[str]) -> Any:
    """Follow a path such as ``plan.sources[].fqn``; ``[]`` collects over a list."""
    for at, step in enumerate(path):
        if not isinstance(value, dict):
            return None
        if step.endswith("[]"):
            items = value.get(step[:-2])
            return None if items is None else [_dig(one, path[at + 1 :]) for one in items]
        value = value.get(step)
    return value


def blank(resource: Resource, planned: dict[str, Any]) -> None:
    """Make every inferred value unknown, in place."""
    for item in resource.attributes.values():
        if item.infer and item.mode == "computed":
            planned[item.name] = UNKNOWN
