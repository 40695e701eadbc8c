"""ApplyResourceChange: create, update and delete, and the waits that follow."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from leatstream_terraform import impact
from leatstream_terraform import plan as rules
from leatstream_terraform.checks import duration
from leatstream_terraform.codec import UNKNOWN, Key, Path
from leatstream_terraform.diagnostics import Diagnostic, Failed, from_problem
from leatstream_terraform.dry_run import USED
from leatstream_terraform.leaving import target
from leatstream_terraform.names import fill_path, import_id
from leatstream_terraform.rest import Cancelled, ProblemError, ServiceDown
from leatstream_terraform.schema import Resource
from leatstream_terraform.session import Private, Session, label
from leatstream_terraform.wire import from_rest

#: Seconds, where the configuration sets no timeouts. A cold Spark start takes up to half a minute.
DEFAULT_TIMEOUT = 600.0
_POLL = 20
_LOG_LINES = 20
_TAINTED = "Terraform marks it as tainted: the next apply replaces it"
_KEEP = "To keep it and start it again in place, run: terraform untaint ADDRESS"
_AWAITED = "It was made. The next apply waits for it again, and does not replace it."


@dataclass
class Applied:
    """Answer to an apply request. ``state`` is None when the object is gone."""

    state: dict[str, Any] | None
    private: Private = field(default_factory=Private)
    diagnostics: list[Diagnostic] = field(default_factory=list)


class _Unmet(Failed):
    """The object has failed, or is still on its way when the time is over."""

    def __init__(self, diagnostic: Diagnostic, answer: Mapping[str, Any]) -> None:
        super().__init__(diagnostic)
        self.answer = answer


def apply(
    session: Session,
    resource: Resource,
    prior: dict[str, Any] | None,
    planned: dict[str, Any] | None,
    config: Mapping[str, Any] | None,
    private: Private,
) -> Applied:
    """Carry out one planned change.

    Never loses an object: when it was made but fails then, its state comes back with the error, and Terraform
    marks it tainted. Where only the sight of it was lost, its state comes back with a warning: it would
    be replaced for nothing.
    """
    if planned is None:
        return _delete(session, resource, prior or {}, private)
    kept = Private(timeouts=private.timeouts)
    try:
        if prior is not None and not rules.needs_write(resource, prior, planned):
            if private.unsettled or impact.failed(resource, prior, planned) is not None:
                return _finish(session, resource, planned, None, kept, "update")
            return Applied(rules.settle(planned, prior)[0], kept)
        return _write(session, resource, prior, planned, config, kept)
    except Failed as failed:
        private.replace = kept.replace or private.replace
        private.unsettled = kept.unsettled or private.unsettled
        return Applied(prior, private, list(failed.diagnostics))


def _write(
    session: Session,
    resource: Resource,
    prior: dict[str, Any] | None,
    planned: dict[str, Any],
    config: Mapping[str, Any] | None,
    kept: Private,
) -> Applied:
    condition: dict[str, str] = {}
    shared = any((config or {}).get(name) is None for name in resource.shared)
    if prior is None:
        condition["If-None-Match"] = "*"
    elif isinstance(prior.get("generation"), int) and not shared:
        condition["If-Match"] = f'"{prior["generation"]}"'
    written = rules.body(resource.attributes, planned, config)
    # What is not known yet is the service's to say.
    document = {
        **resource.constants,
        **{key: value for key, value in written.items() if value is not UNKNOWN},
    }
    within = time.monotonic() + _limit(kept, "update" if prior else "create")
    method, path = (resource.create if prior is None else "PUT"), fill_path(resource.path, planned)
    if prior is not None and resource.rotates:
        method, path = "POST", f"{path}:rotate"
        document = {name: document[name] for name in ("grace_minutes",) if name in document}
    elif resource.rotates:
        document.pop("grace_minutes", None)
    try:
        answer = session.service().request(method, path, document, condition, within=within).body
    except (ProblemError, ServiceDown, Cancelled) as problem:
        doubt = isinstance(problem, Cancelled) or problem.after_doubt
        # Where it cannot be seen, and was kept, the next plan would be empty whatever became of it.
        kept.unsettled = doubt and prior is not None and resource.wait is not None
        # What shows its value once cannot be taken up again.
        again = doubt and not resource.rotates
        answer = _kept_before(session, resource, prior, planned) if again else None
        if answer is None:
            raise Failed(*_refused(resource, planned, problem, doubt, prior is None, kept)) from problem
        kept.unsettled = False
    return _finish(session, resource, planned, answer or {}, kept, "update" if prior else "create")


def _kept_before(
    session: Session, resource: Resource, prior: dict[str, Any] | None, planned: dict[str, Any]
) -> Mapping[str, Any] | None:
    """The object, if it is what an earlier try of the same request has made of it; None if not, or not seen.

    What is sent again is refused then, as the object is not as it was before.
    """
    try:
        found = session.service().get(fill_path(resource.path, planned)) or {}
    except (ProblemError, ServiceDown, Cancelled):
        return None
    before = (prior or {}).get("generation", 0)
    # What has no generations, such as a topic, is known by its settings alone.
    counted = "generation" in resource.attributes
    if counted and (not isinstance(before, int) or found.get("generation") != before + 1):
        return None
    return None if _state(resource, planned, found)[1] else found


def _finish(
    session: Session,
    resource: Resource,
    planned: dict[str, Any],
    answer: Mapping[str, Any] | None,
    kept: Private,
    phase: str,
) -> Applied:
    """Wait until what was written is in effect, and tell the state; None as answer reads the object first."""
    name = label(resource, planned)
    if answer is None:
        try:
            answer = session.service().get(fill_path(resource.path, planned)) or {}
        except ProblemError as problem:
            raise Failed(*from_problem(problem.problem, {}, f"Cannot read {name}")) from problem
    result = Applied(_state(resource, planned, answer)[0], kept)
    impact.told_by(resource, planned, answer, result.state)
    try:
        if resource.wait:
            answer = _wait(session, resource, planned, answer, kept, phase)
    except (Failed, Cancelled, ServiceDown, ProblemError) as problem:
        # Without this mark the next plan would be empty although the object never became what was asked for.
        if isinstance(problem, _Unmet):
            result.state = _state(resource, planned, problem.answer)[0]
            impact.told_by(resource, planned, answer, result.state)
        lost = not isinstance(problem, Failed) and not (isinstance(problem, ProblemError) and problem.gone)
        kept.unsettled = phase == "update" or lost
        found = _wait_failed(session, resource, planned, problem, name)
        if lost and phase == "create":
            # Of a new object Terraform takes any error for a reason to replace it.
            found = [replace(one, severity="warning", detail=f"{one.detail}\n\n{_AWAITED}") for one in found]
        result.diagnostics += found
        return result
    state, changes = rules.settle(
        planned, from_rest(resource.attributes, answer, rules.without_unknown(planned))
    )
    result.state = state
    impact.told_by(resource, planned, answer, state)
    result.diagnostics += [_differs(resource, change, name) for change in changes] + _health(
        resource, answer, name
    )
    return result


def _state(resource: Resource, planned: dict[str, Any], answer: Mapping[str, Any]) -> Any:
    read = from_rest(resource.attributes, answer, rules.without_unknown(planned), resource.live)
    return rules.settle(planned, read)


def _differs(resource: Resource, change: tuple[Any, Any, Any], name: str) -> Diagnostic:
    path, planned, actual = change
    where = ".".join(str(step) for step in path)
    item = resource.attributes.get(str(path[0]))
    shown = (
        "" if item is None or item.sensitive else f": {planned!r} was planned, the service says {actual!r}"
    )
    return Diagnostic(
        f"{name} differs from the plan", f"{where}{shown}. The next plan shows it.", path, "warning"
    )


def _health(resource: Resource, answer: Mapping[str, Any], name: str) -> list[Diagnostic]:
    ill = resource.ill(answer)
    return [Diagnostic(f"{name} was saved but is {ill[0]}", ill[1], (), "warning")] if ill else []


def _refused(
    resource: Resource,
    planned: dict[str, Any],
    problem: ProblemError | ServiceDown | Cancelled,
    doubt: bool,
    creating: bool,
    kept: Private,
) -> list[Diagnostic]:
    name = label(resource, planned)
    sql = resource.with_semantic("sql")
    summary = f"Cannot {'create' if creating else 'update'} {name}"
    if isinstance(problem, ProblemError):
        text = planned.get(sql.name) if sql else None
        found = from_problem(problem.problem, resource.attributes, summary, text)
    else:
        found = [Diagnostic(summary, str(problem) or "Terraform asked the provider to stop.")]
    importing = f"import it: terraform import ADDRESS '{import_id(resource.import_id, planned)}'"
    if not isinstance(problem, ProblemError) or problem.in_doubt:
        if not doubt:
            return found
        then = (
            f"If the next apply says that it exists, {importing}" if creating else "The next plan shows it."
        )
        note = f"Whether this was kept is not known, as no answer came. {then}"
    elif creating and (problem.code == "already-exists" or problem.status == 412):
        note = f"It exists already. To manage it here, {importing}"
    elif problem.code == "stale":
        note = (
            "It was changed by somebody else after this plan was made. Run the plan again to see the change."
        )
    elif problem.code == "requires-replacement":
        kept.replace = [_up_to_map(one.path) for one in found if one.path]
        note = (
            "Nothing was changed. The next plan will replace the object; to do it now, run terraform apply "
            "-replace=ADDRESS."
        )
    else:
        return found
    first = found[0]
    return [Diagnostic(first.summary, f"{first.detail}\n\n{note}", first.path), *found[1:]]


def _up_to_map(path: Path) -> Path:
    """The path without what lies inside a map; JSON, which keeps it, cannot tell a key from an attribute."""
    inside = next((at for at, step in enumerate(path) if isinstance(step, Key)), len(path))
    return path[:inside]


# ---- waiting -----------------------------------------------------------------------------------------------


def _wait(
    session: Session, resource: Resource, planned: dict[str, Any], answer: Any, kept: Private, phase: str
) -> Mapping[str, Any]:
    """Wait until the object is as wanted; returns the last answer.

    Raises:
        Failed: the object failed, or the time is over.
    """
    wait = resource.wait or {}
    targets = resource.wanted_states(planned)
    if not targets:
        return dict(answer)
    limit = _limit(kept, phase)
    until = time.monotonic() + limit
    path = fill_path(resource.path, planned)
    # What is to stop may have failed before, and stops all the same.
    failed = wait["failed"] if wait["targets"]["running"] == list(targets) else []
    if phase == "update" and (answer.get("status") or {}).get("state") in failed:
        answer = _again(session, resource, planned, answer)
    while True:
        status = answer.get("status") or {}
        state = status.get("state")
        if resource.is_settled(planned, answer):
            return dict(answer)
        if state in failed:
            detail = _cause(status) + _after_failure(phase, status)
            raise _Unmet(Diagnostic(f"{label(resource, planned)} {state}", detail), answer)
        left = until - time.monotonic()
        if left <= 0:
            raise _Unmet(_overdue(resource, planned, phase, targets[0], status, limit), answer)
        query = urlencode({"wait_for": ",".join([*targets, *failed]), "timeout": f"{min(_POLL, left):.0f}s"})
        answer = session.service().request("GET", f"{path}?{query}", until=until).body or {}
        session.service().sleep(min(0.2, max(left, 0.0)))


def _again(
    session: Session, resource: Resource, planned: Mapping[str, Any], answer: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Start what failed before this apply, and was not started by what it wrote: its cause may be mended now.

    Raises:
        Failed: the service does not start it.
    """
    verb = (resource.wait or {}).get("restart")
    if verb is None:
        return answer
    try:
        started = session.service().request("POST", f"{fill_path(resource.path, planned)}:{verb}").body
    except ProblemError as problem:
        summary = f"{label(resource, planned)} failed, and cannot be started again"
        raise Failed(*from_problem(problem.problem, {}, summary)) from problem
    return started or answer


