"""Settings of a toy store and of its entities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, SecretStr, StrictInt

from leatstream.connectors.entity_settings import Config, EntitySettings, Property
from leatstream.connectors.settings import NAME_PATTERN, Api, Receives, Secret, Sql, StoreSettings


class ToyConfig(StoreSettings):
    """A shelf of toys."""

    schema_name: ClassVar[str] = "Toy"
    example: ClassVar[Mapping[str, Any]] = {"shelf": "upper"}

    shelf: Annotated[
        str,
        Receives(),
        Sql("toy.shelf", example="'toy.shelf' = 'upper'"),
        Api(min_length=1, max_length=40, pattern=NAME_PATTERN),
    ] = Field(description="Name of the shelf.", examples=["upper"])
    colour: Annotated[
        Literal["red", "light_blue"], Sql("toy.colour", words={"red": "red", "light-blue": "light_blue"})
    ] = Field("red", description="Colour of the shelf; default `red`.")
    height: Annotated[int, Sql("toy.height")] = Field(1, ge=1, le=9, description="Height; default 1.")
    owner: Annotated[str | None, Sql("toy.owner"), Api(max_length=40)] = Field(None, description="Owner.")
    key: Annotated[SecretStr | None, Sql("toy.key"), Secret("the key", of="owner")] = Field(
        None, description="Key of the shelf"
    )


class ToyEntity(EntitySettings):
    """Settings of a toy."""

    example: ClassVar[Mapping[str, Any]] = {"wheels": 4, "sound": "toot"}

    wheels: Annotated[Annotated[StrictInt, Field(ge=1, le=100)] | None, Property("toy.wheels")] = Field(
        None, description="Number of wheels; required to create a toy."
    )
    sound: Annotated[str | None, Config("sound")] = Field(None, description="Sound that it makes.")
