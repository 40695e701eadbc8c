"""What a jar offers, read from its class files: no Java runs here."""

from __future__ import annotations

import base64
import binascii
import io
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass

from leatstream.errors import RequestError

_UDF = re.compile(r"org/apache/spark/sql/api/java/UDF(\d+)\Z")
_AGGREGATES = ("org/apache/spark/sql/expressions/Aggregator", "UserDefinedAggregateFunction")
_PUBLIC, _INTERFACE, _ABSTRACT = 0x1, 0x200, 0x400
_LONGEST_CLASS = 4 * 1024 * 1024
_MOST_ENTRIES = 20_000
# Bytes of a constant behind its tag; a text (1) has its length in front, and 5 and 6 count twice.
_SIZES = {
    **dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4),
    **dict.fromkeys((5, 6), 8),
    **dict.fromkeys((7, 8, 16, 19, 20), 2),
    15: 3,
}


@dataclass(frozen=True, slots=True)
class ClassFile:
    """What is read of a class.

    Attributes:
        parent, interfaces: as the file has them, with slashes.
        plain: whether it has a public constructor without arguments.
        typed: whether it says type arguments of its parents.
    """

    access: int
    parent: str
    interfaces: tuple[str, ...]
    plain: bool
    typed: bool


def check_jar(content: str, file: str) -> None:
    """Refuse what is no jar with classes."""
    if not class_names(content, file):
        raise _wrong(f"{file} has no classes.")


def class_names(content: str, file: str) -> frozenset[str]:
    """The classes of a jar, with dots."""
    with _open(content, file) as archive:
        names = [name for name in archive.namelist() if name.endswith(".class")]
    return frozenset(
        name.removesuffix(".class").replace("/", ".")
        for name in names
        if not name.startswith("META-INF/") and not name.endswith("module-info.class")
    )


def check_class(content: str, file: str, handler: str, arguments: int) -> None:
    """Check that a function may be made of a class.

    Args:
        content: the jar, in base64.
        file: its name, for messages.
        handler: full name of the class.
        arguments: how many SQL will give.

    Raises:
        RequestError: validation; unsupported for aggregates.
    """
    known = class_names(content, file)
    if handler not in known:
        own = handler.rpartition(".")[2]
        near = sorted(name for name in known if name.rpartition(".")[2] == own) or sorted(
            name for name in known if "$" not in name
        )
        raise _wrong(f"{file} has no class {handler}.", f"It has: {', '.join(near[:10])}.")
    found = _read(content, file, handler)
    if any(found.parent.endswith(name) for name in _AGGREGATES):
        detail = f"{handler} is an aggregate: aggregates in Java are not built."
        raise RequestError("unsupported", detail, hint="Write the aggregate in Python.")
    counts = [int(match[1]) for one in found.interfaces if (match := _UDF.match(one))]
    if len(counts) != 1:
        what = f"implements {len(counts)} of them" if counts else "implements none of them itself"
        detail = f"{handler} must implement one of Spark's interfaces UDF0 to UDF22; it {what}."
        raise _wrong(detail, "Implements org.apache.spark.sql.api.java.UDF1<String, Long>.")
    if counts[0] != arguments:
        raise _wrong(f"{handler} takes {counts[0]} arguments (UDF{counts[0]}), SQL would give {arguments}.")
    if not found.typed:
        detail = f"{handler} must say the types of UDF{arguments}; it implements it raw."
        raise _wrong(detail, f"Implements UDF{arguments}<{', '.join(['…'] * (arguments + 1))}>.")
    if not found.access & _PUBLIC or found.access & (_INTERFACE | _ABSTRACT) or not found.plain:
        raise _wrong(f"{handler} must be a public class with a public constructor without arguments.")


def _open(content: str, file: str) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(content, validate=True)))
    except (binascii.Error, ValueError):
        raise _wrong(f"{file} is not in base64.", 'Filebase64("…") in Terraform.') from None
    except (zipfile.BadZipFile, OSError, NotImplementedError):
        raise _wrong(f"{file} is no jar.") from None
    if len(archive.namelist()) > _MOST_ENTRIES:
        raise _wrong(f"{file} has more than {_MOST_ENTRIES} entries.")
    return archive


def _read(content: str, file: str, handler: str) -> ClassFile:
    path = handler.replace(".", "/") + ".class"
    try:
        with _open(content, file) as archive, archive.open(path) as opened:
            data = opened.read(_LONGEST_CLASS + 1)
        if len(data) <= _LONGEST_CLASS:
            return read_class(data)
    except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, NotImplementedError, EOFError, KeyError):
        pass
    except (struct.error, IndexError, ValueError, TypeError):
        pass
    raise _wrong(f"The class {handler} of {file} cannot be read.")


def read_class(data: bytes) -> ClassFile:
    """Read a class file.

    Raises:
        struct.error, IndexError, KeyError, ValueError, TypeError: it is none.
    """
    if data[:4] != b"\xca\xfe\xba\xbe":
        raise ValueError("no class file")
    pool, at = _pool(data)
    access, _, parent, count = struct.unpack_from(">HHHH", data, at)
    at += 8
    interfaces = struct.unpack_from(f">{count}H", data, at)
    at += 2 * count
    plain = False
    for methods in (False, True):
        (members,) = struct.unpack_from(">H", data, at)
        at += 2
        for _ in range(members):
            flags, name, kind = struct.unpack_from(">HHH", data, at)
            public = methods and bool(flags & _PUBLIC)
            plain |= public and (pool.get(name), pool.get(kind)) == ("<init>", "()V")
            _, at = _attributes(data, at + 6, pool)
    names, _ = _attributes(data, at, pool)
    return ClassFile(
        access=access,
        parent=_name(pool, parent) if parent else "",
        interfaces=tuple(_name(pool, index) for index in interfaces),
        plain=plain,
        typed="Signature" in names,
    )


def _pool(data: bytes) -> tuple[dict[int, str | int], int]:
    """Texts, and of classes where their names are, by number; where the constants end."""
    (count,) = struct.unpack_from(">H", data, 8)
    found: dict[int, str | int] = {}
    at, index = 10, 1
    while index < count:
        tag = data[at]
        if tag == 1:
            (length,) = struct.unpack_from(">H", data, at + 1)
            found[index] = data[at + 3 : at + 3 + length].decode(errors="replace")
            at += 3 + length
        else:
            if tag == 7:
                (found[index],) = struct.unpack_from(">H", data, at + 1)
            at += 1 + _SIZES[tag]
        index += 2 if tag in (5, 6) else 1
    return found, at


def _name(pool: dict[int, str | int], index: int) -> str:
    place = pool[index]
    if not isinstance(place, int):
        raise ValueError("no class")
    return str(pool[place])


def _attributes(data: bytes, at: int, pool: dict[int, str | int]) -> tuple[set[str], int]:
    """Names of the attributes that begin here; where they end."""
    (count,) = struct.unpack_from(">H", data, at)
    at += 2
    names = set()
    for _ in range(count):
        name, length = struct.unpack_from(">HI", data, at)
        names.add(str(pool.get(name)))
        at += 6 + length
    return names, at


def _wrong(detail: str, hint: str | None = None) -> RequestError:
    return RequestError("validation", detail, hint=hint)
