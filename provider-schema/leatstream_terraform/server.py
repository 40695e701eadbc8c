"""The gRPC server and the handshake that Terraform's plugin system expects.

Terraform wants the plugin to print one line: protocol versions, address, and the certificate it should trust.
Client certificates are not asked for: Terraform's are P-521, which gRPC's TLS does not accept; instead the
socket lies in a directory that only this user can enter.
"""

from __future__ import annotations

import base64
import datetime
import os
import shutil
import signal
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from leatstream_terraform.handlers import Handlers
from leatstream_terraform.protocol import CONTROLLER, PROVIDER, Protocol
from leatstream_terraform.schema import load
from leatstream_terraform.session import Session

COOKIE = ("TF_PLUGIN_MAGIC_COOKIE", "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2")
_THREADS = 64
_MESSAGE_BYTES = 64 << 20


def _unary(run: Any, response: Any) -> Any:
    return lambda request, context: run(request, response())


def _handlers(protocol: Protocol, handlers: Handlers) -> grpc.GenericRpcHandler:
    table = {
        name: grpc.unary_unary_rpc_method_handler(
            _unary(handlers.guarded(name), response), request.FromString, response.SerializeToString
        )
        for name, request, response, streams in protocol.methods(PROVIDER)
        if hasattr(handlers, name) and not streams
    }
    return grpc.method_handlers_generic_handler(PROVIDER, table)


def _controller(protocol: Protocol, ended: threading.Event) -> grpc.GenericRpcHandler:
    ((_, request, response, _),) = protocol.methods(CONTROLLER)

    def shutdown(message: Any, context: Any) -> Any:
        ended.set()
        return response()

    handler = grpc.unary_unary_rpc_method_handler(shutdown, request.FromString, response.SerializeToString)
    return grpc.method_handlers_generic_handler(CONTROLLER, {"Shutdown": handler})


def _certificate() -> tuple[bytes, bytes, str]:
    """A key and certificate for this process: PEM, PEM, and the certificate as the handshake wants it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    der = certificate.public_bytes(serialization.Encoding.DER)
    return (
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        certificate.public_bytes(serialization.Encoding.PEM),
        base64.b64encode(der).decode().rstrip("="),
    )


def _bind(server: grpc.Server, folder: Path | None) -> tuple[str, str]:
    """Open the server's address; returns (handshake's network|address, certificate or empty)."""
    credentials, trusted = None, ""
    if os.environ.get("PLUGIN_CLIENT_CERT"):
        key, certificate, trusted = _certificate()
        credentials = grpc.ssl_server_credentials([(key, certificate)])
    target = f"unix:{folder / 'provider.sock'}" if folder else "127.0.0.1:0"
    port = server.add_secure_port(target, credentials) if credentials else server.add_insecure_port(target)
    return (f"unix|{folder / 'provider.sock'}" if folder else f"tcp|127.0.0.1:{port}"), trusted


def _folder() -> Path:
    """A directory for the socket that only this user can enter; a socket's path has at most 107 bytes."""
    wanted = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.gettempdir()
    return Path(tempfile.mkdtemp(prefix="leat-tf-", dir=wanted if len(wanted) < 70 else "/tmp"))  # noqa: S108


def serve() -> int:
    """Serve one Terraform run; returns the process's exit code."""
    if os.environ.get(COOKIE[0]) != COOKIE[1]:
        print(
            "This program is a Terraform provider: Terraform starts it. Run `leat terraform install` and\n"
            "name leatstream.dev/leatstream/leatstream in required_providers.",
            file=sys.stderr,
        )
        return 1
    # Ctrl-C reaches the whole process group; Terraform decides when the provider ends and calls StopProvider.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    folder = None if os.name == "nt" else _folder()
    try:
        protocol = Protocol()
        session = Session(load())
        size = [
            ("grpc.max_receive_message_length", _MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MESSAGE_BYTES),
        ]
        server = grpc.server(ThreadPoolExecutor(_THREADS, "rpc"), options=size)
        server.add_generic_rpc_handlers(
            (_handlers(protocol, Handlers(protocol, session)), _controller(protocol, ended))
        )
        address, trusted = _bind(server, folder)
        server.start()
        print(f"1|6|{address}|grpc|{trusted}", flush=True)
        parent = os.getppid()
        # A killed Terraform sends no Shutdown: then the parent changes.
        while not ended.wait(1.0) and os.getppid() == parent:
            pass
        session.stop.set()
        server.stop(grace=0.5).wait()
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
    return 0
