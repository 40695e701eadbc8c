"""Variables and files: only what is permitted, wherever links lead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from leatstream.errors import SecretStoreError
from leatstream.model.outside_secrets import OutsideReference
from leatstream.secret_stores import open_providers
from leatstream.secret_stores.local import FileSecrets, VariableSecrets
from leatstream.secret_stores.settings import Files, OutsideSecretsSettings, Variables


def _file(path: Path, key: str = "") -> OutsideReference:
    return OutsideReference.read(f"secret://file{path}{key}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    return made


@pytest.fixture
def files(root: Path, tmp_path: Path) -> FileSecrets:
    return FileSecrets(Files(roots=(root,)), (root / "own",))


def _refused(files: FileSecrets, path: Path, code: str, said: str, key: str = "") -> None:
    with pytest.raises(SecretStoreError, match=said) as caught:
        files.read(_file(path, key))
    assert caught.value.code == code
    assert "s3cret" not in caught.value.detail


def test_a_file_and_its_keys(files: FileSecrets, root: Path) -> None:
    plain, text = root / "a", root / "b"
    plain.write_text("s3cret\r\n")
    text.write_text('{"password": "p", "port": 5432, "none": null, "list": [1]}')
    assert files.permits(_file(plain)) is None
    assert files.read(_file(plain)) == "s3cret"
    assert [files.read(_file(text, f"#{key}")) for key in ("password", "port", "list")] == [
        "p",
        "5432",
        "[1]",
    ]
    _refused(files, text, "secret-missing", "no key 'none'", "#none")
    _refused(files, plain, "secret-missing", "not a JSON object", "#a")


def test_links_lead_nowhere_else(files: FileSecrets, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("s3cret")
    (root / "link").symlink_to(outside)
    (root / "directory").symlink_to(tmp_path)
    _refused(files, root / "link", "secret-store-refused", "leads out")
    _refused(files, root / "directory" / "outside", "secret-store-refused", "leads out")
    assert files.permits(_file(tmp_path / "rooted" / "a")) is not None, "a directory with a like name"
    # As Kubernetes mounts a Secret.
    (root / "..1").mkdir()
    (root / "..1" / "password").write_text("s3cret")
    (root / "..data").symlink_to("..1")
    (root / "password").symlink_to("..data/password")
    assert files.read(_file(root / "password")) == "s3cret"


def test_what_is_no_value(files: FileSecrets, root: Path) -> None:
    (root / "empty").write_text("\n")
    (root / "large").write_bytes(b"x" * 100_001)
    (root / "bytes").write_bytes(b"\xff\xfe")
    os.mkfifo(root / "pipe")
    (root / "own").mkdir()
    (root / "own" / "keys.json").write_text("s3cret")
    (root / "loop").symlink_to(root / "loop")
    _refused(files, root / "none", "secret-missing", "does not exist")
    _refused(files, root / "empty", "secret-missing", "is empty")
    _refused(files, root / "large", "secret-missing", "larger than 100 kB")
    _refused(files, root / "bytes", "secret-missing", "UTF-8")
    _refused(files, root / "pipe", "secret-store-refused", "not a regular file")
    _refused(files, root, "secret-store-refused", "root")
    _refused(files, root / "loop", "secret-store-refused", "cannot be read")
    _refused(files, root / "own" / "keys.json", "secret-store-refused", "server's own")


def test_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = VariableSecrets(Variables(allow=("LEAT_*", "ONE")))
    monkeypatch.setenv("LEAT_A", "s3cret")
    read = {
        name: OutsideReference.read(f"secret://env/{name}") for name in ("LEAT_A", "LEAT_B", "ONE", "ONES")
    }
    assert variables.read(read["LEAT_A"]) == "s3cret"
    assert [name for name, one in read.items() if variables.permits(one) is not None] == ["ONES"]
    with pytest.raises(SecretStoreError, match="no variable LEAT_B"):
        variables.read(read["LEAT_B"])
    assert variables.permits(OutsideReference.read("secret://env/leatstream_token")) is not None
    monkeypatch.setenv("LEAT_B", "s3cret\udcff")  # as Python has a byte that is not UTF-8
    with pytest.raises(SecretStoreError, match="not a text in UTF-8"):
        variables.read(read["LEAT_B"])


def test_the_servers_own_credentials_are_no_values(root: Path) -> None:
    (root / "token").write_text("s3cret")
    (root / "kafka").write_text("p")
    auth = {"method": "approle", "role_id": "r", "secret_id_file": str(root / "token")}
    vault = {"url": "https://v", "allow": ["kv/*"], "auth": auth}
    setting = {"file": {"roots": [str(root)]}, "vault": vault}
    files = open_providers(OutsideSecretsSettings.model_validate(setting), ())["file"]
    assert files.read(_file(root / "kafka")) == "p"
    with pytest.raises(SecretStoreError, match="server's own"):
        files.read(_file(root / "token"))
