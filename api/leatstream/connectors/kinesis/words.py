"""WITH of a Kinesis store: an address may name the region."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from leatstream.connectors.aws.words import ACCESS_REGION, AwsWords
from leatstream.connectors.store_words import Settings, WithList

_REGION = "kinesis.region"
_AWS_HOST = re.compile(r"https?://kinesis(?:-fips)?\.([a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)/?\Z")


class KinesisWords(AwsWords):
    """A Kinesis store's words."""

    def finish(self, given: WithList, found: Settings) -> Settings:
        """Region and address; the region's own address is what the client takes anyway."""
        uri = found.get("endpoint_url")
        host = _AWS_HOST.match(uri) if uri else None
        if uri and not uri.startswith(("http://", "https://")):
            given.wrong("uris", "'uris' of a Kinesis store is one address with http:// or https://.")
        hint = f"Write {_REGION!r} = 'eu-west-1', or 'uris' = 'https://kinesis.eu-west-1.amazonaws.com'."
        region = self.region(given, _REGION, host[1] if host else None, hint)
        place = {"region": region, "endpoint_url": None if host else uri}
        return {key: value for key, value in (found | place).items() if value is not None}

    def keep(self, given: WithList, kept: dict[str, Any], present: Mapping[str, Any]) -> None:
        """An address may name the region, and the old region or address would contradict it."""
        region_given = {_REGION, ACCESS_REGION} & given.given.keys()
        of_aws = _AWS_HOST.match(str(given.raw("uris"))) if "uris" in given.given else None
        if region_given or of_aws:
            kept.pop(_REGION, None)
        if region_given and _AWS_HOST.match(str(present.get("endpoint_url") or "")):
            kept.pop("uris", None)
