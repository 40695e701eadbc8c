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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "-5"),
        ("PORT", "70000"),
        ("WARM_DRIVERS", "-1"),
        ("MAX_DRIVERS", "0"),
        ("SHARED_QUERIES", "0"),
        ("DRIVER_SLOTS", "0"),
        ("EXECUTORS", "0"),
        ("EXECUTOR_CORES", "0"),
        ("WATERMARK_DELAY_MS", "-1"),
    ],
)
def test_numbers_that_no_server_could_live_with_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"LEATSTREAM_{name}", value)
    with pytest.raises(ValidationError, match=name.lower()):
        Settings()


@pytest.mark.parametrize("name", ["driver_memory", "shared_memory", "executor_memory"])
@pytest.mark.parametrize("value", ["1Gi", "512mb", "1.5g", "0m", "512", "g", "-1g", "", "1 g", "١g"])
def test_a_heap_is_written_as_spark_does(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"LEATSTREAM_{name.upper()}", value)
    with pytest.raises(ValidationError, match="such as 512m or 2g"):
        Settings()


@pytest.mark.parametrize(("value", "like"), [("1Gi", "1g"), ("512mb", "512m"), ("2GiB", "2g"), ("3 G", "3g")])
def test_a_heap_as_kubernetes_writes_it_is_told_as_spark_does(value: str, like: str) -> None:
    with pytest.raises(ValidationError, match=f"write {like} for {value}"):
        Settings(driver_memory=value)


@pytest.mark.parametrize("value", ["1g", "1G", "1536m", "9t", "700000k", " 512m "])
def test_a_heap_that_spark_understands_is_taken(value: str) -> None:
    assert Settings(shared_memory=value).shared_memory == value.strip()


@pytest.mark.parametrize("name", ["driver_memory", "shared_memory", "executor_memory"])
@pytest.mark.parametrize("value", ["1k", "1m", "384m", "479m", "491519k"])
def test_a_heap_that_spark_does_not_start_with_is_refused(name: str, value: str) -> None:
    """Else no driver ever gets warm, and only its log says why."""
    with pytest.raises(ValidationError, match=f"does not start with a heap of {value}; the least is 480m"):
        Settings(**{name: value})


@pytest.mark.parametrize("name", ["kubernetes_memory", "kubernetes_shared_memory"])
@pytest.mark.parametrize(
    ("value", "like"), [("1536m", "; write 1536Mi for"), ("2GB", "; write 2Gi for"), ("", ""), ("lots", "")]
)
def test_what_a_pod_asks_for_is_written_as_kubernetes_does(name: str, value: str, like: str) -> None:
    """1536m are thousandths of a byte there: a pod with it never starts, and its queries wait."""
    with pytest.raises(ValidationError, match=f"such as 1536Mi or 2Gi{like}"):
        Settings(**{name: value})


@pytest.mark.parametrize("value", ["1536Mi", "2Gi", "1.5Gi", "2G", "2000000000"])
def test_what_a_pod_may_ask_for_is_taken(value: str) -> None:
    assert Settings(kubernetes_memory=value).kubernetes_memory == value


@pytest.mark.parametrize("value", ["480m", "491520k", "1g"])
def test_the_least_heap_is_taken(value: str) -> None:
    assert Settings(driver_memory=value, executor_memory=value).driver_memory == value


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
