"""``/v1/events``"""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Any

from anyio import to_thread
from fastapi import Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator

from leatstream.model.changes import ChangeKind
from leatstream.model.names import quote, split
from leatstream.rest import streams
from leatstream.rest.accepted import authenticate_again
from leatstream.rest.answers import problems
from leatstream.rest.deps import PART, Caller, Env
from leatstream.rest.event_stream import follow_changes
from leatstream.rest.loads import hold
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.events import ChangeView
from leatstream.services.nouns.changes import BATCH, Wanted, open_feed

_PATTERN = rf"^{PART}(\.{PART}){{0,2}}$"


def _read_name(text: str | None) -> str | None:
    if text is None:
        return None
    if re.match(_PATTERN, text) is None:
        raise ValueError('write a full name such as demo.public.users, other than plain parts as "Name"')
    return ".".join(map(quote, split(text)))


router = api_router(prefix="/v1", tags=["catalog"])

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ChangeView,
        "description": "Changes as they come, as server-sent events `change`, or one JSON object a line for "
        "`Accept: application/x-ndjson`. An event `reset`, or a line with the member `reset`, says that "
        "changes may be missing: read the lists again. A line with `position` alone is one for `after`.",
    },
    **problems(),
}


@router.get("/events", response_class=StreamingResponse, responses=_EVENTS)
async def follow_events(
    request: Request,
    env: Env,
    caller: Caller,
    after: Annotated[
        str | None,
        Query(
            pattern=r"^evt_[0-9a-f]{28}$",
            description="Begin behind the change with this id. The header `Last-Event-ID` says the same and "
            "has precedence: browsers send it with the address that they began with.",
        ),
    ] = None,
    tail: Annotated[
        int, Query(ge=0, le=BATCH, description="Without a position: how many of the last changes come first.")
    ] = 0,
    follow: Annotated[
        bool, Query(description="False: end when there is nothing new, instead of waiting for it.")
    ] = True,
    kind: Annotated[ChangeKind | None, Query(description="Only changes of this kind of object.")] = None,
    name: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=800,
            description="Only changes of this object, or of what is in this database or schema.",
            json_schema_extra={"pattern": _PATTERN},
        ),
        AfterValidator(_read_name),
    ] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", max_length=100)] = None,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """Stream changes of the objects that the caller sees, and of the states of queries and stores.

    It resumes behind a position without a gap. The client connects again when it ends.
    """
    threads = await hold(lambda loads: loads.streams)
    begin = partial(open_feed, env, caller, last_event_id or after, tail, Wanted(kind, name))
    feed = await to_thread.run_sync(begin, limiter=threads)
    media_type = streams.NDJSON if accept and streams.NDJSON in accept else streams.EVENTS
    again = authenticate_again(request)
    chunks = follow_changes(feed, env.changed, again, media_type, follow=follow)
    return StreamingResponse(chunks, media_type=media_type, headers={"X-Accel-Buffering": "no"})
