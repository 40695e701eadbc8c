"""The view that stands for a scan: declared columns, then the hidden ones."""

from __future__ import annotations

from leatstream.model.objects import DELETED, ROWHEADERS, ROWKEY, ROWMETA, ROWTIME, UNTIL, RelationKind
from leatstream.plan.logical import Scan, ViewSchema

_PLACE = {"topic": "STRING", "partition": "INT", "offset": "BIGINT", "timestamp_type": "INT"}

KEYED_DDL = f"`{DELETED}` BOOLEAN, `{UNTIL}` TIMESTAMP"


HEADERS_DDL = f"`{ROWHEADERS}` MAP<STRING, BINARY>"


def view_schema(scan: Scan) -> ViewSchema:
    """The scan's view as Spark DDL, for an empty view to analyze against."""
    if scan.relation.kind is RelationKind.TABLE:
        return ViewSchema(
            scan.view,
            ", ".join(f"`{c.name.replace('`', '``')}` {c.type.spark()}" for c in scan.relation.columns),
        )
    columns = [f"`{c.name.replace('`', '``')}` {c.type.spark()}" for c in scan.relation.columns]
    keyed = [KEYED_DDL] if scan.relation.kind is RelationKind.CHANGELOG else []
    more = [HEADERS_DDL] if scan.headers else []
    place = ", ".join(f"`{name}`: {kind}" for name, kind in {**_PLACE, **scan.place}.items())
    hidden = f"`{ROWTIME}` TIMESTAMP, `{ROWKEY}` BINARY, `{ROWMETA}` STRUCT<{place}>"
    return ViewSchema(scan.view, ", ".join([*columns, hidden, *keyed, *more]))
