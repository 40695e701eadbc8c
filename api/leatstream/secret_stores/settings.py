"""The setting ``LEATSTREAM_OUTSIDE_SECRETS``: which secret stores references may name, and what of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from leatstream.connectors.aws.access import REGION, AwsAccess

OWN_VARIABLES = "LEATSTREAM_"
_SYSTEM = ("/proc", "/sys", "/dev")
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def _pattern(text: str) -> str:
    if "*" in text[:-1]:
        raise ValueError(f"{text!r} has a * that is not its last character")
    return text


def _root(path: Path) -> Path:
    if not path.is_absolute() or path == Path("/"):
        raise ValueError(f"{path} is not an absolute path of a directory below /")
    if any(path.is_relative_to(one) for one in _SYSTEM):
        raise ValueError(f"{path} is a directory of the operating system")
    return path


def _url(text: str) -> str:
    url = urlsplit(text)
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment or url.username:
        raise ValueError("it is not a URL that begins with https:// and has no user, query or fragment")
    return text.rstrip("/")


_Text = Annotated[str, Field(min_length=1, max_length=1000)]
_Allow = Annotated[
    tuple[Annotated[_Text, AfterValidator(_pattern)], ...], Field(min_length=1, max_length=1000)
]
_Url = Annotated[_Text, AfterValidator(_url)]


def permits(patterns: Sequence[str], text: str) -> bool:
    """Whether one of the patterns fits: the text itself, or its beginning and ``*``."""
    return any(text.startswith(one[:-1]) if one.endswith("*") else text == one for one in patterns)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Variables(_Part):
    """``allow``: names of variables of the server, or their beginnings with ``*``."""

    allow: _Allow

    @model_validator(mode="after")
    def _some(self) -> Self:
        if "*" in self.allow or any(
            permits(self.allow, one) for one in (OWN_VARIABLES, "LEATSTREAM_KEYS_FILE")
        ):
            raise ValueError(
                f"allow must name a beginning, and never that of the server's own {OWN_VARIABLES}…"
            )
        return self


class Files(_Part):
    """``roots``: directories under which files may be read."""

    roots: Annotated[tuple[Annotated[Path, AfterValidator(_root)], ...], Field(min_length=1)]


class VaultToken(_Part):
    """A token in a file, which is read for every call: an agent may renew it."""

    method: Literal["token"]
    token_file: Path


class VaultAppRole(_Part):
    """A role id, and a secret id in a file."""

    method: Literal["approle"]
    role_id: _Text
    secret_id_file: Path
    mount: _Text = "approle"


class VaultKubernetes(_Part):
    """A role of Vault, and the token of the pod's service account."""

    method: Literal["kubernetes"]
    role: _Text
    token_file: Path = _SERVICE_ACCOUNT
    mount: _Text = "kubernetes"


class Vault(_Part):
    """HashiCorp Vault or OpenBao.

    Attributes:
        url: of the server.
        allow: paths that begin with the mount, such as ``kv/leat/*``.
        mounts: of key-value engines, with their version.
        auth: how the server logs in.
        namespace: of Vault Enterprise.
        ca_file: PEM of the authority that signed its certificate; None = the machine's.
    """

    url: _Url
    allow: _Allow
    mounts: dict[_Text, Literal[1, 2]] = {"secret": 2}
    auth: Annotated[VaultToken | VaultAppRole | VaultKubernetes, Field(discriminator="method")]
    namespace: _Text | None = None
    ca_file: Path | None = None


class AwsSecretsManager(_Part):
    """AWS Secrets Manager.

    Attributes:
        allow: names or ARNs, or their beginnings with ``*``.
        regions: that may be asked; the first counts where a reference names none.
        role_arn: role to assume with the machine's credentials.
        endpoint_url: another address than the region's own.
    """

    allow: _Allow
    regions: Annotated[tuple[Annotated[str, Field(pattern=f"^{REGION}$")], ...], Field(min_length=1)]
    role_arn: _Text | None = None
    endpoint_url: _Url | None = None

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        self.access(self.regions[0])
        return self

    def access(self, region: str) -> AwsAccess:
        """How the service is reached in a region.

        Raises:
            ValidationError: role_arn or endpoint_url is none.
        """
        found = {"region": region, "role_arn": self.role_arn, "endpoint_url": self.endpoint_url}
        return AwsAccess.model_validate(found)


class Kubernetes(_Part):
    """Secrets of a Kubernetes cluster.

    Attributes:
        allow: namespace and name, such as ``streams/leat-*``.
        url: of the API server; None = that of the server's pod.
        token_file: token of the service account, read for every call.
        ca_file: authority of the API server's certificate; None = that of the pod.
    """

    allow: _Allow
    url: _Url | None = None
    token_file: Path = _SERVICE_ACCOUNT
    ca_file: Path | None = None

    @model_validator(mode="after")
    def _namespaces(self) -> Self:
        if any("/" not in one for one in self.allow):
            raise ValueError("allow names a namespace and a Secret, such as streams/leat-*")
        return self


class OutsideSecretsSettings(_Part):
    """What is left out is off.

    Attributes:
        cache_seconds: how long a value counts after it was read.
    """

    env: Variables | None = None
    file: Files | None = None
    vault: Vault | None = None
    aws_sm: Annotated[AwsSecretsManager | None, Field(alias="aws-sm")] = None
    k8s: Kubernetes | None = None
    cache_seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 30.0

    def credentials(self) -> list[Path]:
        """The files with which the server logs in: no reference may read them."""
        found = [_SERVICE_ACCOUNT]
        if self.vault is not None:
            auth = self.vault.auth
            found.append(auth.secret_id_file if isinstance(auth, VaultAppRole) else auth.token_file)
        if self.k8s is not None:
            found.append(self.k8s.token_file)
        return found
