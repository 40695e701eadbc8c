"""One method per RPC: decodes the request, calls the engine, encodes the answer. No rule lives here."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from leatstream_terraform import functions
from leatstream_terraform.applying import apply
from leatstream_terraform.checks import check
from leatstream_terraform.codec import UNKNOWN, decode, encode, has_unknown
from leatstream_terraform.diagnostics import Diagnostic, Failed, from_problem
from leatstream_terraform.ephemerals import close_object, open_object
from leatstream_terraform.planning import plan
from leatstream_terraform.protocol import Protocol
from leatstream_terraform.reading import import_state, read, read_data
from leatstream_terraform.rest import Cancelled, ProblemError, ServiceDown
from leatstream_terraform.schema import Attribute, Resource, complete, walk
from leatstream_terraform.session import Private, Session
from leatstream_terraform.wireschema import all_schemas, capabilities, function_message, identity_message

_OLD = (
    "Write-only arguments need Terraform 1.11 or OpenTofu 1.11, or later; this version would store the value "
    "in the state. Leave the argument out, or use a later version."
)


def _defect(rpc: str, error: Exception) -> Diagnostic:
    """What nobody had thought of, by its place and kind alone."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return Diagnostic(
        "The provider has a defect",
        f"{rpc} ended with {type(error).__name__} at {at}. Nothing more is shown, as it might be secret. "
        "Please report it with these words; what was done before is in the state.",
    )


