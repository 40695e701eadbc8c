"""The composition root: the one place that names concrete adapters."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from leatstream.connectors.base import Connector
from leatstream.connectors.destinations import Destinations
from leatstream.connectors.registry import connector_classes, open_connector
from leatstream.engine.analysis import AnalysisQueue
from leatstream.engine.driver_pool import DriverPool
from leatstream.engine.loop import ReconcileLoop
from leatstream.engine.standstill import StandstillWatch
from leatstream.errors import CatalogError, EngineError, SecretStoreError, StackError, StoreError
from leatstream.formats.registry_client import RegistryAddress, RegistryClient
from leatstream.launching import driver_account, heaps, open_launcher, slots
from leatstream.model.access import Scope, TokenRow
from leatstream.model.networks import Networks
from leatstream.model.objects import Store
from leatstream.ports import CheckpointFiles, Identities, OpenUnit, SecretBox, ViewStore
from leatstream.secret_stores import open_providers
from leatstream.services.environment import Environment, Principal, RuntimeSettings
from leatstream.services.environment.authorization import (
    ADMINISTRATOR,
    hash_token,
    mint_token,
    well_formed,
)
from leatstream.services.environment.outside_secrets import OutsideSecrets
from leatstream.services.environment.own_tokens import OwnTokens
from leatstream.services.environment.signal import Signal
from leatstream.services.environment.sole_server import SoleServer
from leatstream.services.nouns.places import require_registry_allowed, require_store_allowed
from leatstream.services.nouns.secret_values import Held
from leatstream.services.nouns.stores import held_store_secrets, open_store_secrets, put_store
from leatstream.settings import Settings
from leatstream.storage.announcements import Announcements
from leatstream.storage.catalog_check import check_catalog
from leatstream.storage.checkpoint_directory import CheckpointDirectory
from leatstream.storage.checkpoint_url import CheckpointUrl
from leatstream.storage.hadoop_client import HadoopClient
from leatstream.storage.migrate import at_head, migrate
from leatstream.storage.secret_box import open_secret_box
from leatstream.storage.sharing import (
    VIEWS_PASSWORD,
    common_password,
    hold,
    join_servers,
    prove_keys,
    server_id,
)
from leatstream.storage.unit_of_work import open_units
from leatstream.views.stores import open_views

_SYSADMIN = "sysadmin"
_TOKEN_VARIABLE = "LEATSTREAM_BOOTSTRAP_TOKEN"  # noqa: S105 - a name
_TOKEN_FILE = "token"  # noqa: S105 - a file name
_LOG = logging.getLogger(__name__)


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The present moment, UTC."""
        return datetime.now(UTC)


@dataclass(slots=True)
class Runtime:
    """A running control plane without its REST face.

    Attributes:
        env: for the services.
        token: of the administrator; only ever in memory and in a 0600 file of the data directory.
    """

    env: Environment
    pool: DriverPool
    loop: ReconcileLoop
    watch: StandstillWatch
    token: str
    close_catalog: Callable[[], None]
    close_checkpoints: Callable[[], None]
    announcements: Announcements | None
    locks: list[IO[str]]
    stop_grace: float = 0.0

    def warm(self) -> bool:
        """Whether the analyzer and, if any are kept, a driver are warm."""
        return self.pool.ready() and self.pool.warm()

    def wait_warm(self, timeout: float) -> None:
        """Wait until the analyzer and a driver are warm; EngineError engine-unavailable after a while."""
        deadline = time.monotonic() + timeout
        seen = self.env.changed.value
        while not self.warm():
            if time.monotonic() > deadline:
                raise EngineError(
                    "engine-unavailable",
                    f"No Spark driver was warm after {timeout:.0f} s.",
                    hint=f"The drivers' logs are in {self.env.settings.log_dir}.",
                )
            seen = self.env.changed.wait(seen, 1.0)

    def end_drivers(self) -> frozenset[str]:
        """End the loop and every driver, each after its batch; the API must answer them meanwhile.

        Returns:
            Ids of the queries whose drivers could not be ended.
        """
        self.env.changed.end()
        self.watch.stop()  # no pass is made any more, and nobody is to wonder
        self.loop.stop()
        return self.pool.close(self.stop_grace)

    def close(self) -> None:
        """End the loop and every driver, let go of the queries, close the catalog's connections."""
        self.env.leases.close(self.end_drivers())
        if self.announcements is not None:
            self.announcements.close()
        self.close_checkpoints()
        self.close_catalog()
        for lock in self.locks:
            lock.close()


