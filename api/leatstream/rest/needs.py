"""What each operation and statement needs: published in the contract, and compared with what is enforced.

The services and their units of work enforce access. A test sends each one with exactly what stands here, and
with each part left out, so this table cannot say anything else than they do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from leatstream.model.access import ORGANIZATION, Scope


@dataclass(frozen=True, slots=True)
class Needs:
    """What a request needs of the objects that it names.

    Attributes:
        scope: of the token.
        privileges: such as ``usage store``: a privilege and the kind of the object.
        sees: kind of an object on which any privilege is enough.
        owns: kind of the object that the role must own.
        role: the least of the built-in roles that may do it, where no grant gives that.
        own: without the privileges the caller's own objects are open to it; its tokens with the scope write.
        token: whether it needs a token at all.
        also: what it needs on condition: privileges as above, and when.
    """

    scope: Scope = Scope.READ
    privileges: tuple[str, ...] = ()
    sees: str | None = None
    owns: str | None = None
    role: str | None = None
    own: bool = False
    token: bool = True
    also: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The form in the contract."""
        if not self.token:
            return {"token": False}
        needed = [_as_text(one) for one in self.privileges]
        needed += [f"any privilege on {self.sees}"] if self.sees else []
        needed += [f"OWNERSHIP on {self.owns}"] if self.owns else []
        needed += [f"role {self.role}"] if self.role else []
        return {
            "scope": self.scope.value,
            "needs": needed,
            **(
                {"also": [{"needs": _as_text(one), "when": when} for one, when in self.also]}
                if self.also
                else {}
            ),
            **({"own": True} if self.own else {}),
        }

    def when(self, *also: tuple[str, str]) -> Needs:
        """The same, with more that is needed on condition."""
        return replace(self, also=self.also + also)


def _as_text(needed: str) -> str:
    privilege, _, kind = needed.partition(" ")
    return f"{privilege.upper()} on {kind}"


def _reads(*privileges: str) -> Needs:
    return Needs(privileges=privileges)


def _writes(*privileges: str) -> Needs:
    return Needs(Scope.WRITE, privileges)


def _sees(kind: str) -> Needs:
    return Needs(sees=kind)


def _owns(kind: str) -> Needs:
    return Needs(Scope.WRITE, owns=kind)


def _manages(privilege: str) -> Needs:
    return Needs(Scope.ADMIN, (f"{privilege} {ORGANIZATION}",))


_LIST = Needs()
_OPEN = Needs(token=False)
# Of new code that drivers run; where drivers are pods, sysadmin is enough.
_ORGADMIN = Needs(Scope.WRITE, role="orgadmin")
_MACHINE = f"use_machine_credentials {ORGANIZATION}"
_STORE = (
    (_MACHINE, "a store of AWS has no access key"),
    ("usage secret", "a setting refers to a secret"),
    ("usage schema_registry", "it names a schema registry"),
)
_SECRET = ((_MACHINE, "it refers to a secret store"),)
_REGISTRY = (("usage secret", "a setting refers to a secret"),)
_RELATION = (
    ("create_entity store", "the entity does not exist; READ_ENTITY is not needed then"),
    ("usage descriptor_source", "the records of a relation need one"),
)
_QUERY = (
    ("usage function", "it calls functions of users"),
    ("read_entity store", "the entity of the sink exists; CREATE_ENTITY is not needed then"),
    ("write_entity store", "the entity of the sink exists; CREATE_ENTITY is not needed then"),
    ("insert relation", "it is an INSERT INTO; nothing on the store is needed then"),
    ("operate query", "it begins with the state of another query"),
    ("write_entity store", "it logs undecodable records to an entity"),
    ("usage descriptor_source", "the records of a relation need one"),
)
_ENTITY_TOO = (("drop_entity store", "an entity that existed before the query is deleted with it"),)
_GRANTS, _MEMBERS = _manages("manage_grants"), _manages("manage_members")
_TOKENS = replace(_MEMBERS, own=True)
_NEW_RELATION = (
    "usage database",
    "usage schema",
    "create_relation schema",
    "usage store",
    "read_entity store",
)
_NEW_QUERY = (
    "usage database",
    "usage schema",
    "select relation",
    "create_relation schema",
    f"create_query {ORGANIZATION}",
    "usage store",
    "create_entity store",
)

