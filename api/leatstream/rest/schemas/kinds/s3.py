"""Buckets of S3, and of servers that speak its protocol."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from leatstream.rest.schemas.kinds.aws import AwsBody, AwsView


class _S3(BaseModel):
    bucket: Annotated[
        str, Field(min_length=3, max_length=63, pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")
    ] = Field(description="Name of the bucket.", examples=["acme-events"])
    prefix: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=512,
                pattern=r"^[A-Za-z0-9!_.*'()=@+,:&$;-]+(/[A-Za-z0-9!_.*'()=@+,:&$;-]+)*$",
            ),
        ]
        | None
    ) = Field(None, description="What all keys begin with, without slashes around it.", examples=["team/raw"])


class S3Body(AwsBody, _S3):
    """A bucket of S3 or a server that speaks its protocol, or what lies below a prefix."""


class S3View(AwsView, _S3):
    """Settings of an S3 store, without secrets."""
