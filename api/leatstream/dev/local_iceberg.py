"""An Iceberg REST catalog for the embedded stack, with its tables' files in the data directory."""

from __future__ import annotations

import sys
from pathlib import Path

from leatstream.dev.local_server import LocalServer

CLIENT, SCOPE, WAREHOUSE = "leat", "PRINCIPAL_ROLE:ALL", "local"
#: It listens on this machine alone, and so does Kafka, which asks for none.
SECRET = "local"  # noqa: S105
_FILES = {"py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}


class LocalIceberg(LocalServer):
    """One catalog over a directory; its tables are there at the next start."""

    name = "Iceberg"
    extra = "iceberg"
    needs = ("pyiceberg", "pyiceberg_core", "pyarrow", "sqlalchemy")
    module = __name__


def main() -> None:
    """Serve on PORT the catalog in DIRECTORY, until the process is ended."""
    from pyiceberg.catalog.sql import SqlCatalog

    from leatstream.dev.iceberg_rest import Login, RestCatalogServer

    port, directory = int(sys.argv[1]), Path(sys.argv[2])
    warehouse = (directory / "warehouse").as_uri()
    catalog = SqlCatalog("local", uri=f"sqlite:///{directory / 'catalog.db'}", warehouse=warehouse, **_FILES)
    login = Login(client=CLIENT, scope=SCOPE, warehouse=WAREHOUSE, secret=SECRET)
    RestCatalogServer(catalog, login, _FILES, port).serve()


if __name__ == "__main__":
    main()
