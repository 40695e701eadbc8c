"""A double of Oracle: H2 in its Oracle mode behind ``oracledb.connect``. It is no Oracle, and proves no Oracle.

``oracledb`` is the real library; only a service whose name begins with ``h2_`` is answered by H2, over JDBC.
What it takes over: numbered places, codes of errors, ALTER SESSION, and Oracle's dictionary as views. What it
does not have, such as identity of tables, it makes itself.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import jpype
import oracledb
from jdbc_values import bind, rows
from oracle_dictionary import dictionary

PASSWORD = "correct horse"
CLASS_PATH = "LEAT_TEST_H2_JAR"
_CODES = {
    "42S02": "ORA-00942",
    "42S01": "ORA-00955",
    "42S22": "ORA-00904",
    "42S21": "ORA-00957",
    "23505": "ORA-00001",
    "23502": "ORA-01400",
    "23513": "ORA-02290",
    "22001": "ORA-12899",
    "22003": "ORA-01438",
    "22018": "ORA-01722",
    "28000": "ORA-01017",
    "40001": "ORA-00060",
    "HYT00": "ORA-30006",
    "90079": "ORA-01918",
    "90067": "DPY-4011",
    "90098": "DPY-4011",
    "08000": "DPY-4011",
}
_real_connect = oracledb.connect


@dataclass(frozen=True, slots=True)
class OracleDouble:
    """A database of the double.

    Attributes:
        port: of H2's server.
        service: name of the database.
    """

    port: int
    service: str

    def config(self, **more: Any) -> dict[str, Any]:
        """Settings of a store over it; its secret is PASSWORD."""
        return {"host": "127.0.0.1", "port": self.port, "service": self.service, "username": "leat"} | more

    def connect(self) -> _Connection:
        """A connection of the owner."""
        return _open(f"//127.0.0.1:{self.port}/mem:{self.service}", "leat", PASSWORD)

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """One statement, committed; its rows."""
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement, list(values))
                rows = cursor.fetchall() if cursor.description else []
            connection.commit()
            return rows
        finally:
            connection.close()


def class_path() -> str:
    """H2's jar."""
    from leatstream.dev.jars import ensure

    return str(ensure("h2")[0])


@contextlib.contextmanager
def oracle_double() -> Iterator[OracleDouble]:
    """Start H2 in this process, with a server for the processes of Spark's workers."""
    os.environ[CLASS_PATH] = class_path()
    _start_jvm()
    server = jpype.JClass("org.h2.tools.Server").createTcpServer("-tcpPort", "0", "-ifNotExists").start()
    double = OracleDouble(int(server.getPort()), "h2_shop")
    install()
    keeper = double.connect()
    for statement in dictionary():
        keeper.cursor().execute(statement)
    keeper.commit()
    try:
        yield double
    finally:
        keeper.close()
        oracledb.connect = _real_connect
        server.stop()


def install() -> None:
    """Have ``oracledb.connect`` know the double."""
    oracledb.connect = connect


def connect(**given: Any) -> Any:
    """The double where the service is one of its own, else Oracle."""
    if not str(given.get("service_name", "")).startswith("h2_"):
        return _real_connect(**given)
    place = f"//{given['host']}:{given['port']}/mem:{given['service_name']}"
    return _open(place, given["user"], given["password"] or "")


def _start_jvm() -> None:
    if not jpype.isJVMStarted():
        from leatstream.dev.java import find_java

        java = find_java()
        assert java is not None
        library = next(java.home.rglob("libjvm.so"))
        jpype.startJVM(str(library), "-Xrs", "-Xmx256m", classpath=[os.environ[CLASS_PATH]])


def _open(place: str, user: str, password: str) -> _Connection:
    _start_jvm()
    jpype.JClass("org.h2.Driver").load()
    url = f"jdbc:h2:tcp:{place};MODE=Oracle;DB_CLOSE_DELAY=-1;LOCK_TIMEOUT=20000"
    with _told():
        manager = jpype.JClass("java.sql.DriverManager")
        return _Connection(manager.getConnection(url, user.upper(), password))


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """JDBC's errors as the library's, in Oracle's words."""
    try:
        yield
    except jpype.JClass("java.sql.SQLException") as error:
        state, text = str(error.getSQLState()), str(error.getMessage())
        code = _CODES.get(state) or _CODES.get(str(error.getErrorCode()), "ORA-00900")
        raise _error(code, _words(code, text)) from None


