"""Bodies of objects, to be checked."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from leatstream.rest.schemas.base import Body, View
from leatstream.rest.schemas.statements import Assume


class ObjectValidationBody(Body):
    """A PUT, or a DELETE, to check; nothing is changed."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "path": "/v1/function-sources/scores",
                    "body": {"file": "scores.py", "content": "def score(points):\n    return points * 2\n"},
                }
            ]
        }
    )

    path: Annotated[str, Field(min_length=5, max_length=4000)] = Field(
        description="Path of the object: a relation, an entity, a function source, a function or a query."
    )
    body: dict[str, Any] | None = Field(
        None, description="Body of the PUT; without one it is a DELETE. Of queries there is only that."
    )
    assume: Assume | None = Field(None, description="Objects that count as existing.")


class ObjectValidationAnswer(View):
    """Nothing is wrong with it; else the answer is the problem that the PUT would answer."""

    valid: bool = Field(True, description="Always true.")
    restarts: list[str] = Field(
        default_factory=list,
        description="Names of queries that run now and call functions of the source, whose code changes.",
    )
