"""Which adapter the settings mean, where there are several of a port."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from leatstream.errors import StackError, StoreError
from leatstream.launching import driver_account
from leatstream.ports import CheckpointFiles, Identities, OpenUnit, SecretBox, ViewStore
from leatstream.services.environment.own_tokens import OwnTokens
from leatstream.settings import Settings
from leatstream.storage.checkpoint_directory import CheckpointDirectory
from leatstream.storage.checkpoint_url import CheckpointUrl
from leatstream.storage.hadoop_client import HadoopClient
from leatstream.storage.sharing import VIEWS_PASSWORD, common_password
from leatstream.views.stores import open_views

_LOG = logging.getLogger(__name__)


def open_view_store(settings: Settings, open_unit: OpenUnit, box: SecretBox, directory: Path) -> ViewStore:
    """Where views are kept: with a role of their own, where the catalog is in PostgreSQL.

    Args:
        settings: of the server.
        open_unit: opens a unit of the catalog.
        box: seals the role's password.
        directory: for views that are kept beside a catalog in SQLite.

    Raises:
        StackError: ``part-failed``, the role cannot be made or used now.
    """
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


def open_identities(settings: Settings) -> Identities:
    """Who is asked about tokens that leatstream did not make: the configured issuers, or nobody."""
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
