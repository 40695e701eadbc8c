"""ClickHouse's HTTP interface over the engine of chdb: what clickhouse-connect needs of it, and no more.

A program of its own, as the engine is one for a process: ``clickhouse_http PORT DIRECTORY``. Its one
user is in the environment. There are no replicas and no asynchronous inserts; statements run one by one.
"""

from __future__ import annotations

import base64
import contextlib
import email
import email.message
import gzip
import os
import re
import sys
import tempfile
import threading
import urllib.parse
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import chdb.session
import lz4.frame

from leatstream.dev.local_clickhouse import DATABASE
from leatstream.dev.ports import LOOPBACK

# Of the HTTP interface, or of users that are not there: the engine does not know them as settings.
_INTERFACE = (
    *("query", "database", "default_format", "query_id", "session_id", "session_timeout", "session_check"),
    *("user", "password", "role", "quota_key", "compress", "decompress", "wait_end_of_query", "buffer_size"),
    *("http_headers_progress_interval_ms", "send_progress_in_http_headers", "client_protocol_version"),
    "cancel_http_readonly_queries_on_client_close",
)
_DATA = re.compile(rb"\s*INSERT\s.*?\sFORMAT\s+(\w+)\s*?\n", re.I | re.S)
_FORMAT = re.compile(r"\sFORMAT\s+(\w+)\s*\Z", re.I)
LOGIN = "LEAT_CLICKHOUSE_LOGIN"
"""The variable with the user and the password, joined by a colon."""
_STATUS = {"60": 404, "81": 404, "516": 403, "497": 403}


class Engine:
    """The one session of the process."""

    def __init__(self, directory: str) -> None:
        """Open the data in a directory."""
        self.directory = directory
        self._session: Any = chdb.session.Session(directory)  # type: ignore[no-untyped-call]
        self._lock = threading.Lock()

    def run(
        self, text: str, form: str, settings: dict[str, str], params: dict[str, str], database: str
    ) -> bytes:
        """Run a statement with settings that are gone afterwards.

        Args:
            text: the statement.
            form: output format, such as ``JSONEachRow``.
            settings: of this statement.
            params: values of its ``{name:Type}`` parameters.
            database: in which unqualified names are; empty = ``default``.
        """
        with self._lock, self._set(settings):
            self._session.query(f"USE `{database or 'default'}`")
            result = self._session.query(text, form, **({"params": params} if params else {}))
            return bytes(result.bytes() or b"")

    def insert(self, text: str, data: bytes, settings: dict[str, str], database: str) -> None:
        """Run an INSERT whose rows came behind it.

        Args:
            text: the statement, which ends in the format of the rows.
            data: the rows.
            settings: of this statement.
            database: in which unqualified names are.
        """
        head, _, form = text.strip().rpartition(" ")
        head = re.sub(r"\sFORMAT\Z", "", head.strip(), flags=re.I)
        with tempfile.NamedTemporaryFile(dir=self.directory, delete=False) as file:
            file.write(data)
        try:
            self.run(f"{head} FROM INFILE '{file.name}' FORMAT {form}", "Null", settings, {}, database)
        finally:
            os.unlink(file.name)

    @contextlib.contextmanager
    def _set(self, settings: dict[str, str]) -> Iterator[None]:
        names = [name for name in settings if name not in _INTERFACE and not name.startswith("param_")]
        try:
            for name in names:
                self._session.query(f"SET {name} = '{settings[name]}'")
            yield
        finally:
            for name in names:
                with contextlib.suppress(Exception):
                    self._session.query(f"SET {name} = DEFAULT")


class Handler(BaseHTTPRequestHandler):
    """A request: the statement is in the address, in the body, or a field of a form."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for each answer
    engine: Engine
    login: tuple[str, str]

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """A statement that changes nothing, or /ping."""
        self._answer(b"")

    def do_POST(self) -> None:
        """Any statement."""
        self._answer(self._body())

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            raw = b"".join(parts)
        else:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        how = self.headers.get("Content-Encoding", "")
        unpack = {"gzip": gzip.decompress, "lz4": lz4.frame.decompress, "deflate": zlib.decompress}.get(how)
        return unpack(raw) if unpack else raw

    def _answer(self, body: bytes) -> None:
        address = urllib.parse.urlsplit(self.path)
        if address.path == "/ping":
            self._reply(200, b"Ok.\n")
            return
        given = dict(urllib.parse.parse_qsl(address.query, keep_blank_values=True))
        if self._user(given) != self.login:
            text = (
                "Code: 516. DB::Exception: leat: Authentication failed: password is incorrect, or there is no"
            )
            self._refuse("516", f"{text} user with such name. (AUTHENTICATION_FAILED)")
            return
        try:
            self._run(body, given)
        except Exception as error:
            text = str(error)
            found = re.search(r"Code: (\d+)", text)
            self._refuse(found[1] if found else "1002", text)

    def _run(self, body: bytes, given: dict[str, str]) -> None:
        data = b""
        if self.headers.get("Content-Type", "").startswith("multipart/form-data"):
            given |= self._form(body)
        elif "query" in given:
            data = body
        elif found := _DATA.match(body):
            given["query"], data = found[0].decode(), body[found.end() :]
        else:
            given["query"] = body.decode()
        text, database = given.pop("query"), given.get("database", "")
        if data:
            self.engine.insert(text, data, given, database)
            self._reply(200, b"")
            return
        named = _FORMAT.search(text)
        form = named[1] if named else given.get("default_format") or self.headers.get("X-ClickHouse-Format")
        params = {name[6:]: value for name, value in given.items() if name.startswith("param_")}
        found_rows = self.engine.run(text, form or "TabSeparated", given, params, database)
        self._reply(200, found_rows, {"X-ClickHouse-Format": form or "TabSeparated"})

    def _form(self, body: bytes) -> dict[str, str]:
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        parts = email.message_from_bytes(head + body).get_payload()
        found: dict[str, str] = {}
        for part in parts if isinstance(parts, list) else []:
            if not isinstance(part, email.message.Message):
                continue
            name = part.get_param("name", header="content-disposition")
            found[str(name)] = bytes(part.get_payload(decode=True) or b"").decode()
        return found

    def _user(self, given: dict[str, str]) -> tuple[str, str]:
        basic = self.headers.get("Authorization", "")
        if basic.startswith("Basic "):
            name, _, password = base64.b64decode(basic[6:]).decode().partition(":")
            return name, password
        return given.get("user", "default"), given.get("password", "")

    def _refuse(self, code: str, text: str) -> None:
        self._reply(_STATUS.get(code, 500), f"{text}\n".encode(), {"X-ClickHouse-Exception-Code": code})

    def _reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        given = {"X-ClickHouse-Summary": "{}", "X-ClickHouse-Timezone": "UTC"} | (headers or {})
        for name, value in given.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve on PORT the data in DIRECTORY, until the process is ended."""
    port, directory = sys.argv[1:]
    user, _, password = os.environ[LOGIN].partition(":")
    Handler.engine, Handler.login = Engine(directory), (user, password)
    # The engine's own database has no UUIDs for its tables.
    Handler.engine.run(f"CREATE DATABASE IF NOT EXISTS {DATABASE} ENGINE = Atomic", "Null", {}, {}, "")
    server = ThreadingHTTPServer((LOOPBACK, int(port)), Handler)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main()
