"""pyiceberg 0.12 takes a NULL for an empty ARRAY or MAP where their elements are structs: corrected here.

It does so when it writes rows, when it reads them, and when it writes files again to delete rows from them,
which would change rows that nobody named.
"""

from __future__ import annotations

import functools
from typing import Any


@functools.cache
def keep_null_lists() -> None:
    """Let pyiceberg's projection of this process keep lists and maps that are NULL."""
    import pyarrow as pa
    from pyiceberg.io.pyarrow import ArrowProjectionVisitor

    def keeping(theirs: Any) -> Any:
        @functools.wraps(theirs)
        def kept(self: Any, kind: Any, values: Any, *inner: Any) -> Any:
            found = theirs(self, kind, values, *inner)
            if found is None or values is None or found.null_count == values.null_count:
                return found
            # By hand, as functions of Arrow lose the ids in the type of what they give.
            parts = [values.is_valid().buffers()[1], found.buffers()[1]]
            return pa.Array.from_buffers(found.type, len(found), parts, children=[found.values])

        return kept

    ArrowProjectionVisitor.list = keeping(ArrowProjectionVisitor.list)  # type: ignore[method-assign]
    ArrowProjectionVisitor.map = keeping(ArrowProjectionVisitor.map)  # type: ignore[method-assign]
