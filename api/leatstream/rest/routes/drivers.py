"""``/v1/drivers``: how drivers pull work. Internal: not part of the published contract."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Path, Request
from pydantic import BaseModel

from leatstream.rest.deps import ID_PATTERN, DriverToken, Env
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.driver_reports import Analysis, Beat, Poll, Rows, SecretsWanted, SourcesWanted
from leatstream.services import driver_calls as service
from leatstream.services.environment import Environment
from leatstream.services.selects import interactive

router = api_router(prefix="/v1/drivers/{driver}", include_in_schema=False)

DriverPath = Annotated[str, Path(min_length=1, max_length=100, pattern=ID_PATTERN)]
T = TypeVar("T")
_LONG_POLL = 20.0
_LOOK_AGAIN = 2.0
_ROOM, _ROOM_LOOK = 5.0, 0.05


@dataclass(frozen=True, slots=True)
class _Driver:
    """The driver that calls, and the threads that only drivers' calls take."""

    env: Environment
    name: str
    token: str
    threads: CapacityLimiter

    async def ask(self, call: Callable[..., T], *values: Any) -> T:
        """What a service answers the driver."""

        def checked() -> T:
            service.authenticate_driver(self.env, self.name, self.token)
            return call(self.env, self.name, *values)

        return await to_thread.run_sync(checked, limiter=self.threads)


async def _driver(request: Request, env: Env, token: DriverToken, driver: DriverPath) -> _Driver:
    return _Driver(env, driver, token, request.app.state.driver_threads)


Calling = Annotated[_Driver, Depends(_driver)]


@router.post("/poll")
async def poll(driver: Calling, body: Poll) -> dict[str, Any]:
    """Ask for work; an idle driver waits here for up to 20 s, holding neither thread nor transaction."""
    report = _told(body)
    deadline = time.monotonic() + _LONG_POLL
    while True:
        seen = driver.env.changed.value
        work = await driver.ask(service.poll, report)
        left = deadline - time.monotonic()
        if work is not None or body.state != "idle" or left <= 0:
            return {"work": work}
        await driver.env.changed.wait_async(seen, min(left, _LOOK_AGAIN))


@router.post("/heartbeat")
async def heartbeat(driver: Calling, body: Beat) -> dict[str, Any]:
    """Report on a query and hear what is wanted."""
    return await driver.ask(service.heartbeat, _told(body))


@router.post("/analysis/{request_id}", status_code=204)
async def complete_analysis(driver: Calling, request_id: str, body: Analysis) -> None:
    """Deliver the analyzer's answer."""
    await driver.ask(service.analysis_result, request_id, _told(body))


@router.post("/rows")
async def take_rows(driver: Calling, body: Rows) -> dict[str, Any]:
    """Take rows of a SELECT; while its reader is slower than its driver, the driver waits here."""
    deadline, asked = time.monotonic() + _ROOM, _told(body)
    while True:
        answer = await driver.ask(interactive.take_rows, asked)
        if answer is not None:
            return {"accepted": True, **answer}
        if time.monotonic() >= deadline:
            return {"accepted": False, "directive": "continue"}
        await asyncio.sleep(_ROOM_LOOK)


@router.post("/secrets")
async def resolve_secrets(driver: Calling, body: SecretsWanted) -> dict[str, dict[str, str]]:
    """Resolve the secret references of the driver's own query."""
    return {"values": await driver.ask(service.resolve_secrets, body.references, body.query_id)}


@router.post("/function-sources")
async def function_sources(driver: Calling, body: SourcesWanted) -> dict[str, dict[str, str]]:
    """The source texts of the functions that the driver's own query calls."""
    return {"sources": await driver.ask(service.function_sources, body.digests, body.query_id)}


def _told(body: BaseModel) -> dict[str, Any]:
    """What the driver has sent, and nothing else."""
    return body.model_dump(exclude_unset=True)