@dataclass(frozen=True, slots=True)
class _Open:
    """A connector that is kept.

    Attributes:
        checked: when its addresses were looked at last.
        outside: digest of its values from secret stores; None if it has none.
    """

    connector: Connector
    checked: float
    outside: bytes | None


class StoreConnections:
    """Connectors by store version, so that their clients are opened once."""

    def __init__(self, env: Callable[[], Environment], recheck: float = 30.0) -> None:
        """Open nothing yet.

        Args:
            env: gives the environment, which is made later.
            recheck: seconds after which the addresses of an open connector, and its values from secret
                stores, are looked at again.
        """
        self._env, self._recheck = env, recheck
        self._lock = threading.Lock()
        self._open: dict[tuple[str, int, int], _Open] = {}

    def __call__(self, store: Store) -> Connector:
        """The connector of a store, secrets resolved.

        Raises:
            StoreError: address-refused, one of its hosts has an address to which the server may not connect;
                store-unreachable, the name service did not answer, and no connector is open yet.
            SecretStoreError: a secret store does not give a value, and no connector is open yet.
        """
        env = self._env()
        key = (store.meta.id, store.meta.generation, store.secret_changes)
        with self._lock:
            kept = self._open.get(key)
        if kept is not None and time.monotonic() - kept.checked < self._recheck:
            return kept.connector
        try:
            require_store_allowed(env, store)
        except StoreError as error:
            # An open connection works without the name service.
            if kept is None or error.code == "address-refused":
                raise
        if kept is not None and not _is_rotated(env, store, kept.outside):
            self._keep(key, kept.connector, kept.outside)
            return kept.connector
        with env.open_unit(write=False) as unit:
            held = held_store_secrets(unit, store)
            there = {one.meta.id for one in unit.stores.page(limit=100_000)}
        secrets = open_store_secrets(env, held)
        connector = open_connector(store.kind, store.name, store.config, secrets)
        if store.meta.generation:
            with self._lock:
                # Clients have threads and connections: those of dropped stores go as well.
                for old in [k for k in self._open if k[0] == store.meta.id or k[0] not in there]:
                    del self._open[old]
            self._keep(key, connector, _digest(held, secrets))
        return connector

    def _keep(self, key: tuple[str, int, int], connector: Connector, outside: bytes | None) -> None:
        with self._lock:
            self._open[key] = _Open(connector, time.monotonic(), outside)


def _is_rotated(env: Environment, store: Store, outside: bytes | None) -> bool:
    """Whether a secret store has other values now; one that does not answer leaves a connection alone."""
    if outside is None:
        return False
    with env.open_unit(write=False) as unit:
        held = held_store_secrets(unit, store)
    try:
        return _digest(held, open_store_secrets(env, held)) != outside
    except SecretStoreError:
        return False


def _digest(held: Mapping[str, Held], values: Mapping[str, str]) -> bytes | None:
    outside = {path: values[path] for path, one in sorted(held.items()) if one.outside is not None}
    return hashlib.sha256(repr(outside).encode()).digest() if outside else None


def open_registry(env: Environment, address: RegistryAddress, seconds: float) -> RegistryClient:
    """A client of a schema registry to which the server may connect.

    Args:
        env: the environment.
        address: of the registry.
        seconds: that a call may take.

    Raises:
        StoreError: address-refused; registry-unreachable, the name service did not answer.
    """
    require_registry_allowed(env, address)
    return RegistryClient(address, seconds)


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
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    locks = hold(data_dir, settings.catalog)
    for lock in locks:
        opened.callback(lock.close)
    check_catalog(settings.catalog, data_dir, settings.checkpoints)
    if migrate_catalog:
        migrate(settings.catalog)
    elif not at_head(settings.catalog):
        raise StackError(
            "part-failed",
            "The catalog's schema is not the newest and may not be migrated here.",
            hint="Start one server with LEATSTREAM_MIGRATE=true.",
        )
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
    _write_private(url_file, url)
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
        views=_views(settings, open_unit, secret_box, data_dir / "views"),
        checkpoints=checkpoints,
        settings=RuntimeSettings(
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
        ),
        changed=changed,
        listening_since=clock.now(),
        leases=leases or SoleServer(),
        identities=_identities(settings),
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


