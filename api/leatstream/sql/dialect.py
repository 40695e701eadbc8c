"""The language as a sqlglot dialect: ``sqlglot.parse_one(text, read=Leat)`` gives the tree of a query.

Over Spark; scanner and grammar are this package's own (``lexer``, ``tokens_reader`` say why). Spark SQL is
written by ``passes.render`` alone, which knows every node it lets through, never by sqlglot's generator.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token

from leatstream.sql.lexer import scan
from leatstream.sql.queries import QueryParser


class Leat(Spark):
    """DeltaStream's SELECT."""

    class Tokenizer(Spark.Tokenizer):
        """Standard SQL's strings, names and comments."""

        QUOTES: ClassVar = ["'"]
        IDENTIFIERS: ClassVar = ['"', "`"]
        STRING_ESCAPES: ClassVar = ["'"]

        def tokenize(self, sql: str) -> list[Token]:
            """Split text into tokens; RequestError sql-syntax if it cannot be."""
            return scan(sql)

    class Parser(QueryParser):
        """The strict grammar of ``queries``."""
