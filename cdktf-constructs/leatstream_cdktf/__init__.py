"""Constructs that deploy leatstream as code, for CDK for Terraform (``cdktn`` or ``cdktf``).

::

    from leatstream_cdktf import Application, Changelog, Construct, Database, KafkaStore, KinesisStore,
    LeatstreamProvider, Query, Schema, Sink, Stream, tf

``tf`` is the CDK library in use (``tf.App``, ``tf.TerraformStack``, …): ``cdktn`` where it is installed, else
``cdktf``. The environment variable ``LEATSTREAM_CDKTF`` (``cdktn`` or ``cdktf``) picks one. ``l1`` has one
class per resource and data source of the provider, with every attribute.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from leatstream_cdktf import _node

if TYPE_CHECKING:
    from constructs import Construct

    from leatstream_cdktf import l1
    from leatstream_cdktf._shim import tf
    from leatstream_cdktf.l2 import (
        Application,
        Changelog,
        ClickHouseStore,
        Database,
        DatabricksStore,
        IcebergGlueStore,
        IcebergRestStore,
        KafkaStore,
        KinesisStore,
        LeatstreamProvider,
        OracleStore,
        Query,
        S3Store,
        Schema,
        Sink,
        SnowflakeStore,
        Stream,
        Table,
    )

_node.prepare()

__all__ = [
    "Application",
    "Changelog",
    "ClickHouseStore",
    "Construct",
    "Database",
    "DatabricksStore",
    "IcebergGlueStore",
    "IcebergRestStore",
    "KafkaStore",
    "KinesisStore",
    "LeatstreamProvider",
    "OracleStore",
    "Query",
    "S3Store",
    "Schema",
    "Sink",
    "SnowflakeStore",
    "Stream",
    "Table",
    "l1",
    "tf",
]


def __getattr__(name: str) -> Any:
    """Import on first use: importing the CDK library starts Node.js, and the generator needs neither."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    homes = {"tf": "leatstream_cdktf._shim", "Construct": "constructs"}
    # The shim comes first whatever is asked for: it says clearly what is missing.
    import_module("leatstream_cdktf._shim")
    if name == "l1":
        return import_module("leatstream_cdktf.l1")
    return getattr(import_module(homes.get(name, "leatstream_cdktf.l2")), name)
