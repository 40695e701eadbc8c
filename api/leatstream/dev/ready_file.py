"""The name of the file that says where a running ``leat dev`` is; without any library."""

from __future__ import annotations

READY_FILE = "ready.json"