def _views(settings: Settings, open_unit: OpenUnit, box: SecretBox, directory: Path) -> ViewStore:
    """Where views are kept: with a role of their own, where the catalog is in PostgreSQL."""
    if not settings.catalog.startswith("postgresql"):
        return open_views(settings.catalog, directory)
    from leatstream.views.postgresql_role import NoRole, make_role, use_role
    from leatstream.views.postgresql_store import USE_ANOTHER, UnusableViews

    url = settings.views_url
    try:
        if url:
            use_role(settings.catalog, url)
        else:
            url = make_role(settings.catalog, common_password(open_unit, box, VIEWS_PASSWORD))
    except StoreError as error:  # it answers for the catalog, so this passes
        hint = "Start again; a dump or another long transaction may hold the tables of materialized views."
        raise StackError("part-failed", error.detail, hint=hint) from error
    except NoRole as error:
        _LOG.warning("materialized views cannot be kept: %s. %s", error, USE_ANOTHER)
        return UnusableViews(str(error))
    return open_views(url, directory)


def _identities(settings: Settings) -> Identities:
    if not settings.oidc:
        return OwnTokens()
    from leatstream.identity.issuers import Issuers  # with its cryptography, which others need not load

    return Issuers(settings.oidc)


def open_checkpoints(settings: Settings, driver_environment: Mapping[str, str]) -> CheckpointFiles:
    """The files of checkpoints: in a directory, or under a URL that Hadoop's client reaches; no I/O."""
    root = settings.checkpoints
    if "://" not in root:
        account = driver_account(settings)
        if account is None:
            return CheckpointDirectory(Path(root))
        account.give_all(Path(root))
        return CheckpointDirectory(Path(root), account.files)
    # What Spark hands on to Hadoop in the drivers, by the same names.
    prefix, given = (
        "spark.hadoop.",
        settings.spark_conf if settings.launcher in ("standalone", "yarn") else {},
    )
    known = {key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)}
    return CheckpointUrl(root, HadoopClient({**os.environ, **driver_environment}, known))


def admin_token(open_unit: OpenUnit, clock: SystemClock, data_dir: Path, *, alone: bool = True) -> str:
    """The administrator's token: LEATSTREAM_BOOTSTRAP_TOKEN, else that of the last run, else a new one.

    Args:
        open_unit: opens a unit of the catalog.
        clock: for the time of its making.
        data_dir: holds the file with the token.
        alone: whether no other server of this catalog lives.

    Raises:
        StackError: ``part-failed``, the token is none, or none was given while other servers live (not
            ``alone``) that have another.
    """
    path = data_dir / _TOKEN_FILE
    given = os.environ.get(_TOKEN_VARIABLE, "")
    if given and not well_formed(given):
        raise StackError(
            "part-failed",
            f"{_TOKEN_VARIABLE} is not a leatstream token.",
            hint="Take the one of an earlier start, or leave it out and a new one is made.",
        )
    token = given or (path.read_text().strip() if path.exists() else "")
    if not well_formed(token):
        token, _, _ = mint_token()
    token_id = token.split("_")[1]
    with open_unit() as unit:
        if not (alone or given) and unit.find_token(hash_token(token)) is None:
            raise StackError(
                "part-failed",
                "Other servers of this catalog have another administrator's token than this one.",
                hint=f"Set {_TOKEN_VARIABLE} of every server to one token.",
            )
        _write_private(path, token)
        unit.tokens.delete_of(ADMINISTRATOR)  # a token that was replaced is worth nothing any more
        unit.tokens.add(
            TokenRow(
                id=token_id,
                hash=hash_token(token),
                name=ADMINISTRATOR,
                principal=ADMINISTRATOR,
                role=_SYSADMIN,
                scope=Scope.ADMIN,
                created_at=clock.now(),
                created_by=ADMINISTRATOR,
            )
        )
        unit.commit()
    return token


def declare_embedded_store(
    env: Environment,
    name: str,
    kind: str,
    config: Mapping[str, Any],
    secrets: Mapping[str, str | None] | None = None,
) -> None:
    """Declare a part of the embedded stack as a store, so that the first statement has somewhere to go.

    Args:
        env: what services work with.
        name: the store's name.
        kind: store kind, such as ``kafka``.
        config: its settings without secrets.
        secrets: dotted field path to value.
    """
    principal = Principal(ADMINISTRATOR, _SYSADMIN)
    try:
        put_store(env, principal, name, kind, config, secrets or {})
    except CatalogError:  # a store of another kind has taken the name: the user's word counts
        return


def _write_private(path: Path, text: str) -> None:
    temporary = path.with_suffix(".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    temporary.replace(path)
