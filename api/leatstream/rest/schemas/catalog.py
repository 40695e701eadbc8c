"""The catalog as a whole: exports and lineage."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from leatstream.rest.schemas.base import View
from leatstream.services.export.script import Export


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
