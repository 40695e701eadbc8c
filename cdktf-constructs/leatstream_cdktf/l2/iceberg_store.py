"""Iceberg stores: the tables of a REST catalog, or of AWS Glue."""

from __future__ import annotations

from typing import Any, Unpack, cast

from constructs import Construct

from leatstream_cdktf import l1
from leatstream_cdktf._construct import ResourceMeta
from leatstream_cdktf.l2._names import RoleLike, owner_name


class IcebergRestStore(l1.Store):
    """The tables of a catalog that speaks Iceberg's REST protocol.

    ::

        secret = tf.TerraformVariable(self, "catalog_secret", type="string", sensitive=True)
        IcebergRestStore(
            self, "lake", uri="https://catalog.example.com/api/catalog", warehouse="lake",
            client_id="leatstream", client_secret=secret.string_value, scope="PRINCIPAL_ROLE:ALL",
        )

    A secret written as text into the program stands in the synthesized JSON; a variable does not.
    """

    def __init__(
        self,
        scope_: Construct,
        id_: str,
        *,
        uri: str,
        warehouse: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        client_secret_version: int | None = None,
        scope: str | None = None,
        token_uri: str | None = None,
        token: str | None = None,
        token_version: int | None = None,
        ca_certificate: str | None = None,
        s3: l1.StoreIcebergRestS3 | None = None,
        name: str | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare an Iceberg store of a REST catalog.

        Args:
            scope_: the stack or construct that it belongs to.
            id_: its name within the scope.
            uri: address of the catalog, without ``/v1``.
            warehouse: warehouse or catalog to use, where the server has several.
            client_id: OAuth2 client.
            client_secret: its secret; write-only, so it stays out of the state.
            client_secret_version: a changed number sends a new secret alone.
            scope: OAuth2 scope; ``catalog`` if left out.
            token_uri: where tokens are requested; the catalog's own ``/v1/oauth/tokens`` if left out.
            token: a ready token instead of a client; write-only.
            token_version: a changed number sends a new token alone.
            ca_certificate: authority of the catalog to trust, PEM.
            s3: access to the files, where the catalog hands out no credentials.
            name: the store's exact name; ``id_`` when left out.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            **meta: Terraform's own arguments: depends_on, lifecycle, …

        Raises:
            ValueError: one half of the client is missing, or there are two ways to log in.
        """
        if (client_id is None) != (client_secret is None):
            raise ValueError(f"IcebergRestStore {id_!r}: client_id and client_secret go together")
        if token is not None and client_id is not None:
            raise ValueError(f"IcebergRestStore {id_!r}: give a token or a client, not both")
        rest: dict[str, Any] = {
            "uri": uri,
            "warehouse": warehouse,
            "client_id": client_id,
            "client_secret_wo": client_secret,
            "client_secret_wo_version": client_secret_version,
            "scope": scope,
            "token_uri": token_uri,
            "token_wo": token,
            "token_wo_version": token_version,
            "ca_certificate": ca_certificate,
            "s3": s3,
        }
        super().__init__(
            scope_,
            id_,
            name=id_ if name is None else name,
            comment=comment,
            owner=owner_name(owner),
            iceberg_rest=cast(l1.StoreIcebergRest, rest),
            **meta,
        )


class IcebergGlueStore(l1.Store):
    """The Iceberg tables in the Glue Data Catalog of one AWS account and region.

    ::

        role = "arn:aws:iam::123456789012:role/leatstream"
        IcebergGlueStore(
            self, "lake", region="eu-west-1", warehouse_path="s3://acme-lake/warehouse", role_arn=role
        )

    Without ``access_key_id`` the leatstream server's own AWS credentials are used, for ``role_arn`` too. A
    secret written as text into the program stands in the synthesized JSON; a variable does not.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        region: str,
        warehouse_path: str | None = None,
        catalog_id: str | None = None,
        endpoint_url: str | None = None,
        s3_endpoint_url: str | None = None,
        access_key_id: str | None = None,
        secret_access_key: str | None = None,
        secret_access_key_version: int | None = None,
        role_arn: str | None = None,
        external_id: str | None = None,
        name: str | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare an Iceberg store of Glue.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            region: AWS region, such as ``eu-west-1``.
            warehouse_path: where new tables lie, such as ``s3://acme-lake/warehouse``.
            catalog_id: AWS account whose catalog it is; that of the credentials if left out.
            endpoint_url: another address of Glue than the region's own, such as a VPC endpoint.
            s3_endpoint_url: another address of S3 than the region's own.
            access_key_id: access key.
            secret_access_key: its secret; write-only, so it stays out of the state.
            secret_access_key_version: a changed number sends a new secret alone.
            role_arn: role to take on with these credentials.
            external_id: external id that the role asks for.
            name: the store's exact name; ``id_`` when left out.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            **meta: Terraform's own arguments: depends_on, lifecycle, …

        Raises:
            ValueError: one half of the key is missing, or ``external_id`` stands without ``role_arn``.
        """
        if (access_key_id is None) != (secret_access_key is None):
            raise ValueError(f"IcebergGlueStore {id_!r}: access_key_id and secret_access_key go together")
        if external_id is not None and role_arn is None:
            raise ValueError(f"IcebergGlueStore {id_!r}: external_id is given without role_arn")
        glue: dict[str, Any] = {
            "region": region,
            "warehouse_path": warehouse_path,
            "catalog_id": catalog_id,
            "endpoint_url": endpoint_url,
            "s3_endpoint_url": s3_endpoint_url,
            "access_key_id": access_key_id,
            "secret_access_key_wo": secret_access_key,
            "secret_access_key_wo_version": secret_access_key_version,
            "role_arn": role_arn,
            "external_id": external_id,
        }
        super().__init__(
            scope,
            id_,
            name=id_ if name is None else name,
            comment=comment,
            owner=owner_name(owner),
            iceberg_glue=cast(l1.StoreIcebergGlue, glue),
            **meta,
        )