def _words(code: str, text: str) -> str:
    """Oracle's message: names as it writes them, and like Oracle 23ai the values of a key."""
    if code == "ORA-01400":
        (column, *_) = re.findall(r'"([^"]+)"', text)
        return f'{code}: cannot insert NULL into ("LEAT"."T"."{column}")'
    if code == "ORA-12899":
        column = re.findall(r'column """?([^" ]+)', text) or re.findall(r'"([^" ]+)', text)
        return f'{code}: value too large for column "LEAT"."T"."{column[0]}" (actual: 30, maximum: 20)'
    if code == "ORA-00001":
        return f"{code}: unique constraint (LEAT.SYS_C1) violated\nORA-03301: row with column values (sesame)"
    return f"{code}: {text.splitlines()[0]}"


def _error(code: str, text: str) -> oracledb.Error:
    kind = (
        oracledb.IntegrityError if code in ("ORA-00001", "ORA-01400", "ORA-02290") else oracledb.DatabaseError
    )
    return kind(_Fault(code, text))


@dataclass(frozen=True, slots=True)
class _Fault:
    full_code: str
    message: str

    def __str__(self) -> str:
        return self.message


class _Connection:
    """What the product uses of ``oracledb.Connection``."""

    version = "0 (double: H2)"
    call_timeout = 0

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        connection.setAutoCommit(False)

    def cursor(self) -> _Cursor:
        return _Cursor(self._connection)

    def commit(self) -> None:
        temporary = "SELECT TABLE_SCHEMA, TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE = 'GLOBAL TEMPORARY'"
        with _told():
            # H2 takes ON COMMIT DELETE ROWS, and does it for local ones alone.
            for owner, table in self.cursor().execute(temporary).fetchall():
                self.cursor().execute(f'DELETE FROM "{owner}"."{table}"')
            self._connection.commit()

    def rollback(self) -> None:
        with _told():
            self._connection.rollback()

    def ping(self) -> None:
        self.cursor().execute("SELECT 1 FROM DUAL")

    def close(self) -> None:
        with _told():
            self._connection.close()


class _Cursor:
    """What the product uses of ``oracledb.Cursor``."""

    arraysize = 100

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._rows: Iterator[tuple[Any, ...]] = iter(())
        self.description: list[str] | None = None
        self.rowcount = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        self._rows = iter(())

    def setinputsizes(self, *sizes: Any) -> None:
        """H2 sees the types from the columns."""

    def execute(
        self,
        statement: str,
        parameters: Sequence[Any] = (),
        *,
        fetch_lobs: bool = True,
        fetch_decimals: bool = False,
    ) -> Self:
        with _told():
            prepared = self._connection.prepareStatement(_h2(statement))
            bind(prepared, parameters)
            has_rows = prepared.execute()
            self.description, self.rowcount = None, int(prepared.getUpdateCount())
            if has_rows:
                found = rows(prepared.getResultSet())
                self.description, self._rows = next(found)[0], iter(list(found))
            prepared.close()
            made = re.match(r'CREATE (?:GLOBAL TEMPORARY )?TABLE "([^"]+)"\."([^"]+)"', statement)
            if made is not None:
                self._made(made[1], made[2])
        return self

    def _made(self, owner: str, table: str) -> None:
        prepared = self._connection.prepareStatement(
            "MERGE INTO SYS.MADE (OWNER, TABLE_NAME) KEY (OWNER, TABLE_NAME) VALUES (?, ?)"
        )
        self._connection.prepareStatement(
            "DELETE FROM SYS.MADE WHERE (OWNER, TABLE_NAME) NOT IN"
            " (SELECT TABLE_SCHEMA, TABLE_NAME FROM INFORMATION_SCHEMA.TABLES)"
            f" OR (OWNER = '{owner}' AND TABLE_NAME = '{table}')"
        ).execute()
        bind(prepared, (owner, table))
        prepared.execute()
        self._connection.commit()  # as DDL does in Oracle

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with _told():
            prepared = self._connection.prepareStatement(_h2(statement))
            for row in rows:
                bind(prepared, row)
                prepared.addBatch()
            prepared.executeBatch()
            prepared.close()

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._rows)

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self._rows, None)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows


def _h2(statement: str) -> str:
    """The statement in H2's words."""
    if statement.startswith("ALTER SESSION"):
        return "SET TIME ZONE 'UTC'"
    return re.sub(r":\d+\b", "?", statement)
