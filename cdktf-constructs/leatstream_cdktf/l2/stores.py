"""Stores: the systems of yours that hold the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack, cast

from constructs import Construct

from leatstream_cdktf import l1
from leatstream_cdktf._construct import ResourceMeta
from leatstream_cdktf.l2._names import RoleLike, owner_name


class KafkaStore(l1.Store):
    """An Apache Kafka cluster, or one that speaks its protocol (MSK, Confluent Cloud, Redpanda).

    ::

        password = tf.TerraformVariable(self, "kafka_password", type="string", sensitive=True)
        KafkaStore(
            self, "kafka", bootstrap_servers="broker-1:9093,broker-2:9093", security_protocol="sasl_ssl",
            sasl={"mechanism": "scram_sha_512", "username": "leat", "password": password.string_value},
        )

    A password written as text into the program stands in the synthesized JSON; a variable does not.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        bootstrap_servers: str | Sequence[str],
        security_protocol: str | None = None,
        sasl: Mapping[str, Any] | None = None,
        tls: l1.StoreKafkaTls | None = None,
        name: str | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare a Kafka store.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            bootstrap_servers: ``host:port`` of some brokers, comma-separated or as a list.
            security_protocol: ``plaintext`` (if left out), ``ssl``, ``sasl_plaintext`` or ``sasl_ssl``;
                ``sasl`` needs one of the last two, ``tls`` one that ends with ``ssl``.
            sasl: ``mechanism`` (``plain``, ``scram_sha_256``, ``scram_sha_512``), ``username``, ``password``
                and, to send a new password alone, a changed number as ``password_version``. With mechanism
                ``oauthbearer`` instead ``oauth``: ``token_url``, ``client_id``, ``client_secret``, perhaps
                ``client_secret_version``, ``scope``, ``extensions`` and ``ca_certificate``; with mechanism
                ``aws_msk_iam`` ``aws``: ``region``, perhaps ``role_arn`` and its credentials as of a
                ``KinesisStore``.
            tls: ``ca_certificate`` (PEM), ``verify_hostname`` and, for mTLS, ``client_certificate`` and
                ``client_key_wo``, also PEM.
            name: the store's exact name; ``id_`` when left out.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            **meta: Terraform's own arguments: depends_on, lifecycle, …

        Raises:
            ValueError: there is no bootstrap server, or ``sasl`` and ``security_protocol`` do not go
                together.
        """
        servers = bootstrap_servers if isinstance(bootstrap_servers, str) else ",".join(bootstrap_servers)
        if not servers.strip():
            raise ValueError(f"KafkaStore {id_!r}: bootstrap_servers is empty; give at least one host:port")
        if sasl is None and security_protocol in ("sasl_plaintext", "sasl_ssl"):
            raise ValueError(
                f"KafkaStore {id_!r}: security_protocol is {security_protocol!r}, which needs sasl="
            )
        if sasl is not None and security_protocol in ("plaintext", "ssl"):
            raise ValueError(
                f"KafkaStore {id_!r}: sasl is given, but {security_protocol!r} does not use it; "
                f"did you mean 'sasl_{security_protocol}'?"
            )
        kafka: dict[str, Any] = {
            "bootstrap_servers": servers,
            "security_protocol": security_protocol,
            "sasl": None if sasl is None else _sasl(id_, sasl),
            "tls": tls,
        }
        super().__init__(
            scope,
            id_,
            name=id_ if name is None else name,
            comment=comment,
            owner=owner_name(owner),
            kafka=cast(l1.StoreKafka, kafka),
            **meta,
        )


class KinesisStore(l1.Store):
    """Kinesis Data Streams of one AWS region.

    ::

        role = "arn:aws:iam::123456789012:role/leatstream"
        KinesisStore(self, "streams", region="eu-west-1", role_arn=role)

    Without ``access_key_id`` the leatstream server's own AWS credentials are used, for ``role_arn`` too. A
    secret written as text into the program stands in the synthesized JSON; a variable does not.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        region: str,
        endpoint_url: str | None = None,
        access_key_id: str | None = None,
        secret_access_key: str | None = None,
        secret_access_key_version: int | None = None,
        role_arn: str | None = None,
        external_id: str | None = None,
        name: str | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare a Kinesis store.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            region: AWS region, such as ``eu-west-1``.
            endpoint_url: another address than the region's own, such as a VPC endpoint.
            access_key_id: access key.
            secret_access_key: its secret; write-only, so it stays out of the state.
            secret_access_key_version: a changed number sends a new secret alone.
            role_arn: role to take on with these credentials.
            external_id: external id that the role asks for.
            name: the store's exact name; ``id_`` when left out.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            **meta: Terraform's own arguments: depends_on, lifecycle, …

        Raises:
            ValueError: one half of the key is missing, or ``external_id`` stands without ``role_arn``.
        """
        if (access_key_id is None) != (secret_access_key is None):
            raise ValueError(f"KinesisStore {id_!r}: access_key_id and secret_access_key go together")
        if external_id is not None and role_arn is None:
            raise ValueError(f"KinesisStore {id_!r}: external_id is given without role_arn")
        kinesis: dict[str, Any] = {
            "region": region,
            "endpoint_url": endpoint_url,
            "access_key_id": access_key_id,
            "secret_access_key_wo": secret_access_key,
            "secret_access_key_wo_version": secret_access_key_version,
            "role_arn": role_arn,
            "external_id": external_id,
        }
        super().__init__(
            scope,
            id_,
            name=id_ if name is None else name,
            comment=comment,
            owner=owner_name(owner),
            kinesis=cast(l1.StoreKinesis, kinesis),
            **meta,
        )


class S3Store(l1.Store):
    """A bucket of S3 or of a server that speaks its protocol, or what lies below a prefix of it.

    ::

        role = "arn:aws:iam::123456789012:role/leatstream"
        S3Store(self, "lake", region="eu-west-1", bucket="acme-events", prefix="team/raw", role_arn=role)

    Without ``access_key_id`` the leatstream server's own AWS credentials are used, for ``role_arn`` too. A
    secret written as text into the program stands in the synthesized JSON; a variable does not.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        region: str,
        bucket: str,
        prefix: str | None = None,
        endpoint_url: str | None = None,
        access_key_id: str | None = None,
        secret_access_key: str | None = None,
        secret_access_key_version: int | None = None,
        role_arn: str | None = None,
        external_id: str | None = None,
        name: str | None = None,
        comment: str | None = None,
        owner: RoleLike | None = None,
        **meta: Unpack[ResourceMeta],
    ) -> None:
        """Declare an S3 store.

        Args:
            scope: the stack or construct that it belongs to.
            id_: its name within the scope.
            region: AWS region, such as ``eu-west-1``.
            bucket: name of the bucket.
            prefix: what all keys begin with, such as ``team/raw``.
            endpoint_url: another address than the region's own, such as that of a MinIO.
            access_key_id: access key.
            secret_access_key: its secret; write-only, so it stays out of the state.
            secret_access_key_version: a changed number sends a new secret alone.
            role_arn: role to take on with these credentials.
            external_id: external id that the role asks for.
            name: the store's exact name; ``id_`` when left out.
            comment: a note for people.
            owner: the role that owns it, as a construct or by name; the present one when left out.
            **meta: Terraform's own arguments: depends_on, lifecycle, …

        Raises:
            ValueError: one half of the key is missing, or ``external_id`` stands without ``role_arn``.
        """
        if (access_key_id is None) != (secret_access_key is None):
            raise ValueError(f"S3Store {id_!r}: access_key_id and secret_access_key go together")
        if external_id is not None and role_arn is None:
            raise ValueError(f"S3Store {id_!r}: external_id is given without role_arn")
        s3: dict[str, Any] = {
            "region": region,
            "bucket": bucket,
            "prefix": prefix.strip("/") or None if prefix is not None else None,
            "endpoint_url": endpoint_url,
            "access_key_id": access_key_id,
            "secret_access_key_wo": secret_access_key,
            "secret_access_key_wo_version": secret_access_key_version,
            "role_arn": role_arn,
            "external_id": external_id,
        }
        super().__init__(
            scope,
            id_,
            name=id_ if name is None else name,
            comment=comment,
            owner=owner_name(owner),
            s3=cast(l1.StoreS3, s3),
            **meta,
        )


