"""A process with the toy kinds registered, which prints as JSON what each face of the product makes of them.

Usage: ``python toy_world.py``. A process of its own: REST builds its schemas once, when it is imported.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from leatstream.connectors import registry

registry.KINDS += [
    "toy_kind.connector:ToyConnector",
    "toy_kind.connector:ToySource",
    "toy_kind.connector:ToyViews",
]

import fakes  # noqa: E402
from scratch import memory_directory  # noqa: E402
from starlette.testclient import TestClient  # noqa: E402

from leatstream.connectors.capability_page import page  # noqa: E402
from leatstream.connectors.registry import connector_classes, open_connector  # noqa: E402
from leatstream.model.objects import Store  # noqa: E402
from leatstream.rest.app import create_app  # noqa: E402
from leatstream.services.nouns.stores import resolve_store_secrets  # noqa: E402
from leatstream_terraform.generate import generate  # noqa: E402

_STATEMENTS = {
    "create": "CREATE STORE shelf WITH ('type' = PLAYTHING, 'toy.shelf' = 'upper', 'toy.colour' = 'light-blue',"
    " 'toy.height' = 3, 'toy.owner' = 'ann', 'toy.key' = 'hunter2');",
    "update": "UPDATE STORE shelf WITH ('toy.height' = 4);",
    "faults": "CREATE STORE other WITH ('type' = TOY, 'toy.colour' = 'green', 'toy.box' = 1, 'toy.shelff' = 'x');",
    "moved": "UPDATE STORE shelf WITH ('toy.shelf' = 'lower');",
    "entity": "CREATE ENTITY car IN STORE shelf WITH ('wheels.of.toy' = 4, 'toy.sound' = 'toot');",
    "second_entity": "CREATE ENTITY bike IN STORE shelf WITH ('toy.wheels' = 2);",
    "entity_needs": "CREATE ENTITY cart IN STORE shelf;",
    "print": "PRINT ENTITY car IN STORE shelf;",
    "source": "CREATE STORE src WITH ('type' = TOY_SOURCE, 'toy.shelf' = 'upper');",
    "views": "CREATE STORE vw WITH ('type' = TOY_VIEWS, 'toy.shelf' = 'upper');",
    "create_in_source": "CREATE ENTITY kite IN STORE src WITH ('toy.wheels' = 4);",
    "streams": "CREATE DATABASE d; CREATE STREAM d.public.cars (a BIGINT) WITH ('store' = shelf, 'topic' = 'car',"
    " 'value.format' = 'json'); CREATE STREAM d.public.bikes (a BIGINT) WITH ('store' = shelf, 'topic' = 'bike',"
    " 'value.format' = 'json'); CREATE STREAM d.public.boats (a BIGINT) WITH ('store' = src, 'topic' = 'car',"
    " 'value.format' = 'json'); CREATE STREAM d.public.rafts (a BIGINT) WITH ('store' = src, 'topic' = 'bike',"
    " 'value.format' = 'json');",
    "in_views": "CREATE STREAM d.public.planes (a BIGINT) WITH ('store' = vw, 'topic' = 'car', 'value.format' = 'json');",
    "read_sink": "INSERT INTO d.public.cars SELECT a FROM d.public.bikes;",
    # What a topic needs is not asked for: it would not help.
    "topics": "CREATE STORE k WITH ('type' = KAFKA, 'uris' = 'localhost:9092');",
    "read_for_topic": "CREATE STREAM d.public.more WITH ('store' = k) AS SELECT a FROM d.public.bikes;",
    "write_source": "INSERT INTO d.public.boats SELECT a FROM d.public.rafts;",
    "write_sink": "INSERT INTO d.public.cars SELECT a FROM d.public.boats;",
}


def _faces() -> dict[str, Any]:
    with memory_directory() as directory:
        world = fakes.make_world(Path(directory))

        def connect(store: Store) -> Any:
            with world.units(write=False) as unit:
                secrets = resolve_store_secrets(world.env, unit, store)
            return open_connector(store.kind, store.name, store.config, secrets)

        env = replace(world.env, connector_classes=connector_classes(), connect=connect)
        app = create_app(env)
        with TestClient(app, headers=world.headers) as client:
            found: dict[str, Any] = {
                name: client.post("/v1/statements", json={"sql": sql}).json()
                for name, sql in _STATEMENTS.items()
            }
            found["store"] = client.get("/v1/stores/shelf").json()
            found["put"] = client.put("/v1/stores/shelf/entities/tram", json={"toy": {"wheels": 8}}).json()
            found["entities"] = client.get("/v1/stores/shelf/entities").json()
            found["capabilities"] = client.get("/v1/server/capabilities").json()
        world.units.close()
    document = app.openapi()
    return found | {"openapi": document, "provider": generate(document), "page": page(connector_classes())}


if __name__ == "__main__":
    json.dump(_faces(), sys.stdout)
