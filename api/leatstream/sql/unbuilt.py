"""Statements of the language that leatstream knows but has not built: they are refused by name."""

from __future__ import annotations

# First word of a statement -> what to call it.
STATEMENTS = {
    "accept": "ACCEPT INVITATION",
    "alter": "ALTER",
    "copy": "COPY",
    "delete": "DELETE",
    "invite": "INVITE USER",
    "merge": "MERGE",
    "reject": "REJECT INVITATION",
    "start": "START",
    "stop": "STOP",
    "test": "TEST",
    "truncate": "TRUNCATE",
}

_INVITE = (
    "CREATE USER makes the account, and CREATE API_TOKEN with 'lifetime.days' = 1 a first token for it. "
    "Or people sign in with your identity provider."
)
# What to write instead of some of them.
INSTEAD = {
    "accept": _INVITE,
    "invite": _INVITE,
    "reject": "DROP USER ends what CREATE USER began.",
    "alter": "CREATE OR REPLACE changes a relation; UPDATE STORE and UPDATE ENTITY change settings.",
    "stop": "TERMINATE QUERY ends a query; `leat query stop` keeps it.",
    "start": "`leat query start` starts a stopped query; RESTART QUERY restarts one.",
}

# Noun after CREATE, DROP, LIST, DESCRIBE or USE -> what to call it.
CREATES = {
    "application": "APPLICATION (write BEGIN APPLICATION)",
    "compute_pool": "COMPUTE_POOL",
    "compute_pools": "COMPUTE_POOLS",
    "invitations": "INVITATIONS",
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
