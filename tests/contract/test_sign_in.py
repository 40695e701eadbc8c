"""Bearer tokens of other identity providers: who is accepted as whom, and what is refused."""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakes
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from oidc_issuer import AUDIENCE, CLIENT, OidcIssuer
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.identity import keys
from leatstream.identity.issuers import LEEWAY, Issuers
from leatstream.identity.settings import Issuer
from leatstream.rest.app import create_app
from leatstream.services.environment.own_tokens import OwnTokens

# Of EdDSA, which issuers still write, and of the key that is too short.
pytestmark = pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
RULES = [
    {"claim": "repository", "equals": "shop/pipelines", "role": "deployer", "scope": "admin"},
    {"claim": "/realm_access/roles", "prefix": "data-", "role": "reader", "scope": "read"},
    {"claim": "groups", "equals": "data", "role": "sysadmin"},
]


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcIssuer]:
    made = OidcIssuer()
    yield made
    made.close()


@pytest.fixture
def issuer(provider: OidcIssuer) -> OidcIssuer:
    """The provider, asked for nothing yet."""
    provider.asked.clear()
    return provider


def settings(issuer: OidcIssuer, **more: Any) -> Issuer:
    """The issuer as it is configured."""
    return Issuer.model_validate({"issuer": issuer.url, "audience": AUDIENCE, "rules": RULES, **more})


class Site:
    """A server, whose issuers can be changed."""

    def __init__(self, world: Any, client: TestClient, env: Any) -> None:
        self.world, self.client, self.env = world, client, env
        self.administrator = fakes.administrator(world)

    def trust(self, *issuers: Issuer) -> Issuers:
        """Accept tokens of these issuers only."""
        self.env.identities = Issuers(issuers)
        return self.env.identities

    def ask(self, token: str, method: str = "GET", path: str = "/v1/me", **more: Any) -> Any:
        """The answer to a request with a token."""
        return self.client.request(method, path, headers={"Authorization": f"Bearer {token}"}, **more)


@pytest.fixture(scope="module")
def server() -> Iterator[Site]:
    """One for all tests: to make the application takes longer than a test."""
    with memory_directory() as directory:
        world = fakes.make_world(Path(directory))
        env = replace(world.env)
        with TestClient(create_app(env), raise_server_exceptions=False) as client:
            yield Site(world, client, env)
        world.units.close()


@pytest.fixture
def site(server: Site, issuer: OidcIssuer) -> Site:
    """The server, with the issuer as it is configured for most tests."""
    server.trust(settings(issuer))
    return server


def refused(answer: Any, text: str, status: int = 401, code: str = "unauthenticated") -> None:
    """Check a refusal."""
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert text in answer.json()["detail"]


