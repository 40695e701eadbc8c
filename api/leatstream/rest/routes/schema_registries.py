"""``/v1/schema-registries``"""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response

from leatstream.model.names import quote
from leatstream.rest import etag
from leatstream.rest.answers import DELETING, LISTING, READING, READING_STORE, WRITING_STORE, problems
from leatstream.rest.deps import (
    Caller,
    Env,
    NamePart,
    NamePath,
    PageSize,
    PageToken,
    Pre,
    PreMatch,
    SubjectPath,
    location,
    only,
)
from leatstream.rest.loads import slow
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.registered import (
    RegistryStatusView,
    SchemaRegistryBody,
    SchemaRegistryList,
    SchemaRegistryView,
)
from leatstream.rest.schemas.subjects import RegisteredSchemaView, SubjectList, SubjectVersionList
from leatstream.services.nouns import registry_subjects as subjects
from leatstream.services.nouns import schema_registries as service
from leatstream.services.nouns.ownership import put_owned

router = api_router(prefix="/v1", tags=["schema-registries"])

VersionPath = Annotated[
    str,
    Path(
        min_length=1,
        max_length=9,
        pattern=r"^(latest|[1-9][0-9]{0,8})$",
        description="Number of the version, or `latest`.",
    ),
]


@router.get("/schema-registries", responses=LISTING)
def list_schema_registries(
    env: Env, caller: Caller, page_size: PageSize = 100, page_token: PageToken = None, q: NamePart = None
) -> SchemaRegistryList:
    """List schema registries by name, without their passwords."""
    return SchemaRegistryList.from_domain(
        service.list_registries(env, caller, page_size, page_token, only(q))
    )


@router.post("/schema-registries/{registry}:test", responses=problems(404, 409))
@slow
def test_schema_registry(env: Env, caller: Caller, registry: NamePath) -> RegistryStatusView:
    """Ask the schema registry now, with its credentials."""
    return RegistryStatusView.from_domain(service.test_registry(env, caller, registry))


@router.get("/schema-registries/{registry:noun}", responses=READING)
def get_schema_registry(
    env: Env, caller: Caller, registry: NamePath, response: Response
) -> SchemaRegistryView:
    """Show a schema registry, without its password."""
    found = service.get_registry(env, caller, registry)
    response.headers["ETag"] = etag.write(found.meta.generation)
    return SchemaRegistryView.from_domain(found)


@router.put(
    "/schema-registries/{registry:noun}", responses={201: {"model": SchemaRegistryView}, **WRITING_STORE}
)
@slow
def put_schema_registry(
    env: Env, caller: Caller, registry: NamePath, body: SchemaRegistryBody, pre: Pre, response: Response
) -> SchemaRegistryView:
    """Create or replace a schema registry."""
    stored = put_owned(
        env,
        caller,
        "schema_registry",
        quote(registry),
        body.owner,
        lambda: service.put_registry(
            env,
            caller,
            registry,
            body.type,
            body.uris,
            body.username,
            body.secrets(),
            body.comment,
            pre,
            body.ca_certificate,
        ),
    )
    response.status_code = 201 if stored.created else 200
    response.headers["ETag"] = etag.write(stored.item.meta.generation)
    if stored.created:
        response.headers["Location"] = location("schema-registries", registry)
    return SchemaRegistryView.from_domain(stored.item)


@router.delete("/schema-registries/{registry:noun}", status_code=204, responses=DELETING)
def delete_schema_registry(env: Env, caller: Caller, registry: NamePath, pre: PreMatch) -> None:
    """Delete a schema registry that no store names."""
    service.delete_registry(env, caller, registry, pre)


@router.get("/schema-registries/{registry}/subjects", responses=READING_STORE)
@slow
def list_subjects(
    env: Env,
    caller: Caller,
    registry: NamePath,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    q: NamePart = None,
) -> SubjectList:
    """List the subjects of a schema registry by name, read live."""
    return SubjectList.from_domain(
        subjects.list_subjects(env, caller, registry, page_size, page_token, only(q))
    )


@router.get("/schema-registries/{registry}/subjects/{subject}/versions", responses=READING_STORE)
@slow
def list_subject_versions(
    env: Env,
    caller: Caller,
    registry: NamePath,
    subject: SubjectPath,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> SubjectVersionList:
    """List the versions of a subject, the oldest first, read live."""
    found = subjects.list_versions(env, caller, registry, subject, page_size, page_token)
    return SubjectVersionList.from_domain(found)


@router.get("/schema-registries/{registry}/subjects/{subject}/versions/{version}", responses=READING_STORE)
@slow
def get_subject_version(
    env: Env, caller: Caller, registry: NamePath, subject: SubjectPath, version: VersionPath
) -> RegisteredSchemaView:
    """Show a version of a subject with its schema, read live."""
    return RegisteredSchemaView.from_domain(subjects.get_version(env, caller, registry, subject, version))
