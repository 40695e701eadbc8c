"""Tokens that librdkafka logs in with: fetched by us, so that an error says what is wrong."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from leatstream.connectors.kafka.login import KafkaOauth, KafkaSasl
from leatstream.connectors.kafka.msk import sign_in
from leatstream.errors import StoreError
from leatstream.model.certificates import trust_of

TIMEOUT = 4.0  # seconds of asking the token endpoint
_MOST_BYTES = 1_000_000
_DEFAULT_LIFE = 300.0  # seconds, of a token that does not say
_UNCERTAIN = ("invalid_client", "unauthorized_client", "access_denied")


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its life, in seconds since the epoch."""

    text: str
    made: float
    expires: float

    def worn(self, now: float) -> bool:
        """Whether a client that asks for a new one should get a new one."""
        return now > self.made + 0.5 * (self.expires - self.made)

    @property
    def renewal(self) -> float:
        """The end that librdkafka is told, which asks again at four fifths of the time until then.

        That is well before the brokers end the session, so that an endpoint may be away for a while.
        """
        return self.made + 0.75 * (self.expires - self.made)


class TokenSource:
    """The tokens of one store; safe to share between threads.

    Attributes:
        fault: why the last token could not be had; None when it could.
    """

    def __init__(
        self, fetch: Callable[[], Token], extensions: dict[str, str], now: Callable[[], float] = time.time
    ) -> None:
        self._fetch = fetch
        self._extensions = extensions
        self._now = now
        self._lock = threading.Lock()
        self._token: Token | None = None
        self.fault: StoreError | None = None

    def token(self) -> Token:
        """A token that is not nearly over.

        Raises:
            StoreError: it cannot be had.
        """
        with self._lock:
            if self._token is None or self._token.worn(self._now()):
                try:
                    self._token = self._fetch()
                except StoreError as error:
                    self.fault = error
                    raise
            self.fault = None
            return self._token

    def answer(self, _: str) -> tuple[str, float, str, dict[str, str]]:
        """librdkafka's ``oauth_cb``; its caller hears of a failure through ``fault``."""
        token = self.token()
        return token.text, token.renewal, "", self._extensions


def tokens_of(store: str, sasl: KafkaSasl | None) -> TokenSource | None:
    """Where a store's tokens come from, or None when it logs in without."""
    if sasl is not None and sasl.aws is not None:
        aws = sasl.aws
        return TokenSource(lambda: Token(*sign_in(store, aws, TIMEOUT)), {})
    if sasl is None or sasl.oauth is None:
        return None
    oauth = sasl.oauth
    return TokenSource(lambda: fetch_token(store, oauth), dict(oauth.extensions))


def fetch_token(store: str, oauth: KafkaOauth, timeout: float = TIMEOUT) -> Token:
    """Ask the token endpoint for a token of the client (RFC 6749 §4.4).

    Args:
        store: the store's name, for messages.
        oauth: whom to ask, and who asks.
        timeout: seconds that it may take altogether.

    Raises:
        StoreError: store-unreachable, store-auth-failed or store-rejected; never with a secret.
    """
    import httpx2

    where = _shown(oauth.token_url)
    try:
        status, data = _ask(oauth, timeout)
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
        # Some hosts, such as a..b, are found to be none only when they are looked up.
        raise _unreachable(store, where, error) from None
    except ssl.SSLError:
        detail = f"Store {store}: sasl.oauth.ca_certificate cannot be read as certificates."
        raise StoreError("store-rejected", detail) from None
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    known: dict[str, Any] = document if isinstance(document, dict) else {}
    if status != 200:
        raise _refused(store, where, status, known)
    text, life = known.get("access_token"), known.get("expires_in")
    if not isinstance(text, str) or not text:
        raise StoreError(
            "store-rejected",
            f"Store {store}: the token endpoint {where} gave no access_token.",
            hint="Check sasl.oauth.token_url: it is the address that tokens are fetched from.",
        )
    now = time.time()
    seconds = float(life) if isinstance(life, int | float) and life > 0 else _DEFAULT_LIFE
    return Token(text, now, now + seconds)


def _ask(oauth: KafkaOauth, timeout: float) -> tuple[int, bytes]:
    import httpx2

    pair = f"{quote(oauth.client_id, safe='')}:{quote(oauth.client_secret.get_secret_value(), safe='')}"
    headers = {
        "Accept": "application/json",
        "Authorization": "Basic " + base64.b64encode(pair.encode()).decode(),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    form = {"grant_type": "client_credentials"} | ({"scope": oauth.scope} if oauth.scope else {})
    end = time.monotonic() + timeout
    with (
        httpx2.Client(verify=trust_of(oauth.ca_certificate), follow_redirects=False) as client,
        client.stream(
            "POST", oauth.token_url, content=urlencode(form), headers=headers, timeout=timeout / 2
        ) as answer,
    ):
        data = b""
        for chunk in answer.iter_bytes():
            data += chunk
            if len(data) > _MOST_BYTES or time.monotonic() > end:
                raise httpx2.ReadTimeout("the answer takes too long")
        return answer.status_code, data


def _refused(store: str, where: str, status: int, known: dict[str, Any]) -> StoreError:
    code = " ".join(str(known.get("error") or "").split())[:60]
    told = f"{code}, HTTP status {status}" if code else f"HTTP status {status}"
    if status >= 500 or status == 429:
        return StoreError(
            "store-unreachable", f"Store {store}: the token endpoint {where} gives no tokens now ({told})."
        )
    if code == "invalid_scope":
        return StoreError(
            "store-auth-failed",
            f"Store {store}: the token endpoint {where} refused the scope ({told}).",
            hint="Check sasl.oauth.scope, and which scopes the client may ask for.",
        )
    if status in (401, 403) or code in _UNCERTAIN:
        return StoreError(
            "store-auth-failed",
            f"Store {store}: the token endpoint {where} refused the client ({told}).",
            hint="Check sasl.oauth.client_id and client_secret, and that the client may use the grant "
            "client_credentials.",
        )
    return StoreError(
        "store-rejected",
        f"Store {store}: the token endpoint {where} refused to give a token ({told}).",
        hint="Check sasl.oauth.token_url and scope.",
    )


def _unreachable(store: str, where: str, error: Exception) -> StoreError:
    causes = [str(cause) for cause in (error, error.__cause__, error.__context__)]
    if any("CERTIFICATE_VERIFY_FAILED" in cause for cause in causes):
        hint = "Give the authority of its certificate as sasl.oauth.ca_certificate."
        detail = f"Store {store}: the certificate of the token endpoint {where} is not trusted."
        return StoreError("store-unreachable", detail, hint=hint)
    return StoreError(
        "store-unreachable",
        f"Store {store}: the token endpoint {where} does not answer ({type(error).__name__}).",
        hint="Check sasl.oauth.token_url, and that the address can be reached from here.",
    )


def _shown(url: str) -> str:
    """The address without its query, which may hold a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"
