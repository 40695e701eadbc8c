"""Free and taken TCP ports on the loopback address."""

from __future__ import annotations

import contextlib
import socket

LOOPBACK = "127.0.0.1"


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server may listen there now."""
    with socket.socket() as probe:
        # As servers do it: a port in TIME_WAIT from the last run counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def free_ports(count: int, host: str = LOOPBACK) -> list[int]:
    """Distinct free ports picked by the kernel; another process may still be faster, so callers retry."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((host, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def answers(port: int, host: str = LOOPBACK, timeout: float = 0.5) -> bool:
    """Whether something accepts connections there."""
    try:
        with socket.create_connection((host, port), timeout):
            return True
    except OSError:
        return False


def holder(port: int) -> str | None:
    """Who listens on a port, as ``name (pid 123)``, when the system shows it."""
    try:
        import psutil
    except ModuleNotFoundError:  # `leat doctor` reports that it is missing
        return None
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            if connection.status != psutil.CONN_LISTEN or tuple(connection.laddr)[1:2] != (port,):
                continue
            if connection.pid is not None:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return None
