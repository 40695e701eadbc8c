"""References are read exactly, and name nothing outside what they say."""

from __future__ import annotations

import pytest

from leatstream.model.outside_secrets import OutsideReference


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("secret://env/KAFKA_PASSWORD", ("env", "KAFKA_PASSWORD", None, None)),
        ("secret://env/DB#password", ("env", "DB", "password", None)),
        ("secret://file/run/secrets/a%20b", ("file", "/run/secrets/a b", None, None)),
        ("secret://vault/kv/leat/kafka#pass%23word", ("vault", "kv/leat/kafka", "pass#word", None)),
        ("secret://aws-sm/leat/db?region=eu-west-1#password", ("aws-sm", "leat/db", "password", "eu-west-1")),
        ("secret://k8s/streams/kafka#password", ("k8s", "streams/kafka", "password", None)),
    ],
)
def test_what_a_reference_names(text: str, parts: tuple[str | None, ...]) -> None:
    read = OutsideReference.read(text)
    assert (read.provider, read.path, read.key, read.region) == parts
    assert read.text == text


@pytest.mark.parametrize(
    "text",
    [
        "env/A",
        "secret://env/",
        "secret://env/A B",
        "secret://env/A-B",
        "secret://catalog/sec_1/value",
        "secret://file/run/../etc/passwd",
        "secret://file/run/%2e%2e/etc/passwd",
        "secret://file//etc/passwd",
        "secret://file/run/a%00b",
        "secret://vault/kv#a",
        "secret://vault/kv/leat",
        "secret://vault/kv/leat/../root#a",
        "secret://vault/kv/leat/%2E%2E/root#a",
        "secret://vault/kv//root#a",
        "secret://k8s/streams/kafka",
        "secret://k8s/streams/a/b#key",
        "secret://k8s/../kafka#key",
        "secret://aws-sm/leat/../root",
        "secret://aws-sm/leat/db?version=1",
        "secret://env/A?region=eu-west-1",
        "secret://env/A\n",
        f"secret://env/{'A' * 1000}",
    ],
)
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(ValueError, match=r"^[A-Z].*\.$"):
        OutsideReference.read(text)
