"""Settings of a server, from environment variables ``LEATSTREAM_…``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from leatstream.engine.driver_environment import read_names
from leatstream.engine.memory import size
from leatstream.identity.settings import Issuer, check_issuers, is_safe_url
from leatstream.model.networks import Networks
from leatstream.secret_stores.settings import OutsideSecretsSettings

# Spark does not start with less than 450 MiB, of which the JVM's collector keeps a part to itself.
_LEAST_HEAP = "480m"


def _heap(value: str) -> str:
    """A size that Spark, the JVM and our own reckoning of memory read alike, and that Spark starts with."""
    written = value.strip()
    if re.fullmatch(r"[1-9][0-9]*[kmgtKMGT]", written):
        if size(written) < size(_LEAST_HEAP):
            raise ValueError(f"Spark does not start with a heap of {written}; the least is {_LEAST_HEAP}")
        return written
    meant = re.fullmatch(r"([1-9][0-9]*)\s*([kmgtKMGT])[iI]?[bB]?", written)
    like = f"; write {meant[1]}{meant[2].lower()} for {written}" if meant else ""
    raise ValueError(
        f"it is not a size as Spark writes it: a whole number and k, m, g or t, such as 512m or 2g{like}"
    )


def _pod_memory(value: str) -> str:
    """A size as a pod takes it. Kubernetes would take 1536m too, as thousandths of a byte."""
    written = value.strip()
    if re.fullmatch(r"[0-9]+([.][0-9]+)?([KMGT]i|[kMGT])?", written, re.ASCII):
        return written
    meant = re.fullmatch(r"([0-9]+)\s*([kmgt])(i?b)?", written, re.IGNORECASE | re.ASCII)
    like = f"; write {meant[1]}{meant[2].upper()}i for {written}" if meant else ""
    raise ValueError(
        "it is not a size as a pod takes it: a number and Ki, Mi, Gi, Ti, k, M, G or T, "
        f"such as 1536Mi or 2Gi{like}"
    )


def _networks(value: str) -> str:
    Networks.read(value)
    return value


def _origin(value: str) -> str:
    """A URL without a path, as browsers write it in ``Origin``."""
    written = value.strip().rstrip("/")
    if written and (not is_safe_url(written) or urlsplit(written).path):
        raise ValueError("it is not a URL such as https://leatstream.example.com, without a path")
    return written.lower()


_Networks = Annotated[str, AfterValidator(_networks)]
_PodMemory = Annotated[str, AfterValidator(_pod_memory)]
_Heap = Annotated[str, AfterValidator(_heap)]
_Some = Annotated[int, Field(ge=1)]


class Settings(BaseSettings):
    """What may be set.

    Attributes:
        migrate: bring the catalog to the newest schema at the start; else an old one is refused.
        data_dir: catalog, keys, checkpoints, logs.
        catalog_url: SQLAlchemy URL; empty = SQLite in ``data_dir``.
        views_url: URL, with a password, of the role that materialized views are kept with; empty = the server
            makes one, where the catalog is in PostgreSQL.
        catalog_wait_seconds: how long a start waits for the catalog's database while that is unreachable.
        keys_file: the key ring; empty = ``data_dir/keys.json``.
        checkpoint_root: empty = ``data_dir/checkpoints``.
        host, port: where REST listens; port 0 takes a free one.
        warm_drivers: idle drivers kept ready.
        max_drivers: most drivers that may run at a time.
        shared_queries: most queries of a shared driver.
        shared_memory: heap of a shared driver's JVM.
        driver_slots: task slots of a driver.
        driver_memory: heap of a driver's JVM.
        driver_environment: names of the server's variables that drivers on this machine inherit besides the
            usual ones, separated by commas; ``AWS_*`` is all that begin so.
        driver_user: account that drivers of the launcher ``local`` run as; empty = the server's own.
        driver_jvm_options: flags of a driver's JVM; empty = both JIT compilers for queries with a driver of
            their own, the first one only for all others.
        json_workers: whether micro-batch queries with a driver of their own read JSON in Python workers.
        msk_iam: give drivers Amazon's library for AWS_MSK_IAM.
        launcher: where drivers and their executors run.
        spark_master: ``spark://host:port`` of the launcher ``standalone``.
        executors, executor_cores, executor_memory: of a query on a cluster.
        driver_host: where executors reach drivers; empty = this machine's address.
        spark_conf: more Spark settings for drivers on a cluster (JSON); no secrets.
        yarn_queue, yarn_principal, yarn_keytab: of the launcher ``yarn``.
        kubernetes_image, kubernetes_service_account: of drivers' pods.
        kubernetes_cpu, kubernetes_memory: what a pod asks for.
        kubernetes_shared_memory: what the pod of a shared driver asks for instead.
        kubernetes_pod_template: file of a Pod that drivers' pods begin with.
        kubernetes_own_checkpoints: whether a pod mounts the checkpoints of its query alone.
        kubernetes_url, kubernetes_namespace, kubernetes_token_file, kubernetes_ca_file: of the cluster;
            empty = the one in whose pod this server runs.
        driver_api_url: where pods reach this server.
        driver_orphan_seconds: how long a job continues without the API.
        lease_seconds: how long a server that is silent keeps its queries, beyond driver_orphan_seconds.
        stop_grace_seconds: how long the jobs of a server that is stopped may take to end their batches.
        keep_replaced_seconds: how long a query is kept after a blue-green replacement.
        allowed_networks: where stores and schema registries may be, beside public addresses: networks,
            addresses, host names, ``private``, ``loopback`` or ``*``, separated by commas.
        requests_per_second: of one account on this server, ten times as many at once; 0 = any number.
        public_url: ``https://host`` at which browsers reach this server; empty = as their requests say.
        session_hours: how long a browser stays signed in by an identity provider.
        oidc: identity providers whose tokens are accepted (JSON list).
        outside_secrets: secret stores that references of secrets may name, and what of them (JSON).
        revoked_grace_seconds: how long a job continues after its owner has lost a privilege that it needs.
        audit_days: how long an event of the audit log is kept.
        keep_checkpoints_seconds: how long a query's old checkpoints are kept once its present one is at work.
        warm_up_kafka: broker that drivers warm up against.
        default_store: store of statements that name none.
        watermark_delay_ms: how late records of a join or window may be.
        error_excerpts: whether errors may show short pieces of a record's values.
    """

    model_config = SettingsConfigDict(env_prefix="LEATSTREAM_", extra="ignore")

    migrate: bool = True
    data_dir: Path = Path(".leatstream")
    catalog_url: str = ""
    views_url: str = ""
    catalog_wait_seconds: float = Field(default=60.0, ge=0, le=3_600, allow_inf_nan=False)
    keys_file: str = ""
    checkpoint_root: str = ""
    host: str = "127.0.0.1"
    port: int = Field(default=8585, ge=0, le=65_535)
    warm_drivers: int = Field(default=1, ge=0)
    max_drivers: _Some = 12
    shared_queries: _Some = 50
    shared_memory: _Heap = "1536m"
    driver_slots: _Some = 8
    driver_memory: _Heap = "512m"
    driver_environment: Annotated[tuple[str, ...], NoDecode] = ()
    driver_user: str = ""
    driver_jvm_options: str = ""
    json_workers: bool = False
    msk_iam: bool = False
    launcher: Literal["local", "standalone", "yarn", "kubernetes"] = "local"
    spark_master: str = ""
    executors: _Some = 2
    executor_cores: _Some = 2
    executor_memory: _Heap = "1g"
    driver_host: str = ""
    spark_conf: dict[str, str] = {}
    yarn_queue: str = ""
    yarn_principal: str = ""
    yarn_keytab: str = ""
    kubernetes_image: str = ""
    kubernetes_service_account: str = "leatstream-driver"
    kubernetes_cpu: str = "1"
    kubernetes_memory: _PodMemory = "1536Mi"
    kubernetes_shared_memory: _PodMemory = "2560Mi"
    kubernetes_pod_template: str = ""
    kubernetes_own_checkpoints: bool = False
    kubernetes_url: str = ""
    kubernetes_namespace: str = ""
    kubernetes_token_file: str = ""
    kubernetes_ca_file: str = ""
    driver_api_url: str = ""
    driver_orphan_seconds: float = Field(default=120.0, ge=5, le=86_400, allow_inf_nan=False)
    lease_seconds: float = Field(default=15.0, ge=3, le=3_600, allow_inf_nan=False)
    stop_grace_seconds: float = Field(default=30.0, ge=0, le=3_600, allow_inf_nan=False)
    keep_replaced_seconds: float = Field(default=86_400.0, ge=0, le=31_536_000, allow_inf_nan=False)
    keep_checkpoints_seconds: float = Field(default=86_400.0, ge=600, le=31_536_000, allow_inf_nan=False)
    allowed_networks: _Networks = ""
    requests_per_second: float = Field(default=100.0, ge=0, le=1_000_000, allow_inf_nan=False)
    public_url: Annotated[str, AfterValidator(_origin)] = ""
    session_hours: float = Field(default=12.0, gt=0, le=720, allow_inf_nan=False)
    oidc: Annotated[tuple[Issuer, ...], AfterValidator(check_issuers)] = ()
    outside_secrets: OutsideSecretsSettings = OutsideSecretsSettings()
    revoked_grace_seconds: float = Field(default=60.0, ge=0, le=31_536_000, allow_inf_nan=False)
    audit_days: int = Field(default=400, ge=1, le=36_500)
    warm_up_kafka: str | None = None
    default_store: str | None = None
    watermark_delay_ms: int = Field(default=10_000, ge=0)
    error_excerpts: bool = True

    @field_validator("port", mode="before")
    @classmethod
    def _refuse_a_service(cls, value: object) -> object:
        if isinstance(value, str) and value.startswith("tcp://"):
            raise ValueError(
                "Kubernetes set it for a Service called leatstream: say enableServiceLinks: false in the pod"
            )
        return value

    @field_validator("driver_environment", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return read_names(value) if isinstance(value, str) else value

    @field_validator("views_url")
    @classmethod
    def _is_postgresql(cls, value: str) -> str:
        if value and not value.startswith("postgresql"):
            raise ValueError("it is the URL of a PostgreSQL database, such as postgresql://views:…@host/name")
        return value

    @field_validator("driver_api_url")
    @classmethod
    def _bracket(cls, value: str) -> str:
        """A pod's IPv6 address with a port behind it, as a template puts them together, gets its brackets."""
        return re.sub(r"^(https?://)([0-9a-fA-F]*(?::[0-9a-fA-F]*){2,}):(\d+)$", r"\1[\2]:\3", value)

    @property
    def catalog(self) -> str:
        """URL of the catalog."""
        return self.catalog_url or f"sqlite:///{self.data_dir.resolve() / 'catalog.db'}"

    @property
    def keys(self) -> Path:
        """File of the key ring."""
        return Path(self.keys_file) if self.keys_file else self.data_dir.resolve() / "keys.json"

    @property
    def checkpoints(self) -> str:
        """Root of the checkpoints: a directory, or a URL of what is none."""
        root = self.checkpoint_root or str(self.data_dir.resolve() / "checkpoints")
        url = urlsplit(root)
        return unquote(url.path) if url.scheme == "file" and url.netloc in ("", "localhost") else root
