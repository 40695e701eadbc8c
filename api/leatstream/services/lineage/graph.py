"""The graph of stores, entities, relations and queries, and the part of it that an object belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from leatstream.errors import ambiguous, not_found
from leatstream.model.names import quote
from leatstream.model.objects import Query
from leatstream.model.progress import known_lag
from leatstream.services.environment import Environment, Principal
from leatstream.services.environment.pages import every
from leatstream.services.nouns import stores
from leatstream.services.queries import catalog as queries
from leatstream.services.relations import relations

KINDS = ("store", "entity", "relation", "query")


@dataclass(frozen=True, slots=True)
class Node:
    """An object that records pass.

    Attributes:
        id: kind and name, such as ``relation:demo.public.pageviews``.
        kind: one of ``KINDS``.
        name: as SQL writes it; of an entity ``store/entity``.
        state: of a store or of a query's job; else None.
        lag: records that a query has not read yet; None where no source of it reports that.
        inputs, outputs: how many edges lead to it and from it in the whole graph.
    """

    id: str
    kind: str
    name: str
    state: str | None = None
    lag: int | None = None
    inputs: int = 0
    outputs: int = 0


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """Records pass from one object to another.

    Attributes:
        source, target: ids of the nodes.
        query: name of the query that moves them, where one does.
    """

    source: str
    target: str
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """A graph; nodes and edges are sorted."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def lineage(env: Environment, who: Principal, root: str | None = None, depth: int | None = None) -> Lineage:
    """What is upstream and downstream of an object, as far as the principal sees it.

    Args:
        env: the environment.
        who: who asks.
        root: id of a node, or its name where only one kind has it; None = the whole graph.
        depth: the most edges from the root; None = all.

    Raises:
        CatalogError: not-found.
        RequestError: validation, several kinds have the name.
    """
    whole = _graph(env, who)
    if root is None:
        return whole
    start = _find(whole.nodes, root)
    up = _reached(start, depth, _neighbours((e.target, e.source) for e in whole.edges))
    down = _reached(start, depth, _neighbours((e.source, e.target) for e in whole.edges))
    # An edge counts on the side on which both of its ends are; others would join strangers.
    edges = tuple(e for e in whole.edges if {e.source, e.target} <= up or {e.source, e.target} <= down)
    return Lineage(tuple(n for n in whole.nodes if n.id in up | down), edges)


def _graph(env: Environment, who: Principal) -> Lineage:
    shown_queries = [q for q in every(env, who, queries.list_queries) if not q.deleting]
    shown_relations = every(env, who, relations.list_relations)
    shown_stores = every(env, who, stores.list_stores)
    nodes = [
        *(_node("store", quote(s.name), s.state.value) for s in shown_stores),
        *(_node("relation", str(r.fqn)) for r in shown_relations),
        *(_query_node(q) for q in shown_queries),
    ]
    edges = [edge for q in shown_queries for edge in _of_query(q)]
    written = {q.sink for q in shown_queries}
    seen = {s.name for s in shown_stores}
    for relation in shown_relations:
        if relation.entity and relation.store in seen:
            entity = _node("entity", f"{quote(relation.store)}/{relation.entity}")
            nodes.append(entity)
            edges.append(Edge(f"store:{quote(relation.store)}", entity.id))
            ends = (f"relation:{relation.fqn}", entity.id)
            made = relation.created_by_query is not None or str(relation.fqn) in written
            edges.append(Edge(*(ends if made else ends[::-1])))
    there = {node.id for node in nodes}
    kept = {edge for edge in edges if edge.source in there and edge.target in there}
    into, out = Counter(edge.target for edge in kept), Counter(edge.source for edge in kept)
    counted = (replace(node, inputs=into[node.id], outputs=out[node.id]) for node in dict.fromkeys(nodes))
    return Lineage(tuple(sorted(counted, key=_place)), tuple(sorted(kept, key=_ends)))


def _node(kind: str, name: str, state: str | None = None) -> Node:
    return Node(f"{kind}:{name}", kind, name, state)


def _query_node(query: Query) -> Node:
    status = query.status
    return replace(_node("query", quote(query.name), status.state.value), lag=known_lag(status.metrics))


def _of_query(query: Query) -> Iterable[Edge]:
    name = quote(query.name)
    for source in query.sources:
        yield Edge(f"relation:{source}", f"query:{name}", query.name)
    yield Edge(f"query:{name}", f"relation:{query.sink}", query.name)


def _place(node: Node) -> tuple[int, str]:
    return KINDS.index(node.kind), node.name


def _ends(edge: Edge) -> tuple[str, str]:
    return edge.source, edge.target


def _find(nodes: Sequence[Node], text: str) -> str:
    fitting = [node for node in nodes if text in (node.id, node.name)]
    if not fitting:
        raise not_found("object", text)
    if len(fitting) > 1:
        raise ambiguous(text, [node.id for node in fitting])
    return fitting[0].id


def _neighbours(pairs: Iterable[tuple[str, str]]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one, other in pairs:
        found.setdefault(one, []).append(other)
    return found


def _reached(start: str, depth: int | None, neighbours: Mapping[str, list[str]]) -> set[str]:
    """Ids that a walk from the start comes to, that of the start among them."""
    found, front, steps = {start}, [start], 0
    while front and (depth is None or steps < depth):
        front = [one for node in front for one in neighbours.get(node, ()) if one not in found]
        front = list(dict.fromkeys(front))
        found.update(front)
        steps += 1
    return found
