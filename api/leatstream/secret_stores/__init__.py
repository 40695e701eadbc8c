"""Secret stores outside the catalog, as ``LEATSTREAM_OUTSIDE_SECRETS`` turns them on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leatstream.ports import SecretProvider
from leatstream.secret_stores.local import FileSecrets, VariableSecrets
from leatstream.secret_stores.settings import OutsideSecretsSettings


def open_providers(settings: OutsideSecretsSettings, private: Sequence[Path]) -> dict[str, SecretProvider]:
    """The providers that are on, by the word for them in references; no I/O.

    Args:
        settings: of the server.
        private: the server's own files and directories, which no reference reads.
    """
    found: dict[str, SecretProvider] = {}
    if settings.env is not None:
        found["env"] = VariableSecrets(settings.env)
    if settings.file is not None:
        found["file"] = FileSecrets(settings.file, [*private, *settings.credentials()])
    if settings.vault is not None:
        from leatstream.secret_stores.vault import VaultSecrets

        found["vault"] = VaultSecrets(settings.vault)
    if settings.aws_sm is not None:
        from leatstream.secret_stores.aws import AwsSecrets

        found["aws-sm"] = AwsSecrets(settings.aws_sm)
    if settings.k8s is not None:
        from leatstream.secret_stores.kubernetes import KubernetesSecrets

        found["k8s"] = KubernetesSecrets(settings.k8s)
    return found
