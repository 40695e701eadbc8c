"""What a driver gets of the server's environment: an allow list, as drivers run users' code.

Cloud keys, passwords of databases and tokens of other tools stand in environments; a driver needs none of
them, unless the one who runs the server passes them by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# Where programs, files and authorities are, how text is written, the way out, and how runtimes behave.
ALLOWED = (
    *(
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "LC_*",
        "TZ",
        "TZDIR",
        "TMPDIR",
        "TMP",
        "TEMP",
    ),
    *(
        "LD_LIBRARY_PATH",
        "MALLOC_*",
        "OMP_*",
        "PYTHON*",
        "VIRTUAL_ENV",
        "JAVA_*",
        "JDK_*",
        "SPARK_*",
        "PYSPARK_*",
    ),
    *("HADOOP_*", "YARN_CONF_DIR", "KRB5*", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
    *("http_proxy", "https_proxy", "no_proxy", "all_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"),
)
# A family of variables may have one of these; it is passed by its own name only.
_SECRET = re.compile(r"PASSW|SECRET|TOKEN|CREDENTIAL|PRIVATE|_KEY", re.IGNORECASE)
_NAMES = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?\Z")
_OURS = "LEATSTREAM_"


def read_names(text: str) -> tuple[str, ...]:
    """Names of variables, separated by commas; ``AWS_*`` is all that begin so.

    Raises:
        ValueError: one is none, or one of our own, which may hold the catalog's address or a token.
    """
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if not _NAMES.match(name):
            raise ValueError(f"{name} is no name of a variable; write such as AWS_*,MY_SETTING")
        if name.rstrip("*").startswith(_OURS) or (_OURS.startswith(name.rstrip("*")) and name.endswith("*")):
            raise ValueError(f"{name} would pass the server's own variables, which may hold secrets")
    return names


def passed(environment: Mapping[str, str], more: Sequence[str] = ()) -> dict[str, str]:
    """The part of an environment that a driver inherits.

    Args:
        environment: of the server.
        more: names besides the allow list's, as ``read_names`` gives them.
    """
    return {
        name: value
        for name, value in environment.items()
        if _matches(name, more) or (_matches(name, ALLOWED) and not _SECRET.search(name))
    }


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns
    )
