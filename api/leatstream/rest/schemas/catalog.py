"""The catalog as a whole: exports and lineage."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from leatstream.rest.schemas.base import View
from leatstream.services.export.script import Export
from leatstream.services.lineage.graph import Lineage, Node


class ExportedFileView(View):
    """One file of an export."""

    path: str = Field(description="Relative path, with slashes.", examples=["main.tf"])
    content: str = Field(description="Its content, as `encoding` says.")
    encoding: Literal["text", "base64"] = Field(description="`text`, or `base64` of a binary file.")


class ExportView(View):
    """Objects of the catalog as code. No file holds the value of a secret."""

    files: list[ExportedFileView] = Field(description="The files, the main one first.")
    variables: list[str] = Field(description="Names of the variables that stand for secret values.")
    notes: list[str] = Field(description="What the files cannot say.")

    @classmethod
    def from_domain(cls, item: Export) -> ExportView:
        """The answer for an export."""
        files = [
            ExportedFileView(path=f.path, content=f.content, encoding="base64" if f.binary else "text")
            for f in item.files
        ]
        return cls(files=files, variables=list(item.variables), notes=item.notes)


class LineageNode(View):
    """An object that records pass."""

    id: str = Field(description="Kind and name.", examples=["relation:demo.public.pageviews"])
    kind: Literal["store", "entity", "relation", "query"] = Field(description="Kind of the object.")
    name: str = Field(description="Name as SQL writes it; of an entity `store/entity`.")
    state: str | None = Field(None, description="State of a store or of a query's job.")
    lag: int | None = Field(
        None, description="Records that a query has not read yet; null where no source of it reports that."
    )
    inputs: int = Field(description="How many edges lead to it, those outside this answer too.")
    outputs: int = Field(description="How many edges lead from it, those outside this answer too.")

    @classmethod
    def from_domain(cls, item: Node) -> LineageNode:
        """The answer for a node."""
        return cls(**{name: getattr(item, name) for name in LineageNode.model_fields})


class LineageEdge(View):
    """Records pass from one object to another."""

    source: str = Field(alias="from", description="Id of the node that they come from.")
    target: str = Field(alias="to", description="Id of the node that they go to.")
    query: str | None = Field(None, description="Name of the query that moves them, where one does.")


class LineageView(View):
    """What flows where."""

    nodes: list[LineageNode] = Field(description="Objects, by kind and name.")
    edges: list[LineageEdge] = Field(description="Steps of records between them.")

    @classmethod
    def from_domain(cls, item: Lineage) -> LineageView:
        """The answer for a graph."""
        nodes = [LineageNode.from_domain(one) for one in item.nodes]
        edges = [
            LineageEdge.model_validate({"from": e.source, "to": e.target, "query": e.query})
            for e in item.edges
        ]
        return cls(nodes=nodes, edges=edges)
