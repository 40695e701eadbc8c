"""One commit for one micro-batch: data, and the batch's number as a property of the table, or neither.

    leatstream.<query>.attempt = 7                the attempt that may write
    leatstream.<query>.batch = 3fa1…/0000:42      the checkpoint, and its last batch that is in the table

pyiceberg repeats a commit where somebody else was faster: it puts the new files on top of the new state, and
nobody looks at the number again. Two attempts with the same batch would both succeed. So its retries are
switched off, here only and not in the table. After a commit that failed so, or whose answer was lost, the
table is looked at again: the batch is there, or a newer attempt has begun, or it is tried once more.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from leatstream.connectors.iceberg.admin import IcebergAdmin
from leatstream.connectors.iceberg.first_snapshot import add_first_snapshot
from leatstream.errors import AttemptBehindError, StoreError

if TYPE_CHECKING:
    from pyiceberg.table import Table, Transaction

_TRIES = 8
_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds
_TIMEOUT = 60.0
FOLDER = "leat-"
"""What the directory of a query's files begins with, in the table's directory of data."""


@dataclass(frozen=True, slots=True)
class Target:
    """Who writes where.

    Attributes:
        columns: of the sink, in their order.
        keys: those by which rows replace each other; empty where each row is kept.
        checkpoint: name of the query's checkpoint; another one counts batches from 0.
    """

    store: str
    entity: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    query: str
    checkpoint: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Progress:
    """What a table says of a query."""

    attempt: int = 0
    checkpoint: str | None = None
    batch: int | None = None

    def last(self, checkpoint: str) -> int | None:
        """Number of the last batch of a checkpoint."""
        return self.batch if checkpoint == self.checkpoint else None


def prefix(query: str) -> str:
    """What a query's properties of a table begin with."""
    return f"leatstream.{query}."


def progress(properties: Mapping[str, str], query: str) -> Progress:
    """What a table's properties say of a query; what cannot be read counts as nothing."""
    attempt = properties.get(f"{prefix(query)}attempt", "")
    checkpoint, _, number = properties.get(f"{prefix(query)}batch", "").rpartition(":")
    if not number.isdigit():
        return Progress(int(attempt) if attempt.isdigit() else 0)
    return Progress(int(attempt) if attempt.isdigit() else 0, checkpoint, int(number))


def data_path(table: Table) -> str:
    """Where a table's files of data lie."""
    own = table.properties.get("write.data.path")
    return own.rstrip("/") if own else f"{table.location().rstrip('/')}/data"


def query_path(table: Table, query: str) -> str:
    """Where the files lie that a query has written."""
    return f"{data_path(table)}/{FOLDER}{query}"


def claim(admin: IcebergAdmin, target: Target) -> int | None:
    """Make this attempt the one that may write, to a table with a snapshot that its commits assert.

    Returns:
        Number of the last batch of its checkpoint that is in the table.

    Raises:
        StoreError: a newer attempt has begun, or what the store says.
    """
    what = f"preparing table {target.entity}"

    def stage(table: Table, transaction: Transaction) -> None:
        _once(table)
        transaction.set_properties(_claimed(target))
        add_first_snapshot(table, transaction)
        _assert_snapshot(table, transaction)

    found: int | None = None

    def decide(table: Table) -> bool:
        nonlocal found
        now = progress(table.properties, target.query)
        if now.attempt > target.attempt:
            raise AttemptBehindError(fenced(target).detail, now.attempt)
        found = now.last(target.checkpoint)
        return now.attempt < target.attempt or table.current_snapshot() is None

    _commit(admin, target.entity, what, decide, stage)
    return found


def _claimed(target: Target) -> dict[str, str]:
    return {f"{prefix(target.query)}attempt": str(target.attempt)}


def _assert_snapshot(table: Table, transaction: Transaction) -> None:
    """Let a commit of properties be refused where somebody has written; by itself it asserts nothing of it.

    So a claim that is late fails, or precedes the newer attempt's first batch, which takes the table back.
    """
    from pyiceberg.table.update import AssertRefSnapshotId

    if (snapshot := table.current_snapshot()) is not None:
        same = AssertRefSnapshotId(ref="main", snapshot_id=snapshot.snapshot_id)  # type: ignore[call-arg]
        transaction._stage((), (same,))


