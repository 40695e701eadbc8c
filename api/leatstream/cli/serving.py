"""Runs the control plane: ``leat dev`` on this machine, ``leat serve`` as a server."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leatstream import http_server
from leatstream.dev.class_archive import VARIABLE as ARCHIVE_VARIABLE
from leatstream.dev.class_archive import ClassArchive
from leatstream.dev.java import Java, find_java, java_environment
from leatstream.dev.signals import ENDING
from leatstream.dev.stack import DevOptions, DevSettings, DevStack, ServedApp
from leatstream.errors import StackError

if TYPE_CHECKING:
    import socket
    from types import FrameType

    import uvicorn

    from leatstream.settings import Settings

EMBEDDED_STORE = "embedded"
_log = logging.getLogger("leatstream.serving")


def run_dev(options: DevOptions) -> int:
    """Start the embedded stack and wait for its end; the exit status.

    Raises:
        StackError: a variable has no value that can be used; nothing has been started.
    """
    read_settings()
    warn_of_unknown()
    return DevStack(options, build_app).run()


def driver_environment(java: Java, jars: tuple[Path, ...]) -> dict[str, str]:
    """What driver processes need to find Java and the connector's jars."""
    found = java_environment(java, {"PATH": os.environ.get("PATH", os.defpath)})
    return {**found, "LEATSTREAM_SPARK_JARS": os.pathsep.join(map(str, jars))}


def with_archive(java: Java, environment: dict[str, str]) -> tuple[ClassArchive, dict[str, str]]:
    """The archive of classes that drivers begin with, and their environment naming it."""
    archive = ClassArchive(java, environment)
    return archive, {**environment, ARCHIVE_VARIABLE: str(archive.path)}


def make_archive() -> bool:
    """Make the archive now, for an image or before many starts; whether there is one."""
    from leatstream.dev.jars import spark_jars

    java = find_java()
    return java is not None and ClassArchive(java, driver_environment(java, tuple(spark_jars()))).make()


def tell_stacks_when_asked() -> None:
    """SIGUSR1 writes what every thread does to standard error: the way to see why a server stands still."""
    if sys.__stderr__ is not None and hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, file=sys.__stderr__, all_threads=True)


def settle_memory() -> None:
    """Take what the start has loaded out of the garbage collector's sight.

    Measured: without it every thirtieth page of a list waits 150 ms for a full collection over all modules.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def with_extras(settings: Settings, jars: tuple[Path, ...]) -> tuple[Path, ...]:
    """The drivers' jars with those that only some servers need."""
    from leatstream.dev.jars import msk_jars

    return (*jars, *msk_jars()) if settings.msk_iam else jars


def build_app(stack: DevSettings) -> ServedApp:
    """The API of the embedded stack."""
    from leatstream.bootstrap import declare_embedded_store, open_runtime
    from leatstream.dev.local_stores import declaration
    from leatstream.launching import SMALL_JVM
    from leatstream.rest.app import create_app

    settings = read_settings(
        data_dir=stack.data_dir,
        warm_up_kafka=stack.kafka_bootstrap,
        default_store=os.environ.get("LEATSTREAM_DEFAULT_STORE", EMBEDDED_STORE),
        # One person's stack connects where that person can.
        allowed_networks=os.environ.get("LEATSTREAM_ALLOWED_NETWORKS", "*"),
        # For one person many small queries matter more than a busy one.
        driver_jvm_options=os.environ.get("LEATSTREAM_DRIVER_JVM_OPTIONS", SMALL_JVM),
    )
    tell_stacks_when_asked()
    found = driver_environment(stack.java, with_extras(settings, stack.spark_jars))
    archive, environment = with_archive(stack.java, found)
    runtime = open_runtime(settings, stack.url, environment)
    declare_embedded_store(runtime.env, EMBEDDED_STORE, "kafka", {"bootstrap_servers": stack.kafka_bootstrap})
    for name, address in stack.stores.items():
        store = declaration(name, address)
        declare_embedded_store(runtime.env, store.name, store.kind, store.config, store.secrets)
    app = create_app(runtime.env)
    settle_memory()
    archive.make_behind(runtime.warm)

    def shutdown() -> None:
        archive.close()
        runtime.close()

    return ServedApp(
        asgi=app,
        token=runtime.token,
        wait_warm=runtime.wait_warm,
        shutdown=shutdown,
    )


