"""Databases of PostgreSQL servers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from leatstream.rest.schemas.base import TEXT, Name


class _Postgres(BaseModel):
    host: Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9._:\[\]-]+$")] = Field(
        description="Host name or address of the server.", examples=["db.example.com"]
    )
    port: Annotated[StrictInt, Field(ge=1, le=65535)] | None = Field(None, description="Port; default 5432.")
    database: Annotated[str, Field(min_length=1, max_length=63, pattern=TEXT)] = Field(
        description="Name of the database."
    )
    username: Annotated[str, Field(min_length=1, max_length=63, pattern=TEXT)] = Field(
        description="User name."
    )
    ssl_mode: Literal["disable", "prefer", "require", "verify_ca", "verify_full"] | None = Field(
        None, description="How to encrypt, and what to check of the server's certificate; default `prefer`."
    )
    ca_certificate: Annotated[str, Field(min_length=1, max_length=100_000)] | None = Field(
        None, description="Certificate authority to trust, PEM; default the machine's own."
    )
    application_name: Annotated[str, Field(min_length=1, max_length=63, pattern=TEXT)] | None = Field(
        None, description="What the server shows of our connections; default `leatstream`."
    )


class PostgresBody(_Postgres):
    """A database of a PostgreSQL server."""

    model_config = ConfigDict(extra="forbid")

    password: Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00]+$")] | None = Field(
        None,
        description="Password; left out = the stored one stays.",
        json_schema_extra={"writeOnly": True},
    )
    password_secret: Name | None = Field(None, description="Name of the secret that holds the password.")


class PostgresView(_Postgres):
    """Settings of a PostgreSQL store, without secrets."""

    password_secret: str | None = Field(None, description="Name of the secret that holds the password.")