class TestAccepted:
    """Valid tokens."""

    @pytest.mark.parametrize("key", ["rsa", "ec", "ed"])
    def test_a_token_has_the_role_of_its_claims(self, site: Site, issuer: OidcIssuer, key: str) -> None:
        me = site.ask(issuer.sign(key)).json()
        assert (me["name"], me["role"], me["scope"]) == (f"{issuer.url}#ann", "sysadmin", "write")

    def test_the_first_rule_that_fits_counts(self, site: Site, issuer: OidcIssuer) -> None:
        me = site.ask(issuer.sign(realm_access={"roles": ["x", "data-eu"]})).json()
        assert (me["role"], me["scope"]) == ("reader", "read")

    def test_the_audience_may_be_one_of_several(self, site: Site, issuer: OidcIssuer) -> None:
        assert site.ask(issuer.sign(aud=["other", AUDIENCE])).status_code == 200

    def test_clocks_may_differ_a_little(self, site: Site, issuer: OidcIssuer) -> None:
        now = int(time.time())
        assert site.ask(issuer.sign(exp=now - LEEWAY // 2)).status_code == 200
        assert site.ask(issuer.sign(nbf=now + LEEWAY // 2)).status_code == 200

    def test_without_a_key_id_the_only_fitting_key_counts(self, site: Site, issuer: OidcIssuer) -> None:
        assert site.ask(issuer.sign("ec", header={"kid": None})).status_code == 200

    def test_keys_at_a_url_of_their_own(self, site: Site, issuer: OidcIssuer) -> None:
        site.trust(settings(issuer, jwks_url=f"{issuer.url}/keys"))
        assert site.ask(issuer.sign()).status_code == 200
        assert issuer.asked == {"/keys": 1}

    def test_another_claim_may_name_the_account(self, site: Site, issuer: OidcIssuer) -> None:
        site.trust(settings(issuer, account_claim="email"))
        found = site.ask(issuer.sign(email="ann@example.com")).json()
        assert found["name"] == f"{issuer.url}#ann@example.com"
        refused(site.ask(issuer.sign(email="ann@example.com", email_verified=False)), "no usable claim email")

    def test_the_audit_log_names_it(self, site: Site, issuer: OidcIssuer) -> None:
        token = issuer.sign(jti="run-17")
        assert site.ask(token, "PUT", "/v1/databases/demo", json={}).status_code == 201
        with site.world.units(write=False) as unit:
            event = unit.audit.page(limit=1)[0]
        assert (event.principal, event.role, event.token) == (f"{issuer.url}#ann", "sysadmin", "run-17")

    def test_own_tokens_are_accepted_as_before(self, site: Site) -> None:
        assert site.ask(site.world.token).json()["name"] == "ann"


class TestRefused:
    """Each wrong thing in turn."""

    @pytest.mark.parametrize(
        ("claims", "text"),
        [
            ({"aud": "other"}, "another audience"),
            ({"aud": None}, "lacks the claim aud"),
            ({"aud": 5}, "another audience"),
            ({"exp": None}, "lacks the claim exp"),
            ({"exp": "tomorrow"}, "exp is not a time"),
            ({"exp": 1_000_000}, "has expired"),
            ({"iss": "https://elsewhere.example"}, "issuer is not configured"),
            ({"iss": None}, "issuer is not configured"),
            ({"sub": None}, "no usable claim sub"),
            ({"sub": ["ann", "bob"]}, "A claim of the token is not valid"),
            ({"sub": "a\nb"}, "no usable claim sub"),
            ({"sub": ""}, "no usable claim sub"),
        ],
    )
    def test_claims(self, site: Site, issuer: OidcIssuer, claims: dict[str, Any], text: str) -> None:
        refused(site.ask(issuer.sign(**claims)), text)

    def test_times_beyond_the_leeway(self, site: Site, issuer: OidcIssuer) -> None:
        now = int(time.time())
        refused(site.ask(issuer.sign(exp=now - LEEWAY - 5)), "has expired")
        refused(site.ask(issuer.sign(nbf=now + 600)), "not valid yet")

    def test_a_signature_of_another_key_of_the_same_id(self, site: Site, issuer: OidcIssuer) -> None:
        other = RSAKey.generate_key(2048, {"kid": "rsa"})
        forged = jwt.encode({"alg": "RS256", "kid": "rsa"}, _claims(issuer.sign()), other, ["RS256"])
        refused(site.ask(forged), "signature is not one of issuer")

    def test_claims_that_were_changed(self, site: Site, issuer: OidcIssuer) -> None:
        head, _, signature = issuer.sign(groups=["none"]).split(".")
        refused(site.ask(f"{head}.{_encode(_claims(issuer.sign()))}.{signature}"), "signature is not one")

    @pytest.mark.parametrize("algorithm", ["none", "None", "", None, 7])
    def test_no_signature(self, site: Site, issuer: OidcIssuer, algorithm: Any) -> None:
        token = f"{_encode({'alg': algorithm, 'kid': 'rsa'})}.{_encode(_claims(issuer.sign()))}."
        refused(site.ask(token), "not allowed for issuer")

    def test_an_hmac_with_the_public_key(self, site: Site, issuer: OidcIssuer) -> None:
        public = issuer.keys["rsa"].as_pem(private=False)
        key = OctKey.import_key(base64.urlsafe_b64encode(public).decode())
        assert jwt.decode(jwt.encode({"alg": "HS256"}, {"sub": "x"}, key), key).claims == {"sub": "x"}
        forged = jwt.encode({"alg": "HS256", "kid": "rsa"}, _claims(issuer.sign()), key, ["HS256"])
        refused(site.ask(forged), "not allowed for issuer")

    def test_an_algorithm_that_is_not_configured(self, site: Site, issuer: OidcIssuer) -> None:
        site.trust(settings(issuer, algorithms=["ES256"]))
        assert site.ask(issuer.sign("ec")).status_code == 200
        refused(site.ask(issuer.sign("rsa")), "not allowed for issuer")

    def test_a_header_that_must_be_understood(self, site: Site, issuer: OidcIssuer) -> None:
        _, body, signature = issuer.sign().split(".")
        critical = _encode({"alg": "RS256", "kid": "rsa", "crit": ["b64"], "b64": True})
        refused(site.ask(f"{critical}.{body}.{signature}"), "not allowed for issuer")

    @pytest.mark.parametrize("token", ["..", "a.b.c", "e30.e30.", "W10.W10.x", "eyJhbGciOiJub25lIn0.W10."])
    def test_what_is_no_token(self, site: Site, token: str) -> None:
        answer = site.ask(token)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")

    def test_claims_that_no_rule_fits(self, site: Site, issuer: OidcIssuer) -> None:
        answer = site.ask(issuer.sign(groups=["sales"], realm_access=["data-eu"]))
        refused(answer, f"gives a role to {issuer.url}#ann", 403, "permission-denied")

    def test_a_role_that_was_dropped(self, site: Site, issuer: OidcIssuer) -> None:
        admin = issuer.sign()
        token = issuer.sign(repository="shop/pipelines")
        refused(site.ask(token), "Role deployer", 403, "permission-denied")
        path = "/v1/roles/deployer"
        assert site.ask(site.administrator, "PUT", path, json={}).status_code == 201
        assert site.ask(token).json()["role"] == "deployer"
        assert site.ask(site.administrator, "DELETE", path).status_code == 204
        refused(site.ask(token), "does not exist", 403, "permission-denied")
        assert site.ask(admin).status_code == 200

    def test_a_server_without_issuers(self, site: Site, issuer: OidcIssuer) -> None:
        site.env.identities = OwnTokens()
        refused(site.ask(issuer.sign()), "accepts no tokens of other issuers")
        assert site.ask(site.world.token).status_code == 200

    def test_no_token_is_logged_or_repeated(
        self, site: Site, issuer: OidcIssuer, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        tokens = [issuer.sign(aud="other"), issuer.sign(groups=[]), issuer.sign("rsa", header={"kid": "x"})]
        texts = [site.ask(token).text for token in tokens]
        for token in tokens:
            for part in token.split("."):
                assert part not in caplog.text
                assert all(part not in text for text in texts)


class TestNames:
    """A principal of an issuer is nobody else."""

    def test_it_is_neither_the_administrator_nor_a_local_account(
        self, site: Site, issuer: OidcIssuer
    ) -> None:
        for subject in ("admin", "ann", "bob"):
            assert site.ask(issuer.sign(sub=subject)).json()["name"] == f"{issuer.url}#{subject}"

    def test_two_issuers_do_not_collide(self, site: Site, issuer: OidcIssuer) -> None:
        other = OidcIssuer()
        try:
            site.trust(settings(issuer), settings(other))
            names = {site.ask(one.sign()).json()["name"] for one in (issuer, other)}
            assert len(names) == 2
            refused(site.ask(issuer.sign(iss=other.url)), "signature is not one")
        finally:
            other.close()

    def test_no_local_account_gets_such_a_name(self, site: Site, issuer: OidcIssuer) -> None:
        path = f"/v1/users/%22{issuer.url.replace('/', '%2F')}%23ann%22"
        answer = site.ask(site.administrator, "PUT", path, json={"roles": ["reader"]})
        refused(answer, "belong to principals of identity providers", 422, "validation")

    def test_a_read_scope_changes_nothing(self, site: Site, issuer: OidcIssuer) -> None:
        token = issuer.sign(realm_access={"roles": ["data-eu"]})
        assert site.ask(token, path="/v1/databases").status_code == 200
        refused(site.ask(token, "PUT", "/v1/databases/d", json={}), "", 403, "permission-denied")


class TestKeys:
    """Where keys come from, and how often they are asked for."""

    @pytest.fixture
    def own(self, issuer: OidcIssuer) -> Iterator[OidcIssuer]:
        made = OidcIssuer(issuer.keys)
        yield made
        made.close()

    @pytest.fixture
    def clock(self, site: Site, own: OidcIssuer) -> list[float]:
        """The seconds by which the keys of the test's own issuer grow old; it can be set."""
        seconds, trusted = [1000.0], settings(own)
        site.trust(trusted)._keys[own.url] = keys.IssuerKeys(trusted, lambda: seconds[0])
        return seconds

    def test_they_are_read_once(self, site: Site, own: OidcIssuer, clock: list[float]) -> None:
        for _ in range(3):
            assert site.ask(own.sign()).status_code == 200
        assert own.asked["/keys"] == 1
        clock[0] += keys.FRESH + 1
        assert site.ask(own.sign()).status_code == 200
        assert own.asked["/keys"] == 2

    def test_rotation(self, site: Site, own: OidcIssuer, clock: list[float]) -> None:
        old = own.sign()
        assert site.ask(old).status_code == 200
        own.rotate()
        new = own.sign("rsa2")
        refused(site.ask(new), "does not publish")  # it was asked less than a minute ago
        clock[0] += keys.AGAIN + 1
        assert site.ask(new).status_code == 200
        refused(site.ask(old), "does not publish")

    def test_unknown_keys_are_looked_for_once_a_minute(
        self, site: Site, own: OidcIssuer, clock: list[float]
    ) -> None:
        strange = own.sign(header={"kid": "strange"})
        for _ in range(5):
            refused(site.ask(strange), "does not publish")
        assert own.asked["/keys"] == 1
        clock[0] += keys.AGAIN + 1
        for _ in range(5):
            refused(site.ask(strange), "does not publish")
        assert own.asked["/keys"] == 2

    def test_an_unreachable_issuer_is_no_401(self, site: Site, own: OidcIssuer, clock: list[float]) -> None:
        token = own.sign()
        own.fails = 500
        refused(site.ask(token), "status 500", 503, "issuer-unreachable")
        refused(site.ask(token), "status 500", 503, "issuer-unreachable")
        assert own.asked["/.well-known/openid-configuration"] == 1  # not asked again at once
        own.fails = 0
        clock[0] += 11
        assert site.ask(token).status_code == 200
        own.close()
        clock[0] += keys.FRESH + 1
        assert site.ask(token).status_code == 200  # with the keys of before
        refused(site.ask(own.sign(header={"kid": "new"})), "cannot be read", 503, "issuer-unreachable")
        clock[0] += keys.STALE
        refused(site.ask(token), "cannot be read", 503, "issuer-unreachable")

    @pytest.mark.parametrize(
        ("document", "text"),
        [
            ({"issuer": "https://elsewhere.example"}, "names another issuer"),
            ({"jwks_uri": "http://elsewhere.example/keys"}, "no jwks_uri with https"),
            ({"jwks_uri": 5}, "no jwks_uri with https"),
            ({"jwks_uri": None}, "no jwks_uri with https"),
        ],
    )
    def test_documents_that_cannot_be_used(
        self, site: Site, own: OidcIssuer, clock: list[float], document: dict[str, Any], text: str
    ) -> None:
        own.document = document
        refused(site.ask(own.sign()), text, 503, "issuer-unreachable")

    def test_keys_that_are_too_short_or_secret_are_not_used(
        self, site: Site, own: OidcIssuer, clock: list[float]
    ) -> None:
        short = RSAKey.generate_key(1024, {"kid": "short"})
        own.keys = {"short": short}
        refused(site.ask(own.sign("short")), "lists no key", 503, "issuer-unreachable")


class TestSignInOfPeople:
    """``GET /v1/sign-in``"""

    def test_it_needs_no_token(self, site: Site, issuer: OidcIssuer) -> None:
        site.trust(settings(issuer, client_id=CLIENT))
        found = site.client.get("/v1/sign-in")
        assert found.json() == {
            "issuer": issuer.url,
            "client_id": CLIENT,
            "audience": AUDIENCE,
            "scopes": ["openid", "profile", "email", "offline_access"],
        }

    def test_without_one_it_is_not_found(self, site: Site) -> None:
        answer = site.client.get("/v1/sign-in")
        refused(answer, "no identity provider for people", 404, "not-found")


def _encode(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def _claims(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return found