def is_there(table: Table, target: Target, number: int) -> bool:
    """Whether a batch is in the table.

    Args:
        table: just loaded.
        target: who writes where.
        number: of the batch.

    Raises:
        StoreError: a newer attempt has begun.
    """
    now = progress(table.properties, target.query)
    if now.attempt > target.attempt:
        raise fenced(target)
    last = now.last(target.checkpoint)
    return last is not None and last >= number


def commit_batch(
    admin: IcebergAdmin, target: Target, number: int, stage: Callable[[Table, Transaction], None]
) -> bool:
    """Commit a batch with its number, unless it is there.

    Args:
        admin: of the store.
        target: who writes where.
        number: of the batch.
        stage: puts the batch's changes into the transaction; called again, with the table as it is then,
            where somebody else was faster.

    Returns:
        Whether it was committed now.
    """
    value = f"{target.checkpoint}:{number}"

    def staged(table: Table, transaction: Transaction) -> None:
        stage(table, transaction)
        # The attempt too: a claim that came late may have put an older one there.
        transaction.set_properties({**_claimed(target), f"{prefix(target.query)}batch": value})

    what = f"writing to table {target.entity}"
    return _commit(admin, target.entity, what, lambda table: not is_there(table, target, number), staged)


def remove_progress(admin: IcebergAdmin, entity: str, query: str, timeout: float) -> Table | None:
    """Remove what a table says of a query; the table, or None where it is gone.

    Args:
        admin: of the store.
        entity: its name in the store.
        query: id of one that has ended.
        timeout: seconds.
    """
    keys: list[str] = []
    found: Table | None = None

    def decide(table: Table) -> bool:
        nonlocal found
        found = table
        keys[:] = [key for key in table.properties if key.startswith(prefix(query))]
        return bool(keys)

    def stage(table: Table, transaction: Transaction) -> None:
        transaction.remove_properties(*keys)

    if admin.table(entity, timeout) is not None:
        _commit(admin, entity, f"forgetting query {query}", decide, stage, timeout)
    return found


def _commit(
    admin: IcebergAdmin,
    entity: str,
    what: str,
    decide: Callable[[Table], bool],
    stage: Callable[[Table, Transaction], None],
    timeout: float = _TIMEOUT,
) -> bool:
    """Commit once, if ``decide`` says so of the table as it is then; whether it did."""
    from pyiceberg.exceptions import CommitFailedException

    unclear: StoreError | None = None
    deadline = time.monotonic() + timeout
    for tries in range(_TRIES):
        with admin.catalog(what, timeout, rows=True):
            table = admin.loaded(entity, timeout, what)
            if not decide(table):
                # After an answer that was lost, what is there may well be ours.
                return unclear is not None
            try:
                with table.transaction() as transaction:
                    stage(table, transaction)
                return True
            except CommitFailedException:
                pass
            except Exception as error:
                unclear = admin.unclear(what, error, timeout)
                if unclear is None or time.monotonic() > deadline:
                    raise
        pause = min(_PAUSE * 2**tries, _LONGEST_PAUSE)
        time.sleep(pause * random.uniform(0.5, 1))
    raise unclear or StoreError(
        "store-unreachable",
        f"Store {admin.store}: {what}: others committed to the table each of {_TRIES} times.",
        hint="Let a table have few writers, and compact it while they rest.",
    )


def alone(table: Table, query: str, folder: str) -> None:
    """Make a table that is loaded commit once, and put its files into a folder; the catalog's stays as it is.

    Args:
        table: just loaded.
        query: whose files they are.
        folder: below the query's own.
    """
    _once(table, {"write.data.path": f"{query_path(table, query)}/{folder}"})


def _once(table: Table, more: Mapping[str, str] = MappingProxyType({})) -> None:
    properties = {**table.metadata.properties, "commit.retry.num-retries": "0", **more}
    table.metadata = table.metadata.model_copy(update={"properties": properties})


def summary(target: Target, number: int) -> dict[str, str]:
    """What a snapshot says of where it comes from, for people."""
    return {"leatstream.query": target.query, "leatstream.batch": str(number)}


def fenced(target: Target) -> StoreError:
    """A newer attempt writes the table."""
    return StoreError("store-rejected", f"A newer attempt of the query writes table {target.entity} now.")