def _overdue(
    resource: Resource,
    planned: Mapping[str, Any],
    phase: str,
    wanted: str,
    status: Mapping[str, Any],
    limit: float,
) -> Diagnostic:
    """The time is over, and the object is not what was asked for.

    Args:
        resource: its type.
        planned: its planned value.
        phase: create or update.
        wanted: the state that was asked for; others, such as a query that has completed, are as good.
        status: of the object.
        limit: seconds that were waited.
    """
    text = f"Its state is {status.get('state')}"
    text += f": {status['message']}" if status.get("message") else ""
    text += f". It keeps trying; a longer timeouts.{phase} waits longer."
    if phase == "create":
        text += f"\n\n{_TAINTED}, with all that it has done by then. {_KEEP}"
    return Diagnostic(f"{label(resource, planned)} is not {wanted} after {limit:g} s", text)


def _after_failure(phase: str, status: Mapping[str, Any]) -> str:
    """What the next apply does; a new object is tainted by any error of its creation."""
    if phase == "update":
        return "\n\nOnce the cause is corrected, the next apply starts it again."
    ran = status.get("has_run") is not False
    loss = ", and deletes its checkpoint and state" if ran else ". Its job has not run, so no state is lost"
    return f"\n\n{_TAINTED}{loss}. {_KEEP}"


