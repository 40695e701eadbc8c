"""A REST contract of the real shape, small enough to read: input of the generator's tests.

It stands for the service's own OpenAPI document in everything that the provider needs: bodies, answers and
hints.
"""

from __future__ import annotations

from typing import Any

STRING = {"type": "string"}
MAYBE = {"anyOf": [{"type": "string"}, {"type": "null"}]}


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def maybe(description: str, **more: Any) -> dict[str, Any]:
    return {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "default": None,
        "description": description,
        **more,
    }


def ref(name: str, **more: Any) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}", **more}


def maybe_ref(name: str, description: str, **more: Any) -> dict[str, Any]:
    return {"anyOf": [ref(name), {"type": "null"}], "default": None, "description": description, **more}


def strings(description: str, **more: Any) -> dict[str, Any]:
    inner = {"type": "object", "additionalProperties": {"type": "string"}}
    return {"anyOf": [inner, {"type": "null"}], "default": None, "description": description, **more}


def hint(**values: Any) -> dict[str, Any]:
    return {"x-terraform": values}


COMMENT = maybe("Free text.")
META = {
    "id": text("Stable id of the object."),
    "generation": {
        "type": "integer",
        "description": "Counts changes of what was written, from 1.",
        **hint(volatile=True),
    },
    "created_at": text("When the object was made.", **hint(omit=True)),
    "updated_at": text("When it was last changed.", **hint(omit=True)),
    "created_by": text("Who made it.", **hint(omit=True)),
    "owner": text("Role that owns the object."),
}
EFFECTIVE = {
    "type": "object",
    "description": "Every property in force, with where it came from.",
    "additionalProperties": ref("EffectiveValue"),
}

