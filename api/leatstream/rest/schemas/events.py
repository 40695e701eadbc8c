"""The feed of changes."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from leatstream.model.changes import Change, ChangeKind, ChangeType
from leatstream.rest.schemas.base import View
from leatstream.services.nouns.changes import shown_name


class ChangeView(View):
    """A change of an object, or of the state of a query, store or savepoint."""

    id: str = Field(
        description="Position of the change, for `after`; opaque.",
        examples=["evt_019a7c0f2b1a1b2c3d4e5f607182"],
    )
    type: ChangeType = Field(description="`state` is a change of the observed state, not of the definition.")
    at: datetime = Field(description="When it happened.")
    kind: ChangeKind = Field(description="Kind of the object.")
    name: str = Field(description="Full name of the object as SQL writes it.", examples=["demo.public.users"])
    generation: int = Field(
        description="Of the object after the change; of a deleted one, the last; of a token 1."
    )
    state: str | None = Field(None, description="State of a query, store or savepoint after the change.")
    message: str | None = Field(None, description="Why it is in this state, or what is wrong.")
    error: str | None = Field(None, description="Code of the failure, such as `source-gone`.")

    @classmethod
    def from_domain(cls, item: Change) -> ChangeView:
        """The answer for a change."""
        known = {name: getattr(item, name) for name in cls.model_fields if name != "name"}
        return cls(name=shown_name(item), **known)
