"""The store of kind ``oracle``."""

from __future__ import annotations

from typing import Any, Unpack, cast

from constructs import Construct

from leatstream_cdktf import l1
from leatstream_cdktf._construct import ResourceMeta
from leatstream_cdktf.l2._names import RoleLike, owner_name


class OracleStore(l1.Store):
    """One service of an Oracle database. Experimental: see docs/oracle.md.

    ::

        password = tf.TerraformVariable(self, "oracle_password", type="string", sensitive=True)
        OracleStore(
            self, "erp", host="db", service="shop", username="leat", password=password.string_value
        )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        host: str,
        service: str,
        username: str,
        port: int | None = None,
        password: str | None = None,
        password_version: int | None = None,
        tls: bool | None = None,
        ca_certificate: str | None = None,
        name: str | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare an Oracle store.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            host: host name or address of the listener.
            service: service name of the database.
            username: user name.
            port: of the listener; 1521 when left out.
            password: write-only, so it stays out of the state.
            password_version: a changed number sends a new password alone.
            tls: whether to connect over TLS.
            ca_certificate: certificate authority to trust, PEM.
            name: the store's exact name; ``id_`` when left out.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            **meta: Terraform's own arguments: depends_on, lifecycle, …

        Raises:
            ValueError: ``ca_certificate`` is given without ``tls``.
        """
        if ca_certificate is not None and not tls:
            raise ValueError(f"OracleStore {id_!r}: ca_certificate is given without tls")
        oracle: dict[str, Any] = {
            "host": host,
            "port": port,
            "service": service,
            "username": username,
            "tls": tls,
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
            oracle=cast(l1.StoreOracle, oracle),
            **meta,
        )
