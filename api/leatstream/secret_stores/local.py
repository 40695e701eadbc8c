"""Variables and files of the server itself."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from leatstream.model.outside_secrets import OutsideReference
from leatstream.secret_stores.settings import OWN_VARIABLES, Files, Variables, permits
from leatstream.secret_stores.values import MOST_BYTES, decoded, member, missing, refused


class VariableSecrets:
    """Environment variables (``ports.SecretProvider``)."""

    def __init__(self, settings: Variables) -> None:
        self._settings = settings

    def permits(self, reference: OutsideReference) -> str | None:
        """None if the variable may be read."""
        name = reference.path
        if permits(self._settings.allow, name) and not name.upper().startswith(OWN_VARIABLES):
            return None
        return f"The variable {name} is not permitted, only {', '.join(self._settings.allow)}."

    def read(self, reference: OutsideReference) -> str:
        """The variable's value, or a member of the JSON object that it is."""
        found = os.environ.get(reference.path)
        if found is None:
            raise missing(f"the server has no variable {reference.path}")
        return member(found, reference.key, f"Variable {reference.path}")


class FileSecrets:
    """Files under some directories (``ports.SecretProvider``)."""

    def __init__(self, settings: Files, private: Sequence[Path] = ()) -> None:
        """Read nothing yet.

        Args:
            settings: the directories.
            private: files and directories of the server, which are never read.
        """
        self._roots, self._private = settings.roots, tuple(private)

    def permits(self, reference: OutsideReference) -> str | None:
        """None if the path, as it is written, is under a permitted directory."""
        if any(Path(reference.path).is_relative_to(root) for root in self._roots):
            return None
        return f"The file {reference.path} is not permitted, only files under {self._written()}."

    def read(self, reference: OutsideReference) -> str:
        """The file's text without the line's end after it, or a member of the JSON object that it is."""
        where = f"File {reference.path}"
        try:
            # Kubernetes exchanges mounted secrets by links: where they lead decides.
            path = Path(reference.path).resolve(strict=True)
            self._require_inside(path, where)
            text = decoded(_content(path, where), where)
        except FileNotFoundError:
            raise missing(f"{where} does not exist") from None
        except (OSError, RuntimeError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise refused(f"{where} cannot be read: {why}", "Let the server's account read it.") from None
        return member(text.removesuffix("\n").removesuffix("\r"), reference.key, where)

    def _require_inside(self, path: Path, where: str) -> None:
        inside = any(path.is_relative_to(root.resolve()) for root in self._roots)
        private = any(path.is_relative_to(one.resolve()) for one in self._private)
        if not inside or private:
            why = "is one of the server's own" if private else "leads out of the permitted directories"
            raise refused(f"{where} {why}", f"Put the file itself under {self._written()}.")

    def _written(self) -> str:
        return ", ".join(map(str, self._roots))


def _content(path: Path, where: str) -> bytes:
    # Not blocking: a pipe without a writer would hold the caller up.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise refused(f"{where} is not a regular file", "Name a file that holds the value.")
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise missing(f"{where} is larger than {MOST_BYTES // 1000} kB")
    return data
