"""Users' functions in a job: which version of their source it runs, and how a driver gets the text.

A query runs the source that its functions had when it was planned, or last restarted by a person; restarts
after a fault keep it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from leatstream.errors import RequestError
from leatstream.model.functions import JAVA, FunctionSource
from leatstream.model.names import quote
from leatstream.model.objects import Query
from leatstream.plan.job_spec import FunctionSpec
from leatstream.plan.logical import FunctionUse
from leatstream.ports import UnitOfWork
from leatstream.services.functions.java_source import class_names
from leatstream.services.staging.catalog_view import CatalogView


def function_specs(
    view: CatalogView, uses: Sequence[FunctionUse]
) -> tuple[list[FunctionSpec], dict[str, str]]:
    """The functions of a plan for its JobSpec, and the texts of their sources by digest."""
    specs: list[FunctionSpec] = []
    code: dict[str, str] = {}
    jars: dict[str, FunctionSource] = {}
    for use in uses:
        function = use.function
        source = view.source_of(function)
        code[source.digest] = source.content
        if source.language == JAVA:
            jars[source.digest] = source
        specs.append(
            FunctionSpec(
                name=use.name,
                function=function.name,
                arguments=[str(a.type) for a in function.arguments],
                returns=str(function.returns),
                aggregate=function.aggregate,
                source=source.name,
                file=source.file,
                handler=function.handler,
                digest=source.digest,
                timeout_seconds=function.timeout_seconds,
                language="java" if function.language == JAVA else "python",
            )
        )
    _refuse_common_classes(list(jars.values()))
    return specs, code


def _refuse_common_classes(jars: Sequence[FunctionSource]) -> None:
    """One JVM loads a class once: of two jars with a class of the same name, one would get the other's."""
    known: dict[str, FunctionSource] = {}
    for jar in jars:
        for name in sorted(class_names(jar.content, jar.file)):
            other = known.setdefault(name, jar)
            if other is not jar:
                detail = (
                    f"Function sources {quote(other.name)} and {quote(jar.name)} both have a class {name}: "
                    "one query cannot use both."
                )
                raise RequestError("unsupported", detail, hint="Put both functions into one jar.")


def with_present_sources(unit: UnitOfWork, query: Query) -> Query:
    """The query with the sources that its functions have now."""
    if not query.job.get("functions"):
        return query
    functions: list[Mapping[str, object]] = []
    code: dict[str, str] = {}
    for spec in query.job["functions"]:
        source: FunctionSource | None = unit.function_sources.find(spec["source"])
        if source is None:
            return query
        code[source.digest] = source.content
        functions.append({**spec, "digest": source.digest, "file": source.file})
    return replace(query, job={**query.job, "functions": functions}, code=code)
