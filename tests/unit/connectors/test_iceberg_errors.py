"""What is said of errors of an Iceberg catalog, and of what stands before it."""

from __future__ import annotations

import pytest
from pyiceberg.exceptions import ServerError, ServiceUnavailableError

from leatstream.connectors.iceberg.errors import store_error


@pytest.mark.parametrize("kind", [ServerError, ServiceUnavailableError])
@pytest.mark.parametrize(
    "said",
    [
        "RESTError 503: Received unexpected JSON Payload: <html>sesame</html>, errors: Invalid JSON",
        "RESTError 503: Could not decode json payload: sesame",
    ],
)
def test_the_page_of_a_proxy_is_not_passed_on(kind: type[Exception], said: str) -> None:
    found = store_error("s", "writing to table a.t", kind(said), "https://c", 5.0)
    assert found is not None
    assert found.code == "store-unreachable"
    assert found.detail == (
        f"Store s: the catalog failed at writing to table a.t: HTTP status 503 ({kind.__name__})."
    )


def test_the_catalogs_own_sentence_is_passed_on() -> None:
    found = store_error("s", "listing tables", ServerError("IOException: no space left."), "https://c", 5.0)
    assert found is not None
    assert found.detail.endswith("listing tables: IOException: no space left (ServerError).")


def test_a_warehouse_that_the_catalog_does_not_know_is_not_tried_again() -> None:
    """Nessie reports it as an error of its own."""
    said = ServerError("IllegalStateException: Warehouse 'other' is not known")
    found = store_error("s", "logging in", said, "https://c", 5.0)
    assert found is not None
    assert (found.code, found.retryable) == ("store-rejected", False)
    assert "Warehouse 'other' is not known" in found.detail
