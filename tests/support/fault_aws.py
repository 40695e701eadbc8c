"""The AWS of a fault run: moto behind a gate, which breaks every connection and refuses new ones while it is shut.

moto keeps what it has in memory, so its process lives on. What a request had asked for when its connection broke may
be done, with the answer lost: the harder case for a writer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from fault_parts import Part

from leatstream.dev.local_kinesis import LocalKinesis
from leatstream.dev.ports import LOOPBACK, free_ports

SECONDS = 30.0  # for what takes a moment


class Gate:
    """A port that passes on to another one while it is open; each connection is for as long as both ends want it."""

    def __init__(self, target: int) -> None:
        (self.port,) = free_ports(1)
        self._target = target
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="gate", daemon=True).start()

    @property
    def is_open(self) -> bool:
        """Whether it takes connections."""
        return self._server is not None

    def open(self) -> None:
        """Take connections."""
        self._run(self._open())

    def shut(self) -> None:
        """Break all connections and take no more."""
        self._run(self._shut())

    def passes(self, client: tuple[str, int]) -> bool:
        """Whether it has taken a client's connection."""
        return any(end.get_extra_info("peername") == client for end in list(self._ends))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._pass, LOOPBACK, self.port)

    async def _shut(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for end in self._ends:
            end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        ends = {writer}
        try:
            beyond, onward = await asyncio.open_connection(LOOPBACK, self._target)
            self._ends.add(onward)
            ends.add(onward)
            if self._server is None:  # shut since
                return
            copies = [asyncio.ensure_future(_copy(*way)) for way in ((reader, onward), (beyond, writer))]
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
            for copy in copies:
                copy.cancel()
        except OSError:
            pass  # one of the ends is gone
        finally:
            self._ends -= ends
            for end in ends:
                end.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass


class AwsPart(Part):
    """S3 and Kinesis, which stay away for a while and keep what they have.

    Attributes:
        address: for those who shall feel it.
        quiet_address: for those who look at what is there.
    """

    name = "aws"

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._aws = LocalKinesis(directory / "aws.log")
        self._aws.start()
        self.quiet_address = self._aws.endpoint
        self._gate = Gate(int(self.quiet_address.rpartition(":")[2]))
        self.address = f"http://{LOOPBACK}:{self._gate.port}"

    def start(self) -> None:
        self._gate.open()

    def alive(self) -> bool:
        return self._gate.is_open

    def kill(self) -> None:
        self._gate.shut()

    def passes(self, client: tuple[str, int]) -> bool:
        """Whether a client's connection is one that a strike will break."""
        return self._gate.passes(client)

    def close(self) -> None:
        """End it."""
        self.release()
        self._gate.shut()
        self._aws.stop()
