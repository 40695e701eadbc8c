"""Stores: exactly one typed object per kind; secrets go in and never come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from leatstream.connectors.registry import PLANNED, connector_classes, with_secrets
from leatstream.connectors.settings import secret_owners
from leatstream.errors import RequestError
from leatstream.model.objects import Store, StoreState
from leatstream.model.registered import SecretName
from leatstream.rest.schemas.base import (
    OMIT,
    Comment,
    Name,
    ObjectView,
    OwnedBody,
    View,
    meta_fields,
    terraform,
)
from leatstream.rest.schemas.kinds import settings_view, store_body, store_view, with_kinds
from leatstream.services.environment import Page
from leatstream.services.nouns.secret_values import SecretValue

_KINDS = tuple(connector_classes())


@with_kinds(store_body)
class StoreKinds(BaseModel):
    """A typed object per kind; a store has exactly one of them."""


class StoreBody(StoreKinds, OwnedBody):
    """A store: connectivity and access to a system of yours."""

    model_config = ConfigDict(
        json_schema_extra=terraform(
            resource="leatstream_store",
            path="/v1/stores/{name}",
            key=["name"],
            path_attributes={"name": "Name of the store, exact."},
            assume="stores",
            exactly_one_of=[list(_KINDS)],
            warn={"attribute": "status", "states": ["errored"], "dry_run": "dry_run=true"},
            attributes={"status": {"volatile": True}},
            **{"import": "{name}"},
        )
        | {
            "oneOf": [{"required": [kind]} for kind in _KINDS],
            "examples": [{kind: dict(found.Config.example)} for kind, found in connector_classes().items()],
        }
    )

    comment: Comment = None
    schema_registry: Name | None = Field(
        None, description="Name of the schema registry that describes its records."
    )

    @model_validator(mode="before")
    @classmethod
    def _exactly_one_kind(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        for kind in PLANNED:
            if kind in data:
                raise RequestError(
                    "unsupported",
                    f"Stores of kind {kind} are not built yet.",
                    pointer=f"#/{kind}",
                    hint=f"Use {' or '.join(_KINDS)}.",
                )
        if sum(data.get(kind) is not None for kind in _KINDS) != 1:
            raise ValueError(f"a store has exactly one object that sets its kind: {' or '.join(_KINDS)}")
        return data

    @property
    def kind(self) -> str:
        """Kind of the store: the name of its one typed object."""
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    def settings(self, secret_fields: Sequence[str]) -> tuple[dict[str, Any], dict[str, SecretValue]]:
        """Settings without secrets, and the secrets by dotted path (None = keep the stored one).

        Args:
            secret_fields: dotted paths of the kind's secret fields.

        Raises:
            RequestError: validation, a secret is given by value and by name.
        """
        config = getattr(self, self.kind).model_dump(exclude_none=True)
        owners = secret_owners(connector_classes()[self.kind].Config)
        secrets: dict[str, SecretValue] = {}
        for path in secret_fields:
            *parents, leaf = path.split(".")
            place: Any = config
            for parent in parents:
                place = place.get(parent) if isinstance(place, dict) else None
            if not isinstance(place, dict):
                continue
            named, value = place.pop(f"{leaf}_secret", None), place.pop(leaf, None)
            if named is not None and value is not None:
                pointer = f"#/{self.kind}/{path.replace('.', '/')}_secret"
                raise RequestError("validation", f"Give {leaf} or {leaf}_secret, not both.", pointer=pointer)
            if owners[path] is None or value or named or owners[path] in place:
                secrets[path] = SecretName(named) if named is not None else value
        return config, secrets


class StoreError(View):
    """Why a store did not answer."""

    code: str = Field(description="Stable code, such as store-unreachable.")
    detail: str = Field(description="What happened.")


class StoreStatus(View):
    """Whether the store answered when it was last asked."""

    state: StoreState = Field(description="pending, ready or errored.")
    message: str | None = Field(None, description="What is wrong.")
    server: dict[str, str] = Field(
        default_factory=dict,
        description="What the server reports about itself, such as its version.",
        json_schema_extra=OMIT,
    )
    checked_at: datetime | None = Field(None, description="When it was last asked.", json_schema_extra=OMIT)
    error: StoreError | None = Field(None, description="What is wrong.", json_schema_extra=OMIT)


@with_kinds(store_view)
class _KindView(ObjectView):
    name: str = Field(description="Name of the store, exact.")
    kind: str = Field(description="Kind of the store, such as kafka.")
    comment: Comment = None
    schema_registry: str | None = Field(
        None, description="Name of the schema registry that describes its records."
    )


class StoreView(_KindView):
    """A store."""

    status: StoreStatus = Field(description="Whether the store answered when it was last asked.")

    @classmethod
    def from_domain(cls, item: Store) -> StoreView:
        """The answer for a store."""
        error = StoreError(code=item.error_code, detail=item.message or "") if item.error_code else None
        status = StoreStatus(
            state=item.state,
            message=item.message,
            server=dict(item.server),
            checked_at=item.checked_at,
            error=error,
        )
        names = {f"{path}_secret": name for path, name in item.secret_names.items()}
        config = with_secrets(item.config, names)
        view = settings_view(connector_classes()[item.kind].Config)
        shown: dict[str, Any] = {item.kind: view.model_validate(config)}
        return cls(
            **meta_fields(item.meta),
            name=item.name,
            kind=item.kind,
            comment=item.comment,
            schema_registry=item.schema_registry,
            status=status,
            **shown,
        )


class StoreList(View):
    """One page of stores."""

    items: list[StoreView]
    next_page_token: str | None = None

    @classmethod
    def from_domain(cls, page: Page[Store]) -> StoreList:
        """The answer for a page."""
        items = [StoreView.from_domain(item) for item in page.items]
        return cls(items=items, next_page_token=page.next_page_token)
