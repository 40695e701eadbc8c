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


class GuaranteeView(View):
    """A delivery guarantee."""

    name: str = Field(examples=["at_least_once"])
    condition: str = Field(description="When it holds.")


class CapabilitiesView(View):
    """What one kind of store can be used for."""

    kind: str
    built: bool = Field(description="Whether this version can use the kind at all.")
    source: bool = Field(description="Queries can read it.")
    sink: bool = Field(description="Queries can write it.")
    create_as: bool = Field(description="`CREATE … AS SELECT` makes a new entity in it.")
    cdc: bool = Field(description="Changes of its tables can be read as they are made.")
    view: bool = Field(description="It can hold materialized views.")
    view_swap: bool = Field(description="A blue-green replacement can change what such a view shows.")
    create_entity: bool = Field(description="Entities can be created and deleted.")
    print_records: bool = Field(description="PRINT shows records.")
    insert_values: bool = Field(description="`INSERT … VALUES` writes records.")
    realtime: bool = Field(description="Queries over it can run in real-time mode.")
    headers: bool = Field(description="Its records have headers that queries can read.")
    lookup: bool = Field(description="Rows of its tables can be joined with a stream's.")
    batches: bool = Field(description="Changelog operators can write it.")
    positions: bool = Field(description="Queries that read it can restart from offsets.")
    bounded_runs: bool = Field(description="Queries can read what is there and complete.")
    batch_bounds: bool = Field(description="The size of micro-batches adapts to how long they take.")
    hand_over: bool = Field(description="A blue-green replacement can continue what a query wrote to it.")
    error_log: bool = Field(description="Records that could not be read can be logged in it.")
    delivery: list[GuaranteeView] = Field(description="What its sinks promise.")
    verified_on: str = Field(description="The server that the tests run against, or its stand-in.")
    unverified: str = Field(
        description="What has never been run against the real store; then the kind is experimental there."
    )
    properties: list[str] = Field(description="Properties that a new sink needs, inferred or given.")


class CapabilityMatrix(View):
    """A row for each kind of store."""

    items: list[CapabilitiesView]


class HealthView(View):
    """The process answers."""

    status: str = Field(examples=["ok"])


class ReadinessView(View):
    """Whether each part can do its work."""

    ready: bool
    parts: dict[str, bool | str]
    warm: bool = Field(
        description="A driver waits for a query, or none is kept. Else the next query takes a driver's start "
        "longer, or waits for one; the server is ready all the same."
    )


class ProblemType(View):
    """What a problem code means."""

    code: str
    title: str
    status: int
    sqlstate: str
    domain: str = Field(description="user, external or internal: whose fault it is.")
    retryable: bool = Field(description="Whether the same request may succeed later without a change.")