def no_cut_poll(record: logging.LogRecord) -> bool:
    """Whether a line is worth telling: a driver's long poll that the server's end cuts off is no fault."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


class Ending:
    """Takes the signals that ask for the end, from its making on: before uvicorn listens to any.

    Attributes:
        asked: whether one has come.
        server: what is to end then, once it is there.
    """

    def __init__(self) -> None:
        self.asked = False
        self.server: uvicorn.Server | None = None
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._take)

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        if self.server is not None:
            self.server.should_exit = True


def api_server(app: Any, before_end: Callable[[], object]) -> uvicorn.Server:
    """uvicorn, for signals that ``Ending`` takes.

    Args:
        app: the ASGI application.
        before_end: done when the end is asked for, while requests are still answered: drivers report by them.
    """
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None, None, None]:
            yield

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await asyncio.to_thread(before_end)
            await super().shutdown(sockets)

    return Server(http_server.config(app, timeout_graceful_shutdown=5))


def warn_of_unknown() -> None:
    """Say once which variables look like settings and are none: what they were to change stays as it was."""
    from leatstream.cli.unknown_variables import told_unknown

    warning = told_unknown(os.environ)
    if warning is not None:
        _log.warning("%s", warning)


def read_settings(**given: Any) -> Settings:
    """The settings of a server.

    Args:
        given: what is not to be taken from the environment.

    Raises:
        StackError: a variable has no value that can be used; each is named.
    """
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from leatstream.settings import Settings

    try:
        return Settings(**given)
    except ValidationError as error:
        wrong = [
            f"{_place(one['loc'])}: {one['msg'].removeprefix('Value error, ')}" for one in error.errors()
        ]
    except SettingsError as error:  # names the field in its text only
        field = next((name for name in Settings.model_fields if f'"{name}"' in str(error)), "…")
        wrong = [f"{_variable(field)}: it is not valid JSON"]
    raise StackError(
        "part-failed",
        f"The server's settings cannot be used. {'. '.join(wrong)}.",
        hint="docs/operations.md lists the settings.",
    )


def _place(path: Sequence[int | str]) -> str:
    """The variable of a fault, and the place in its JSON."""
    inner = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path[1:])
    return f"{_variable(str(path[0]))}{f' at {inner}' if inner else ''}"


def _variable(field: str) -> str:
    return f"LEATSTREAM_{field.upper()}"


def reachable(host: str) -> str:
    """The host of the URL at which drivers on this machine reach a server that listens there."""
    if host in ("", "0.0.0.0", "::"):  # noqa: S104 - compared, not listened on
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def run_server() -> int:
    """Serve as configured by LEATSTREAM_… variables, with the user's own stores; the exit status.

    Raises:
        StackError: the server cannot start.
    """
    from leatstream.bootstrap import open_runtime
    from leatstream.dev.api_server import listen
    from leatstream.dev.jars import spark_jars
    from leatstream.rest.app import create_app
    from leatstream.storage.arrival import await_database

    settings = read_settings()
    warn_of_unknown()
    java = find_java()
    if java is None:
        raise StackError(
            "tool-missing", "Spark needs Java 17 or newer.", hint="`leat doctor` says how to get it"
        )
    # Before signals are taken and requests wait: who ends it meanwhile ends it at once.
    await_database(settings.catalog, settings.catalog_wait_seconds)
    listener = listen(settings.port, settings.host, "LEATSTREAM_PORT")
    url = f"http://{reachable(settings.host)}:{listener.getsockname()[1]}"
    found = driver_environment(java, with_extras(settings, tuple(spark_jars())))
    archive, environment = with_archive(java, found)
    tell_stacks_when_asked()
    ending = Ending()  # from here on there is something to be brought to an end
    runtime = open_runtime(settings, url, environment, migrate_catalog=settings.migrate)
    try:
        server = ending.server = api_server(create_app(runtime.env), runtime.end_drivers)
        settle_memory()
        logging.getLogger("uvicorn.error").addFilter(no_cut_poll)
        if not ending.asked:
            archive.make_behind(runtime.warm)
            logging.getLogger("uvicorn.error").info("The web console is at %s/ui/", url)
            server.run(sockets=[listener])
            if not server.started:
                raise StackError("part-failed", f"The API could not begin to serve at {url}.")
    finally:
        archive.close()
        runtime.close()
    return 0
