"""What the server says of itself."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from leatstream.rest.schemas.base import View


class ServerView(View):
    """The server."""

    name: str
    version: str
    api_version: str
    features: list[str] = Field(description="What this version can do; clients may ask for one by name.")
    capabilities: dict[str, dict[str, Any]] = Field(description="What each kind of store can be used for.")


class HealthView(View):
    """The process answers."""

    status: str = Field(examples=["ok"])


class ReadinessView(View):
    """Whether each part can do its work."""

    ready: bool
    parts: dict[str, bool | str]


class ProblemType(View):
    """What a problem code means."""

    code: str
    title: str
    status: int
    sqlstate: str
    domain: str = Field(description="user, external or internal: whose fault it is.")
    retryable: bool = Field(description="Whether the same request may succeed later without a change.")
