"""How the columns of a relation are read from the parts of its records: value, key and headers.

Most columns are in the value. Key columns are in the key alone where the relation says so, and of a changelog
the key names the row that a record without value takes back; then the key is read too, each in its format.
One column may be the headers.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leatstream.connectors.registry import connector_classes
from leatstream.errors import JobError
from leatstream.formats import json, primitive
from leatstream.formats.described import FORMATS as DESCRIBED
from leatstream.formats.described import Description
from leatstream.formats.record_rows import GZIP, NO_ROW, PACKED
from leatstream.formats.registry_client import RegistryAddress
from leatstream.model.objects import DELETED, ROWMETA
from leatstream.plan.job_spec import ColumnSpec, DescriptorRef, SourceSpec, value_columns
from leatstream_jobs.reading import described_records, record_headers

if TYPE_CHECKING:
    from pyspark.sql import Column

FORMATS = ("json", "primitive", *DESCRIBED)


@dataclass(frozen=True, slots=True)
class Reading:
    """How records are read.

    Attributes:
        texts: to be selected from raw records: the parts as text, by name.
        parsed: to be added to them, one set after the other: the parts parsed, by name.
        fields: the declared columns in order, named.
        wrong: whether the record is no row of the relation; true or false, never NULL.
        reason: why, where the format can tell.
    """

    texts: dict[str, Column]
    parsed: Sequence[dict[str, Column]]
    fields: Sequence[Column]
    wrong: Column
    reason: Column | None


def reading(source: SourceSpec, registry: RegistryAddress | None) -> Reading:
    """How a source's records are read; of a changelog over a frame that has ``__leat_deleted``.

    Raises:
        JobError: job-rejected, for columns that the formats have no form for.
    """
    from pyspark.sql import functions as F

    found = _of_value_and_key(source, registry)
    if source.value_format == "json":
        found = replace(found, reason=_with_packed(found.reason))
    kind = connector_classes().get(source.store.kind)
    if kind is not None and kind.gives_reasons:
        why = F.col(ROWMETA).getField("reason")
        reason_of_row = why if found.reason is None else F.coalesce(why, found.reason)
        # The text of such a row may look like an object of JSON.
        found = replace(found, reason=reason_of_row, wrong=found.wrong | why.isNotNull())
    headers = record_headers.headers_spec(source)
    return found if headers is None else _with_headers(source, headers, found)


def _with_packed(reason: Column | None) -> Column:
    """The reason, of a value that is gzip another one: producers and log services pack what they send."""
    from pyspark.sql import functions as F

    packed = F.startswith(F.col(json.TEXT).cast("binary"), F.lit(GZIP))
    packed_reason = F.when(packed, F.lit(PACKED))
    return packed_reason if reason is None else packed_reason.otherwise(reason)


def _with_headers(source: SourceSpec, column: ColumnSpec, found: Reading) -> Reading:
    from pyspark.sql import functions as F

    field, misfit = record_headers.filled(source, column)
    others = iter(found.fields)
    fields = [field if one == column else next(others) for one in source.columns]
    if misfit is None:
        return replace(found, fields=fields)
    header_reason = F.when(misfit, F.lit(f"a header, read as {column.name}, is no text in UTF-8"))
    reason = header_reason if found.reason is None else header_reason.otherwise(found.reason)
    return replace(found, fields=fields, wrong=found.wrong | misfit, reason=reason)


def _of_value_and_key(source: SourceSpec, registry: RegistryAddress | None) -> Reading:
    """The same without the column that is the headers."""
    from pyspark.sql import functions as F

    text = F.col("value").cast("string")
    # What is read of a table's changes is made for the columns, whatever the relation is written in.
    form = "json" if source.feed is not None else source.value_format
    columns = value_columns(source)
    value = _decoder(form, columns, registry, bare=source.descriptor)
    parsed = _steps({json.VALUE: value})
    if not source.primary_key and not source.key_only:
        return Reading({json.TEXT: text}, parsed, value.fields, value.undecodable, value.reason)
    relaxed = _decoder(form, _nullable(columns), registry, bare=source.descriptor)
    if _alike(source, form):
        # The key is an object of the key's columns: read like a value that has nothing else.
        either = F.coalesce(text, F.col("key").cast("string"))
        wrong = F.when(F.col(DELETED), relaxed.undecodable).otherwise(value.undecodable)
        return Reading({json.TEXT: either}, parsed, relaxed.fields, wrong, value.reason)
    return _with_key(source, registry, value, relaxed)


def _with_key(
    source: SourceSpec, registry: RegistryAddress | None, value: json.Decoder, relaxed: json.Decoder
) -> Reading:
    from pyspark.sql import functions as F

    text, key_text = F.col("value").cast("string"), F.col("key").cast("string")
    named = set(source.primary_key or source.key_only)
    columns = [column for column in source.columns if column.name in named]
    always = bool(source.key_only)
    # Of a record without value the key is all there is; with one, it is read for what it alone has.
    columns = columns if always else _nullable(columns)
    key = _decoder(source.key_format or "primitive", columns, registry, json.KEY)
    absent = F.lit(any(column.not_null for column in columns))
    unread = F.when(F.col(json.KEY.text).isNull(), absent).otherwise(key.undecodable)
    wrong = value.undecodable
    if source.primary_key:
        wrong = ~F.col(DELETED) & wrong
    wrong = wrong | (unread if always else F.col(DELETED) & unread)
    why = F.coalesce(key.reason, F.lit(NO_ROW)) if key.reason is not None else F.lit(NO_ROW)
    key_reason = F.when(unread, F.concat(F.lit("its key cannot be read: "), why))
    return Reading(
        {json.TEXT: text, json.KEY.text: key_text if always else F.when(text.isNull(), key_text)},
        _steps({json.VALUE: value, json.KEY: key}),
        _joined(source, dict(zip((c.name for c in columns), key.fields, strict=True)), relaxed),
        wrong,
        key_reason if value.reason is None else key_reason.otherwise(value.reason),
    )


def _steps(decoders: dict[json.Place, json.Decoder]) -> list[dict[str, Column]]:
    """The columns of several decoders, those that use no others first."""
    waves: list[dict[str, Column]] = [{}, {}, {}]
    for place, decoder in decoders.items():
        for wave, step in enumerate(reversed(decoder.steps(place))):
            waves[wave] |= step
    return [wave for wave in reversed(waves) if wave]


def _joined(source: SourceSpec, of_key: dict[str, Column], value: json.Decoder) -> list[Column]:
    """The columns of value and key in order, each from where it is."""
    from pyspark.sql import functions as F

    names = [column.name for column in value_columns(source)]
    of_value = dict(zip(names, value.fields, strict=True))
    found: list[Column] = []
    for name in (column.name for column in source.columns if column.name != source.headers_column):
        if name in source.key_only:
            found.append(of_key[name])
        elif name in of_key:
            found.append(F.when(F.col(DELETED), of_key[name]).otherwise(of_value[name]).alias(name))
        else:
            found.append(of_value[name])
    return found


def _alike(source: SourceSpec, form: str) -> bool:
    """Whether one decoder reads a changelog's values and keys; a descriptor source describes values only."""
    return source.key_format == form != "primitive" and not source.key_only and source.descriptor is None


def _nullable(columns: Sequence[ColumnSpec]) -> list[ColumnSpec]:
    return [column.model_copy(update={"not_null": False}) for column in columns]


def _decoder(
    form: str,
    columns: Sequence[ColumnSpec],
    registry: RegistryAddress | None,
    place: json.Place = json.VALUE,
    bare: DescriptorRef | None = None,
) -> json.Decoder:
    if form == "primitive":
        if len(columns) != 1:
            raise JobError("job-rejected", f"A primitive is read as exactly one column, not {len(columns)}.")
        return primitive.decoder(columns[0], place)
    if form not in DESCRIBED:
        return json.decoder(columns, place)
    description = Description(
        form,
        tuple(c.name for c in columns),
        tuple(c.type for c in columns),
        registry=registry,
        files=b64decode(bare.files) if bare is not None else None,
        message=bare.message if bare is not None else None,
    )
    return described_records.decoder(description, [c.name for c in columns if c.not_null], place)
