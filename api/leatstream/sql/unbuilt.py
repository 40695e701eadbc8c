"""Statements of the language that leatstream knows but has not built: they are refused by name."""

from __future__ import annotations

# First word of a statement -> what to call it.
STATEMENTS = {
    "accept": "ACCEPT INVITATION",
    "alter": "ALTER",
    "copy": "COPY",
    "delete": "DELETE",
    "merge": "MERGE",
    "reject": "REJECT INVITATION",
    "start": "START",
    "stop": "STOP",
    "test": "TEST",
    "truncate": "TRUNCATE",
}

# What to write instead of some of them.
INSTEAD = {
    "accept": "Open the link of the invitation, or give it to `leat login --invitation`.",
    "reject": "REVOKE INVITATION ends an invitation; without an answer it ends by itself.",
    "alter": "CREATE OR REPLACE changes a relation; UPDATE STORE and UPDATE ENTITY change settings.",
    "copy": "CREATE STREAM … AS SELECT writes to a store; a stream over an S3 store reads files.",
    "delete": "Delete rows in the store itself. DROP removes an object.",
    "merge": "CREATE CHANGELOG … AS SELECT keeps one row for each primary key.",
    "test": "Write `leat store test STORE` in the shell.",
    "truncate": "Delete rows in the store itself. DROP ENTITY removes an entity with its records.",
    "stop": "TERMINATE QUERY ends a query; `leat query stop` keeps it.",
    "start": "`leat query start` starts a stopped query; RESTART QUERY restarts one.",
}

# Noun after CREATE, DROP, LIST, DESCRIBE or USE -> what to call it.
CREATES = {
    "application": "APPLICATION (write BEGIN APPLICATION)",
    "compute_pool": "COMPUTE_POOL",
    "compute_pools": "COMPUTE_POOLS",
    "indexes": "INDEXES (DESCRIBE MATERIALIZED VIEW shows them)",
    "metrics": "METRICS INTEGRATION",
    "organization": "ORGANIZATION",
    "organizations": "ORGANIZATIONS",
    "sandbox": "SANDBOX",
    "security": "SECURITY INTEGRATION",
    "temporary": "TEMPORARY relations",
    "view": "VIEW",
    "virtual": "VIRTUAL relations outside an APPLICATION",
}
