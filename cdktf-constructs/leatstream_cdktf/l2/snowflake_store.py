"""The store of kind ``snowflake``."""

from __future__ import annotations

from typing import Any, Unpack, cast

from constructs import Construct

from leatstream_cdktf import l1
from leatstream_cdktf._construct import ResourceMeta
from leatstream_cdktf.l2._names import RoleLike, owner_name


class SnowflakeStore(l1.Store):
    """A Snowflake account, as one user with one role and one warehouse.

    ::

        key = tf.TerraformVariable(self, "snowflake_key", type="string", sensitive=True)
        SnowflakeStore(
            self, "lake", account="acme-analytics", username="LEATSTREAM", role="LOADER",
            warehouse="LOADING", database="shop", private_key=key.string_value,
        )

    A secret written as text into the program stands in the synthesized JSON; a variable does not.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        account: str,
        username: str,
        warehouse: str,
        role: str | None = None,
        database: str | None = None,
        host: str | None = None,
        private_key: str | None = None,
        private_key_version: int | None = None,
        private_key_passphrase: str | None = None,
        private_key_passphrase_version: int | None = None,
        password: str | None = None,
        password_version: int | None = None,
        name: str | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare a Snowflake store.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            account: account identifier, such as ``organization-account``.
            username: user name.
            warehouse: warehouse that statements run on.
            role: role to use; the user's own when left out.
            database: database of tables that are named without one.
            host: another host than the account's own, such as that of a private link.
            private_key: RSA, PEM; write-only, so it stays out of the state.
            private_key_version: a changed number sends a new private key alone.
            private_key_passphrase: of an encrypted private key.
            private_key_passphrase_version: a changed number sends a new passphrase alone.
            password: password or programmatic access token, instead of a private key.
            password_version: a changed number sends a new password alone.
            name: the store's exact name; ``id_`` when left out.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            **meta: Terraform's own arguments: depends_on, lifecycle, …

        Raises:
            ValueError: both a private key and a password are given, or a passphrase without a key.
        """
        if private_key is not None and password is not None:
            raise ValueError(f"SnowflakeStore {id_!r}: give private_key or password, not both")
        if private_key_passphrase is not None and private_key is None:
            raise ValueError(f"SnowflakeStore {id_!r}: private_key_passphrase is given without private_key")
        snowflake: dict[str, Any] = {
            "account": account,
            "username": username,
            "warehouse": warehouse,
            "role": role,
            "database": database,
            "host": host,
            "login": "password" if password is not None else None,
            "private_key_wo": private_key,
            "private_key_wo_version": private_key_version,
            "private_key_passphrase_wo": private_key_passphrase,
            "private_key_passphrase_wo_version": private_key_passphrase_version,
            "password_wo": password,
            "password_wo_version": password_version,
        }
        super().__init__(
            scope,
            id_,
            name=id_ if name is None else name,
            comment=comment,
            owner=owner_name(owner),
            snowflake=cast(l1.StoreSnowflake, snowflake),
            **meta,
        )
