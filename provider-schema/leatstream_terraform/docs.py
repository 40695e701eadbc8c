"""Writes the provider's documentation in the layout of Terraform's registries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leatstream_terraform import ADDRESS, NAME
from leatstream_terraform.names import import_id
from leatstream_terraform.schema import Attribute, ProviderSchema, Resource, parse

_NOTE = "<!-- Generated from provider.json; do not edit. -->"
_EXAMPLES: dict[str, str] = {
    "leatstream_database": 'resource "leatstream_database" "demo" {\n  name = "demo"\n}\n',
    "leatstream_schema": (
        'resource "leatstream_schema" "shop" {\n'
        "  database = leatstream_database.demo.name\n"
        '  name     = "shop"\n}\n'
    ),
    "leatstream_store": (
        'resource "leatstream_store" "events" {\n'
        '  name = "events"\n'
        "  kafka = {\n"
        '    bootstrap_servers = "broker.example.com:9093"\n'
        '    security_protocol = "sasl_ssl"\n'
        "    sasl = {\n"
        '      mechanism   = "scram_sha_512"\n'
        '      username    = "leatstream"\n'
        "      password_wo = var.kafka_password # an ephemeral variable: never stored\n"
        "    }\n  }\n}\n"
    ),
    "leatstream_entity": (
        'resource "leatstream_entity" "pageviews" {\n'
        "  store = leatstream_store.events.name\n"
        '  name  = "pageviews"\n'
        "  kafka = { partitions = 6, replicas = 3 }\n}\n"
    ),
    "leatstream_stream": (
        'resource "leatstream_stream" "pageviews" {\n'
        "  database     = leatstream_database.demo.name\n"
        "  schema       = leatstream_schema.shop.name\n"
        '  name         = "pageviews"\n'
        "  store        = leatstream_store.events.name\n"
        "  topic        = leatstream_entity.pageviews.name\n"
        '  value_format = "json"\n'
        "  columns = [\n"
        '    { name = "viewtime", type = "BIGINT" },\n'
        '    { name = "userid", type = "VARCHAR" },\n'
        '    { name = "pageid", type = "VARCHAR" },\n'
        "  ]\n}\n"
    ),
    "leatstream_changelog": (
        'resource "leatstream_changelog" "users" {\n'
        "  database     = leatstream_database.demo.name\n"
        "  schema       = leatstream_schema.shop.name\n"
        '  name         = "users"\n'
        "  store        = leatstream_store.events.name\n"
        '  topic        = "users"\n'
        '  value_format = "json"\n'
        '  primary_key  = ["userid"]\n'
        "  columns = [\n"
        '    { name = "userid", type = "VARCHAR", not_null = true },\n'
        '    { name = "city", type = "VARCHAR" },\n'
        "  ]\n}\n"
    ),
    "leatstream_query": (
        'resource "leatstream_query" "user_2" {\n'
        '  name     = "user_2"\n'
        "  database = leatstream_database.demo.name\n"
        "  schema   = leatstream_schema.shop.name\n"
        "  sql      = <<-SQL\n"
        "    CREATE STREAM user_2 AS\n"
        "    SELECT userid, pageid FROM ${leatstream_stream.pageviews.fqn} WHERE userid = 'User_2';\n"
        "  SQL\n"
        '  timeouts = { create = "5m" }\n}\n'
    ),
}
_EXAMPLES |= {
    "leatstream_grant": (
        'resource "leatstream_grant" "analysts_read" {\n'
        "  role      = leatstream_role.analyst.name # a role without `grants`\n"
        '  privilege = "select"\n'
        '  on        = "relation"\n'
        "  in_schema = leatstream_schema.shop.fqn\n}\n"
    ),
    "leatstream_role_membership": (
        'resource "leatstream_role_membership" "ann" {\n'
        "  role        = leatstream_role.analyst.name\n"
        '  member_kind = "user"\n'
        "  member      = leatstream_user.ann.name # a user without `roles`\n}\n"
    ),
    "leatstream_token": (
        'resource "leatstream_token" "ci" {\n'
        '  name        = "ci"\n'
        "  account     = leatstream_service_account.ci.name\n"
        '  rotate_when = "2027-01" # change it for a new value\n}\n'
    ),
}
_EPHEMERAL_EXAMPLES = {
    "leatstream_token": (
        'ephemeral "leatstream_token" "deploy" {\n'
        "  account = leatstream_service_account.ci.name\n"
        '  role    = "deployer"\n}\n\n'
        'provider "leatstream" {\n'
        '  alias = "deployer"\n'
        "  token = ephemeral.leatstream_token.deploy.value # in no state\n}\n"
    ),
}
_SAMPLE = {
    "store": "events",
    "database": "demo",
    "schema": "public",
    "role": "analyst",
    "member": "ann",
    "privilege": "select",
    "on": "relation",
    "in_schema": "demo.public",
    "member_kind": "user",
}
_OPTIONAL_SAMPLES = ("in_schema",)


def render(document: Mapping[str, Any]) -> dict[str, str]:
    """Make every page.

    Args:
        document: ``provider.json``.

    Returns:
        Path below ``docs/`` to Markdown text.
    """
    schema = parse(document)
    pages = {"index.md": _index(schema)}
    for name, resource in schema.resources.items():
        pages[f"resources/{_short(name)}.md"] = _resource_page(name, resource)
    for name, resource in schema.data_sources.items():
        pages[f"data-sources/{_short(name)}.md"] = _data_page(name, resource)
    for name, resource in schema.ephemerals.items():
        pages[f"ephemeral-resources/{_short(name)}.md"] = _ephemeral_page(name, resource)
    for name, function in schema.functions.items():
        pages[f"functions/{name}.md"] = _function_page(name, function)
    return pages


def _short(name: str) -> str:
    return name.removeprefix(f"{NAME}_")


def _head(title: str, text: str) -> str:
    first = text.split(". ")[0].rstrip(".")
    return f'---\npage_title: "{title}"\ndescription: "{first}."\n---\n\n{_NOTE}\n\n# {title}\n\n{text}\n\n'


def _code(text: str, language: str = "terraform") -> str:
    return f"```{language}\n{text.rstrip()}\n```\n\n"


def _index(schema: ProviderSchema) -> str:
    text = _head("leatstream provider", "Streaming SQL over your own stores, deployed as code.")
    text += (
        "Install it with `leat terraform install`; `terraform init` then finds it without configuration. "
        "Write-only arguments and timeouts need Terraform 1.11 or OpenTofu 1.11.\n\n"
    )
    text += _code(
        f'terraform {{\n  required_providers {{\n    {NAME} = {{ source = "{ADDRESS}" }}\n  }}\n}}\n\n'
        'provider "leatstream" {\n  url = "http://127.0.0.1:8585" # token from LEATSTREAM_TOKEN\n}\n'
    )
    return text + "## Arguments\n\n" + _lines(schema.provider, lambda item: item.configurable)


def _resource_page(name: str, resource: Resource) -> str:
    text = _head(f"{name} (Resource)", resource.description)
    text += "## Example\n\n" + _code(_EXAMPLES[name]) if name in _EXAMPLES else ""
    text += "## Arguments\n\n" + _lines(resource.attributes, lambda item: item.mode == "required")
    text += _lines(resource.attributes, lambda item: item.mode in ("optional", "optional_computed"))
    computed = _lines(resource.attributes, lambda item: item.mode == "computed")
    text += f"## Read-only\n\n{computed}" if computed.strip() else ""
    sample = {
        key: _SAMPLE.get(key, f"my_{_short(name)}")
        for key in resource.key
        if resource.attributes[key].mode == "required" or key in _OPTIONAL_SAMPLES
    }
    example = import_id(resource.import_id, sample)
    text += "## Import\n\nBy id, names exact; a name that holds a separator is written in double quotes:\n\n"
    text += _code(f'import {{\n  to = {name}.example\n  id = "{example}"\n}}\n')
    text += "By identity (Terraform 1.12 and later):\n\n"
    inner = "\n".join(f'    {key} = "{value}"' for key, value in sample.items())
    text += _code(f"import {{\n  to = {name}.example\n  identity = {{\n{inner}\n  }}\n}}\n")
    text += "On the command line:\n\n" + _code(f"terraform import {name}.example '{example}'", "shell")
    return text.rstrip() + "\n"


def _data_page(name: str, source: Resource) -> str:
    text = _head(f"{name} (Data Source)", f"Reads: {source.description[:1].lower()}{source.description[1:]}")
    text += "## Arguments\n\n" + _lines(source.attributes, lambda item: item.mode == "required")
    return (
        text
        + "## Read-only\n\n"
        + _lines(source.attributes, lambda item: item.mode == "computed").rstrip()
        + "\n"
    )


def _ephemeral_page(name: str, resource: Resource) -> str:
    text = _head(f"{name} (Ephemeral Resource)", resource.description)
    text += "It needs Terraform 1.10 or OpenTofu 1.11. If Terraform is killed, the object stays.\n\n"
    text += "## Example\n\n" + _code(_EPHEMERAL_EXAMPLES[name])
    text += "## Arguments\n\n" + _lines(resource.attributes, lambda item: item.configurable)
    computed = _lines(resource.attributes, lambda item: not item.configurable)
    return f"{text}## Read-only\n\n{computed}".rstrip() + "\n"


def _function_page(name: str, function: Mapping[str, Any]) -> str:
    names = ", ".join(parameter["name"] for parameter in function["parameters"])
    text = _head(f"{name} (Function)", function["description"])
    text += _code(f"provider::{NAME}::{name}({names})")
    return text + "".join(
        f"- `{one['name']}` (String) {one['description']}\n" for one in function["parameters"]
    )


def _lines(attributes: Mapping[str, Attribute], wanted: Any, depth: int = 0) -> str:
    text = "".join(
        _line(item, depth) for item in sorted(attributes.values(), key=lambda a: a.name) if wanted(item)
    )
    return text + ("\n" if text and depth == 0 else "")


def _line(item: Attribute, depth: int) -> str:
    notes = [_kind(item), {"required": "required", "optional": "optional"}.get(item.mode, "")]
    notes += ["sensitive"] * item.sensitive + ["write-only"] * item.write_only
    notes += ["a change makes a new object"] * item.replace
    text = item.description + (f" Default `{_shown(item.default)}`." if item.has_default else "")
    text += f" One of {', '.join(f'`{one}`' for one in item.enum)}." if item.enum else ""
    line = (
        f"{'  ' * depth}- `{item.name}` ({', '.join(note for note in notes if note)}) {text}".rstrip() + "\n"
    )
    return line + _lines(item.attributes, lambda child: True, depth + 1)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind(item: Attribute) -> str:
    if item.nesting:
        return {"single": "Object", "list": "List of objects", "map": "Map of objects"}[item.nesting]
    if isinstance(item.type, list):
        return f"{item.type[0].title()} of {item.type[1]}s"
    return str(item.type).title()


if __name__ == "__main__":
    from leatstream_terraform.artefacts import SCHEMA, write_docs

    root = Path.cwd()
    write_docs(json.loads((root / SCHEMA / "provider.json").read_text(encoding="utf-8")), root)
