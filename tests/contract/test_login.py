"""``leat login`` and ``leat logout`` against a server and an identity provider over HTTP."""

from __future__ import annotations

import json
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import fakes
import httpx2
import pytest
from oidc_issuer import AUDIENCE, CLIENT, OidcIssuer
from scratch import memory_directory
from served_app import serving

from leatstream.cli import app as cli_app
from leatstream.cli import sign_ins
from leatstream.cli.redirect import Redirect
from leatstream.errors import AccessError
from leatstream.identity import provider as oauth
from leatstream.identity.issuers import Issuers
from leatstream.identity.settings import Issuer
from leatstream.rest.app import create_app

# As in a process that ends, nobody closes the clients.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
RULES = [{"claim": "groups", "equals": "data", "role": "reader", "scope": "read"}]
Run = Callable[..., SimpleNamespace]


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcIssuer]:
    made = OidcIssuer()
    yield made
    made.close()


@pytest.fixture
def issuer(provider: OidcIssuer) -> OidcIssuer:
    """The provider as it began, but for its keys."""
    provider.asked.clear()
    provider.refreshing.clear()
    provider.approved, provider.lifetime, provider.document = True, 300, {}
    provider.claims = {"sub": "ann", "groups": ["data"]}
    return provider


@pytest.fixture(scope="module")
def url(provider: OidcIssuer) -> Iterator[str]:
    """A server that people sign in to with the provider."""
    trusted = {"issuer": provider.url, "audience": AUDIENCE, "client_id": CLIENT, "rules": RULES}
    with memory_directory() as directory:
        world = fakes.make_world(Path(directory))
        world.env.identities = Issuers([Issuer.model_validate(trusted)])
        with serving(create_app(world.env)) as address:
            yield address
        world.units.close()


