"""``leat lineage``: what records pass through before and after an object, as a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.text import Text
from rich.tree import Tree

from leatstream.cli.output import Output, printable, stdout, write_json, write_rows
from leatstream.cli.session import OutputOption, open_client


def lineage(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Object, such as demo.public.pageviews or query:enriched; default: all."
        ),
    ] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="The most steps from the object.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show where the records of an object come from, and where they go."""
    answer = open_client(context).call("GET", "/v1/lineage", params={"root": name, "depth": depth})
    if output is Output.JSON:
        write_json(answer)
    elif output is not Output.TABLE:
        rows = [(one["from"], one["to"], one["query"]) for one in answer["edges"]]
        write_rows(("from", "to", "query"), rows, output)
    else:
        for tree in _trees(answer, name):
            stdout().print(tree, soft_wrap=True)


def _trees(answer: Mapping[str, Any], name: str | None) -> list[Tree]:
    nodes = {one["id"]: one for one in answer["nodes"]}
    down, up = _neighbours(answer["edges"], "from", "to"), _neighbours(answer["edges"], "to", "from")
    if name is None:
        return [_tree(one, nodes, down) for one in nodes if one not in up]
    root = next(one for one in nodes.values() if name in (one["id"], one["name"]))["id"]
    tree = Tree(_label(nodes[root]))
    for title, neighbours in (("comes from", up), ("feeds", down)):
        if neighbours.get(root):
            branch = tree.add(Text(title, style="dim"))
            branch.children = _tree(root, nodes, neighbours).children
    return [tree]


def _tree(root: str, nodes: Mapping[str, Any], neighbours: Mapping[str, Sequence[str]]) -> Tree:
    """The nodes that can be reached; one that stands above itself is not followed again."""
    top = Tree(_label(nodes[root]))
    waiting: list[tuple[Tree, str, tuple[str, ...]]] = [(top, root, (root,))]
    while waiting:
        branch, node, above = waiting.pop()
        for one in neighbours.get(node, ()):
            child = branch.add(_label(nodes[one]))
            if one not in above:
                waiting.append((child, one, (*above, one)))
    return top


def _label(node: Mapping[str, Any]) -> Text:
    state = f" ({node['state']})" if node["state"] else ""
    return Text.assemble((f"{node['kind']} ", "dim"), printable(node["name"]), (state, "dim"))


def _neighbours(edges: Sequence[Mapping[str, Any]], one: str, other: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for edge in edges:
        found.setdefault(edge[one], []).append(edge[other])
    return found
