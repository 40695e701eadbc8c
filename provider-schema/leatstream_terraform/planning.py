"""PlanResourceChange: the pure rules of ``plan.py`` plus what the service can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leatstream_terraform import impact, statement
from leatstream_terraform import plan as rules
from leatstream_terraform.checks import check
from leatstream_terraform.codec import UNKNOWN, Path
from leatstream_terraform.diagnostics import Diagnostic, from_problem, has_error
from leatstream_terraform.dry_run import check_deletion, check_health, check_object
from leatstream_terraform.rest import ProblemError
from leatstream_terraform.schema import Attribute, Resource
from leatstream_terraform.session import Private, Session, label
from leatstream_terraform.wire import keep_implied


@dataclass
class Planned:
    """Answer to a plan request. ``state`` is None when the object will be destroyed."""

    state: dict[str, Any] | None
    private: Private
    replace: list[Path] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def plan(
    session: Session,
    resource: Resource,
    prior: Mapping[str, Any] | None,
    config: Mapping[str, Any] | None,
    private: Private,
) -> Planned:
    """Plan one object.

    Args:
        session: the configured provider.
        resource: the object's type.
        prior: state before, None when there is none.
        config: configuration, None when the object is to be destroyed.
        private: what the provider kept with the object.
    """
    if config is None:
        if prior is not None:
            session.foreseen.leaves(resource, prior)
            private.leaving = session.leaving.note(resource, prior)
            return Planned(None, private, [], check_deletion(session, resource, prior))
        return Planned(None, private)
    private.leaving = []
    private.take_timeouts(config)
    problems = [] if session.destroying else check(resource.attributes, config, resource.exactly_one_of)
    if not session.destroying:
        problems += session.claims.note(resource, config)
    if has_error(problems):
        # Already reported by validation, but values may have become known since then.
        return Planned(rules.propose(resource.attributes, config, prior), private, [], problems)

    def same(item: Attribute, configured: Any, before: Any) -> bool:
        if item.semantic == "sql" and isinstance(configured, str) and isinstance(before, str):
            if session.destroying:
                return True
            return statement.same_meaning(session, resource, config, configured, before)
        return rules.same_text(item, configured, before)

    state = rules.propose(resource.attributes, config, prior, same)
    rules.templates(resource, state)
    answer = Planned(state, private)
    if prior is None:
        statement.blank(resource, state)
        impact.set_change(resource, state, None)
        _ask(session, resource, answer, state, None)
        if label(resource, state) not in session.replaced:
            _check(session, resource, answer, state, config)
        if not session.destroying:
            statement.preview(session, resource, state)
        session.foreseen.note(resource, state, config)
    else:
        keep_implied(resource.attributes, state, prior)
        answer.replace = rules.replacements(resource, prior, state)
        cause = impact.failed(resource, prior, state)
        if answer.replace or rules.needs_write(resource, prior, state):
            _update(session, resource, prior, answer, state, config)
        elif private.unsettled or cause is not None:
            # An update in place that writes nothing: it starts a failed job, or waits for the update before.
            rules.forget(resource, state, inferred=False)
            impact.unchanged(resource, state)
        if (
            cause is not None
            and not session.destroying
            and not answer.replace
            and not has_error(answer.diagnostics)
        ):
            answer.diagnostics.append(impact.start_again(resource, prior, state, cause))
    return answer


def _update(
    session: Session,
    resource: Resource,
    prior: Mapping[str, Any],
    answer: Planned,
    state: dict[str, Any],
    config: Mapping[str, Any],
) -> None:
    answer.replace += [
        path
        for path in answer.private.replace
        if path not in answer.replace and _at(state, path) != _at(prior, path)
    ]
    changed = any(state.get(name) != prior.get(name) for name in statement.depends_on(resource))
    rules.forget(resource, state, inferred=changed, config=config)
    if changed:
        impact.set_change(resource, state, UNKNOWN)
    else:
        impact.unchanged(resource, state)
    if changed or answer.replace:
        _ask(session, resource, answer, state, prior)
        sql = resource.with_semantic("sql")
        if sql is not None and impact.is_refused(resource, state):
            answer.replace.append((sql.name,))
        answer.replace += [p for p in rules.replacements(resource, prior, state) if p not in answer.replace]
    if not answer.replace:
        _check(session, resource, answer, state, config)
    if answer.replace:
        # Terraform plans its successor next, and what it replaces would stand in that one's way.
        session.replaced.add(label(resource, state))
        session.foreseen.leaves(resource, prior)
        answer.diagnostics += check_deletion(session, resource, prior)
    session.foreseen.note(resource, state, config, exists=True)


def _check(
    session: Session, resource: Resource, answer: Planned, state: dict[str, Any], config: Mapping[str, Any]
) -> None:
    if session.destroying:
        return
    found, paths = check_object(session, resource, state, config)
    answer.diagnostics += found + check_health(session, resource, state, config)
    answer.replace += [path for path in paths if path not in answer.replace]


def _ask(
    session: Session,
    resource: Resource,
    answer: Planned,
    state: dict[str, Any],
    prior: Mapping[str, Any] | None,
) -> None:
    if session.destroying:
        return
    try:
        answer.diagnostics += statement.infer(session, resource, state, prior)
    except ProblemError as problem:
        sql = resource.with_semantic("sql")
        text = state.get(sql.name) if sql else None
        summary = f"Cannot check {label(resource, state)}"
        answer.diagnostics += from_problem(problem.problem, resource.attributes, summary, text)


def _at(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value
