"""What ``POST /v1/objects:validate`` says at plan time of an object that is not SQL."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leatstream_terraform.codec import Path, has_unknown
from leatstream_terraform.diagnostics import Diagnostic, from_problem
from leatstream_terraform.names import fill_path
from leatstream_terraform.plan import body
from leatstream_terraform.rest import ProblemError, ServiceDown
from leatstream_terraform.schema import Resource
from leatstream_terraform.session import Session, label

#: Terraform deletes first what it replaces, and the plan of one object cannot see what becomes of another.
USED = (
    "If it is to be replaced: under another name, `lifecycle { create_before_destroy = true }` on it lets"
    " what depends on it change over first; under the same name, `lifecycle { replace_triggered_by = [...] }`"
    " on what depends on it, with the attribute that changes, replaces that too."
)
_NO_TOPIC = "its topic or table is not there, and nothing of leatstream in this plan makes it first"
#: Seconds for a service that does not answer; how long it tries to connect is a setting of it.
_PATIENCE = 5.0
#: Kinds of planned objects that the service checks so.
_CHECKED = ("relations", "entities", "functions", "function_sources")


def check_object(
    session: Session, resource: Resource, planned: Mapping[str, Any], config: Mapping[str, Any]
) -> tuple[list[Diagnostic], list[Path]]:
    """Have the service check an object that is to be written.

    Args:
        session: the configured provider.
        resource: its type.
        planned: its planned value.
        config: its configuration; of one that is not known yet nothing can be said.

    Returns:
        What is wrong, or what else the write does; paths whose change needs a new object.
    """
    if resource.assume not in _CHECKED or session.client is None or has_unknown(dict(config)):
        return [], []
    given = body(resource.attributes, planned, config)
    document = {**resource.constants, **{k: v for k, v in given.items() if not has_unknown(v)}}
    request: dict[str, Any] = {"path": fill_path(resource.path, planned), "body": document}
    assume = {} if session.assume_refused else session.foreseen.assume(request)
    try:
        answer = session.client.request(
            "POST", "/v1/objects:validate", request | ({"assume": assume} if assume else {})
        ).body
    except ProblemError as problem:
        return _refused(session, resource, planned, problem)
    return [_restart(resource, planned, query) for query in (answer or {}).get("restarts") or []], []


def check_health(
    session: Session, resource: Resource, planned: Mapping[str, Any], config: Mapping[str, Any]
) -> list[Diagnostic]:
    """Warn of an object that would not work if it were written now, such as a store that refuses the login.

    It is no error: what it connects to may start later. A refusal says nothing: what the object needs may be
    planned, and who plans may lack the right to write.

    Args:
        session: the configured provider.
        resource: its type.
        planned: its planned value.
        config: its configuration; of one that is not known yet nothing can be said.
    """
    query = (resource.warn or {}).get("dry_run")
    if query is None or session.client is None or has_unknown(dict(config)):
        return []
    document = {**resource.constants, **body(resource.attributes, planned, config)}
    path = f"{fill_path(resource.path, planned)}?{query}"
    known = {key: value for key, value in document.items() if not has_unknown(value)}
    try:
        answer = session.client.request("PUT", path, known, until=time.monotonic() + _PATIENCE)
    except (ProblemError, ServiceDown):
        return []
    ill = resource.ill(answer.body or {})
    if ill is None:
        return []
    name = label(resource, planned)
    detail = f"{ill[1]}\n\nIf that does not change, the apply saves it, and what uses it fails."
    return [Diagnostic(f"{name} would be {ill[0]}", detail, (), "warning")]


def check_deletion(session: Session, resource: Resource, prior: Mapping[str, Any]) -> list[Diagnostic]:
    """Warn of what still uses an object that the plan deletes or replaces, and may stay.

    It is no error: what is planned after it may delete or change the users first.
    """
    if resource.assume not in (*_CHECKED, "queries") or session.client is None or session.destroying:
        return []
    try:
        session.client.request("POST", "/v1/objects:validate", {"path": fill_path(resource.path, prior)})
    except ProblemError as problem:
        users = problem.problem.get("dependents") or []
        if problem.code != "has-dependents" or not users or session.leaving.covers(problem.problem):
            return []
        return [
            Diagnostic(
                f"{label(resource, prior)} is in use",
                f"It is used by {', '.join(map(str, users))}. The apply fails unless this run deletes or "
                f"changes them first.\n\n{USED}",
                (),
                "warning",
            )
        ]
    except ServiceDown:
        pass  # reported by what needs the service
    return []


def _refused(
    session: Session, resource: Resource, planned: Mapping[str, Any], problem: ProblemError
) -> tuple[list[Diagnostic], list[Path]]:
    if problem.status in (404, 405) and problem.code not in ("not-found", "entity-not-found"):
        return [], []  # a service that does not check objects
    faults = problem.problem.get("errors") or [problem.problem]
    if any(session.foreseen.explains(fault, "", planned) for fault in faults):
        return [], []  # what it needs is planned, and its details are not known yet
    if problem.code == "has-dependents" and session.leaving.covers(problem.problem):
        return [], []
    found = from_problem(problem.problem, resource.attributes, f"{label(resource, planned)} is not valid")
    if problem.code == "requires-replacement":
        return [], [one.path for one in found if one.path]
    if resource.assume == "relations" and all(_is_missing_topic(fault) for fault in faults):
        # Another provider may make the topic, in an order that its name gives to Terraform alone.
        found = [
            replace(one, summary=f"{label(resource, planned)}: {_NO_TOPIC}", severity="warning")
            for one in found
        ]
    return found, []


def _is_missing_topic(fault: Mapping[str, Any]) -> bool:
    """Whether a relation is refused only because what it stands for is not there, and it cannot make it."""
    code = str(fault.get("code") or "")
    return code == "entity-not-found" or (code == "property-required" and "topic." in str(fault))


def _restart(resource: Resource, planned: Mapping[str, Any], query: str) -> Diagnostic:
    return Diagnostic(
        f"{label(resource, planned)}: query {query} is restarted with the new code",
        "It continues from its checkpoint. `restart_queries = false` leaves it with the old code.",
        (),
        "warning",
    )
