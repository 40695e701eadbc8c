"""How far a query has let its slot go: kept in its checkpoint, so that its next start knows the slot's place.

The slot may stand behind the query's position: what has no change of the table is let go without a batch.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from leatstream.connectors.postgres.pgoutput import format_lsn, parse_lsn

NOTE = "let_go.json"


@dataclass(slots=True)
class SlotNote:
    """The note of one slot.

    Attributes:
        slot, server: of another slot or another server's identity a note says nothing.
        lsn: the slot is asked for nothing beyond it; None = not known, as of queries older than notes.
    """

    path: Path
    slot: str
    server: str
    lsn: int | None = None

    @classmethod
    def read(cls, directory: Path, slot: str, server: str) -> SlotNote:
        """The note in a directory."""
        found = cls(directory / NOTE, slot, server)
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            body = json.loads(found.path.read_text())
            if (body["slot"], body["server"]) == (slot, server):
                found.lsn = parse_lsn(body["lsn"])
        return found

    def write(self, lsn: int) -> None:
        """Note this place, safely on disk; never an earlier one, as an advance may still be under way."""
        if self.lsn is not None and lsn <= self.lsn:
            return
        partial = self.path.with_suffix(".partial")
        with partial.open("w") as file:
            json.dump({"slot": self.slot, "server": self.server, "lsn": format_lsn(lsn)}, file)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(self.path)
        with contextlib.suppress(OSError):  # not every file system has it
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        self.lsn = lsn
