"""The Terraform provider for leatstream: a small protocol-6 server, generic over ``provider.json``.

Nothing here imports the control plane: a provider process starts several times per Terraform run, so it loads
only the standard library, grpcio, msgpack and cryptography.
"""

from __future__ import annotations

NAME = "leatstream"
#: Where Terraform looks the provider up: ``source = "leatstream.dev/leatstream/leatstream"``. The host is a
#: plain name: no registry answers there, so Terraform only ever finds the mirror that ``leat terraform
#: install`` writes.
HOST = "leatstream.dev"
NAMESPACE = "leatstream"
ADDRESS = f"{HOST}/{NAMESPACE}/{NAME}"
VERSION = "0.1.0"