@pytest.fixture
def leat(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Runs the command line as somebody who has never signed in."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("LEATSTREAM_URL", url)
    monkeypatch.delenv("LEATSTREAM_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*argv: str) -> SimpleNamespace:
        status = cli_app.run(argv)
        out, err = capsys.readouterr()
        return SimpleNamespace(status=int(status), out=out, err=" ".join(err.split()))

    return run


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A browser of somebody who agrees to everything; the addresses that were opened."""
    opened: list[str] = []

    def visit(address: str) -> bool:
        opened.append(address)
        get = httpx2.Client(trust_env=False, follow_redirects=True).get
        threading.Thread(target=get, args=(address,), daemon=True).start()
        return True

    monkeypatch.setattr("webbrowser.open", visit)
    return opened


def whoami(leat: Run) -> Any:
    done = leat("whoami", "-o", "json")
    assert done.status == 0, done.err
    return json.loads(done.out)


def expire(url: str) -> None:
    """Let the kept token have ended."""
    entry = sign_ins.find(url)
    assert entry is not None
    sign_ins.keep(url, {**entry, "expires_at": time.time() - 1})


def test_with_a_browser(leat: Run, url: str, issuer: OidcIssuer, browser: list[str]) -> None:
    assert leat("whoami").status == 4
    done = leat("login")
    assert done.status == 0, done.err
    assert f"Signed in to {url} as {issuer.url}#ann, role reader, scope read." in done.err
    asked = parse_qs(urlsplit(browser[0]).query)
    assert asked["redirect_uri"][0].startswith("http://127.0.0.1:")
    assert asked["scope"] == ["openid profile email offline_access"]
    assert whoami(leat)["name"] == f"{issuer.url}#ann"


def test_with_a_device_code(leat: Run, issuer: OidcIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    issuer.approved, waits = False, list[float]()

    def wait(seconds: float) -> None:
        waits.append(seconds)
        issuer.approved = len(waits) == 3

    monkeypatch.setattr(oauth, "_sleep", wait)
    done = leat("login", "--device")
    assert done.status == 0, done.err
    assert f"Open {issuer.url}/activate and enter the code ABCD-EFGH." in done.err
    assert len(waits) == 3
    assert whoami(leat)["role"] == "reader"


def test_the_token_is_kept_for_its_owner_and_never_printed(
    leat: Run, url: str, issuer: OidcIssuer, tmp_path: Path
) -> None:
    done = leat("login", "--device")
    entry = sign_ins.find(url)
    assert entry is not None
    for secret in (entry["token"], entry["refresh_token"]):
        assert secret not in done.out + done.err
    for path in (tmp_path / "leatstream").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE((tmp_path / "leatstream").stat().st_mode) == 0o700


def test_it_is_sent_to_its_server_only(leat: Run, url: str, issuer: OidcIssuer) -> None:
    assert leat("login", "--device").status == 0
    other = url.replace("127.0.0.1", "localhost")  # the same server by another name
    assert leat("--url", other, "whoami").status == 4


def test_a_token_that_has_ended_is_renewed(leat: Run, url: str, issuer: OidcIssuer) -> None:
    assert leat("login", "--device").status == 0
    first = sign_ins.find(url)
    for _ in range(2):  # each refresh token serves once, so the next one must have been kept
        expire(url)
        assert whoami(leat)["role"] == "reader"
    last = sign_ins.find(url)
    assert first is not None
    assert last is not None
    assert first["token"] != last["token"]
    asked = issuer.asked["/token"]
    assert whoami(leat)["role"] == "reader"
    assert issuer.asked["/token"] == asked


def test_threads_and_processes_renew_once(leat: Run, url: str, issuer: OidcIssuer) -> None:
    assert leat("login", "--device").status == 0
    expire(url)
    asked, found = issuer.asked["/token"], list[str]()
    renewals = [sign_ins.Renewal(url) for _ in range(4)]  # as of four processes
    threads = [threading.Thread(target=lambda one=one: found.append(one())) for one in renewals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (len(found), len(set(found))) == (4, 1)
    assert issuer.asked["/token"] == asked + 1


def test_a_sign_in_that_has_ended_is_said(leat: Run, url: str, issuer: OidcIssuer) -> None:
    assert leat("login", "--device").status == 0
    expire(url)
    issuer.refreshing.clear()
    done = leat("whoami")
    assert done.status == 4
    assert f"Your sign-in to {url} has ended." in done.err
    assert "Run leat login again." in done.err


def test_logout_ends_it_at_the_provider_too(leat: Run, url: str, issuer: OidcIssuer) -> None:
    assert leat("login", "--device").status == 0
    assert issuer.refreshing
    assert "Signed out" in leat("logout").err
    assert not issuer.refreshing
    assert leat("whoami").status == 4
    assert "not signed in" in leat("logout").err


def test_a_token_of_the_environment_counts_first(
    leat: Run, issuer: OidcIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEATSTREAM_TOKEN", issuer.sign(sub="pipeline"))
    assert "is still used first" in leat("login", "--device").err
    assert whoami(leat)["name"].endswith("#pipeline")
    monkeypatch.delenv("LEATSTREAM_TOKEN")
    assert whoami(leat)["name"].endswith("#ann")


def test_nothing_is_kept_of_somebody_without_a_role(leat: Run, url: str, issuer: OidcIssuer) -> None:
    issuer.claims = {"sub": "eve", "groups": []}
    done = leat("login", "--device")
    assert done.status == 4
    assert "gives a role to" in done.err
    assert sign_ins.find(url) is None


def test_a_token_for_another_audience(leat: Run, issuer: OidcIssuer) -> None:
    issuer.claims = {"sub": "ann", "groups": ["data"], "aud": "mail"}
    done = leat("login", "--device")
    assert done.status == 4
    assert f"no token for the audience {AUDIENCE}" in done.err


def test_a_provider_without_device_codes(leat: Run, issuer: OidcIssuer) -> None:
    issuer.document = {"device_authorization_endpoint": None}
    done = leat("login", "--device")
    assert (done.status, "does not offer codes for devices" in done.err) == (4, True)


def test_an_endpoint_without_tls_is_not_used(leat: Run, issuer: OidcIssuer) -> None:
    issuer.document = {"token_endpoint": "http://elsewhere.example/token"}
    done = leat("login", "--device")
    assert (done.status, "no URL with https" in done.err) == (4, True)


def test_a_server_without_an_issuer_for_people(
    leat: Run, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(create_app(fresh.env)) as other:
        done = leat("--url", other, "login")
    assert (done.status, "no identity provider for people" in done.err) == (3, True)


class TestRedirect:
    """What may come back to this machine."""

    def visit(self, uri: str, query: str, path: str = "/callback") -> int:
        """The status of a request as a browser makes it."""
        base = uri.removesuffix("/callback")
        with httpx2.Client(trust_env=False) as client:
            return client.get(f"{base}{path}?{query}").status_code

    def waiting(
        self, seconds: float, *queries: str, issuer: str = "https://id.example"
    ) -> tuple[Any, list[int]]:
        """What a wait for the state ``s1`` gives, and the statuses of requests that come meanwhile."""
        statuses: list[int] = []
        with Redirect(0, issuer) as redirect:
            uri = redirect.uri
            browser = threading.Thread(target=lambda: [statuses.append(self.visit(uri, q)) for q in queries])
            browser.start()
            try:
                found: Any = redirect.wait("s1", seconds)
            except AccessError as error:
                found = error
            browser.join(20)
        return found, statuses

    def test_another_state_is_passed_over(self) -> None:
        found, statuses = self.waiting(
            20, "code=evil&state=s2", "code=evil", "code=evil&state=", "code=c&state=s1"
        )
        assert (found, statuses) == ("c", [400, 400, 400, 200])

    def test_a_refusal_is_said(self) -> None:
        found, _ = self.waiting(20, "error=access_denied&error_description=Not+today.&state=s1")
        assert "refused the sign-in: Not today." in found.detail

    def test_another_issuer_is_refused(self) -> None:
        found, _ = self.waiting(20, "code=c&state=s1&iss=https%3A%2F%2Fevil.example")
        assert "another issuer" in found.detail

    def test_the_wait_ends(self) -> None:
        found, _ = self.waiting(0.0)
        assert "before the time was over" in found.detail

    def test_connections_without_a_request_hold_nothing_up(self) -> None:
        with Redirect(0, "x") as redirect:
            port = urlsplit(redirect.uri).port
            with socket.create_connection(("127.0.0.1", port)):
                browser = threading.Thread(target=self.visit, args=(redirect.uri, "code=c&state=s1"))
                browser.start()
                assert redirect.wait("s1", 5.0) == "c"
                browser.join(20)


def test_a_verifier_that_does_not_fit_is_refused(leat: Run, issuer: OidcIssuer) -> None:
    """The provider of these tests checks PKCE: a code alone gives no token."""
    sign_in = {"issuer": issuer.url, "client_id": CLIENT, "audience": AUDIENCE, "scopes": ["openid"]}
    provider = oauth.Provider(sign_in)

    def visit(address: str, state: str) -> str:
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        back = issuer.authorize({**query, "code_challenge": "x" * 43})
        assert state in back
        return parse_qs(urlsplit(back).query)["code"][0]

    with pytest.raises(AccessError, match="invalid_grant"):
        provider.by_redirect("http://127.0.0.1:1/callback", visit)
