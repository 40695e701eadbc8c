"""Settings of a server, from environment variables ``LEATSTREAM_…``."""

from __future__ import annotations

from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """What may be set.

    Attributes:
        migrate: bring the catalog to the newest schema at the start; else an old one is refused.
        data_dir: catalog, keys, checkpoints, logs.
        catalog_url: SQLAlchemy URL; empty = SQLite in ``data_dir``.
        keys_file: the key ring; empty = ``data_dir/keys.json``.
        checkpoint_root: empty = ``data_dir/checkpoints``.
        host, port: where REST listens; port 0 takes a free one.
        warm_drivers: idle drivers kept ready.
        max_drivers: most queries that may run at a time.
        driver_slots: task slots of a driver.
        driver_memory: heap of a driver's JVM.
        driver_jvm_options: flags of a driver's JVM; the default starts fast and stays small.
        msk_iam: give drivers Amazon's library for AWS_MSK_IAM.
        driver_orphan_seconds: how long a job goes on without the API.
        lease_seconds: how long a server that is silent keeps its queries, beyond driver_orphan_seconds.
        warm_up_kafka: broker that drivers warm up against.
        default_store: store of statements that name none.
        watermark_delay_ms: how late records of a join or window may be.
    """

    model_config = SettingsConfigDict(env_prefix="LEATSTREAM_", extra="ignore")

    migrate: bool = True
    data_dir: Path = Path(".leatstream")
    catalog_url: str = ""
    keys_file: str = ""
    checkpoint_root: str = ""
    host: str = "127.0.0.1"
    port: int = 8585
    warm_drivers: int = 1
    max_drivers: int = 12
    driver_slots: int = 8
    driver_memory: str = "512m"
    driver_jvm_options: str = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss1m"
    msk_iam: bool = False
    driver_orphan_seconds: float = 120.0
    lease_seconds: float = 15.0
    warm_up_kafka: str | None = None
    default_store: str | None = None
    watermark_delay_ms: int = 10_000

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
        """Root of the checkpoints."""
        return self.checkpoint_root or str(self.data_dir.resolve() / "checkpoints")
