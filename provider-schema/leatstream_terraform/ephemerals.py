"""Ephemeral resources: objects of the service that exist while Terraform runs."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from leatstream_terraform import plan as rules
from leatstream_terraform.diagnostics import Diagnostic
from leatstream_terraform.names import fill_path
from leatstream_terraform.rest import Cancelled, ProblemError, ServiceDown
from leatstream_terraform.schema import Resource
from leatstream_terraform.session import Session, label
from leatstream_terraform.wire import from_rest

_UNDO_SECONDS = 5.0


def open_object(
    session: Session, resource: Resource, config: Mapping[str, Any]
) -> tuple[dict[str, Any], bytes]:
    """Make the object; its value, and what ``close_object`` needs. The value is kept nowhere else.

    Args:
        session: of the provider.
        resource: of the schema's ``ephemerals``.
        config: what the block says, all of it known.
    """
    defaults = (resource.ephemeral or {}).get("defaults", {})
    wanted = {name: config.get(name) for name in resource.attributes}
    wanted |= {name: value for name, value in defaults.items() if wanted[name] is None}
    wanted |= {name: f"terraform-{secrets.token_hex(6)}" for name in resource.key if wanted[name] is None}
    document = {**resource.constants, **rules.body(resource.attributes, wanted, wanted)}
    path = fill_path(resource.path, wanted)
    try:
        answer = session.service().request(resource.create, path, document, {"If-None-Match": "*"}).body
    except (ProblemError, ServiceDown, Cancelled) as problem:
        # It may exist all the same, and nobody has its value. A name that was given may be another object's.
        doubt = isinstance(problem, Cancelled) or problem.after_doubt
        if doubt and all(config.get(name) is None for name in resource.key):
            with suppress(ProblemError, ServiceDown, Cancelled):
                session.service().request("DELETE", path, until=time.monotonic() + _UNDO_SECONDS)
        raise
    key = {name: wanted[name] for name in resource.key}
    return from_rest(resource.attributes, answer or {}, wanted), json.dumps(key).encode()


def close_object(session: Session, resource: Resource, private: bytes) -> list[Diagnostic]:
    """Delete the object; a warning if that does not succeed, as what Terraform was to do is done.

    Args:
        session: of the provider.
        resource: of the schema's ``ephemerals``.
        private: what ``open_object`` gave.
    """
    key = json.loads(private)
    try:
        session.service().request("DELETE", fill_path(resource.path, key))
    except ProblemError as problem:
        if problem.status == 404:
            return []
        why = str(problem.problem.get("detail") or problem.problem.get("title") or "it was refused")
    except (ServiceDown, Cancelled) as problem:
        why = str(problem) or "Terraform asked the provider to stop."
    else:
        return []
    return [Diagnostic(f"{label(resource, key)} was not deleted", f"{why} Delete it by hand.", (), "warning")]
