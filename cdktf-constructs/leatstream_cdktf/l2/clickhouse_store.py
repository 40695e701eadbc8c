"""A ClickHouse server as a store."""

from __future__ import annotations

from typing import Any, Unpack, cast

from constructs import Construct

from leatstream_cdktf import l1
from leatstream_cdktf._construct import ResourceMeta
from leatstream_cdktf.l2._names import RoleLike, owner_name


class ClickHouseStore(l1.Store):
    """A ClickHouse server, reached by its HTTP interface.

    ::

        password = tf.TerraformVariable(self, "clickhouse_password", type="string", sensitive=True)
        ClickHouseStore(
            self, "ch", host="clickhouse.example.com", username="leat", password=password.string_value
        )

    A password written as text into the program stands in the synthesized JSON; a variable does not.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        host: str,
        username: str,
        port: int | None = None,
        secure: bool | None = None,
        database: str | None = None,
        ca_certificate: str | None = None,
        password: str | None = None,
        password_version: int | None = None,
        name: str | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare a ClickHouse store.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            host: host name or address, without a scheme or a port.
            username: user name.
            port: of the HTTP interface; 8443 when left out, without ``secure`` 8123.
            secure: whether to encrypt; true when left out.
            database: of tables that are named without one; ``default`` when left out.
            ca_certificate: authority to trust (PEM); the machine's own when left out.
            password: its password; write-only, so it stays out of the state.
            password_version: a changed number sends a new password alone.
            name: the store's exact name; ``id_`` when left out.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            **meta: Terraform's own arguments: depends_on, lifecycle, …

        Raises:
            ValueError: the host is an address with a scheme, or a certificate is given without ``secure``.
        """
        if "/" in host:
            raise ValueError(
                f"ClickHouseStore {id_!r}: host is a name without a scheme, such as ch.example.com"
            )
        if ca_certificate is not None and secure is False:
            raise ValueError(f"ClickHouseStore {id_!r}: ca_certificate is given, but secure is false")
        clickhouse: dict[str, Any] = {
            "host": host,
            "port": port,
            "secure": secure,
            "username": username,
            "database": database,
            "ca_certificate": ca_certificate,
            "password_wo": password,
            "password_wo_version": password_version,
        }
        super().__init__(
            scope,
            id_,
            name=id_ if name is None else name,
            comment=comment,
            owner=owner_name(owner),
            clickhouse=cast(l1.StoreClickhouse, clickhouse),
            **meta,
        )