def _cause(status: Mapping[str, Any]) -> str:
    error = status.get("error")
    parts = [status.get("message"), error.get("detail") if isinstance(error, Mapping) else error]
    code = error.get("code") if isinstance(error, Mapping) else None
    text = "\n".join(dict.fromkeys(str(part) for part in parts if part)) or "The service gives no cause."
    return (f"{text} [{code}]" if code else text) + impact.cure(status)


def _wait_failed(
    session: Session, resource: Resource, planned: dict[str, Any], problem: Exception, name: str
) -> list[Diagnostic]:
    if isinstance(problem, Failed):
        first = problem.diagnostics[0]
        lines = _logs(session, resource, planned)
        return [Diagnostic(first.summary, first.detail + lines, first.path), *problem.diagnostics[1:]]
    if isinstance(problem, Cancelled):
        return [
            Diagnostic(
                f"Stopped waiting for {name}", "Terraform asked the provider to stop. The object exists."
            )
        ]
    if isinstance(problem, ProblemError):
        return from_problem(problem.problem, {}, f"Cannot see how {name} is doing")
    return [Diagnostic(f"Lost the service while waiting for {name}", str(problem))]


def _logs(session: Session, resource: Resource, planned: dict[str, Any]) -> str:
    where = (resource.wait or {}).get("logs")
    if not where:
        return ""
    try:
        answer = session.service().get(f"{fill_path(resource.path, planned)}/{where}?tail={_LOG_LINES}")
    except (ProblemError, ServiceDown, Cancelled):
        return ""
    lines = [str(line) for line in (answer or {}).get("lines", [])][-_LOG_LINES:]
    return "\n\nLast lines of its log:\n" + "\n".join(f"  {line}" for line in lines) if lines else ""