# By operation id. A PUT needs this for a new object.
OPERATIONS: dict[str, Needs] = {
    "list_databases": _LIST,
    "create_database": _writes(f"create_database {ORGANIZATION}"),
    "get_database": _sees("database"),
    "put_database": _writes(f"create_database {ORGANIZATION}"),
    "delete_database": _owns("database"),
    "list_schemas": _sees("database"),
    "get_schema": _sees("schema"),
    "put_schema": _writes("create_schema database", "usage database"),
    "delete_schema": _owns("schema"),
    "list_secrets": _LIST,
    "get_secret": _sees("secret"),
    "put_secret": _writes(f"create_secret {ORGANIZATION}").when(*_SECRET),
    "apply_secret": _writes("modify secret").when(
        ("operate query", "a query restarts; without it the query keeps the old value")
    ),
    "delete_secret": _owns("secret"),
    "list_schema_registries": _LIST,
    "test_schema_registry": _writes("usage schema_registry"),
    "list_subjects": _reads("usage schema_registry"),
    "list_subject_versions": _reads("usage schema_registry"),
    "get_subject_version": _reads("usage schema_registry"),
    "get_schema_registry": _sees("schema_registry"),
    "put_schema_registry": _writes(f"create_schema_registry {ORGANIZATION}").when(*_REGISTRY),
    "delete_schema_registry": _owns("schema_registry"),
    "list_descriptor_sources": _LIST,
    "get_descriptor_source": _sees("descriptor_source"),
    "put_descriptor_source": _writes(f"create_descriptor_source {ORGANIZATION}"),
    "delete_descriptor_source": _owns("descriptor_source"),
    "list_stores": _LIST,
    "test_store": _writes("usage store"),
    "get_store": _sees("store"),
    "put_store": _writes(f"create_store {ORGANIZATION}").when(*_STORE),
    "delete_store": _owns("store"),
    "list_entities": _sees("store"),
    "get_entity": _reads("read_entity store"),
    "put_entity": _writes("create_entity store"),
    "delete_entity": _writes("drop_entity store"),
    "read_records": _reads("read_entity store"),
    "list_relations": _LIST,
    "get_relation": _sees("relation"),
    "sample_relation": _reads("usage database", "usage schema", "select relation"),
    "put_relation": _writes(*_NEW_RELATION).when(*_RELATION),
    "delete_relation": _owns("relation"),
    "take_savepoint": _writes("operate query"),
    "list_savepoints": _LIST,
    "get_savepoint": _reads("operate query"),
    "delete_savepoint": _writes("operate query"),
    "list_queries": _LIST,
    "restart_query": _writes("operate query"),
    "restart_failed_queries": Needs(Scope.WRITE).when(
        ("operate query", "a query restarts; without it the query stays as it is")
    ),
    "replace_query": _owns("query"),
    "rollback_query": _owns("query"),
    "get_query": _sees("query"),
    "put_query": _writes(*_NEW_QUERY).when(*_QUERY),
    "patch_query": _writes("operate query"),
    "delete_query": _owns("query").when(*_ENTITY_TOO),
    "get_query_logs": _reads("monitor query"),
    "list_query_events": _reads("monitor query"),
    "list_query_progress": _reads("monitor query"),
    "follow_query_logs": _reads("monitor query"),
    "list_query_versions": _reads("monitor query"),
    "list_function_sources": _LIST,
    "create_function_source": _ORGADMIN,
    "get_function_source": _sees("function_source"),
    "put_function_source": _ORGADMIN,
    "delete_function_source": _owns("function_source"),
    "list_functions": _LIST,
    "create_function": _writes(f"create_function {ORGANIZATION}", "usage function_source"),
    "get_function": _sees("function"),
    "put_function": _writes(f"create_function {ORGANIZATION}", "usage function_source"),
    "delete_function": _owns("function"),
    "validate_object": _reads(*_NEW_RELATION),
    "list_applications": _LIST,
    "get_application": _sees("application"),
    "put_application": _writes(*_NEW_QUERY, f"create_application {ORGANIZATION}").when(*_QUERY),
    "delete_application": _owns("application").when(*_ENTITY_TOO),
    "restart_application": _writes("operate application"),
    "get_application_logs": _reads("monitor application"),
    "run_statements": _LIST,
    "validate_statements": _LIST,
    "read_rows": Needs(own=True),
    "list_roles": _LIST,
    "get_role": Needs(privileges=(f"manage_grants {ORGANIZATION}",), own=True),
    "put_role": _GRANTS,
    "delete_role": _GRANTS,
    "grant_privileges": _GRANTS,
    "revoke_privileges": _GRANTS,
    "transfer_ownership": Needs(Scope.ADMIN, owns="store"),
    "list_users": _LIST,
    "get_user": Needs(privileges=(f"manage_members {ORGANIZATION}",), own=True),
    "put_user": _MEMBERS,
    "delete_user": _MEMBERS,
    "list_service_accounts": _LIST,
    "get_service_account": Needs(privileges=(f"manage_members {ORGANIZATION}",), own=True),
    "put_service_account": _MEMBERS,
    "delete_service_account": _MEMBERS,
    "list_tokens": _LIST,
    "get_token": Needs(privileges=(f"manage_members {ORGANIZATION}",), own=True),
    "create_token": _TOKENS,
    "revoke_token": _TOKENS,
    "rotate_token": _TOKENS,
    "list_invitations": _LIST,
    "get_invitation": _reads(f"manage_members {ORGANIZATION}"),
    "create_invitation": _MEMBERS,
    "delete_invitation": _MEMBERS,
    "accept_invitation": _OPEN,
    "get_me": _LIST,
    "get_permissions": _sees("store"),
    "list_audit_events": _reads(f"audit {ORGANIZATION}"),
    "get_grant": Needs(privileges=(f"manage_grants {ORGANIZATION}",), own=True),
    "put_grant": _GRANTS,
    "delete_grant": _GRANTS,
    "get_membership": Needs(privileges=(f"manage_members {ORGANIZATION}",), own=True),
    "put_membership": _MEMBERS,
    "delete_membership": _MEMBERS,
    "get_sign_in": _OPEN,
    "get_session": _OPEN,
    "end_session": _OPEN,
    "get_lineage": _LIST,
    "follow_events": _LIST,
    "get_vocabulary": _LIST,
    "export_catalog": _LIST,
    "get_server": _LIST,
    "get_capabilities": _LIST,
    "list_drivers": _reads(f"monitor {ORGANIZATION}"),
    "get_health": _OPEN,
    "get_readiness": _OPEN,
    "get_metrics": _reads(f"monitor {ORGANIZATION}"),
    "get_problem_type": _OPEN,
}
# What a PUT needs to change an object that exists.
CHANGES: dict[str, Needs] = {
    "put_database": _writes("modify database"),
    "put_schema": _writes("modify schema"),
    "put_secret": _writes("modify secret").when(*_SECRET),
    "put_schema_registry": _writes("modify schema_registry").when(*_REGISTRY),
    "put_descriptor_source": _writes("modify descriptor_source"),
    "put_store": _writes("modify store").when(*_STORE),
    "put_entity": _writes("create_entity store"),
    "put_relation": _writes("modify relation", "usage store"),
    "put_query": _owns("query"),
    # New code needs what a new source needs.
    "put_function_source": _owns("function_source"),
    "put_function": Needs(Scope.WRITE, ("usage function_source",), owns="function"),
    "put_application": _owns("application"),
    "put_grant": _GRANTS,
}

