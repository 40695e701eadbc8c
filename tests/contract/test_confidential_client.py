"""The console's sign-in with a client that has a secret: Google, and web applications of Entra, Okta, Keycloak."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import fakes
import pytest
from oidc_issuer import AUDIENCE, CLIENT, OidcIssuer
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.identity.issuers import Issuers
from leatstream.identity.settings import Issuer
from leatstream.rest.app import create_app

HOME = "http://127.0.0.1:8585"
PAGE = {"Sec-Fetch-Site": "same-origin"}
WRITE = {**PAGE, "X-Leatstream-Console": "1"}
SECRET = "pa:ss w%rd+\u00fc"  # all that form encoding changes
RULES = [{"claim": "groups", "equals": "data", "role": "sysadmin"}]


class Site:
    """A server whose provider has a confidential client."""

    def __init__(self, env: Any, app: Any, provider: OidcIssuer, file: Path) -> None:
        self.env, self.app, self.provider, self.file = env, app, provider, file

    def configure(self, methods: list[str] | None, **more: Any) -> None:
        """Trust the provider, which takes secrets in these ways."""
        self.provider.document = {} if methods is None else {"token_endpoint_auth_methods_supported": methods}
        secret = {} if "client_secret_variable" in more else {"client_secret_file": str(self.file)}
        trusted = {"issuer": self.provider.url, "audience": AUDIENCE, "client_id": CLIENT, "rules": RULES}
        self.env.identities = Issuers([Issuer.model_validate({**trusted, **secret, **more})])

    def sign_in(self) -> tuple[TestClient, str]:
        """A browser after its sign-in, and the page that it was sent to."""
        browser = TestClient(self.app, base_url=HOME, raise_server_exceptions=False, follow_redirects=False)
        begun = browser.get("/v1/sign-in/start", headers=PAGE)
        assert begun.status_code == 303, begun.text
        query = {name: one[0] for name, one in parse_qs(urlsplit(begun.headers["location"]).query).items()}
        return browser, str(browser.get(self.provider.authorize(query)).headers["location"])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    provider = OidcIssuer()
    with memory_directory() as directory:
        world = fakes.make_world(Path(directory))
        env = replace(world.env)
        app = create_app(env)
        with TestClient(app):
            yield Site(env, app, provider, tmp_path_factory.mktemp("oidc") / "secret")
        world.units.close()
    provider.close()


@pytest.fixture
def site(whole: Site) -> Site:
    whole.file.write_text(f"{SECRET}\n", encoding="utf-8")
    whole.provider.secret, whole.provider.lifetime = SECRET, 300
    whole.provider.proofs.clear()
    return whole


@pytest.mark.parametrize(
    ("methods", "proof"),
    [
        (None, "basic"),
        (["client_secret_post", "private_key_jwt", "client_secret_basic"], "basic"),
        (["private_key_jwt", "client_secret_post"], "post"),
    ],
)
def test_the_secret_is_sent_as_the_provider_wants_it(
    site: Site, methods: list[str] | None, proof: str, caplog: pytest.LogCaptureFixture
) -> None:
    site.configure(methods)
    site.provider.lifetime = 20  # renewed at the next request
    with caplog.at_level(logging.DEBUG):
        browser, page = site.sign_in()
        assert page == "/ui/"
        assert browser.get("/v1/me", headers=PAGE).json()["role"] == "sysadmin"
        assert browser.delete("/v1/session", headers=WRITE).status_code == 204
    assert site.provider.proofs == [proof] * 3  # the code, the refresh token, its revocation
    assert site.provider.refreshing == set()
    assert SECRET not in caplog.text


def test_a_variable_may_hold_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OIDC_SECRET", SECRET)
    site.configure(None, client_secret_variable="OIDC_SECRET")
    assert site.sign_in()[1] == "/ui/"


def test_a_rotated_file_counts_at_once(site: Site) -> None:
    site.configure(None)
    assert site.sign_in()[1] == "/ui/"
    site.provider.secret = "next"
    site.file.write_text("next", encoding="utf-8")
    assert site.sign_in()[1] == "/ui/"


def test_a_wrong_secret_is_the_settings_fault_and_ends_no_session(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.configure(None)
    site.provider.lifetime = 20
    browser, _ = site.sign_in()
    site.provider.secret = "next"
    assert site.sign_in()[1] == "/ui/sign-in?failed=unreachable"
    assert f"does not accept the secret of client {CLIENT}" in caplog.text
    assert browser.get("/v1/me", headers=PAGE).status_code == 200  # its token still counts
    site.file.unlink()
    assert site.sign_in()[1] == "/ui/sign-in?failed=unreachable"
    assert "of the client secret cannot be read" in caplog.text
    assert SECRET not in caplog.text
    site.file.write_text("next", encoding="utf-8")
    assert browser.get("/v1/me", headers=PAGE).status_code == 200
    assert browser.get("/v1/session", headers=PAGE).json()["account"] is not None


def test_a_provider_that_takes_no_secret(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.configure(["private_key_jwt"])
    assert site.sign_in()[1] == "/ui/sign-in?failed=unreachable"
    assert "takes client secrets neither" in caplog.text
    assert site.provider.proofs == []


def test_parameters_of_the_address_replace_none_of_ours(site: Site) -> None:
    more = {"access_type": "offline", "code_challenge_method": "plain", "state": "x"}
    site.configure(None, authorization_parameters=more)
    assert site.sign_in()[1] == "/ui/"
    found = site.provider.last_query
    assert (found["access_type"], found["code_challenge_method"]) == ("offline", "S256")
    assert found["state"] != "x"


def test_the_command_line_needs_a_public_client(site: Site) -> None:
    site.configure(None)
    browser, _ = site.sign_in()
    answer = browser.get("/v1/sign-in")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert "its client has a secret" in answer.json()["detail"]
    assert browser.get("/v1/session", headers=PAGE).json()["issuer"] == site.provider.url
    site.configure(None, cli_client_id="leat-public")
    found = browser.get("/v1/sign-in").json()
    assert (found["client_id"], found["audience"]) == ("leat-public", AUDIENCE)
    assert SECRET not in str(found)