def _limit(private: Private, phase: str) -> float:
    text = private.timeouts.get(phase)
    return (duration(text) if text else None) or DEFAULT_TIMEOUT


# ---- delete ------------------------------------------------------------------------------------------------


def _delete(session: Session, resource: Resource, prior: dict[str, Any], private: Private) -> Applied:
    name = label(resource, prior)
    limit = _limit(private, "delete")
    until = time.monotonic() + limit
    try:
        with session.leaving.under_way(private.leaving):
            if not _remove(session, target(resource, prior), until):
                detail = f"It is still stopping after {limit:g} s; a longer timeouts.delete waits longer."
                detail += _logs(session, resource, prior)
                return Applied(prior, private, [Diagnostic(f"{name} is not gone yet", detail)])
    except ProblemError as problem:
        found = from_problem(problem.problem, resource.attributes, f"Cannot delete {name}")
        if problem.code == "has-dependents":
            found[-1] = replace(found[-1], detail=f"{found[-1].detail}\n\n{USED}")
        return Applied(prior, private, found)
    except Cancelled:
        return Applied(
            prior, private, [Diagnostic(f"Stopped while deleting {name}", "Run the command again.")]
        )
    except ServiceDown as problem:
        return Applied(prior, private, [Diagnostic(f"Cannot delete {name}", str(problem))])
    except Failed as failed:
        return Applied(prior, private, list(failed.diagnostics))
    return Applied(None)


def _remove(session: Session, where: str, until: float, above: tuple[str, ...] = ()) -> bool:
    """Delete an object, after those of its dependents that the plan deletes too; whether it is gone in time.

    Raises:
        ProblemError: the service refuses; it has dependents that stay, for one.
    """
    client = session.service()
    while True:
        try:
            answer = client.request("DELETE", where, until=until)
            # 202: a job is still stopping; the object is gone when the service no longer knows it.
            while answer.status == 202:
                client.request("GET", where.partition("?")[0], until=until)
                if time.monotonic() > until:
                    return False
                client.sleep(0.3)
        except ProblemError as problem:
            if not problem.gone:
                if problem.code != "has-dependents" or time.monotonic() > until:
                    raise
                first = [one for one in session.leaving.find(problem.problem) if one not in (*above, where)]
                gone = [_remove(session, one, until, (*above, where)) for one in first]
                if not first:
                    if not session.leaving.waits():
                        raise
                    client.sleep(0.5)
                if not all(gone):
                    return False
                continue
        session.leaving.goes_on()
        return True
