"""Puts a server together: catalog, drivers, environment, and the loop that reconciles."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from leatstream.bootstrap.adapters import open_checkpoints, open_identities, open_view_store
from leatstream.bootstrap.administrator import admin_token, write_private
from leatstream.bootstrap.runtime import Runtime
from leatstream.bootstrap.store_connections import StoreConnections, open_registry
from leatstream.connectors.destinations import Destinations
from leatstream.connectors.registry import connector_classes
from leatstream.engine.analysis import AnalysisQueue
from leatstream.engine.driver_pool import DriverPool
from leatstream.engine.loop import ReconcileLoop
from leatstream.engine.standstill import StandstillWatch
from leatstream.errors import StackError
from leatstream.launching import heaps, open_launcher, slots
from leatstream.model.networks import Networks
from leatstream.secret_stores import open_providers
from leatstream.services.environment import Environment, RuntimeSettings
from leatstream.services.environment.outside_secrets import OutsideSecrets
from leatstream.services.environment.signal import Signal
from leatstream.services.environment.sole_server import SoleServer
from leatstream.settings import Settings
from leatstream.storage.announcements import Announcements
from leatstream.storage.catalog_check import check_catalog
from leatstream.storage.migrate import at_head, migrate
from leatstream.storage.secret_box import open_secret_box
from leatstream.storage.sharing import hold, join_servers, prove_keys, server_id
from leatstream.storage.unit_of_work import open_units


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The present moment, UTC."""
        return datetime.now(UTC)


def open_runtime(
    settings: Settings, url: str, driver_environment: Mapping[str, str], *, migrate_catalog: bool = True
) -> Runtime:
    """Open the catalog, adopt or start drivers, and begin to reconcile.

    Args:
        settings: the server's.
        url: where drivers reach the API.
        driver_environment: Java, jars and the like for driver processes; no secrets.
        migrate_catalog: bring the catalog to the newest schema; else an old one is refused.

    Raises:
        StackError: ``part-failed``, the catalog is lost, damaged, or old and may not be migrated.
    """
    with ExitStack() as opened:
        runtime = _open(settings, url, driver_environment, opened, migrate_catalog=migrate_catalog)
        opened.pop_all()  # all went well: from here on it is the runtime that closes
    return runtime


def _open(
    settings: Settings,
    url: str,
    driver_environment: Mapping[str, str],
    opened: ExitStack,
    *,
    migrate_catalog: bool,
) -> Runtime:
    """Open the parts; ``opened`` holds what has to be done if one of them cannot be."""
    data_dir = settings.data_dir.resolve()
    locks = _hold(settings, data_dir, opened)
    _bring_up_to_date(settings, migrate_catalog)
    open_unit = open_units(settings.catalog)
    opened.callback(open_unit.close)
    server = server_id(data_dir)
    secret_box = open_secret_box(settings.keys)
    leases = join_servers(
        settings.catalog, server, settings.checkpoints, settings.driver_orphan_seconds, settings.lease_seconds
    )
    if leases is not None:
        opened.callback(leases.withdraw)
    changed = Signal()
    clock = SystemClock()
    url_file = data_dir / "api.url"
    write_private(url_file, url)
    if settings.driver_user:
        # Drivers pass through to what is theirs, and read where the API is; all else has modes of its own.
        data_dir.chmod(0o711)
        url_file.chmod(0o644)
    pool = DriverPool(
        open_unit,
        clock,
        open_launcher(settings, server, url_file, driver_environment),
        warm=settings.warm_drivers,
        limit=settings.max_drivers,
        server=server,
        heap=heaps(settings),
        seats=settings.shared_queries,
        wake=changed.wake,  # what this server's drivers wait for is no news to others
    )
    prove_keys(open_unit, secret_box, alone=leases is None)
    checkpoints = open_checkpoints(settings, driver_environment)
    opened.callback(checkpoints.close)
    env: Environment
    connections = StoreConnections(lambda: env)
    env = Environment(
        open_unit=open_unit,
        clock=clock,
        secrets=secret_box,
        connect=connections,
        connector_classes=connector_classes(),
        analyzer=AnalysisQueue(changed.wake),
        drivers=pool,
        views=open_view_store(settings, open_unit, secret_box, data_dir / "views"),
        checkpoints=checkpoints,
        settings=_runtime_settings(settings, data_dir),
        changed=changed,
        listening_since=clock.now(),
        leases=leases or SoleServer(),
        identities=open_identities(settings),
        destinations=Destinations(Networks.read(settings.allowed_networks)),
        outside=OutsideSecrets(
            open_providers(settings.outside_secrets, (data_dir, settings.keys)),
            settings.outside_secrets.cache_seconds,
        ),
        open_registry=lambda address, seconds: open_registry(env, address, seconds),
    )
    announcements = None
    if leases is not None:
        announcements = Announcements(settings.catalog, server, changed.wake)
        announcements.start()
        opened.callback(announcements.close)
        changed.tell = announcements.tell
    token = admin_token(open_unit, clock, data_dir, alone=leases is None or not leases.others())
    if leases is not None:
        leases.start()
    pool.adopt()
    loop = ReconcileLoop(env, pool)
    loop.start()
    watch = StandstillWatch(env.passes)
    watch.start()
    grace = settings.stop_grace_seconds
    closing = open_unit.close, checkpoints.close
    return Runtime(env, pool, loop, watch, token, *closing, announcements, locks, grace)


def _hold(settings: Settings, data_dir: Path, opened: ExitStack) -> list[IO[str]]:
    """Take the data directory and the catalog's file for this server alone."""
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    locks = hold(data_dir, settings.catalog)
    for lock in locks:
        opened.callback(lock.close)
    check_catalog(settings.catalog, data_dir, settings.checkpoints)
    return locks


def _bring_up_to_date(settings: Settings, migrate_catalog: bool) -> None:
    if migrate_catalog:
        migrate(settings.catalog)
    elif not at_head(settings.catalog):
        raise StackError(
            "part-failed",
            "The catalog's schema is not the newest and may not be migrated here.",
            hint="Start one server with LEATSTREAM_MIGRATE=true.",
        )


def _runtime_settings(settings: Settings, data_dir: Path) -> RuntimeSettings:
    return RuntimeSettings(
        checkpoint_root=settings.checkpoints,
        log_dir=data_dir / "logs" / "drivers",
        slots=slots(settings),
        orphan_seconds=settings.driver_orphan_seconds,
        watermark_delay_ms=settings.watermark_delay_ms,
        error_excerpts=settings.error_excerpts,
        keep_replaced=settings.keep_replaced_seconds,
        keep_checkpoints=settings.keep_checkpoints_seconds,
        revoked_grace=settings.revoked_grace_seconds,
        keep_events=settings.audit_days * 86_400.0,
        default_store=settings.default_store,
        requests_per_second=settings.requests_per_second,
        public_url=settings.public_url,
        session_seconds=settings.session_hours * 3600,
        isolated_drivers=settings.launcher == "kubernetes",
    )
