"""What every generated class stands on: a Terraform element whose attributes are a plain mapping."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, TypedDict, cast

import jsii
from constructs import Construct

from leatstream_cdktf._reference import Reference
from leatstream_cdktf._shim import tf

_PROVIDER = "leatstream"


class ResourceMeta(TypedDict, total=False):
    """Terraform's own arguments, which every resource takes."""

    connection: tf.SSHProvisionerConnection | tf.WinrmProvisionerConnection
    count: int | float | tf.TerraformCount
    depends_on: Sequence[tf.ITerraformDependable]
    for_each: tf.ITerraformIterator
    lifecycle: tf.TerraformResourceLifecycle
    provider: tf.TerraformProvider
    provisioners: Sequence[tf.FileProvisioner | tf.LocalExecProvisioner | tf.RemoteExecProvisioner]


class DataSourceMeta(TypedDict, total=False):
    """Terraform's own arguments, which every data source takes."""

    count: int | float | tf.TerraformCount
    depends_on: Sequence[tf.ITerraformDependable]
    for_each: tf.ITerraformIterator
    lifecycle: tf.TerraformResourceLifecycle
    provider: tf.TerraformProvider


def package_version() -> str | None:
    """The version of leatstream that is installed; None from a source tree that is not."""
    try:
        return version("leatstream")
    except PackageNotFoundError:
        return None


def generator_metadata(provider_version: str | None = None) -> tf.TerraformProviderGeneratorMetadata:
    """Tell the library which provider an element belongs to."""
    return tf.TerraformProviderGeneratorMetadata(provider_name=_PROVIDER, provider_version=provider_version)


def plain(value: Any) -> Any:
    """An argument as Terraform's JSON holds it: nulls dropped, the rest copied, tokens for references."""
    if isinstance(value, Reference):
        return value.token
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def describe(value: object) -> str:
    """A value as an error message names it; constructs by their kind and path."""
    if Construct.is_construct(value):
        return f"the {type(value).__name__} {cast(Construct, value).node.path!r}"
    return repr(value)


def values_at(value: Any, path: Sequence[str]) -> Iterator[Any]:
    """All values under a path of attribute names, through lists (and maps, whose step is ``*``)."""
    if not path:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from values_at(item, path)
    elif isinstance(value, dict):
        for item in value.values() if path[0] == "*" else [value.get(path[0])]:
            yield from values_at(item, path[1:])


def _label(element: object, id_: str) -> str:
    return f"{type(element).__name__} {id_!r}"


def _check_arguments(element: object, id_: str, extra: Mapping[str, Any], meta: type) -> None:
    """Refuse arguments that do not exist, with the nearest one that does.

    Raises:
        TypeError: there are such arguments.
    """
    strangers = [name for name in extra if name not in meta.__annotations__]
    if not strangers:
        return
    own = [
        p.name
        for p in inspect.signature(type(element).__init__).parameters.values()
        if p.kind is p.KEYWORD_ONLY
    ]
    known = sorted({*own, *meta.__annotations__})
    faults = []
    for name in strangers:
        near = difflib.get_close_matches(name, known, n=1)
        faults.append(f"no argument {name!r}" + (f" (did you mean {near[0]!r}?)" if near else ""))
    raise TypeError(f"{_label(element, id_)} has {'; '.join(faults)}. It takes: {', '.join(known)}.")


def _check_choices(
    element: object, id_: str, attributes: Mapping[str, Any], choices: Mapping[str, Sequence[Any]]
) -> None:
    """Refuse values outside an attribute's choices; tokens pass, Terraform checks them when it knows them.

    Raises:
        ValueError: there are such values.
    """
    faults = []
    for path, allowed in choices.items():
        for value in values_at(attributes, path.split(".")):
            if not isinstance(value, str) or "${" in value or value in allowed:
                continue
            near = difflib.get_close_matches(value.lower(), [str(item) for item in allowed], n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            faults.append(f"{path} is {value!r}; it must be one of {', '.join(map(repr, allowed))}.{hint}")
    if faults:
        raise ValueError(f"{_label(element, id_)}: " + " ".join(faults))


class Resource(tf.TerraformResource):
    """A leatstream resource.

    Attributes:
        TERRAFORM_TYPE: the resource's type in Terraform.
        CHOICES: the values that attributes are limited to, by the attribute's dotted path.
    """

    TERRAFORM_TYPE: ClassVar[str]
    CHOICES: ClassVar[Mapping[str, Sequence[Any]]] = {}

    def __init__(
        self, scope: Construct, id_: str, attributes: Mapping[str, Any], meta: Mapping[str, Any]
    ) -> None:
        _check_arguments(self, id_, meta, ResourceMeta)
        # Set before super().__init__, because the library may call back for it at any time.
        self._attributes: dict[str, Any] = plain(attributes)
        _check_choices(self, id_, self._attributes, self.CHOICES)
        super().__init__(
            scope,
            id_,
            terraform_resource_type=self.TERRAFORM_TYPE,
            terraform_generator_metadata=generator_metadata(),
            **meta,
        )

    @jsii.member(jsii_name="synthesizeAttributes")
    def _synthesize_attributes(self) -> Mapping[str, Any]:
        return self._attributes


class DataSource(tf.TerraformDataSource):
    """A leatstream data source.

    Attributes:
        TERRAFORM_TYPE: the data source's type in Terraform.
    """

    TERRAFORM_TYPE: ClassVar[str]

    def __init__(
        self, scope: Construct, id_: str, attributes: Mapping[str, Any], meta: Mapping[str, Any]
    ) -> None:
        _check_arguments(self, id_, meta, DataSourceMeta)
        self._attributes: dict[str, Any] = plain(attributes)
        super().__init__(
            scope,
            id_,
            terraform_resource_type=self.TERRAFORM_TYPE,
            terraform_generator_metadata=generator_metadata(),
            **meta,
        )

    @jsii.member(jsii_name="synthesizeAttributes")
    def _synthesize_attributes(self) -> Mapping[str, Any]:
        return self._attributes


class Provider(tf.TerraformProvider):
    """The leatstream provider.

    Attributes:
        SOURCE: the provider's address, as in ``required_providers``.
    """

    SOURCE: ClassVar[str]

    def __init__(self, scope: Construct, id_: str, attributes: Mapping[str, Any], alias: str | None) -> None:
        self._attributes: dict[str, Any] = plain(attributes)
        super().__init__(
            scope,
            id_,
            terraform_resource_type=_PROVIDER,
            terraform_generator_metadata=generator_metadata(package_version()),
            terraform_provider_source=self.SOURCE,
        )
        if alias is not None:
            self.alias = alias

    @jsii.member(jsii_name="synthesizeAttributes")
    def _synthesize_attributes(self) -> Mapping[str, Any]:
        return self._attributes
