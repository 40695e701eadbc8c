"""WITH of a Databricks store, in the words of the reference product."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leatstream.connectors.aws.words import ACCESS_REGION, AwsWords
from leatstream.connectors.store_words import Settings, WithList

_REGION, _BUCKET = "databricks.cloud.region", "databricks.cloud.s3.bucket"
PORT = "databricks.warehouse_port"


class DatabricksWords(AwsWords):
    """A Databricks store's words."""

    def finish(self, given: WithList, found: Settings) -> Settings:
        """The bucket and its region, which may be written ``AWS eu-west-1``."""
        if PORT in given.given and str(given.raw(PORT)) != "443":
            given.wrong(PORT, f"{PORT!r} is 443.", "Write another port into 'uris'.")
        files = found.pop("s3", {})
        if not files:
            return found
        if "bucket" not in files:
            given.faults.add(
                "invalid-property",
                "The properties of AWS are those of a bucket, and none is named.",
                hint=f"Write {_BUCKET!r} = '…'.",
            )
        files["region"] = self.region(given, _REGION, None, f"Write {_REGION!r} = 'eu-west-1'.")
        return found | {"s3": {key: value for key, value in files.items() if value is not None}}

    def keep(self, given: WithList, kept: dict[str, Any], present: Mapping[str, Any]) -> None:
        """Drop kept properties that a new one replaces: a token or a service principal, and the region.

        Args:
            given: the update's list.
            kept: the store's properties that the update does not name.
            present: the store's settings.
        """
        if ACCESS_REGION in given.given:
            kept.pop(_REGION, None)
        if "databricks.app_token" in given.given:
            kept.pop("databricks.client_id", None)
            kept.pop("databricks.client_secret", None)
        if "databricks.client_id" in given.given:
            kept.pop("databricks.app_token", None)
