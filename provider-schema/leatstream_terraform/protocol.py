"""Terraform's wire format, loaded at run time from a descriptor set: no generated code."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from leatstream_terraform.codec import Key, Path
from leatstream_terraform.diagnostics import Diagnostic

PROVIDER = "tfplugin6.Provider"
CONTROLLER = "plugin.GRPCController"


class Protocol:
    """Message classes and services by name."""

    def __init__(self) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        data = files("leatstream_terraform").joinpath("data/protocol.binpb").read_bytes()
        for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
            self._pool.AddSerializedFile(file.SerializeToString())

    def message(self, name: str) -> Any:
        """The class of a message, such as ``tfplugin6.Schema.Attribute``."""
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(name))

    def methods(self, service: str) -> list[tuple[str, Any, Any, bool]]:
        """Methods of a service: name, request class, response class, whether the response is a stream."""
        found = self._pool.FindServiceByName(service)
        return [
            (
                method.name,
                message_factory.GetMessageClass(method.input_type),
                message_factory.GetMessageClass(method.output_type),
                bool(method.server_streaming),
            )
            for method in found.methods
        ]

    def diagnostic(self, item: Diagnostic) -> Any:
        """A diagnostic as a message."""
        result = self.message("tfplugin6.Diagnostic")(
            severity=1 if item.severity == "error" else 2, summary=item.summary, detail=item.detail
        )
        if item.path:
            result.attribute.CopyFrom(self.path(item.path))
        return result

    def path(self, steps: Path) -> Any:
        """An attribute path as a message."""
        result = self.message("tfplugin6.AttributePath")()
        for step in steps:
            if isinstance(step, int):
                result.steps.add(element_key_int=step)
            elif isinstance(step, Key):
                result.steps.add(element_key_string=step)
            else:
                result.steps.add(attribute_name=step)
        return result
