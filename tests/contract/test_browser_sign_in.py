"""Browsers that an identity provider signs in: the way there and back, the session, and who may not use it."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import fakes
import pytest
from oidc_issuer import AUDIENCE, CLIENT, OidcIssuer
from scratch import memory_directory
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from leatstream.errors import AccessError, IdentityError
from leatstream.identity.issuers import Issuers
from leatstream.identity.settings import Issuer
from leatstream.rest.app import create_app
from leatstream.services.nouns import session_renewal, sessions
from leatstream.services.nouns.stored_sessions import find, reference_of

HOME = "http://127.0.0.1:8585"
SOCKET = "ws://127.0.0.1:8585/graphql"
PAGE = {"Sec-Fetch-Site": "same-origin"}
WRITE = {**PAGE, "X-Leatstream-Console": "1"}
RULES = [{"claim": "groups", "equals": "data", "role": "sysadmin"}]


class Site:
    """Two servers of one catalog that one provider signs people in to."""

    def __init__(self, world: Any, app: Any, provider: OidcIssuer) -> None:
        self.world, self.app, self.provider = world, app, provider
        self.ahead = 0.0

    def now(self) -> datetime:
        """The time of the servers, in seconds ahead of the provider's."""
        return datetime.now(UTC) + timedelta(seconds=self.ahead)

    def browser(self, base: str = HOME) -> TestClient:
        """A browser with cookies of its own."""
        return TestClient(self.app, base_url=base, raise_server_exceptions=False, follow_redirects=False)

    def begin(self, browser: TestClient, page: str = "/") -> str:
        """Where the provider sends a browser whose person has agreed."""
        answer = browser.get("/v1/sign-in/start", params={"next": page}, headers=PAGE)
        assert answer.status_code == 303, answer.text
        found = {
            name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()
        }
        return self.provider.authorize(found)

    def signed_in(self, browser: TestClient | None = None) -> TestClient:
        """A browser after its sign-in."""
        browser = browser or self.browser()
        assert where(browser.get(self.begin(browser))) == "/ui/"
        return browser

    def events(self, kind: str) -> list[Any]:
        """Events of the audit log, newest first."""
        with self.world.units(write=False) as unit:
            return [one for one in unit.audit.page(limit=1000) if one.kind == kind]

    def stored(self) -> list[str]:
        """References of the sessions that the catalog has."""
        with self.world.units(write=False) as unit:
            return [one for one, _ in unit.sealed_values("session/", 100) if one.startswith("session/")]


def where(answer: Any) -> str:
    """Where a redirect leads."""
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


@pytest.fixture(scope="module")
def whole() -> Iterator[Site]:
    """One for all tests: to make the application takes longer than a test."""
    provider = OidcIssuer()
    with memory_directory() as directory:
        world = fakes.make_world(Path(directory))
        trusted = {"issuer": provider.url, "audience": AUDIENCE, "client_id": CLIENT, "rules": RULES}
        env = replace(world.env, identities=Issuers([Issuer.model_validate(trusted)]))
        app = create_app(env)
        with TestClient(app):
            made = Site(world, app, provider)
            env.clock = made
            yield made
        world.units.close()
    provider.close()


@pytest.fixture
def site(whole: Site) -> Site:
    """The site with a provider as it began, and with a clock for sessions that can be set forward."""
    provider = whole.provider
    provider.claims, provider.lifetime, provider.fails = {"sub": "ann", "groups": ["data"]}, 300, 0
    provider.refreshing.clear()
    provider.asked.clear()
    whole.ahead = 0.0
    env = whole.app.state.env
    env.refused_sign_ins.__init__()
    env.settings = whole.world.env.settings
    return whole


