"""WITH of an S3 store: ``uris`` names bucket, prefix, and region or address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from leatstream.connectors.aws.words import ACCESS_REGION, AwsWords
from leatstream.connectors.store_words import Settings, WithList

_REGION = "aws.region"
_DOMAIN = r"amazonaws\.com(?:\.cn)?"
_OF_BUCKET = re.compile(rf"https?://([a-z0-9.-]+)\.s3[.-]([a-z0-9-]+)\.{_DOMAIN}(?:/(.*))?\Z")
_OF_REGION = re.compile(rf"https?://s3[.-]([a-z0-9-]+)\.{_DOMAIN}/([^/]+)(?:/(.*))?\Z")
_PLAIN = re.compile(r"s3a?://([^/]+)(?:/(.*))?\Z")
_OTHER = re.compile(r"(https?://[^/]+)/([^/]+)(?:/(.*))?\Z")


class S3Words(AwsWords):
    """An S3 store's words."""

    def finish(self, given: WithList, found: Settings) -> Settings:
        """Bucket, prefix, and region or address."""
        place = _place(given)
        region = place.pop("region", None)
        if region is not None or "uris" in given.given:  # else the missing address is fault enough
            place["region"] = self.region(given, _REGION, region, f"Write {_REGION!r} = 'eu-west-1'.")
        return {key: value for key, value in (found | place).items() if value}

    def spelled(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The address."""
        root = config.get("endpoint_url") or "s3:/"
        return {"uris": "/".join([root, config["bucket"], config.get("prefix") or ""])}

    def keep(self, given: WithList, kept: dict[str, Any], present: Mapping[str, Any]) -> None:
        """An address may name the region, and the old region would contradict it."""
        uri = str(given.raw("uris") or "")
        if ACCESS_REGION in given.given or _OF_BUCKET.match(uri) or _OF_REGION.match(uri):
            kept.pop(_REGION, None)


def _place(given: WithList) -> Settings:
    """Bucket, prefix, and region or address, from ``uris``."""
    uri = given.text("uris")
    if uri is None:
        if "uris" not in given.given:
            hint = "Write 'uris' = 'https://<bucket>.s3.<region>.amazonaws.com/<prefix>', or 's3://<bucket>/<prefix>'."
            given.faults.add("invalid-property", "An S3 store needs 'uris'.", hint=hint)
        return {}
    if found := _OF_BUCKET.match(uri):
        return {"bucket": found[1], "region": found[2], "prefix": _trimmed(found[3])}
    if found := _OF_REGION.match(uri):
        return {"bucket": found[2], "region": found[1], "prefix": _trimmed(found[3])}
    if found := _PLAIN.match(uri):
        return {"bucket": found[1], "prefix": _trimmed(found[2])}
    if found := _OTHER.match(uri):
        return {"endpoint_url": found[1], "bucket": found[2], "prefix": _trimmed(found[3])}
    hint = "Write s3://<bucket>/<prefix>, or an address with the bucket in it."
    given.wrong("uris", "'uris' of an S3 store names one bucket.", hint)
    return {}


def _trimmed(prefix: str | None) -> str:
    return (prefix or "").strip("/")
