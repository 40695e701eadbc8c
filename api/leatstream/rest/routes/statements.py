"""``/v1/statements``"""

from __future__ import annotations

from fastapi import APIRouter

from leatstream.errors import RequestError
from leatstream.rest.answers import WRITING_STORE
from leatstream.rest.deps import Caller, Env, seconds
from leatstream.rest.problem import about_sql
from leatstream.rest.schemas.statements import (
    ContextView,
    StatementAnswer,
    StatementBody,
    StatementResultView,
    ValidatedStatement,
    ValidationAnswer,
    ValidationBody,
)
from leatstream.services import statements, validation

router = APIRouter(prefix="/v1", tags=["statements"])

_LONGEST_WAIT = 60.0


@router.post("/statements", responses=WRITING_STORE)
def run_statements(env: Env, caller: Caller, body: StatementBody) -> StatementAnswer:
    """Run SQL. The first failure ends the run; what ran before it stands in the problem's `results`."""
    wait = min(seconds(body.wait_timeout), _LONGEST_WAIT) if body.wait_timeout else 0.0
    with about_sql():
        outcome = statements.execute(env, caller, body.sql, body.context(), wait, body.files)
    results = [StatementResultView.model_validate(one.as_json()) for one in outcome.results]
    return StatementAnswer(results=results, context=ContextView.model_validate(outcome.context.as_json()))


@router.post("/statements:validate", responses=WRITING_STORE)
def validate_statements(env: Env, caller: Caller, body: ValidationBody) -> ValidationAnswer:
    """Check SQL without running it: plans, inferred properties, and everything that is wrong."""
    try:
        assume = body.assume.to_domain() if body.assume else None
    except ValueError as error:
        raise RequestError("validation", str(error), pointer="#/assume/relations") from error
    outcome = validation.validate(env, caller, body.sql, body.context(), assume, body.name)
    return ValidationAnswer(
        valid=outcome.valid,
        statements=[ValidatedStatement.model_validate(one) for one in outcome.statements],
        canonical=outcome.canonical,
        hash=outcome.hash,
    )
