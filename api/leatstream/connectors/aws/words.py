"""What ``CREATE STORE`` and ``UPDATE STORE`` share of the store kinds at AWS: the region."""

from __future__ import annotations

import re

from leatstream.connectors.aws.access import REGION
from leatstream.connectors.store_words import NOWHERE, StoreWords, WithList

ACCESS_REGION = "access_region"
UNSUPPORTED = {
    **NOWHERE,
    "tls.disabled": "the scheme of 'uris' decides: http:// or https://",
}
_REGION = re.compile(rf"(?:AWS\s+)?({REGION})\Z", re.IGNORECASE)


class AwsWords(StoreWords):
    """Words of a store at AWS."""

    def region(self, given: WithList, key: str, of_uri: str | None, hint: str) -> str | None:
        """The region by name, or by the address in ``uris``; they must not contradict each other.

        Args:
            given: the list; takes what is wrong.
            key: the kind's own property of the region; ``access_region`` is another word for it.
            of_uri: the region in ``uris``.
            hint: what to write where there is none.
        """
        key = key if key in given.given else ACCESS_REGION
        text = given.text(key)
        if text is None:
            if of_uri is None and key not in given.given:
                detail = f"{self.title[0].upper()}{self.title[1:]} needs its AWS region."
                given.faults.add("invalid-property", detail, hint=hint)
            return of_uri
        word = _REGION.match(text)
        if word is None:
            given.wrong(key, f"{key!r} must be an AWS region such as 'eu-west-1'.")
            return None
        region = word[1].lower()
        if of_uri is not None and region != of_uri:
            given.wrong(key, f"{key!r} is another region than the one in 'uris'.")
        return region
