"""``/v1/drivers``: how drivers pull work. Internal: not part of the published contract."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Body, Path
from starlette.concurrency import run_in_threadpool

from leatstream.rest.deps import DriverToken, Env
from leatstream.services.environment import Environment
from leatstream.services.queries import drivers as service
from leatstream.services.selects import interactive

router = APIRouter(prefix="/v1/drivers/{driver}", include_in_schema=False)

DriverPath = Annotated[str, Path(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_-]+$")]
Report = Annotated[dict[str, Any], Body()]
T = TypeVar("T")
_LONG_POLL = 20.0
_LOOK_AGAIN = 2.0
_ROOM, _ROOM_LOOK = 5.0, 0.05


async def _as_driver(env: Environment, driver: str, token: str, call: Callable[..., T], *values: Any) -> T:
    def checked() -> T:
        service.authenticate_driver(env, driver, token)
        return call(env, driver, *values)

    return await run_in_threadpool(checked)


@router.post("/poll")
async def poll(env: Env, token: DriverToken, driver: DriverPath, report: Report) -> dict[str, Any]:
    """Ask for work; an idle driver waits here for up to 20 s, holding neither thread nor transaction."""
    deadline = time.monotonic() + _LONG_POLL
    while True:
        seen = env.changed.value
        work = await _as_driver(env, driver, token, service.poll, report)
        left = deadline - time.monotonic()
        if work is not None or report.get("state") != "idle" or left <= 0:
            return {"work": work}
        await env.changed.wait_async(seen, min(left, _LOOK_AGAIN))


@router.post("/heartbeat")
async def heartbeat(env: Env, token: DriverToken, driver: DriverPath, report: Report) -> dict[str, str]:
    """Report on a query and hear what is wanted."""
    return await _as_driver(env, driver, token, service.heartbeat, report)


@router.post("/analysis/{request_id}", status_code=204)
async def complete_analysis(
    env: Env, token: DriverToken, driver: DriverPath, request_id: str, body: Report
) -> None:
    """Deliver the analyzer's answer."""
    await _as_driver(env, driver, token, service.analysis_result, request_id, body)


@router.post("/rows")
async def take_rows(env: Env, token: DriverToken, driver: DriverPath, body: Report) -> dict[str, Any]:
    """Take rows of a SELECT; while its reader is slower than its driver, the driver waits here."""
    deadline = time.monotonic() + _ROOM
    while True:
        answer = await _as_driver(env, driver, token, interactive.take_rows, body)
        if answer is not None:
            return {"accepted": True, **answer}
        if time.monotonic() >= deadline:
            return {"accepted": False, "directive": "continue"}
        await asyncio.sleep(_ROOM_LOOK)


@router.post("/secrets")
async def resolve_secrets(
    env: Env, token: DriverToken, driver: DriverPath, body: Report
) -> dict[str, dict[str, str]]:
    """Resolve the secret references of the driver's own query."""
    asked = _texts(body, "references"), _query(body)
    return {"values": await _as_driver(env, driver, token, service.resolve_secrets, *asked)}


@router.post("/function-sources")
async def function_sources(
    env: Env, token: DriverToken, driver: DriverPath, body: Report
) -> dict[str, dict[str, str]]:
    """The source texts of the functions that the driver's own query calls."""
    asked = _texts(body, "digests"), _query(body)
    return {"sources": await _as_driver(env, driver, token, service.function_sources, *asked)}


def _texts(body: dict[str, Any], name: str) -> list[str]:
    return [str(text) for text in body.get(name) or ()]


def _query(body: dict[str, Any]) -> str | None:
    """For which of its queries a shared driver asks."""
    return str(body["query_id"]) if body.get("query_id") else None
