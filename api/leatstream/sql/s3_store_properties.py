"""WITH of CREATE STORE and UPDATE STORE for S3."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from leatstream.model.registered import SecretName
from leatstream.sql.property_values import PropertyReader

_REGION, _ACCESS_REGION = "aws.region", "access_region"
_KEY_ID, _SECRET = "aws.access_key_id", "aws.secret_access_key"
_ROLE, _EXTERNAL = "aws.iam_role_arn", "aws.iam_external_id"
_KNOWN = ("type", "uris", "schema_registry.name", _REGION, _ACCESS_REGION, _KEY_ID, _SECRET, _ROLE, _EXTERNAL)
_UNBUILT = {
    "properties.file": "write the properties into the statement",
    "availability_zone": "stores are reached directly",
    "tls.disabled": "the scheme of 'uris' tells it: http:// or https://",
}
_DOMAIN = r"amazonaws\.com(?:\.cn)?"
_OF_BUCKET = re.compile(rf"https?://([a-z0-9.-]+)\.s3[.-]([a-z0-9-]+)\.{_DOMAIN}(?:/(.*))?\Z")
_OF_REGION = re.compile(rf"https?://s3[.-]([a-z0-9-]+)\.{_DOMAIN}/([^/]+)(?:/(.*))?\Z")
_PLAIN = re.compile(r"s3a?://([^/]+)(?:/(.*))?\Z")
_OTHER = re.compile(r"(https?://[^/]+)/([^/]+)(?:/(.*))?\Z")
_REGION_WORD = re.compile(r"(?:AWS\s+)?([a-z]{2}(?:-[a-z]+)+-\d{1,2})\Z", re.I)


def read_s3(reader: PropertyReader) -> dict[str, Any]:
    """The settings of an S3 store, shaped as in REST; faults gather in the reader."""
    for key in reader.given:
        if key in _UNBUILT:
            reader.unbuilt(key, _UNBUILT[key])
        elif key not in _KNOWN:
            reader.unknown(key, _KNOWN)
    place = _place(reader)
    region = _region(reader, place.pop("region", None))
    for key, other in ((_KEY_ID, _SECRET), (_SECRET, _KEY_ID)):
        if key in reader.given and other not in reader.given:
            reader.wrong(key, f"{key!r} needs {other!r}.")
    if _EXTERNAL in reader.given and _ROLE not in reader.given:
        reader.wrong(_EXTERNAL, f"{_EXTERNAL!r} needs {_ROLE!r}.")
    config: dict[str, Any] = place | {
        "region": region,
        "access_key_id": reader.text(_KEY_ID),
        "secret_access_key": reader.secret(_SECRET),
        "role_arn": reader.text(_ROLE),
        "external_id": reader.text(_EXTERNAL),
    }
    return {key: value for key, value in config.items() if value}


def update_s3(reader: PropertyReader, present: Mapping[str, Any], named: Mapping[str, str]) -> dict[str, Any]:
    """The settings after an UPDATE STORE; what it does not name stays.

    Raises:
        RequestError: with every fault found.
    """
    words = {_REGION: "region", _KEY_ID: "access_key_id", _ROLE: "role_arn", _EXTERNAL: "external_id"}
    kept = {k: present[v] for k, v in words.items() if k not in reader.given and present.get(v) is not None}
    if _ACCESS_REGION in reader.given or _names_region(reader):
        kept.pop(_REGION, None)
    if "uris" not in reader.given:
        root = present.get("endpoint_url") or "s3:/"
        kept["uris"] = "/".join([root, present["bucket"], present.get("prefix") or ""])
    secret_stays = _KEY_ID in kept and _SECRET not in reader.given
    if secret_stays:
        kept[_SECRET] = "kept"
    reader.given |= kept
    config = read_s3(reader)
    reader.faults.raise_if_any()
    if secret_stays:
        name = named.get("secret_access_key")
        config["secret_access_key"] = None if name is None else SecretName(name)
    return config


def _names_region(reader: PropertyReader) -> bool:
    uri = str(reader.raw("uris") or "")
    return bool(_OF_BUCKET.match(uri) or _OF_REGION.match(uri))


def _place(reader: PropertyReader) -> dict[str, Any]:
    """Bucket, prefix, and region or address, from ``uris``."""
    uri = reader.text("uris")
    if uri is None:
        if "uris" not in reader.given:
            hint = "write 'uris' = 'https://<bucket>.s3.<region>.amazonaws.com/<prefix>', or 's3://<bucket>/<prefix>'"
            reader.faults.add("invalid-property", "An S3 store needs 'uris'.", hint=hint)
        return {}
    if found := _OF_BUCKET.match(uri):
        return {"bucket": found[1], "region": found[2], "prefix": _trimmed(found[3])}
    if found := _OF_REGION.match(uri):
        return {"bucket": found[2], "region": found[1], "prefix": _trimmed(found[3])}
    if found := _PLAIN.match(uri):
        return {"bucket": found[1], "prefix": _trimmed(found[2])}
    if found := _OTHER.match(uri):
        return {"endpoint_url": found[1], "bucket": found[2], "prefix": _trimmed(found[3])}
    hint = "write s3://<bucket>/<prefix>, or an address with the bucket in it"
    reader.wrong("uris", "'uris' of an S3 store names one bucket.", hint)
    return {}


def _trimmed(prefix: str | None) -> str:
    return (prefix or "").strip("/")


def _region(reader: PropertyReader, of_uri: str | None) -> str | None:
    """The region by name, or by the address in ``uris``; they must not contradict each other."""
    key = _REGION if _REGION in reader.given else _ACCESS_REGION
    text = reader.text(key)
    if text is None:
        if of_uri is None and key not in reader.given and "uris" in reader.given:
            hint = f"write {_REGION!r} = 'eu-west-1'"
            reader.faults.add("invalid-property", "An S3 store needs its AWS region.", hint=hint)
        return of_uri
    word = _REGION_WORD.match(text)
    if word is None:
        reader.wrong(key, f"{key!r} is an AWS region such as 'eu-west-1'.")
        return None
    region = word[1].lower()
    if of_uri is not None and region != of_uri:
        reader.wrong(key, f"{key!r} is another region than the one in 'uris'.")
    return region