_RENAMED = {
    "password": "password_wo",
    "password_version": "password_wo_version",
    "client_secret": "client_secret_wo",
    "client_secret_version": "client_secret_wo_version",
    "secret_access_key": "secret_access_key_wo",
    "secret_access_key_version": "secret_access_key_wo_version",
}
_SASL_KEYS = ("mechanism", "username", "password", "password_version")
_OAUTH_NEEDS = ("token_url", "client_id", "client_secret")
_OAUTH_KEYS = (*_OAUTH_NEEDS, "client_secret_version", "scope", "extensions", "ca_certificate")

_AWS_KEYS = (
    *("region", "role_arn", "external_id", "access_key_id"),
    *("secret_access_key", "secret_access_key_version"),
)
# Mechanisms with a description of their own: its name, its keys, and those it needs.
_DESCRIBED = {
    "oauthbearer": ("oauth", _OAUTH_KEYS, _OAUTH_NEEDS),
    "aws_msk_iam": ("aws", _AWS_KEYS, ("region",)),
}


def _sasl(id_: str, sasl: Mapping[str, Any]) -> dict[str, Any]:
    """The provider's form: secrets are write-only there, which the names say.

    Raises:
        ValueError: a key is unknown or missing. Values are never shown, one of them is a secret.
    """
    described = _DESCRIBED.get(sasl.get("mechanism", ""))
    if described is None:
        return _renamed(id_, "sasl", sasl, _SASL_KEYS, _SASL_KEYS[:3])
    part, keys, needed = described
    result = _renamed(id_, "sasl", sasl, ("mechanism", part), ("mechanism", part))
    return result | {part: _renamed(id_, f"sasl.{part}", sasl[part], keys, needed)}


def _renamed(
    id_: str, what: str, given: Mapping[str, Any], keys: Sequence[str], needed: Sequence[str]
) -> dict[str, Any]:
    result = {_RENAMED.get(key, key): value for key, value in given.items()}
    expected = [_RENAMED.get(key, key) for key in keys]
    strangers = [key for key in given if _RENAMED.get(key, key) not in expected]
    missing = [key for key in needed if result.get(_RENAMED.get(key, key)) is None]
    if strangers or missing:
        faults = [f"unknown key {key!r}" for key in strangers] + [f"{key!r} is missing" for key in missing]
        raise ValueError(f"KafkaStore {id_!r}: {what}: {'; '.join(faults)}; it takes {', '.join(keys)}")
    return result
