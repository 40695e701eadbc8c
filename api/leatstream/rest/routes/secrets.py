"""``/v1/secrets``"""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from leatstream.model.names import quote
from leatstream.rest import etag
from leatstream.rest.answers import DELETING, LISTING, READING, WRITING_STORE, problems
from leatstream.rest.deps import (
    Caller,
    Env,
    NamePart,
    NamePath,
    PageSize,
    PageToken,
    Pre,
    PreMatch,
    location,
    only,
)
from leatstream.rest.loads import slow
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.registered import AppliedSecret, SecretBody, SecretList, SecretView
from leatstream.services.nouns import named_secrets as service
from leatstream.services.nouns.ownership import put_owned
from leatstream.services.queries import apply_secret as applying

router = api_router(prefix="/v1", tags=["secrets"])


@router.get("/secrets", responses=LISTING)
def list_secrets(
    env: Env, caller: Caller, page_size: PageSize = 100, page_token: PageToken = None, q: NamePart = None
) -> SecretList:
    """List secrets by name, without their values."""
    page = service.list_secrets(env, caller, page_size, page_token, only(q))
    return SecretList.from_domain(page, env.outside.look)


@router.post(
    "/secrets/{secret}:apply",
    status_code=202,
    responses={200: {"model": AppliedSecret, "description": "Dry run."}, **problems(404, 409, 502)},
)
@slow
def apply_secret(
    env: Env,
    caller: Caller,
    secret: NamePath,
    response: Response,
    dry_run: Annotated[bool, Query(description="Change nothing; only say what would start again.")] = False,
) -> AppliedSecret:
    """Restart what uses a rotated secret: its stores connect again, and running queries start again."""
    found = applying.apply_secret(env, caller, secret, dry_run=dry_run)
    response.status_code = 200 if dry_run else 202
    return AppliedSecret(stores=list(found.stores), queries=list(found.queries), left=found.left)


@router.get("/secrets/{secret:noun}", responses=READING)
def get_secret(env: Env, caller: Caller, secret: NamePath, response: Response) -> SecretView:
    """Show a secret, without its value."""
    found = service.get_secret(env, caller, secret)
    response.headers["ETag"] = etag.write(found.meta.generation)
    return SecretView.from_domain(found, env.outside.look(found.outside))


@router.put("/secrets/{secret:noun}", responses={201: {"model": SecretView}, **WRITING_STORE})
@slow
def put_secret(
    env: Env, caller: Caller, secret: NamePath, body: SecretBody, pre: Pre, response: Response
) -> SecretView:
    """Create or replace a secret. Stores that use it connect with a new value at once."""
    stored = put_owned(
        env,
        caller,
        "secret",
        quote(secret),
        body.owner,
        lambda: service.put_secret(
            env, caller, secret, body.value, body.type, body.properties, body.comment, pre, body.reference
        ),
    )
    response.status_code = 201 if stored.created else 200
    response.headers["ETag"] = etag.write(stored.item.meta.generation)
    if stored.created:
        response.headers["Location"] = location("secrets", secret)
    return SecretView.from_domain(stored.item, env.outside.look(stored.item.outside))


@router.delete("/secrets/{secret:noun}", status_code=204, responses=DELETING)
def delete_secret(env: Env, caller: Caller, secret: NamePath, pre: PreMatch) -> None:
    """Delete a secret that no store and no schema registry uses."""
    service.delete_secret(env, caller, secret, pre)
