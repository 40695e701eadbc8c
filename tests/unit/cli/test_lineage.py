"""``leat lineage``: a tree for people, edges for programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Result, Service

    Leat = Callable[..., Result]


def node(kind: str, name: str, state: str | None = None) -> dict[str, Any]:
    return {"id": f"{kind}:{name}", "kind": kind, "name": name, "state": state}


ANSWER = {
    "nodes": [node("relation", "d.p.a"), node("relation", "d.p.b"), node("query", "q", "running")],
    "edges": [
        {"from": "relation:d.p.a", "to": "query:q", "query": "q"},
        {"from": "query:q", "to": "relation:d.p.b", "query": "q"},
        {"from": "query:q", "to": "relation:d.p.a", "query": "q"},
    ],
}


def test_a_tree_of_both_sides(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/lineage", ANSWER)
    lines = leat("lineage", "d.p.b", "--depth", "2").out.splitlines()
    assert dict(service.requests[-1].url.params) == {"root": "d.p.b", "depth": "2"}
    assert [line.rstrip() for line in lines] == [
        "relation d.p.b",
        "└── comes from",
        "    └── query q (running)",
        "        └── relation d.p.a",
        "            └── query q (running)",
    ]


def test_edges_for_programs(service: Service, leat: Leat) -> None:
    service.answer("GET", "/v1/lineage", ANSWER)
    assert leat("lineage", "-o", "csv").out.splitlines()[:2] == ["from,to,query", "relation:d.p.a,query:q,q"]
