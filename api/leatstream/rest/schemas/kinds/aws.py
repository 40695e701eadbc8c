"""What all stores at AWS have: an identity, credentials and an address."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from leatstream.rest.schemas.base import Name

_ROLE = r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$"


class AwsIdentity(BaseModel):
    """Who we are at AWS, and in which region."""

    region: Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]{1,2}$")] = (
        Field(description="AWS region.", examples=["eu-west-1"])
    )
    access_key_id: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_]+$")] | None = (
        Field(None, description="Access key; without one the server's own AWS credentials are used.")
    )
    role_arn: Annotated[str, Field(max_length=2048, pattern=_ROLE)] | None = Field(
        None, description="Role to take on with these credentials."
    )
    external_id: (
        Annotated[str, Field(min_length=2, max_length=1224, pattern=r"^[A-Za-z0-9_+=,.@:/-]+$")] | None
    ) = Field(None, description="External id that the role asks for.")


class _Aws(AwsIdentity):
    endpoint_url: Annotated[str, Field(max_length=300, pattern=r"^https?://[^/ ]+/?$")] | None = Field(
        None, description="Another address than the region's own, such as a VPC endpoint."
    )


class AwsSecret(BaseModel):
    """The secret half of the credentials, as it is given."""

    model_config = ConfigDict(extra="forbid")

    secret_access_key: Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[!-~]+$")] | None = (
        Field(
            None,
            description="Secret of the access key; left out = the stored one stays.",
            json_schema_extra={"writeOnly": True},
        )
    )
    secret_access_key_secret: Name | None = Field(
        None, description="Name of the secret that holds the secret of the access key."
    )


class AwsSecretView(BaseModel):
    """Where the secret half is from; never the secret."""

    secret_access_key_secret: str | None = Field(
        None, description="Name of the secret that holds the secret of the access key."
    )


class AwsBody(AwsSecret, _Aws):
    """What is given of a store at AWS."""


class AwsView(AwsSecretView, _Aws):
    """What is shown of a store at AWS."""
