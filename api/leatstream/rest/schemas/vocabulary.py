"""The words of SQL, for editors that complete."""

from __future__ import annotations

from pydantic import Field

from leatstream.rest.schemas.base import View
from leatstream.services.statements.vocabulary import Vocabulary
from leatstream.sql.function_table import table


class VocabularyFunction(View):
    """A built-in function."""

    name: str = Field(description="Name in lower case.", examples=["char_length"])
    aliases: list[str] = Field(description="Other names of it.")
    signature: str = Field(description="Call with its arguments.", examples=["char_length(text)"])
    returns: str = Field(description="Type of the result; NUMBER and ANY follow the arguments.")
    category: str = Field(description="Group of the reference, such as Text.")
    meaning: str = Field(description="What it returns.")


class VocabularyView(View):
    """The words of this server's SQL."""

    statements: list[str] = Field(description="First words of statements.")
    nouns: dict[str, list[str]] = Field(description="First word of a statement to the nouns after it.")
    clauses: list[str] = Field(description="Words inside statements.")
    types: list[str] = Field(description="Types of columns.")
    properties: dict[str, list[str]] = Field(
        description="What a WITH list belongs to, such as `store` or `query`, to its properties."
    )
    functions: list[VocabularyFunction] = Field(description="Built-in functions, in the reference's order.")

    @classmethod
    def from_domain(cls, words: Vocabulary) -> VocabularyView:
        """The answer for a vocabulary."""
        functions = [
            VocabularyFunction(
                name=one.name,
                aliases=list(one.aliases),
                signature=one.shown,
                returns=one.returns,
                category=one.category,
                meaning=one.meaning,
            )
            for one in table()
        ]
        return cls(
            statements=list(words.statements),
            nouns={word: list(nouns) for word, nouns in words.nouns.items()},
            clauses=list(words.clauses),
            types=list(words.types),
            properties={place: list(names) for place, names in words.properties.items()},
            functions=functions,
        )
