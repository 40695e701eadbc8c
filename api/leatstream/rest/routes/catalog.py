"""``/v1/catalog:export``"""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query

from leatstream.rest.answers import LISTING
from leatstream.rest.cdktf_export import cdktf_program
from leatstream.rest.deps import Caller, Env
from leatstream.rest.routers import api_router
from leatstream.rest.schemas.catalog import ExportView
from leatstream.rest.terraform_export import terraform_configuration
from leatstream.services.export.script import sql_script
from leatstream.services.export.selection import export

router = api_router(prefix="/v1", tags=["catalog"])

_FORMS = {"sql": sql_script, "hcl": terraform_configuration, "cdktf": cdktf_program}
_Name = Annotated[str, Query(min_length=1, max_length=800)]


@router.get("/catalog:export", responses=LISTING)
def export_catalog(
    env: Env,
    caller: Caller,
    format: Annotated[
        Literal["sql", "hcl", "cdktf"],
        Query(description="`sql`, `hcl` for Terraform with import blocks, or `cdktf` for its CDK in Python."),
    ] = "sql",
    name: Annotated[
        list[_Name] | None,
        Query(
            max_length=100,
            description="Objects to export, such as `demo`, `demo.public` or `store:kafka`; left out = all "
            "that the caller sees. A database and a schema bring what is in them.",
        ),
    ] = None,
) -> ExportView:
    """Show objects of the catalog as code that makes them again. Values of secrets are variables."""
    found = export(env, caller, name or ())
    return ExportView.from_domain(_FORMS[format](found))
