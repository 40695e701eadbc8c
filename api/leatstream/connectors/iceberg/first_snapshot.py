"""A table's first snapshot, an empty one, so that no commit of rows is a table's first.

A commit of rows asserts that the table's snapshot is the one it began with. Nessie 0.99 ignores this of a
table without a snapshot (projectnessie/nessie#10062): of two first commits the second replaces the first,
with its rows. Where both are empty, nothing is lost. Tables get it when leatstream creates them, and those of
others when a query claims them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.table import Table, Transaction


def add_first_snapshot(table: Table, transaction: Transaction) -> None:
    """Let a transaction make a table's first snapshot, without files of data, unless there is one."""
    if table.current_snapshot() is None:
        with transaction.update_snapshot().fast_append():
            pass
