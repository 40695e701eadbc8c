"""The store of kind ``databricks``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, cast

from constructs import Construct

from leatstream_cdktf import l1
from leatstream_cdktf._construct import ResourceMeta
from leatstream_cdktf.l2._names import RoleLike, owner_name

_FILES = ("bucket", "prefix", "region", "access_key_id", "secret_access_key", "secret_access_key_version")
_MORE = ("role_arn", "external_id", "endpoint_url")
_RENAMED = {
    "secret_access_key": "secret_access_key_wo",
    "secret_access_key_version": "secret_access_key_wo_version",
}


class DatabricksStore(l1.Store):
    """A catalog of a Databricks workspace. Experimental: see docs/databricks.md.

    ::

        token = tf.TerraformVariable(self, "databricks_token", type="string", sensitive=True)
        DatabricksStore(
            self, "lakehouse", host="dbc-1.cloud.databricks.com", warehouse_id="0123456789abcdef",
            token=token.string_value, volume="/Volumes/main/default/staging",
        )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        host: str,
        warehouse_id: str,
        volume: str | None = None,
        s3: Mapping[str, Any] | None = None,
        catalog: str | None = None,
        token: str | None = None,
        token_version: int | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
        client_secret_version: int | None = None,
        name: str | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare a Databricks store.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            host: address of the workspace.
            warehouse_id: SQL warehouse that creates tables, and writes managed ones.
            volume: folder of a volume, where rows wait for the warehouse; without s3 new tables are managed.
            s3: bucket of new tables, which are external then: bucket, region, prefix, access_key_id,
                secret_access_key, role_arn, …
            catalog: the catalog; ``main`` when left out.
            token: access token; write-only, so it stays out of the state.
            token_version: a changed number sends a new token alone.
            client_id: application id of a service principal, in place of a token.
            client_secret: its secret; write-only.
            client_secret_version: a changed number sends a new secret alone.
            name: the store's exact name; ``id_`` when left out.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            **meta: Terraform's own arguments: depends_on, lifecycle, …

        Raises:
            ValueError: no login or two of them, or an unknown key of ``s3``.
        """
        if (token is None) == (client_id is None) or (client_id is None) != (client_secret is None):
            raise ValueError(f"DatabricksStore {id_!r}: give token, or client_id and client_secret")
        strangers = [key for key in s3 or {} if key not in (*_FILES, *_MORE)]
        if strangers:
            raise ValueError(f"DatabricksStore {id_!r}: s3 has unknown keys: {', '.join(strangers)}")
        databricks: dict[str, Any] = {
            "host": host,
            "warehouse_id": warehouse_id,
            "catalog": catalog,
            "token_wo": token,
            "token_wo_version": token_version,
            "client_id": client_id,
            "client_secret_wo": client_secret,
            "client_secret_wo_version": client_secret_version,
            "volume": volume,
            "s3": None if s3 is None else {_RENAMED.get(key, key): value for key, value in s3.items()},
        }
        super().__init__(
            scope,
            id_,
            name=id_ if name is None else name,
            comment=comment,
            owner=owner_name(owner),
            databricks=cast(l1.StoreDatabricks, databricks),
            **meta,
        )
