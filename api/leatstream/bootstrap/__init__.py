"""The composition root: the one place that names concrete adapters.

``opening`` puts a server together, from ``adapters`` that the settings name; ``runtime`` is what runs.
"""

from leatstream.bootstrap.administrator import admin_token, declare_embedded_store
from leatstream.bootstrap.opening import open_runtime
from leatstream.bootstrap.runtime import Runtime
from leatstream.bootstrap.store_connections import StoreConnections, open_registry

__all__ = [
    "Runtime",
    "StoreConnections",
    "admin_token",
    "declare_embedded_store",
    "open_registry",
    "open_runtime",
]