class TestTheWay:
    """To the provider and back."""

    def test_a_browser_is_signed_in_and_sees_the_page_it_wanted(self, site: Site) -> None:
        browser = site.browser()
        back = site.begin(browser, "/queries?state=failed")
        assert back.startswith(f"{HOME}/v1/sign-in/callback?")
        assert where(browser.get(back)) == "/ui/queries?state=failed"
        me = browser.get("/v1/me", headers=PAGE).json()
        assert (me["name"], me["role"]) == (f"{site.provider.url}#ann", "sysadmin")
        shown = browser.get("/v1/session", headers=PAGE).json()
        assert shown == {"issuer": site.provider.url, "account": me["name"], "role": "sysadmin"}
        assert browser.put("/v1/databases/made", json={}, headers=WRITE).status_code == 201
        assert browser.delete("/v1/databases/made", headers=WRITE).status_code == 204
        assert (event := site.events("session")[0]).principal == me["name"]
        assert event.operation == "create"

    def test_no_token_is_in_the_browser(self, site: Site) -> None:
        browser = site.browser()
        answer = browser.get(site.begin(browser))
        (cookie,) = [
            one for one in answer.headers.get_list("set-cookie") if one.startswith("leat-session-8585=")
        ]
        attributes = {one.strip().lower() for one in cookie.split(";")[1:]}
        assert {"httponly", "samesite=strict", "path=/"} <= attributes
        assert "secure" not in attributes  # there is no TLS on the loopback address
        assert "eyJ" not in str(answer.headers)
        assert not any(token in str(answer.headers) for token in site.provider.refreshing)
        assert not any("leat-sign-in" in name for name in browser.cookies)

    def test_with_tls_the_cookie_is_of_this_host_only(self, site: Site) -> None:
        env = site.app.state.env
        env.settings = replace(env.settings, public_url="https://leat.example.com")
        browser = site.browser("https://leat.example.com")
        back = site.begin(browser)
        assert back.startswith("https://leat.example.com/v1/sign-in/callback?")
        cookies = browser.get(back).headers.get_list("set-cookie")
        (cookie,) = [one for one in cookies if one.startswith("__Host-leat-session=")]
        assert "; Secure" in cookie
        assert "domain" not in cookie.lower()
        assert browser.get("/v1/me", headers=PAGE).status_code == 200

    def test_a_proxy_may_name_the_default_port(self, site: Site) -> None:
        env, base = site.app.state.env, "https://leat.example.com"
        for url in (f"{base}:443", ""):  # configured, or in the header Host
            env.settings = replace(env.settings, public_url=url)
            browser = site.browser(base)
            browser.headers["Host"] = "leat.example.com:443"
            back = site.begin(browser)
            assert back.startswith(f"{base}/v1/sign-in/callback?")
            browser.get(back)
            assert browser.get("/v1/me", headers={**WRITE, "Origin": base}).status_code == 200

    def test_plain_http_on_another_machine_gets_none(self, site: Site) -> None:
        browser = site.browser("http://leat.example.com")
        assert where(browser.get("/v1/sign-in/start")) == "/ui/sign-in?failed=insecure"
        assert browser.get("/v1/session").json() == {"issuer": None, "account": None, "role": None}

    @pytest.mark.parametrize(
        "page",
        [
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "evil",
            "/a\r\nSet-Cookie: x=y",
            "/" * 3000,
            "",
        ],
    )
    def test_it_never_leads_elsewhere(self, site: Site, page: str) -> None:
        browser = site.browser()
        assert where(browser.get(site.begin(browser, page))) == "/ui/"

    @pytest.mark.parametrize("page", ["/" + "a" * 1999, "/?" + "é" * 999])
    def test_browsers_keep_the_cookie_of_a_long_page(self, site: Site, page: str) -> None:
        answer = site.signed_in().get("/v1/sign-in/start", params={"next": page}, headers=PAGE)
        (cookie,) = answer.headers.get_list("set-cookie")
        assert 2600 < len(cookie.partition(";")[0]) < 4096

    def test_another_page_cannot_begin_it(self, site: Site) -> None:
        answer = site.browser().get("/v1/sign-in/start", headers={"Sec-Fetch-Site": "cross-site"})
        assert where(answer) == "/ui/sign-in"

    def test_an_unreachable_provider_is_said(self, site: Site) -> None:
        nobody = Issuer.model_validate(
            {"issuer": "http://127.0.0.1:1", "audience": "a", "client_id": "c", "rules": RULES}
        )
        env = site.app.state.env
        kept, env.identities = env.identities, Issuers([nobody])
        try:
            answer = site.browser().get("/v1/sign-in/start", headers=PAGE)
            assert where(answer) == "/ui/sign-in?failed=unreachable"
        finally:
            env.identities = kept

    def test_a_document_of_another_issuer_is_not_read_at_each_request(self, site: Site) -> None:
        provider, env = site.provider, site.app.state.env
        trusted = {"issuer": provider.url, "audience": AUDIENCE, "client_id": CLIENT, "rules": RULES}
        browser, kept = site.signed_in(), env.identities
        env.identities = Issuers([Issuer.model_validate(trusted)])
        provider.document = {"issuer": "https://elsewhere.example"}
        provider.asked.clear()
        try:
            for _ in range(2):
                answer = site.browser().get("/v1/sign-in/start", headers=PAGE)
                assert where(answer) == "/ui/sign-in?failed=unreachable"
            assert provider.asked["/.well-known/openid-configuration"] == 1
            site.ahead = 290.0
            stored = len(site.stored())
            browser.get("/v1/me", headers=PAGE)
            assert len(site.stored()) == stored  # nobody is signed out by it
        finally:
            env.identities, provider.document = kept, {}


