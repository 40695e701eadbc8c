"""WITH of the Iceberg stores: the reference product's properties, and some of our own."""

from __future__ import annotations

from leatstream.connectors.aws.words import AwsWords
from leatstream.connectors.store_words import Settings, StoreWords, WithList

_REGION = "aws.region"


class RestWords(StoreWords):
    """Words of a REST catalog."""

    def finish(self, given: WithList, found: Settings) -> Settings:
        """One address, and one way to log in."""
        uri = found.get("uri")
        if uri is not None and not uri.startswith(("http://", "https://")):
            hint = "Write 'uris' = 'https://host/api/catalog'."
            given.wrong(
                "uris", "'uris' of an Iceberg REST store is one address with http:// or https://.", hint
            )
        if "iceberg.rest.token" in given.given and "iceberg.rest.client_id" in given.given:
            detail = (
                "'iceberg.rest.token' stands beside 'iceberg.rest.client_id'; there is one way to log in."
            )
            given.wrong("iceberg.rest.token", detail, "Leave one of them out.")
        return found

    def keep(self, given: WithList, kept: dict[str, object], present: object) -> None:
        """Another way to log in replaces the one there was."""
        client = ("client_id", "client_secret", "client_scope", "token_uri")
        if "iceberg.rest.token" in given.given:
            for name in client:
                kept.pop(f"iceberg.rest.{name}", None)
        if "iceberg.rest.client_id" in given.given:
            kept.pop("iceberg.rest.token", None)


class GlueWords(AwsWords):
    """Words of a Glue catalog."""

    def finish(self, given: WithList, found: Settings) -> Settings:
        """The region, and where new tables lie."""
        path = found.get("warehouse_path")
        if path is not None and not path.startswith("s3://"):
            hint = "Write 's3://<bucket>/<prefix>'."
            given.wrong("iceberg.warehouse.default_path", "New tables lie at an S3 path.", hint)
        region = self.region(given, _REGION, None, f"Write {_REGION!r} = 'eu-west-1'.")
        return {key: value for key, value in (found | {"region": region}).items() if value is not None}

    def keep(self, given: WithList, kept: dict[str, object], present: object) -> None:
        """``access_region`` is another word for the region."""
        if "access_region" in given.given:
            kept.pop(_REGION, None)
