"""Variables that look like settings of a server and are none: misspelt, they would pass in silence."""

from __future__ import annotations

import re
from collections.abc import Mapping

from leatstream.model.names import nearest
from leatstream.settings import Settings

_PREFIX = "LEATSTREAM_"
_SETTINGS = [name.upper() for name in (*Settings.model_fields, "bootstrap_token", "cache_dir")]
# What else reads or sets variables with our prefix: clients, drivers, the provider, examples, tests.
_OTHERS = """
CDKTF CLASS_ARCHIVE CLICKHOUSE CONTRACT_EXAMPLES DRIVER_ID FUZZ ICEBERG KAFKA KINESIS PYTHON REWRITE_CASES
REWRITE_CORPUS RETRY_SECONDS SPARK_JARS TOKEN URL
"""
_KNOWN = {*_SETTINGS, *_OTHERS.split()}
# Kubernetes sets these in pods beside a Service whose name begins with ours; so do links of containers.
_OF_SERVICES = re.compile(r"(.*_)?(SERVICE_(HOST|PORT(_.*)?)|PORT_[0-9]+_(TCP|UDP|SCTP)(_.*)?)")
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def told_unknown(environment: Mapping[str, str]) -> str | None:
    """Names each of these variables, without its value, and what may be meant; None where there is none.

    Args:
        environment: the process's own.
    """
    given = {name.upper(): value for name, value in environment.items()}  # settings are read in any case
    wrong = [
        name.removeprefix(_PREFIX)
        for name, value in sorted(given.items())
        if name.startswith(_PREFIX) and _is_unknown(name.removeprefix(_PREFIX), value)
    ]
    if not wrong:
        return None
    listed = "docs/operations.md lists the settings."
    return f"These variables are no settings and do nothing: {', '.join(map(_told, wrong))}. {listed}"


def _told(name: str) -> str:
    near = nearest(name, _SETTINGS)
    return _PREFIX + name + (f" (did you mean {_PREFIX}{near}?)" if near is not None else "")


def _is_unknown(name: str, value: str) -> bool:
    if name in _KNOWN or name.startswith("TEST_"):
        return False
    return not (_OF_SERVICES.fullmatch(name) or _ADDRESS.match(value))