class TestRefused:
    """What comes back otherwise than it was sent."""

    def failed(self, site: Site, answer: Any, reason: str, noted: bool = True) -> None:
        """The browser is not signed in, and the audit log says so."""
        assert where(answer) == f"/ui/sign-in?failed={reason}"
        assert not any("leat-session" in one for one in answer.headers.get_list("set-cookie"))
        if noted:
            event = site.events("sign_in")[0]
            assert (event.outcome, event.operation, event.name) == ("denied", "get", "/v1/sign-in/callback")

    def test_a_stolen_redirect(self, site: Site) -> None:
        back = site.begin(site.browser())
        asked = site.provider.asked["/token"]
        self.failed(site, site.browser().get(back), "stale")
        assert site.provider.asked["/token"] == asked  # the code was not even tried

    def test_the_state_of_another_sign_in(self, site: Site) -> None:
        browser = site.browser()
        site.begin(browser)
        foreign = site.begin(site.browser())
        self.failed(site, browser.get(foreign), "stale")

    def test_no_state(self, site: Site) -> None:
        browser = site.browser()
        code = parse_qs(urlsplit(site.begin(browser)).query)["code"][0]
        self.failed(site, browser.get("/v1/sign-in/callback", params={"code": code}), "stale")

    def test_a_code_serves_once(self, site: Site) -> None:
        browser = site.browser()
        back, kept = site.begin(browser), dict(browser.cookies)
        assert where(browser.get(back)) == "/ui/"
        again = site.browser()
        for name, value in kept.items():
            again.cookies.set(name, value)
        self.failed(site, again.get(back), "refused")

    def test_a_code_of_another_sign_in_has_another_verifier_and_nonce(self, site: Site) -> None:
        browser = site.browser()
        state = parse_qs(urlsplit(site.begin(browser)).query)["state"][0]
        code = parse_qs(urlsplit(site.begin(site.browser())).query)["code"][0]
        answer = browser.get("/v1/sign-in/callback", params={"code": code, "state": state})
        self.failed(site, answer, "refused")

    def test_another_issuer(self, site: Site) -> None:
        browser = site.browser()
        back = site.begin(browser) + "&iss=https%3A%2F%2Fevil.example"
        self.failed(site, browser.get(back), "stale")

    def test_a_person_who_took_too_long(self, site: Site) -> None:
        browser = site.browser()
        back = site.begin(browser)
        site.ahead = sessions.SIGN_IN_SECONDS + 1
        self.failed(site, browser.get(back), "stale")

    def test_a_person_who_was_refused(self, site: Site) -> None:
        browser = site.browser()
        state = parse_qs(urlsplit(site.begin(browser)).query)["state"][0]
        answer = browser.get("/v1/sign-in/callback", params={"error": "access_denied", "state": state})
        self.failed(site, answer, "refused")

    def test_a_person_without_a_role(self, site: Site) -> None:
        site.provider.claims = {"sub": "eve", "groups": []}
        browser = site.browser()
        self.failed(site, browser.get(site.begin(browser)), "no-role")
        assert site.events("sign_in")[0].principal == f"{site.provider.url}#eve"

    def test_a_token_for_another_audience(self, site: Site) -> None:
        site.provider.claims = {"sub": "ann", "groups": ["data"], "aud": "mail"}
        browser = site.browser()
        self.failed(site, browser.get(site.begin(browser)), "refused")

    def test_a_forged_cookie(self, site: Site) -> None:
        browser = site.browser()
        back = site.begin(browser)
        browser.cookies.clear()
        browser.cookies.set("leat-sign-in-8585", "AAAA")
        self.failed(site, browser.get(back), "stale")