SCHEMAS: dict[str, Any] = {
    "EffectiveValue": {
        "type": "object",
        "properties": {
            "value": {
                "anyOf": [STRING, {"type": "integer"}, {"type": "boolean"}],
                "description": "The value.",
            },
            "origin": text(
                "Which rule gave it: explicit, existing_entity, left_most_source, session or default."
            ),
            "from": maybe("The object the value was read from."),
        },
    },
    "DatabaseBody": {
        "type": "object",
        "description": "A database: a logical grouping of schemas.",
        "properties": {"comment": COMMENT},
        **hint(
            resource="leatstream_database",
            path="/v1/databases/{name}",
            key=["name"],
            path_attributes={"name": "Name of the database, exact."},
            assume="databases",
            **{"import": "{name}"},
        ),
    },
    "Database": {"type": "object", "properties": {**META, "name": STRING, "comment": COMMENT}},
    "SchemaBody": {
        "type": "object",
        "description": "A schema: a namespace of relations inside a database.",
        "properties": {"comment": COMMENT},
        **hint(
            resource="leatstream_schema",
            path="/v1/databases/{database}/schemas/{name}",
            key=["database", "name"],
            path_attributes={"database": "Name of the database.", "name": "Name of the schema, exact."},
            assume="schemas",
            **{"import": "{database}.{name}"},
        ),
    },
    "Schema": {
        "type": "object",
        "properties": {
            **META,
            "database": STRING,
            "name": STRING,
            "comment": COMMENT,
            "fqn": text("Full name, quoted where SQL needs it.", **hint(template="{database}.{name}")),
        },
    },
    "Sasl": {
        "type": "object",
        "required": ["mechanism", "username", "password"],
        "properties": {
            "mechanism": text("SASL mechanism.", enum=["plain", "scram_sha_256", "scram_sha_512"]),
            "username": text("User name."),
            "password": text("Password.", writeOnly=True),
        },
    },
    "Tls": {
        "type": "object",
        "properties": {
            "ca_certificate": maybe("Certificate authority to trust, PEM."),
            "verify_hostname": {
                "anyOf": [{"type": "boolean"}, {"type": "null"}],
                "default": None,
                "description": "Whether the broker's name must match its certificate.",
            },
        },
    },
    "Kafka": {
        "type": "object",
        "required": ["bootstrap_servers"],
        "properties": {
            "bootstrap_servers": text("Comma-separated host:port."),
            "security_protocol": maybe("How to connect.")
            | {
                "anyOf": [
                    {"type": "string", "enum": ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]},
                    {"type": "null"},
                ]
            },
            "sasl": maybe_ref("Sasl", "User and password."),
            "tls": maybe_ref("Tls", "Transport encryption."),
        },
    },
    "StoreBody": {
        "type": "object",
        "description": "A store: connectivity and access to a system of yours.",
        "properties": {
            "comment": COMMENT,
            "kafka": maybe_ref("Kafka", "An Apache Kafka cluster, or one that speaks its protocol."),
        },
        **hint(
            resource="leatstream_store",
            path="/v1/stores/{name}",
            key=["name"],
            path_attributes={"name": "Name of the store, exact."},
            assume="stores",
            exactly_one_of=[["kafka"]],
            warn={"attribute": "status", "states": ["errored"]},
            attributes={"status": {"volatile": True}, "status.checked_at": {"omit": True}},
            **{"import": "{name}"},
        ),
    },
    "Store": {
        "type": "object",
        "properties": {
            **META,
            "name": STRING,
            "comment": COMMENT,
            "kind": text("Kind of the store, such as kafka."),
            "kafka": maybe_ref("Kafka", "Settings."),
            "status": {
                "type": "object",
                "description": "Whether the store answered when it was last asked.",
                "properties": {
                    "state": text("pending, ready or errored."),
                    "message": maybe("What is wrong."),
                    "checked_at": text("When."),
                    "error": maybe_ref("Anything", "The problem.", **hint(omit=True)),
                },
            },
        },
    },
    "Anything": {"type": "object"},
    "EntityKafka": {
        "type": "object",
        "properties": {
            "partitions": {
                "anyOf": [{"type": "integer"}, {"type": "null"}],
                "default": None,
                "description": "Number of partitions; required to create a topic.",
            },
            "replicas": {
                "anyOf": [{"type": "integer"}, {"type": "null"}],
                "default": None,
                "description": "Replication factor; required to create a topic.",
                **hint(replace=True),
            },
            "configs": strings("Topic configuration, such as `retention.ms`."),
        },
    },
    "EntityBody": {
        "type": "object",
        "description": "An entity: a topic in a store of yours. Destroying it deletes topic and records.",
        "properties": {"kafka": maybe_ref("EntityKafka", "Settings of a Kafka topic.")},
        **hint(
            resource="leatstream_entity",
            path="/v1/stores/{store}/entities/{name:raw}",
            key=["store", "name"],
            path_attributes={"store": "Name of the store.", "name": "Name of the topic, exact."},
            assume="entities",
            live=True,
            attributes={"effective": {"volatile": True}},
            **{"import": "{store}/{name:raw}"},
        ),
    },
    "EntityEffective": {
        "type": "object",
        "properties": {
            "partitions": {"type": "integer", "description": "Number of partitions."},
            "replicas": {"type": "integer", "description": "Replication factor."},
            "configs": {
                "type": "object",
                "additionalProperties": STRING,
                "description": "Topic configuration.",
            },
        },
    },
    "Entity": {
        "type": "object",
        "properties": {
            "name": STRING,
            "store": STRING,
            "kafka": maybe_ref("EntityKafka", "Settings."),
            "effective": ref("EntityEffective", description="What the topic has."),
        },
    },
    "Column": {
        "type": "object",
        "required": ["name", "type"],
        "properties": {
            "name": text("Name of the column, exact."),
            "type": text("SQL type, such as `BIGINT`.", **hint(semantic="type")),
            "not_null": {"type": "boolean", "default": False, "description": "Whether a value is required."},
            "comment": COMMENT,
        },
    },
    "RelationBody": {
        "type": "object",
        "description": "A stream: the relational face of an entity.",
        "required": ["kind", "columns", "store", "value_format"],
        "properties": {
            "kind": {"const": "stream"},
            "columns": {"type": "array", "items": ref("Column"), "description": "Columns, in order."},
            "store": text("Name of the store.", **hint(replace=True)),
            "topic": maybe("Entity behind the stream; default: the stream's name.", **hint(replace=True)),
            "value_format": text("Format of record values, such as `json`."),
            "key_format": maybe("Format of record keys."),
            "key_type": maybe("SQL type of record keys."),
            "timestamp": maybe("Column that gives event time."),
            "timestamp_format": maybe("How the timestamp column reads."),
            "properties": strings("Other WITH keys, such as `topic.partitions`."),
            "comment": COMMENT,
        },
        **hint(
            resource="leatstream_stream",
            path="/v1/relations/{database}.{schema}.{name}",
            key=["database", "schema", "name"],
            path_attributes={
                "database": "Name of the database.",
                "schema": "Name of the schema.",
                "name": "Name of the stream, exact.",
            },
            constants={"kind": "stream"},
            assume="relations",
            attributes={"effective": {"volatile": True}},
            omit=["statement", "status", "created_by_query"],
            **{"import": "{database}.{schema}.{name}"},
        ),
    },
    "Relation": {
        "type": "object",
        "properties": {
            **META,
            "kind": STRING,
            "database": STRING,
            "schema": STRING,
            "name": STRING,
            "statement": STRING,
            "status": ref("Anything"),
            "created_by_query": MAYBE,
            "effective": EFFECTIVE,
            "fqn": text(
                "Full name, quoted where SQL needs it.", **hint(template="{database}.{schema}.{name}")
            ),
        },
    },
    "QueryBody": {
        "type": "object",
        "description": "A query: SQL that runs until it is stopped, as a PySpark job of its own.",
        "required": ["sql"],
        "properties": {
            "sql": text(
                "`CREATE STREAM … AS SELECT` or `INSERT INTO … SELECT`. White space, comments and a final "
                "semicolon make no difference.",
                **hint(semantic="sql"),
            ),
            "database": maybe("Database of unqualified names."),
            "schema": maybe("Schema of unqualified names."),
            "store": maybe("Store of the sink, where the SQL names none."),
            "desired_state": text(
                "Whether the job should run.", enum=["running", "stopped"], default="running"
            ),
            "properties": strings("Properties of the query."),
            "delete_sink_entity": {
                "type": "boolean",
                "default": False,
                **hint(provider_only=True),
                "description": "Whether destroying the query deletes the sink's topic and its records.",
            },
            "comment": COMMENT,
        },
        **hint(
            resource="leatstream_query",
            path="/v1/queries/{name}",
            key=["name"],
            path_attributes={"name": "Name of the query, exact."},
            assume="queries",
            delete_query={"delete_entity": "{delete_sink_entity}"},
            wait={
                "follow": "desired_state",
                "targets": {"running": ["running"], "stopped": ["stopped"]},
                "failed": ["failed"],
                "logs": "logs",
            },
            timeouts=["create", "update", "delete"],
            omit=[
                "statement_canonical",
                "statement_hash",
                "plan.sources",
                "plan.change",
                "plan.sink.fqn",
                "plan.sink.kind",
                "plan.sink.entity_action",
                "plan.sink.properties",
            ],
            attributes={
                "kind": {"infer": "kind", "replace": True},
                "sources": {"infer": "plan.sources[].fqn"},
                "sink": {"infer": "plan.sink.fqn", "replace": True},
                "effective": {"infer": "plan.sink.properties"},
                "plan": {"infer": "plan"},
                "plan.sink.store": {"replace": True},
                "plan.sink.entity": {"replace": True},
                "status": {"volatile": True},
            },
            **{"import": "{name}"},
        ),
    },
    "Join": {
        "type": "object",
        "properties": {
            "kind": text("Such as interval."),
            "type": text("inner, left or full."),
            "within": maybe("Time bound."),
            "left": text("Left relation."),
            "right": text("Right relation."),
        },
    },
    "PlanSink": {
        "type": "object",
        "properties": {
            "fqn": STRING,
            "kind": STRING,
            "store": text("Store written to."),
            "store_kind": text("Its kind."),
            "entity": text("Entity written to."),
            "entity_action": text("create or reuse."),
            "columns": {"type": "array", "items": ref("PlanColumn"), "description": "Columns written."},
            "properties": EFFECTIVE,
        },
    },
    "PlanColumn": {
        "type": "object",
        "properties": {
            "name": text("Name."),
            "type": text("SQL type."),
            "not_null": {"type": "boolean", "description": "Whether a value is always there."},
        },
    },
    "Plan": {
        "type": "object",
        "properties": {
            "sources": {"type": "array", "items": ref("Anything")},
            "sink": ref("PlanSink", description="Where the query writes."),
            "change": ref("Anything"),
            "mode": text("realtime or micro_batch."),
            "mode_reason": maybe("Why this mode."),
            "delivery": maybe("Delivery guarantee."),
            "joins": {
                "type": "array",
                "items": ref("Join"),
                "description": "Joins, in the order of the SQL.",
            },
        },
    },
    "Job": {
        "type": "object",
        "properties": {
            "driver_id": text("The driver that runs the job."),
            "attempt": {"type": "integer", "description": "Counts starts of the job."},
            "mode": text("Mode in force."),
            "mode_reason": maybe("Why."),
            "pid": {"type": "integer", **hint(omit=True)},
        },
    },
    "QueryStatus": {
        "type": "object",
        "properties": {
            "state": text("pending, starting, running, stopping, stopped, failed or lost."),
            "desired_state": {"type": "string", **hint(omit=True)},
            "message": maybe("More about the state."),
            "error": maybe_ref("Anything", "Cause.", **hint(omit=True)),
            "conditions": {"type": "array", "items": ref("Anything"), **hint(omit=True)},
            "observed_generation": {"type": "integer", **hint(omit=True)},
            "since": {"type": "string", **hint(omit=True)},
            "job": maybe_ref("Job", "The job that runs the query."),
            "metrics": ref("Anything", **hint(omit=True)),
        },
    },
    "Query": {
        "type": "object",
        "properties": {
            **META,
            "name": STRING,
            "sql": STRING,
            "kind": text("create_stream_as or insert_into."),
            "statement_canonical": STRING,
            "statement_hash": STRING,
            "sources": {"type": "array", "items": STRING, "description": "Relations read."},
            "sink": text("Relation written."),
            "effective": EFFECTIVE,
            "plan": ref("Plan", description="How the query runs."),
            "status": ref("QueryStatus", description="What the query does now."),
        },
    },
}

_PUTS = {
    "/v1/databases/{database}": ("DatabaseBody", "Database"),
    "/v1/databases/{database}/schemas/{schema}": ("SchemaBody", "Schema"),
    "/v1/stores/{store}": ("StoreBody", "Store"),
    "/v1/stores/{store}/entities/{entity}": ("EntityBody", "Entity"),
    "/v1/relations/{relation}": ("RelationBody", "Relation"),
    "/v1/queries/{query}": ("QueryBody", "Query"),
}


def _json(name: str) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": ref(name)}}}


OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        path: {"put": {"requestBody": _json(body), "responses": {"200": _json(answer), "201": _json(answer)}}}
        for path, (body, answer) in _PUTS.items()
    },
    "components": {"schemas": SCHEMAS},
}
