"""The Iceberg REST catalog of ``leat dev --iceberg`` for tests, which may lose answers and let others be faster.

What it checks is the protocol, logins and commits on a state that has changed. That its tables can be read by
others than pyiceberg it cannot say.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog

from leatstream.dev.iceberg_rest import Answer, Login, RestCatalogServer, fault

CLIENT, SECRET, SCOPE, TOKEN, WAREHOUSE = "leat", "leat-secret", "PRINCIPAL_ROLE:ALL", "ready-token", "main"


class IcebergServer(RestCatalogServer):
    """A running catalog.

    Attributes:
        broken: the next commits' HTTP statuses, each with whether the commit is made for all that.
        before_commit: called before each commit, to let another one be faster.
        commits: how many were made.
        trusts_first_commits: whether a first commit is taken though there is a snapshot by now, which it then
            replaces. So does Nessie 0.99 (projectnessie/nessie#10062).
    """

    broken: tuple[tuple[int, bool], ...] = ()
    commits = 0
    trusts_first_commits = False
    before_commit: Callable[[], None] | None = None

    def config(self, **other: Any) -> dict[str, Any]:
        """Settings of a store, without its secret."""
        known = {"uri": self.address, "warehouse": WAREHOUSE, "client_id": CLIENT, "scope": SCOPE}
        return known | other

    def commit(self, name: tuple[str, ...], body: Any) -> Answer:
        if self.before_commit is not None:
            self.before_commit()
        if self.trusts_first_commits:
            body = body | {"requirements": [one for one in body["requirements"] if not _is_first(one)]}
        with self.alone:
            (status, made), self.broken = (self.broken or ((200, True),))[0], self.broken[1:]
            if made:
                answer = super().commit(name, body)
                self.commits += 1
            return answer if status == 200 else (status, fault(status, "Broken", "The catalog is disturbed."))


def _is_first(requirement: Mapping[str, Any]) -> bool:
    """Whether it says that the table has no snapshot."""
    return requirement["type"] == "assert-ref-snapshot-id" and requirement.get("snapshot-id") is None


@contextmanager
def iceberg_server(location: str, files: Mapping[str, str]) -> Iterator[IcebergServer]:
    """A catalog on a free port.

    Args:
        location: where its tables lie, such as ``s3://lake/warehouse``.
        files: pyiceberg's settings for the store of the files.
    """
    folder = tempfile.mkdtemp(prefix="leat-iceberg-")
    catalog = SqlCatalog("tests", warehouse=location, uri=f"sqlite:///{folder}/catalog.db", **files)
    login = Login(client=CLIENT, scope=SCOPE, warehouse=WAREHOUSE, secret=SECRET, token=TOKEN)
    server = IcebergServer(catalog, login, dict(files))
    serving = threading.Thread(target=server.serve, daemon=True)
    serving.start()
    try:
        yield server
    finally:
        server.stop()
        serving.join()
        catalog.close()
        shutil.rmtree(folder)
