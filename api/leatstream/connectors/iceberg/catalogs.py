"""Opening a catalog, each kind in its way; every request of it ends in time.

pyiceberg keeps no bound of its own for REST, and reads settings from the account's files and environment.
Here all of them are given, so that a store means the same everywhere.
"""

from __future__ import annotations

import functools
import ssl
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from leatstream.connectors.aws.access import aws_client, aws_session
from leatstream.connectors.iceberg.null_lists import keep_null_lists
from leatstream.connectors.iceberg.settings import IcebergGlueConfig, IcebergRestConfig
from leatstream.errors import StoreError
from leatstream.model.extras import install_extra

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

Opener = Callable[[float], "Catalog"]
"""Opens a store's catalog; takes the seconds that one request may last."""
_IO = {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}


def opener_of(config: IcebergRestConfig | IcebergGlueConfig) -> Opener:
    """How a store's catalog is opened."""
    if isinstance(config, IcebergRestConfig):
        return functools.partial(open_rest, config)
    return functools.partial(open_glue, config)


def need_client(store: str) -> None:
    """See that pyiceberg is installed.

    Raises:
        StoreError: store-rejected, it is not.
    """
    try:
        import pyarrow
        import pyiceberg.catalog  # noqa: F401 - the import is the test
    except ImportError as error:
        raise StoreError(
            "store-rejected",
            f"Store {store}: the client library for Iceberg is not installed here ({error.name}).",
            hint=install_extra("iceberg"),
        ) from None
    del pyarrow
    keep_null_lists()


def open_rest(config: IcebergRestConfig, timeout: float) -> Catalog:
    """The catalog of a REST server; logs in and asks for the server's settings.

    Args:
        config: settings with the secrets.
        timeout: seconds that one request may last.
    """
    found: dict[str, Any] = {
        **_IO,
        **_files(config, timeout),
        "uri": config.uri,
        "oauth2-server-uri": config.token_uri or f"{config.uri}/v1/oauth/tokens",
    }
    if config.warehouse is not None:
        found["warehouse"] = config.warehouse
    if config.client_id is not None and config.client_secret is not None:
        found["credential"] = f"{config.client_id}:{config.client_secret.get_secret_value()}"
        found["scope"] = config.scope or "catalog"
    if config.token is not None:
        found["token"] = config.token.get_secret_value()
    catalog: Catalog = _bounded_rest(timeout, config.ca_certificate)("leatstream", **found)
    return catalog


def _files(config: IcebergRestConfig, timeout: float) -> dict[str, str]:
    found = {"s3.connect-timeout": f"{min(timeout, 10):g}", "s3.request-timeout": f"{max(timeout, 10):g}"}
    if config.s3 is None:
        return found
    given = {
        "s3.endpoint": config.s3.endpoint_url,
        "s3.region": config.s3.region,
        "s3.access-key-id": config.s3.access_key_id,
        "s3.secret-access-key": config.s3.secret_access_key
        and config.s3.secret_access_key.get_secret_value(),
    }
    return found | {key: str(value) for key, value in given.items() if value is not None}


def _bounded_rest(timeout: float, authority: str | None) -> type[Any]:
    """pyiceberg's REST catalog with a session whose requests end, and that trusts whom the store trusts."""
    import requests
    from pyiceberg.catalog.rest import RestCatalog
    from pyiceberg.catalog.rest.auth import AuthManagerAdapter
    from requests.adapters import HTTPAdapter

    class Trusting(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
            super().init_poolmanager(
                *args, **kwargs, ssl_context=ssl.create_default_context(cadata=authority)
            )

        def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
            """Leave it to the context: else the authorities of the machine would be trusted too."""
            conn.cert_reqs = "CERT_REQUIRED"

    class Bounded(requests.Session):
        def request(self, *args: Any, **kwargs: Any) -> requests.Response:
            return super().request(*args, **({"timeout": timeout} | kwargs))

    class BoundedRestCatalog(RestCatalog):
        def _create_session(self) -> requests.Session:
            session = Bounded()
            # A proxy of the machine is used; logins in the account's .netrc are not.
            session.trust_env = True
            self._config_headers(session)
            if authority is not None:
                session.mount("https://", Trusting())
            self._auth_manager = self._create_legacy_oauth2_auth_manager(session)
            if self.properties.keys() & {"credential", "token"}:
                session.auth = AuthManagerAdapter(self._auth_manager)
            return session

    return BoundedRestCatalog


def open_glue(config: IcebergGlueConfig, timeout: float) -> Catalog:
    """The Glue catalog of an account and region; asks nothing yet.

    Args:
        config: settings with the secret.
        timeout: seconds that one request may last, all its attempts included.
    """
    from pyiceberg.catalog.glue import GlueCatalog

    client = aws_client("glue", config, timeout, attempts=3)
    if config.catalog_id is not None:
        client.meta.events.register("provide-client-params.glue", _of_account(config.catalog_id))
    given = {
        **_IO,
        "s3.region": config.region,
        "s3.endpoint": config.s3_endpoint_url,
        "s3.connect-timeout": f"{min(timeout, 10):g}",
        "s3.request-timeout": f"{max(timeout, 10):g}",
        "warehouse": config.warehouse_path,
        **_credentials(config, timeout),
    }
    return GlueCatalog("leatstream", client, **{key: one for key, one in given.items() if one is not None})


def _of_account(catalog_id: str) -> Callable[..., None]:
    def add(params: Any, **_: Any) -> None:
        params["CatalogId"] = catalog_id

    return add


def _credentials(config: IcebergGlueConfig, timeout: float) -> Mapping[str, str | None]:
    """The identity's credentials at this moment, for the files: pyarrow knows no external id of a role."""
    from botocore.config import Config

    found = aws_session(config, Config(connect_timeout=timeout, read_timeout=timeout)).get_credentials()
    if found is None:
        return {}
    now = found.get_frozen_credentials()
    return {
        "s3.access-key-id": now.access_key,
        "s3.secret-access-key": now.secret_key,
        "s3.session-token": now.token,
    }
