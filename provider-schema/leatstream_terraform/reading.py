"""ReadResource, ImportResourceState and ReadDataSource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leatstream_terraform.diagnostics import Diagnostic, Failed, from_problem
from leatstream_terraform.names import fill_path, read_import_id
from leatstream_terraform.rest import ProblemError
from leatstream_terraform.schema import Resource, empty
from leatstream_terraform.session import Private, Session, label
from leatstream_terraform.wire import from_rest


def read(
    session: Session, resource: Resource, state: Mapping[str, Any], private: Private
) -> tuple[dict[str, Any] | None, Private]:
    """Read an object again; None when it is gone. Only the service's own "not found" counts as gone.

    Args:
        session: the configured provider.
        resource: type of the object.
        state: its value before.
        private: what the provider kept with it.

    Raises:
        Failed: it cannot be read.
    """
    try:
        answer = session.service().get(fill_path(resource.path, state))
    except ProblemError as problem:
        if problem.gone:
            return None, private
        raise Failed(*from_problem(problem.problem, {}, f"Cannot read {label(resource, state)}")) from problem
    other = _of_another_type(resource, state, answer or {})
    if other is not None:
        if private.fresh:
            raise Failed(other)
        return None, private
    names = {name: state[name] for name in resource.key}
    prior = None if private.fresh else state
    value = from_rest(resource.attributes, answer or {}, prior, resource.live) | names
    private.fresh = False
    if private.unsettled:
        private.unsettled = not resource.is_settled(value, answer or {})
    return value, private


def import_state(
    resource: Resource, text: str, identity: Mapping[str, Any] | None
) -> tuple[dict[str, Any], Private]:
    """The state to start an import from: the object's names. Terraform reads the rest.

    Args:
        resource: type of the object.
        text: the import id; empty where the identity is given.
        identity: its names.

    Raises:
        Failed: the id does not have the form that the resource takes.
    """
    names: Mapping[str, Any] | None
    if text:
        names = read_import_id(resource.import_id, text)
        if names is None:
            form = resource.import_id.replace(":raw", "")
            raise Failed(
                Diagnostic(
                    f"{text!r} is not an import id of {resource.name}",
                    f"Write it as {form}. A part that holds a separator is written in double quotes.",
                )
            )
    else:
        names = {name: (identity or {}).get(name) for name in resource.key}
        needed = [name for name in resource.key if resource.attributes[name].mode == "required"]
        if any(not names[name] for name in needed):
            raise Failed(
                Diagnostic(f"The identity of {resource.name} is not complete", f"Give {', '.join(needed)}.")
            )
    return empty(resource.attributes) | dict(names), Private(fresh=True)


def read_data(session: Session, resource: Resource, config: Mapping[str, Any]) -> dict[str, Any]:
    """Read a data source.

    Args:
        session: the configured provider.
        resource: type of the data source.
        config: its configuration.

    Raises:
        Failed: there is no such object, or it cannot be read.
    """
    try:
        answer = session.service().get(fill_path(resource.path, config))
    except ProblemError as problem:
        raise Failed(
            *from_problem(problem.problem, {}, f"Cannot read {label(resource, config)}")
        ) from problem
    other = _of_another_type(resource, config, answer or {})
    if other is not None:
        raise Failed(other)
    return from_rest(resource.attributes, answer or {}, None) | {name: config[name] for name in resource.key}


def _of_another_type(
    resource: Resource, state: Mapping[str, Any], answer: Mapping[str, Any]
) -> Diagnostic | None:
    """What is wrong when an object of this name is of another type: relations of all kinds share names."""
    for name, wanted in resource.constants.items():
        found = answer.get(name, wanted)
        if found != wanted:
            return Diagnostic(
                f"{label(resource, state)} is of another type",
                f"Its {name} is {found!r}, not {wanted!r}; use the resource type for that.",
            )
    return None