class TestOwnPagesOnly:
    """The cookie counts for requests of the console, and for nobody else's."""

    @pytest.mark.parametrize(
        "headers",
        [
            PAGE,  # a form, or fetch without the header
            {"X-Leatstream-Console": "1", "Sec-Fetch-Site": "cross-site"},
            {"X-Leatstream-Console": "1", "Sec-Fetch-Site": "same-site"},
            {"X-Leatstream-Console": "1", "Origin": "https://evil.example"},
            {"X-Leatstream-Console": "1", "Origin": "http://127.0.0.1:9999"},
            {},
        ],
    )
    def test_a_write(self, site: Site, headers: dict[str, str]) -> None:
        browser = site.signed_in()
        answer = browser.put("/v1/databases/never", json={}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "permission-denied")
        assert "console's own pages" in answer.json()["detail"]
        assert site.events("sign_in")[0].name == "/v1/databases/never"
        assert browser.get("/v1/databases/never", headers=PAGE).status_code == 404

    @pytest.mark.parametrize(
        "headers", [{}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "none"}, {"Origin": "null"}]
    )
    def test_a_read(self, site: Site, headers: dict[str, str]) -> None:
        assert site.signed_in().get("/v1/me", headers=headers).status_code == 403

    @pytest.mark.parametrize(
        "headers", [{"X-Leatstream-Console": "1"}, {"Origin": HOME}, {**PAGE, "Origin": HOME}]
    )
    def test_a_page_of_this_server_may_read(self, site: Site, headers: dict[str, str]) -> None:
        assert site.signed_in().get("/v1/me", headers=headers).status_code == 200

    def test_cookies_of_other_programs_on_this_host_do_no_harm(self, site: Site) -> None:
        (name, value), *_ = site.signed_in().cookies.items()
        for others in ('a={"x": 1}; {}', "a=b c; {}", "theme; {}", '{}; x=[1,"2"]'):
            cookies = {**PAGE, "Cookie": others.replace("{}", f"{name}={value}")}
            assert site.browser().get("/v1/me", headers=cookies).status_code == 200, others

    def test_nobody_else_signs_out(self, site: Site) -> None:
        browser = site.signed_in()
        assert browser.delete("/v1/session", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert browser.get("/v1/me", headers=PAGE).status_code == 200

    def test_a_bearer_token_wins(self, site: Site) -> None:
        browser, bearer = site.signed_in(), {"Authorization": f"Bearer {site.world.reader_token}"}
        assert browser.get("/v1/me", headers=bearer).json()["name"] == "bob"
        wrong = {**WRITE, "Authorization": "Bearer leat_wrong"}
        assert browser.get("/v1/me", headers=wrong).status_code == 401
        assert browser.get("/v1/me", headers={**WRITE, "Authorization": ""}).status_code == 401

    def test_no_driver_and_no_other_port_has_it(self, site: Site) -> None:
        browser = site.signed_in()
        assert browser.post("/v1/drivers/d1/poll", json={}, headers=WRITE).status_code == 401
        other = site.browser("http://127.0.0.1:8586")
        for name, value in browser.cookies.items():
            other.cookies.set(name, value)
        assert other.get("/v1/me", headers=PAGE).status_code == 401

    def test_a_websocket(self, site: Site) -> None:
        browser = site.signed_in()
        message = {"type": "connection_init"}
        protocol = ["graphql-transport-ws"]
        with browser.websocket_connect(SOCKET, protocol, headers={"Origin": HOME}) as socket:
            socket.send_json(message)
            assert socket.receive_json()["type"] == "connection_ack"
        for headers in ({}, {"Origin": "https://evil.example"}):
            with (
                pytest.raises(WebSocketDisconnect),
                browser.websocket_connect(SOCKET, protocol, headers=headers),
            ):
                pass

    def test_graphql(self, site: Site) -> None:
        browser = site.signed_in()
        answer = browser.post("/graphql", json={"query": "{ __typename }"}, headers=WRITE)
        assert answer.json() == {"data": {"__typename": "QueryRoot"}}
        assert browser.post("/graphql", json={"query": "{ __typename }"}, headers=PAGE).status_code == 403


class TestTheSession:
    """How long it lasts."""

    def test_sign_out_ends_it_on_every_server(self, site: Site) -> None:
        browser = site.signed_in()
        kept, before = dict(browser.cookies), len(site.stored())
        assert site.provider.refreshing
        answer = browser.delete("/v1/session", headers=WRITE)
        assert answer.status_code == 204
        assert 'leat-session-8585=""' in answer.headers["set-cookie"]
        assert len(site.stored()) == before - 1
        assert not site.provider.refreshing  # revoked
        again = site.browser()
        for name, value in kept.items():
            again.cookies.set(name, value)
        assert again.get("/v1/me", headers=PAGE).status_code == 401
        assert again.get("/v1/session", headers=PAGE).json()["account"] is None
        assert again.delete("/v1/session", headers=WRITE).status_code == 204
        assert site.events("session")[0].operation == "delete"

    def test_a_new_sign_in_ends_the_old_session(self, site: Site) -> None:
        browser = site.signed_in()
        before = len(site.stored())
        back, kept = site.begin(browser), dict(browser.cookies)
        browser.cookies.clear()
        browser.cookies.set(
            "leat-sign-in-8585", kept["leat-sign-in-8585"]
        )  # the other one is SameSite=Strict
        assert where(browser.get(back)) == "/ui/"
        assert browser.get("/v1/me", headers=PAGE).status_code == 200
        assert len(site.stored()) == before

    def test_another_provider_never_gets_its_refresh_token(self, site: Site) -> None:
        browser, out = site.signed_in(), site.signed_in()
        env, other = site.app.state.env, OidcIssuer()
        trusted = {"issuer": other.url, "audience": AUDIENCE, "client_id": CLIENT, "rules": RULES}
        kept, before = env.identities, len(site.stored())
        try:
            for issuers in ([Issuer.model_validate(trusted)], []):
                site.ahead, env.identities = 400.0, Issuers(issuers)
                assert browser.get("/v1/me", headers=PAGE).status_code == 401
                assert out.delete("/v1/session", headers=WRITE).status_code == 204
                assert len(site.stored()) == before - 2
                assert not other.asked["/token"] + other.asked["/revoke"]
                site.ahead, env.identities = 0.0, kept
                browser, out = site.signed_in(), site.signed_in()
        finally:
            env.identities = kept
            other.close()

    def test_a_token_that_has_ended_is_renewed_once(self, site: Site) -> None:
        browser = site.signed_in()
        first = set(site.provider.refreshing)
        site.ahead = 290.0
        asked = site.provider.asked["/token"]
        site.provider.lifetime = 900
        for _ in range(3):
            assert browser.get("/v1/me", headers=PAGE).status_code == 200
        assert site.provider.asked["/token"] == asked + 1
        assert site.provider.refreshing.isdisjoint(first)

    def test_without_a_provider_a_token_that_counts_still_does(self, site: Site) -> None:
        browser = site.signed_in()
        site.ahead, site.provider.fails = 290.0, 503
        assert browser.get("/v1/me", headers=PAGE).status_code == 200
        site.ahead = 400.0
        answer = browser.get("/v1/me", headers=PAGE)
        assert (answer.status_code, answer.json()["code"]) == (503, "issuer-unreachable")
        site.provider.fails = 0
        assert browser.get("/v1/me", headers=PAGE).status_code == 200

    def test_a_sign_in_that_the_provider_has_ended(self, site: Site) -> None:
        browser = site.signed_in()
        site.provider.refreshing.clear()
        site.ahead, before = 400.0, len(site.stored())
        assert browser.get("/v1/me", headers=PAGE).status_code == 401
        event = site.events("sign_in")[0]
        assert event.principal == f"{site.provider.url}#ann"
        assert "invalid_grant" in event.detail
        assert len(site.stored()) == before - 1

    def test_a_renewed_token_of_somebody_else_ends_it(self, site: Site) -> None:
        browser = site.signed_in()
        site.provider.claims = {"sub": "bob", "groups": ["data"]}
        site.ahead = 400.0
        assert browser.get("/v1/me", headers=PAGE).status_code == 401

    def test_a_role_that_was_taken_away_counts_at_the_next_renewal(self, site: Site) -> None:
        browser = site.signed_in()
        site.provider.claims = {"sub": "ann", "groups": []}
        site.ahead = 400.0
        assert browser.get("/v1/me", headers=PAGE).status_code == 403
        assert browser.get("/v1/me", headers=PAGE).status_code == 401

    def test_its_longest_time(self, site: Site) -> None:
        browser = site.signed_in()
        (name, value), *_ = browser.cookies.items()
        site.ahead = 43_201.0
        assert browser.get("/v1/me", headers=PAGE).status_code == 401
        later = f"{int(value.split('.')[0]) + 90_000}.{value.split('.')[1]}"
        browser.cookies.clear()
        browser.cookies.set(name, later)  # the end is part of what the catalog knows it by
        assert browser.get("/v1/me", headers=PAGE).status_code == 401
        assert site.stored()
        sessions.forget_ended_sessions(site.app.state.env)
        assert site.stored() == []

    def test_one_of_many_requests_renews_it(self, site: Site) -> None:
        """A refresh token serves once: another request has claimed the renewal and then does it."""
        browser = site.signed_in()
        env, value = site.app.state.env, next(iter(browser.cookies.values()))
        site.ahead, site.provider.lifetime = 400.0, 900
        reference = reference_of(value)
        with env.open_unit() as unit:
            found = find(env, unit, reference)
            assert found is not None
        claimed = session_renewal._claim(env, reference, found)
        assert claimed is not None
        assert session_renewal._claim(env, reference, found) is None
        renewed = session_renewal._with_next_token(env, reference, claimed)
        assert session_renewal.renewed(env, reference, claimed).token == renewed.token
        # One that was so slow that another one took its place changes nothing.
        site.provider.fails = 503
        with pytest.raises(IdentityError):
            session_renewal._with_next_token(env, reference, claimed)
        site.provider.fails = 0
        site.provider.refreshing.clear()
        with pytest.raises(AccessError):
            session_renewal._with_next_token(env, reference, claimed)
        assert browser.get("/v1/me", headers=PAGE).status_code == 200

    @pytest.mark.parametrize("value", ["", "x", ".", "9999999999.", "9999999999.x", "99.x", "99999999999.x"])
    def test_what_is_no_session(self, site: Site, value: str) -> None:
        browser = site.browser()
        browser.cookies.set("leat-session-8585", value)
        assert browser.get("/v1/me", headers=PAGE).status_code == 401


class TestTheAuditLog:
    """Refused sign-ins."""

    def ask(self, site: Site, token: str, path: str = "/v1/me") -> Any:
        return site.browser().get(path, headers={"Authorization": f"Bearer {token}"})

    def test_a_wrong_token(self, site: Site) -> None:
        assert self.ask(site, "leat_wrong").status_code == 401
        event = site.events("sign_in")[0]
        assert (event.principal, event.role, event.token, event.code) == ("", "", None, "unauthenticated")
        assert (event.name, event.operation, event.address) == ("/v1/me", "get", "testclient")
        assert "leat_wrong" not in str(event)
        assert event.request

    def test_a_revoked_and_an_expired_token(self, site: Site) -> None:
        admin = {"Authorization": f"Bearer {fakes.administrator(site.world)}"}
        made = site.browser().post("/v1/tokens/t", json={"account": "bob"}, headers=admin).json()["value"]
        with site.world.units() as unit:
            (row,) = unit.tokens.list("t")
            unit.tokens.add(replace(row, expires_at=row.created_at))
            unit.commit()
        assert self.ask(site, made).status_code == 401
        event = site.events("sign_in")[0]
        assert (event.principal, event.token, event.detail) == ("bob", row.id, "The token has expired.")
        assert site.browser().delete("/v1/tokens/t", headers=admin).status_code == 204
        assert self.ask(site, made).status_code == 401
        event = site.events("sign_in")[0]
        assert (event.principal, event.token) == ("", row.id)
        assert "revoked" in event.detail
        assert made not in str(event)

    def test_the_id_of_an_invented_token_is_cut(self, site: Site) -> None:
        body = f"leat_{'a' * 5000}"
        assert self.ask(site, f"{body}{zlib.crc32(body.encode()):08x}").status_code == 401
        assert site.events("sign_in")[0].token == "aaaaaaaa"

    def test_a_disabled_account(self, site: Site) -> None:
        with site.world.units() as unit:
            bob = unit.accounts.find("bob")
            unit.accounts.update(replace(bob, disabled=True))
            unit.commit()
        assert self.ask(site, site.world.reader_token).status_code == 401
        with site.world.units() as unit:
            unit.accounts.update(bob)
            unit.commit()
        event = site.events("sign_in")[0]
        assert (event.principal, event.detail) == ("bob", "The token's account is disabled or was deleted.")

    def test_a_refused_jwt(self, site: Site) -> None:
        token = site.provider.sign(exp=1_000_000)
        assert self.ask(site, token).status_code == 401
        event = site.events("sign_in")[0]
        assert event.detail == "The token has expired."
        assert token not in str(event)
        assert self.ask(site, site.provider.sign(groups=[])).status_code == 403
        event = site.events("sign_in")[0]
        assert (event.principal, event.code) == (f"{site.provider.url}#ann", "permission-denied")

    def test_a_flood_is_counted(self, site: Site) -> None:
        before = len(site.events("sign_in"))
        for _ in range(5):
            self.ask(site, "leat_wrong")
        assert len(site.events("sign_in")) == before + 1
        env = site.app.state.env
        later = time.monotonic() + 61
        (counted,) = env.refused_sign_ins.waiting(later)
        assert counted.count == 4

    def test_a_request_without_any_token_is_none(self, site: Site) -> None:
        before = len(site.events("sign_in"))
        assert site.browser().get("/v1/me").status_code == 401
        assert len(site.events("sign_in")) == before

    def test_auditors_see_it(self, site: Site) -> None:
        self.ask(site, "leat_wrong")
        admin = {"Authorization": f"Bearer {fakes.administrator(site.world)}"}
        newest = site.browser().get("/v1/audit-events", headers=admin).json()["items"][0]
        assert (newest["kind"], newest["outcome"], newest["count"]) == ("sign_in", "denied", None)
        assert json.dumps(newest)
        with site.world.units(write=False) as unit:
            assert unit.audit.broken() is None
