"""Calls of a Kubernetes API that lets them wait."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from leatstream.engine import kubernetes_api
from leatstream.engine.kubernetes_api import KubernetesAddress, KubernetesApi
from leatstream.errors import EngineError


def test_one_that_lets_a_call_wait_is_left_alone_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of many drivers would wait ten seconds for it, one after another, and nothing else be done."""
    monkeypatch.setattr(kubernetes_api, "_TIMEOUT", 0.1)
    (tmp_path / "token").write_text("t")
    with socket.create_server(("127.0.0.1", 0)) as server:  # connections wait there, and nobody answers
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        address = KubernetesAddress(url=url, namespace="n", token_file=tmp_path / "token", ca_file=None)
        api = KubernetesApi(address)
        calls = [
            lambda: api.find("pods", "a"),
            lambda: api.list("pods", {}),
            lambda: api.delete("pods", "a", 1),
        ]
        for call in calls:
            with pytest.raises(EngineError, match="cannot be reached"):
                call()
        server.settimeout(1)
        server.accept()[0].close()
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()
        monkeypatch.setattr(kubernetes_api, "_AWAY", 0.0)
        with pytest.raises(EngineError, match="cannot be reached"):
            api.create("pods", {})
        server.accept()[0].close()