# By the kind of the statement, as in the results of ``POST /v1/statements``.
STATEMENTS: dict[str, Needs] = {
    "create_database": OPERATIONS["put_database"],
    "create_schema": OPERATIONS["put_schema"],
    "create_store": OPERATIONS["put_store"],
    "create_entity": OPERATIONS["put_entity"],
    "create_application": OPERATIONS["put_application"],
    "terminate_application": _writes("operate application"),
    "restart_application": _writes("operate application"),
    "create_secret": OPERATIONS["put_secret"],
    "create_schema_registry": OPERATIONS["put_schema_registry"],
    "create_descriptor_source": OPERATIONS["put_descriptor_source"],
    "update_secret": CHANGES["put_secret"],
    "update_schema_registry": CHANGES["put_schema_registry"],
    "create_function_source": _ORGADMIN,
    "create_function": OPERATIONS["put_function"],
    "create_stream": OPERATIONS["put_relation"],
    "create_changelog": OPERATIONS["put_relation"],
    "create_table": OPERATIONS["put_relation"],
    "create_stream_as": OPERATIONS["put_query"],
    "create_changelog_as": OPERATIONS["put_query"],
    "create_table_as": OPERATIONS["put_query"],
    "create_materialized_view_as": _writes(
        "usage database",
        "usage schema",
        "select relation",
        "create_relation schema",
        f"create_query {ORGANIZATION}",
    ),
    "create_index": _owns("relation"),
    "insert_into": _writes(
        "usage database",
        "usage schema",
        "select relation",
        "insert relation",
        f"create_query {ORGANIZATION}",
    ),
    "insert_values": _writes("usage database", "usage schema", "insert relation"),
    "insert_entity": _writes("write_entity store"),
    "update_store": CHANGES["put_store"],
    "update_entity": _writes("create_entity store"),
    "generate": _reads("read_entity store"),
    "drop": _owns("store"),
    "use": _sees("store"),
    "set_default": _sees("store"),
    "list_objects": _LIST,
    "describe": _sees("store"),
    "describe_query": _sees("query"),
    "describe_statement": _reads(*_NEW_QUERY),
    "print": _reads("read_entity store"),
    "terminate_query": _writes("operate query"),
    "restart_query": _writes("operate query"),
    "restart_queries": _writes(),
    "rollback_query": _owns("query"),
    "select": _reads("usage database", "usage schema", "select relation"),
    "create_role": _GRANTS,
    "create_account": _MEMBERS,
    "create_token": _TOKENS,
    "invite_user": _MEMBERS,
    "grant_privileges": _GRANTS,
    "grant_role": _MEMBERS,
    "can_i": _LIST,
    "list_grants": _LIST,
}
