"""What one provider process knows after it was configured: where the service is, and what this run plans."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leatstream_terraform.claims import Claims
from leatstream_terraform.codec import UNKNOWN, Path
from leatstream_terraform.command import is_destroy
from leatstream_terraform.diagnostics import Diagnostic, Failed, from_problem
from leatstream_terraform.foresee import Foreseen
from leatstream_terraform.leaving import Entry, Leaving
from leatstream_terraform.names import import_id
from leatstream_terraform.rest import Cancelled, Client, ProblemError, ServiceDown, check_token, check_url
from leatstream_terraform.schema import ProviderSchema, Resource


@dataclass
class Session:
    """State of a provider process.

    Attributes:
        schema: what the provider offers.
        client: the service; None before it is configured, or while its address is not known yet.
        foreseen: what this process has planned.
        leaving: what this process deletes, or plans to delete.
        claims: which resource types manage what can be managed by two.
        replaced: labels of objects that the plan replaces.
        destroying: the command destroys everything, so that no configuration is validated.
        assume_refused: the service does not take ``assume`` in ``statements:validate``.
        meanings: SQL text and context to the hash of its canonical form.
    """

    schema: ProviderSchema
    client: Client | None = None
    foreseen: Foreseen = field(default_factory=Foreseen)
    leaving: Leaving = field(default_factory=Leaving)
    claims: Claims = field(default_factory=Claims)
    replaced: set[str] = field(default_factory=set)
    destroying: bool = field(default_factory=is_destroy)
    stop: threading.Event = field(default_factory=threading.Event)
    assume_refused: bool = False
    meanings: dict[str, str | None] = field(default_factory=dict)

    def service(self) -> Client:
        """The service.

        Raises:
            Failed: its address depends on something that is not known yet.
        """
        if self.client is None:
            raise Failed(
                Diagnostic(
                    "The provider is not configured yet",
                    "The provider's url or token depends on values that are only known after apply. Apply "
                    "what they depend on first, for example with -target.",
                )
            )
        return self.client

    def configure(self, config: Mapping[str, Any]) -> list[Diagnostic]:
        """Take the provider block; unset arguments come from LEATSTREAM_URL and LEATSTREAM_TOKEN."""
        url, token = config.get("url"), config.get("token")
        if url is UNKNOWN or token is UNKNOWN:
            return []
        url = url or os.environ.get("LEATSTREAM_URL")
        # What a file ends with, or a variable that was read of one, is no part of the token.
        token = (token or os.environ.get("LEATSTREAM_TOKEN") or "").strip() or None
        if not url:
            return [
                Diagnostic(
                    "Where is the leatstream service?",
                    "Set url in the provider block, or the environment variable LEATSTREAM_URL. "
                    "`leat dev` prints the address of the service it starts.",
                    ("url",),
                )
            ]
        wrong = check_url(url)
        if wrong:
            return [Diagnostic("Invalid url", f"{wrong}.", ("url",))]
        wrong = check_token(token or "")
        if wrong:
            return [Diagnostic("Invalid token", f"{wrong}.", ("token",))]
        client = Client(url, token, self.stop)
        found = _greet(client)
        if not found:
            self.client = client
        return found


def _greet(client: Client) -> list[Diagnostic]:
    """Ask the service who it is, so that a wrong address or token gives one error, not one per resource."""
    try:
        client.get("/v1/server")
    except ServiceDown as problem:
        return [Diagnostic("The leatstream service does not answer", str(problem), ("url",))]
    except ProblemError as problem:
        if problem.status in (401, 403):
            hint = "Set token in the provider block, or LEATSTREAM_TOKEN, to a token of this service."
            detail = problem.problem.get("detail") or problem.problem.get("title") or "not authorized"
            return [Diagnostic("The leatstream service refused the token", f"{detail}\n\n{hint}", ("token",))]
        return from_problem(problem.problem, {}, "The leatstream service cannot be used")
    except Cancelled:
        return [Diagnostic("Stopped", "Terraform asked the provider to stop.")]
    return []


@dataclass
class Private:
    """What the provider keeps with an object besides its state. Never holds a secret.

    Attributes:
        fresh: imported and not read yet.
        timeouts: the configured timeouts, which destroy needs and its empty configuration no longer has.
        replace: paths that the service refused to change in place.
        unsettled: the last update was written, but the wait for its outcome did not end well.
        leaving: of an object whose deletion is planned, what else the plan deletes.
    """

    fresh: bool = False
    timeouts: dict[str, str] = field(default_factory=dict)
    replace: list[Path] = field(default_factory=list)
    unsettled: bool = False
    leaving: list[Entry] = field(default_factory=list)

    @classmethod
    def load(cls, data: bytes) -> Private:
        """Read what ``dump`` wrote; anything else counts as empty."""
        try:
            raw = json.loads(data or b"{}")
        except ValueError:
            return cls()
        if not isinstance(raw, dict):
            return cls()
        return cls(
            bool(raw.get("fresh")),
            dict(raw.get("timeouts") or {}),
            [tuple(path) for path in raw.get("replace") or []],
            bool(raw.get("unsettled")),
            [[str(text) for text in one] for one in raw.get("leaving") or []],
        )

    def dump(self) -> bytes:
        """Bytes for Terraform to keep; empty when there is nothing to keep."""
        raw = {
            "fresh": self.fresh,
            "timeouts": self.timeouts,
            "replace": [list(path) for path in self.replace],
            "unsettled": self.unsettled,
            "leaving": self.leaving,
        }
        kept = {key: value for key, value in raw.items() if value}
        return json.dumps(kept, sort_keys=True).encode() if kept else b""

    def take_timeouts(self, config: Any) -> None:
        """Note the timeouts of a configuration that is known."""
        if config is not None:
            given = config.get("timeouts") if isinstance(config, dict) else None
            known = given if isinstance(given, dict) else {}
            self.timeouts = {k: v for k, v in known.items() if isinstance(v, str)}


def label(resource: Resource, value: Mapping[str, Any]) -> str:
    """An object as a person would name it: ``leatstream_stream demo.public.pageviews``."""
    return f"{resource.name} {import_id(resource.import_id, value)}"
