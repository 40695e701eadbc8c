"""What a server is configured with by its environment: what cannot be used is told by its variable."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from leatstream.cli import serving
from leatstream.cli.serving import reachable, read_settings
from leatstream.cli.unknown_variables import told_unknown
from leatstream.dev.api_server import listen
from leatstream.dev.stack import DevOptions
from leatstream.errors import StackError
from leatstream.storage.engine import make_engine


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LEATSTREAM_PORT", "abc"),
        ("LEATSTREAM_SPARK_CONF", "spark.a=b"),
        ("LEATSTREAM_LEASE_SECONDS", "0"),
        ("LEATSTREAM_LAUNCHER", "nomad"),
        ("LEATSTREAM_DRIVER_MEMORY", "1Gi"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(StackError, match=name) as caught:
        read_settings()
    assert "Value error" not in caught.value.detail


def test_every_setting_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEATSTREAM_MAX_DRIVERS", "0")
    monkeypatch.setenv("LEATSTREAM_SHARED_MEMORY", "2Gi")
    with pytest.raises(StackError, match=r"MAX_DRIVERS.*SHARED_MEMORY.*write 2g for 2Gi"):
        read_settings()


def test_dev_tells_of_them_before_it_starts_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEATSTREAM_DRIVER_MEMORY", "1Gi")
    monkeypatch.setattr(serving, "DevStack", lambda *_: pytest.fail("something was started"))
    with pytest.raises(StackError, match="LEATSTREAM_DRIVER_MEMORY"):
        serving.run_dev(DevOptions())


def test_dev_starts_with_settings_that_can_be_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LEATSTREAM_MAX_DRIVER", "3")
    monkeypatch.setattr(serving, "DevStack", lambda *_: SimpleNamespace(run=lambda: 0))
    assert serving.run_dev(DevOptions()) == 0
    assert [one.levelname for one in caplog.records] == ["WARNING"]


def test_misspelt_settings_are_told_with_what_was_meant() -> None:
    given = {"LEATSTREAM_MAX_DRIVER": "s3cret", "leatstream_zzz": "1", "LEATSTREAM_BOOTSTRAP_TOKN": "s3cret"}
    assert told_unknown({**given, "LEATSTREAM_PORT": "1"}) == (
        "These variables are no settings and do nothing: LEATSTREAM_BOOTSTRAP_TOKN (did you mean "
        "LEATSTREAM_BOOTSTRAP_TOKEN?), LEATSTREAM_MAX_DRIVER (did you mean LEATSTREAM_MAX_DRIVERS?), "
        "LEATSTREAM_ZZZ. docs/operations.md lists the settings."
    )


@pytest.mark.parametrize(
    "name",
    [
        "leatstream_port",
        "LEATSTREAM_URL",
        "LEATSTREAM_TOKEN",
        "LEATSTREAM_TEST_WHEELS",
        # What Kubernetes sets for Services whose names begin so.
        "LEATSTREAM_SERVICE_HOST",
        "LEATSTREAM_SERVICE_PORT_HTTP",
        "LEATSTREAM_KAFKA_SERVICE_PORT",
        "LEATSTREAM_KAFKA_PORT",
        "LEATSTREAM_PORT_8585_TCP_ADDR",
        "LEATSTREAMING",
        "PATH",
    ],
)
def test_variables_with_another_use_are_not_told(name: str) -> None:
    assert told_unknown({name: "tcp://10.96.0.7:80"}) is None


def test_every_variable_that_something_reads_or_sets_is_known() -> None:
    """Else a server would warn of what its own launcher, compose file or chart has set."""
    root = Path(__file__).resolve().parents[3]
    kinds = {".py", ".sh", ".md", ".yaml", ".tf", ".tpl", ".example", ""}
    places = ("api", "spark_jobs", "provider-schema", "cdktf-constructs", "deploy", "docs", "examples")
    files = [path for place in places for path in (root / place).rglob("*") if path.suffix in kinds]
    own = [path for path in files if path.is_file() and "node_modules" not in path.parts]
    text = "\n".join(path.read_text(encoding="utf-8") for path in own)
    # The last one is a table, in stores that fold names to upper case.
    names = set(re.findall(r"\bLEATSTREAM_[A-Z_]*[A-Z]\b(?![A-Z_*…])", text)) - {"LEATSTREAM_BATCHES"}
    assert len(names) > 50
    assert told_unknown(dict.fromkeys(names, "x")) is None


@pytest.mark.parametrize("url", ["postgres:/x:secret@h/d", "postgresql://u:secret@h:abc/d"])
def test_a_url_that_cannot_be_read_is_named_and_not_told(url: str) -> None:
    with pytest.raises(StackError, match="LEATSTREAM_CATALOG_URL") as caught:
        make_engine(url)
    assert "secret" not in caught.value.detail


def test_a_taken_port_is_told_with_what_sets_another() -> None:
    with listen(0) as taken, pytest.raises(StackError) as caught:
        listen(taken.getsockname()[1], other="LEATSTREAM_PORT")
    assert caught.value.code == "port-taken"
    assert "LEATSTREAM_PORT" in str(caught.value.faults[0].hint)
    assert "--port" not in str(caught.value.faults[0].hint)


def test_a_host_of_another_machine_is_no_taken_port() -> None:
    with pytest.raises(StackError, match=r"cannot listen on '192\.0\.2\.1'") as caught:
        listen(0, "192.0.2.1")
    assert caught.value.code == "part-failed"


@pytest.mark.parametrize(
    ("host", "clients"),
    [("127.0.0.1", ["127.0.0.1"]), ("::1", ["::1"]), ("::", ["::1", "127.0.0.1"]), ("", ["127.0.0.1"])],
)
def test_a_server_listens_on_either_internet(host: str, clients: list[str]) -> None:
    if ":" in host and not Path("/proc/net/if_inet6").exists():
        pytest.skip("no IPv6 on this machine")
    with listen(0, host) as listener:
        for client in clients:
            socket.create_connection((client, listener.getsockname()[1]), timeout=5).close()


@pytest.mark.parametrize(
    ("host", "told"), [("", "127.0.0.1"), ("::", "127.0.0.1"), ("::1", "[::1]"), ("a.example", "a.example")]
)
def test_drivers_are_told_where_the_server_is(host: str, told: str) -> None:
    assert reachable(host) == told
