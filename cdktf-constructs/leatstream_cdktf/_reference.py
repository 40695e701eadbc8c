"""References to nested attributes of a resource, whose values are known only when Terraform runs.

``query.status.state`` and ``query.effective["topic.partitions"].value`` give tokens: strings that become
``${leatstream_query.enriched.status.state}`` when the stack is synthesized.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Generic, NoReturn, TypeVar

from leatstream_cdktf._shim import tf

Owner = tf.TerraformResource | tf.TerraformDataSource
R = TypeVar("R", bound="Reference")


class Reference:
    """A nested object of a resource's attributes."""

    def __init__(self, owner: Owner, path: str) -> None:
        """Refer to the attribute at ``path`` of ``owner``, written as ``status.state`` or ``columns[0]``."""
        self._owner = owner
        self._path = path

    @property
    def token(self) -> tf.IResolvable:
        """The whole value, to hand to an attribute or an output."""
        return self._owner.interpolation_for_attribute(self._path)

    def __str__(self) -> str:
        return tf.Token.as_string(self.token)

    def _at(self, name: str) -> tf.IResolvable:
        return self._owner.interpolation_for_attribute(f"{self._path}.{name}")

    def _string(self, name: str) -> str:
        return tf.Token.as_string(self._at(name))

    def _number(self, name: str) -> float:
        return tf.Token.as_number(self._at(name))

    def _strings(self, name: str) -> list[str]:
        return list(tf.Token.as_list(self._at(name)))


class _Many(Reference, Generic[R]):
    def __init__(self, owner: Owner, path: str, element: type[R]) -> None:
        super().__init__(owner, path)
        self._element = element

    def __iter__(self) -> Iterator[NoReturn]:
        raise TypeError(
            f"{self._path}: how many elements there are is known only when Terraform runs; "
            "take one by its index or key, or hand the whole value on with .token"
        )


class ListReference(_Many[R]):
    """A nested list of objects."""

    def __getitem__(self, index: int) -> R:
        """Refer to one element by its position, from 0."""
        return self._element(self._owner, f"{self._path}[{int(index)}]")


class MapReference(_Many[R]):
    """A nested map of objects."""

    def __getitem__(self, key: str) -> R:
        """Refer to one element by its key."""
        # Terraform's strings are JSON's, but for its templates.
        text = json.dumps(key, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")
        return self._element(self._owner, f"{self._path}[{text}]")
