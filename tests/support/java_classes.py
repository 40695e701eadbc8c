"""Java classes made byte by byte, so that tests need no compiler: straight-line methods of class format 50."""

from __future__ import annotations

import base64
import io
import struct
import zipfile
from collections.abc import Sequence

PUBLIC, ABSTRACT = 1, 0x400
_UDF = "org/apache/spark/sql/api/java/UDF"
_OBJECT = "java/lang/Object"
_FIXED = (2026, 1, 1, 0, 0, 0)

Step = int | tuple[int, tuple[str, ...]]  # an opcode, or one with what it names


class _Pool:
    """A class's constants."""

    def __init__(self) -> None:
        self.items: list[bytes] = []

    def add(self, item: bytes) -> int:
        if item not in self.items:
            self.items.append(item)
        return self.items.index(item) + 1

    def text(self, value: str) -> int:
        return self.add(b"\x01" + struct.pack(">H", len(value.encode())) + value.encode())

    def named(self, value: str) -> int:
        return self.add(b"\x07" + struct.pack(">H", self.text(value)))

    def method(self, owner: str, name: str, kind: str) -> int:
        pair = self.add(b"\x0c" + struct.pack(">HH", self.text(name), self.text(kind)))
        return self.add(b"\x0a" + struct.pack(">HH", self.named(owner), pair))

    def place(self, what: tuple[str, ...]) -> int:
        return self.named(what[0]) if len(what) == 1 else self.method(*what)


def udf_class(
    name: str,
    arguments: int,
    steps: Sequence[Step],
    *,
    access: int = PUBLIC,
    constructor: str = "()V",
    version: int = 50,
    typed: bool = True,
    interfaces: Sequence[str] | None = None,
) -> bytes:
    """A class that is a Spark UDF; ``steps`` leave its result on the stack.

    Args:
        name: with dots.
        arguments: how many ``call`` takes, as Objects in the slots 1, 2, …
        steps: opcodes, or (opcode, (class,)) and (opcode, (class, method, descriptor)).
        access: flags of the class.
        constructor: its descriptor.
        version: of the class format.
        typed: whether it says the interface's type arguments.
        interfaces: others than Spark's of this many arguments.
    """
    pool = _Pool()
    spark = f"{_UDF}{arguments}"
    own = [spark] if interfaces is None else list(interfaces)
    init = _code(pool, 1 + arguments, [42, (183, (_OBJECT, "<init>", "()V")), 177])
    call = _code(pool, 1 + arguments, [*steps, 176])
    head = struct.pack(
        ">HHHH", access | 0x20, pool.named(name.replace(".", "/")), pool.named(_OBJECT), len(own)
    )
    head += b"".join(struct.pack(">H", pool.named(one)) for one in own) + struct.pack(">HH", 0, 2)
    kind = f"({f'L{_OBJECT};' * arguments})L{_OBJECT};"
    for method, descriptor, code in (("<init>", constructor, init), ("call", kind, call)):
        head += struct.pack(">HHHH", PUBLIC, pool.text(method), pool.text(descriptor), 1) + code
    signature = f"L{_OBJECT};" + "".join(f"L{one}<{f'L{_OBJECT};' * (arguments + 1)}>;" for one in own)
    tail = struct.pack(">HHIH", 1, pool.text("Signature"), 2, pool.text(signature)) if typed else b"\0\0"
    count = struct.pack(">H", len(pool.items) + 1)
    return b"\xca\xfe\xba\xbe" + struct.pack(">HH", 0, version) + count + b"".join(pool.items) + head + tail


def _code(pool: _Pool, slots: int, steps: Sequence[Step]) -> bytes:
    code = b""
    for step in steps:
        if isinstance(step, int):
            code += bytes([step])
        else:
            code += bytes([step[0]]) + struct.pack(">H", pool.place(step[1]))
    body = struct.pack(">HHI", 8, slots, len(code)) + code + struct.pack(">HH", 0, 0)
    return struct.pack(">HI", pool.text("Code"), len(body)) + body


def load(slot: int) -> int:
    """The step that puts argument 1, 2 or 3 on the stack."""
    return 42 + slot


def jar(**classes: bytes) -> str:
    """A jar in base64; its classes by name, with ``__`` for the dots."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _FIXED), "Manifest-Version: 1.0\n")
        for name, data in classes.items():
            archive.writestr(zipfile.ZipInfo(name.replace("__", "/") + ".class", _FIXED), data)
    return base64.b64encode(out.getvalue()).decode()


SAME = udf_class("shop.Same", 1, [load(1)])
TOLD = (184, ("java/lang/String", "valueOf", f"(L{_OBJECT};)Ljava/lang/String;"))
JOIN = udf_class(
    "shop.Join",
    2,
    [
        *(load(1), TOLD, load(2), TOLD),
        (182, ("java/lang/String", "concat", "(Ljava/lang/String;)Ljava/lang/String;")),
    ],
)
FAIL = udf_class(
    "shop.Fail",
    1,
    [
        *((187, ("java/lang/IllegalStateException",)), 89, load(1), TOLD),
        (183, ("java/lang/IllegalStateException", "<init>", "(Ljava/lang/String;)V")),
        191,
        1,
    ],
)
