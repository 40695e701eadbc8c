from __future__ import annotations

import pytest
from pydantic import ValidationError

from leatstream.settings import Settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DRIVER_ORPHAN_SECONDS", "0"),
        ("DRIVER_ORPHAN_SECONDS", "nan"),
        ("DRIVER_ORPHAN_SECONDS", "inf"),
        ("LEASE_SECONDS", "0.5"),
        ("LEASE_SECONDS", "-1"),
        ("LEASE_SECONDS", "1e9"),
        ("STOP_GRACE_SECONDS", "-1"),
    ],
)
def test_times_that_no_server_could_live_with_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"LEATSTREAM_{name}", value)
    with pytest.raises(ValidationError, match=name.lower()):
        Settings()


def test_a_port_that_kubernetes_has_set_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does in every pod beside a Service called leatstream."""
    monkeypatch.setenv("LEATSTREAM_PORT", "tcp://10.96.0.7:80")
    with pytest.raises(ValidationError, match="enableServiceLinks"):
        Settings()
    monkeypatch.setenv("LEATSTREAM_PORT", "8586")
    assert Settings().port == 8586


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://fd00:10:244::1:8585", "http://[fd00:10:244::1]:8585"),
        ("http://[fd00:10:244::1]:8585", "http://[fd00:10:244::1]:8585"),
        ("http://10.0.0.7:8585", "http://10.0.0.7:8585"),
        ("https://api.example/leat", "https://api.example/leat"),
        ("", ""),
    ],
)
def test_the_address_of_a_pod_becomes_a_url(given: str, url: str) -> None:
    """A chart puts address and port together, and cannot see of which kind the address is."""
    assert Settings(driver_api_url=given).driver_api_url == url


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ("/shared/q", "/shared/q"),
        ("file:///shared/my%20q", "/shared/my q"),
        ("file://localhost/shared", "/shared"),
        ("hdfs://namenode/q", "hdfs://namenode/q"),
        ("s3a://bucket/q", "s3a://bucket/q"),
    ],
)
def test_a_file_url_of_checkpoints_is_a_directory(given: str, root: str) -> None:
    assert Settings(checkpoint_root=given).checkpoints == root