class Handlers:
    """The provider's RPCs. Each takes (request, empty response) and fills the response."""

    def __init__(self, protocol: Protocol, session: Session) -> None:
        self.protocol = protocol
        self.session = session

    def guarded(self, name: str) -> Callable[[Any, Any], Any]:
        """An RPC that turns every failure into a diagnostic, which Terraform shows with its address."""
        method = getattr(self, name)

        def run(request: Any, response: Any) -> Any:
            try:
                method(request, response)
            except Failed as failed:
                self._tell(response, *failed.diagnostics)
            except ProblemError as refused:
                self._tell(response, *from_problem(refused.problem, {}, "The leatstream service refused"))
            except ServiceDown as problem:
                self._tell(response, Diagnostic("The leatstream service does not answer", str(problem)))
            except Cancelled:
                self._tell(response, Diagnostic("Stopped", "Terraform asked the provider to stop."))
            except Exception as error:  # its text may hold a token or a password, and ends up in logs of CI
                self._tell(response, _defect(name, error))
            return response

        return run

    def _tell(self, response: Any, *diagnostics: Diagnostic) -> None:
        fields = response.DESCRIPTOR.fields_by_name
        text = "\n".join(f"{item.summary}: {item.detail}" for item in diagnostics)
        if "diagnostics" in fields:
            response.diagnostics.extend(self.protocol.diagnostic(item) for item in diagnostics)
        elif "error" in fields:  # a function's answer
            response.error.text = text
        else:  # StopProvider's
            response.Error = text

    def _resource(self, name: str) -> Resource:
        found = self.session.schema.resources.get(name)
        if found is None:
            raise Failed(Diagnostic(f"leatstream has no resource {name}"))
        return found

    # ---- schema --------------------------------------------------------------------------------------------

    def GetMetadata(self, request: Any, response: Any) -> None:
        """Names only."""
        schema = self.session.schema
        capabilities(response.server_capabilities)
        for name in schema.resources:
            response.resources.add(type_name=name)
        for name in schema.data_sources:
            response.data_sources.add(type_name=name)
        for name in schema.ephemerals:
            response.ephemeral_resources.add(type_name=name)
        for name in schema.functions:
            response.functions.add(name=name)

    def GetProviderSchema(self, request: Any, response: Any) -> None:
        """Everything the provider offers."""
        response.CopyFrom(all_schemas(self.protocol, self.session.schema))

    def GetResourceIdentitySchemas(self, request: Any, response: Any) -> None:
        """The names that find each resource."""
        for name, resource in self.session.schema.resources.items():
            response.identity_schemas[name].CopyFrom(identity_message(self.protocol, resource))

    def GetFunctions(self, request: Any, response: Any) -> None:
        """Provider functions."""
        for name, function in self.session.schema.functions.items():
            response.functions[name].CopyFrom(function_message(self.protocol, function))

    def CallFunction(self, request: Any, response: Any) -> None:
        """Run a provider function."""
        try:
            result = functions.call(request.name, [decode(one.msgpack) for one in request.arguments])
        except ValueError as problem:
            text, index = problem.args
            response.error.text = text
            if index is not None:
                response.error.function_argument = index
            return
        response.result.msgpack = encode(result)

    # ---- configuration -------------------------------------------------------------------------------------

    def ValidateProviderConfig(self, request: Any, response: Any) -> None:
        """Check the provider block by itself."""
        self._tell(response, *check(self.session.schema.provider, decode(request.config.msgpack)))

    def ValidateResourceConfig(self, request: Any, response: Any) -> None:
        """Check a resource block by itself."""
        resource = self._resource(request.type_name)
        config = decode(request.config.msgpack)
        if not self.session.destroying:
            self._tell(response, *check(resource.attributes, config, resource.exactly_one_of))
        if not request.client_capabilities.write_only_attributes_allowed:
            self._tell(response, *_write_only(resource.attributes, config))

    def ValidateDataResourceConfig(self, request: Any, response: Any) -> None:
        """Check a data block by itself."""
        source = self.session.schema.data_sources.get(request.type_name)
        if source is None:
            raise Failed(Diagnostic(f"leatstream has no data source {request.type_name}"))
        self._tell(response, *check(source.attributes, decode(request.config.msgpack)))

    def ConfigureProvider(self, request: Any, response: Any) -> None:
        """Take the provider block."""
        self._tell(response, *self.session.configure(decode(request.config.msgpack) or {}))

    def StopProvider(self, request: Any, response: Any) -> None:
        """End every wait."""
        self.session.stop.set()

    # ---- resources -----------------------------------------------------------------------------------------

    def UpgradeResourceState(self, request: Any, response: Any) -> None:
        """Read a stored state with today's schema."""
        resource = self._resource(request.type_name)
        response.upgraded_state.msgpack = encode(_stored(resource, request.version, request.raw_state.json))

    def UpgradeResourceIdentity(self, request: Any, response: Any) -> None:
        """Read a stored identity."""
        resource = self._resource(request.type_name)
        raw = json.loads(request.raw_identity.json or b"{}")
        self._identify(response.upgraded_identity, resource, raw)

    def MoveResourceState(self, request: Any, response: Any) -> None:
        """Take over a resource of the same type from the provider under another address."""
        resource = self._resource(request.target_type_name)
        if request.source_type_name != request.target_type_name:
            raise Failed(
                Diagnostic(
                    "Cannot move between resource types",
                    f"{request.source_type_name} cannot become {request.target_type_name}.",
                )
            )
        state = _stored(resource, request.source_schema_version, request.source_state.json)
        response.target_state.msgpack = encode(state)
        response.target_private = request.source_private
        self._identify(response.target_identity, resource, state)

    def ReadResource(self, request: Any, response: Any) -> None:
        """Read an object again."""
        resource = self._resource(request.type_name)
        response.new_state.msgpack = request.current_state.msgpack
        response.private = request.private
        state, private = read(
            self.session, resource, decode(request.current_state.msgpack), Private.load(request.private)
        )
        response.new_state.msgpack = encode(complete(resource.attributes, state))
        response.private = private.dump()
        if state is not None:
            self._identify(response.new_identity, resource, state)

    def PlanResourceChange(self, request: Any, response: Any) -> None:
        """Plan one object."""
        resource = self._resource(request.type_name)
        response.planned_state.msgpack = request.proposed_new_state.msgpack
        prior, proposed = decode(request.prior_state.msgpack), decode(request.proposed_new_state.msgpack)
        config = None if proposed is None else decode(request.config.msgpack)
        planned = plan(self.session, resource, prior, config, Private.load(request.prior_private))
        response.planned_state.msgpack = encode(complete(resource.attributes, planned.state))
        response.planned_private = planned.private.dump()
        response.requires_replace.extend(self.protocol.path(path) for path in planned.replace)
        self._tell(response, *planned.diagnostics)
        if planned.state is not None:
            self._identify(response.planned_identity, resource, planned.state)

    def ApplyResourceChange(self, request: Any, response: Any) -> None:
        """Create, update or delete one object."""
        resource = self._resource(request.type_name)
        response.new_state.msgpack = request.prior_state.msgpack
        response.private = request.planned_private
        prior, planned, config = (
            decode(part.msgpack) for part in (request.prior_state, request.planned_state, request.config)
        )
        done = apply(self.session, resource, prior, planned, config, Private.load(request.planned_private))
        response.new_state.msgpack = encode(complete(resource.attributes, done.state))
        response.private = done.private.dump()
        self._tell(response, *done.diagnostics)
        if done.state is not None:
            self._identify(response.new_identity, resource, done.state)

    def ImportResourceState(self, request: Any, response: Any) -> None:
        """Start an import by id or by identity."""
        resource = self._resource(request.type_name)
        identity = decode(request.identity.identity_data.msgpack) if request.HasField("identity") else None
        state, private = import_state(resource, request.id, identity)
        imported = response.imported_resources.add(type_name=request.type_name, private=private.dump())
        imported.state.msgpack = encode(complete(resource.attributes, state))
        self._identify(imported.identity, resource, state)

    def ReadDataSource(self, request: Any, response: Any) -> None:
        """Read a data source."""
        source = self.session.schema.data_sources[request.type_name]
        value = read_data(self.session, source, decode(request.config.msgpack))
        response.state.msgpack = encode(complete(source.attributes, value))

    # ---- ephemeral resources -------------------------------------------------------------------------------

    def _ephemeral(self, name: str) -> Resource:
        found = self.session.schema.ephemerals.get(name)
        if found is None:
            raise Failed(Diagnostic(f"leatstream has no ephemeral resource {name}"))
        return found

    def ValidateEphemeralResourceConfig(self, request: Any, response: Any) -> None:
        """Check an ephemeral block by itself."""
        resource = self._ephemeral(request.type_name)
        self._tell(response, *check(resource.attributes, decode(request.config.msgpack)))

    def OpenEphemeralResource(self, request: Any, response: Any) -> None:
        """Make an object that exists while Terraform runs."""
        resource = self._ephemeral(request.type_name)
        value, response.private = open_object(self.session, resource, decode(request.config.msgpack))
        response.result.msgpack = encode(complete(resource.attributes, value))

    def CloseEphemeralResource(self, request: Any, response: Any) -> None:
        """Delete such an object."""
        resource = self._ephemeral(request.type_name)
        self._tell(response, *close_object(self.session, resource, request.private))

    def _identify(self, message: Any, resource: Resource, state: Mapping[str, Any]) -> None:
        names = {name: state.get(name) for name in resource.key}
        if not has_unknown(names):
            message.identity_data.msgpack = encode(names)


def _stored(resource: Resource, version: int, raw: bytes) -> Any:
    if version > resource.version:
        raise Failed(
            Diagnostic(
                "The state was written by a later provider",
                f"It has schema version {version} of {resource.name}; this provider knows "
                f"{resource.version}. Install the later version.",
            )
        )
    return complete(resource.attributes, json.loads(raw))


def _write_only(attributes: Mapping[str, Attribute], config: Any) -> list[Diagnostic]:
    return [
        Diagnostic(f"{item.name} cannot be used here", _OLD, path)
        for path, item, value in walk(attributes, config)
        if item.write_only and value is not None and value is not UNKNOWN
    ]
