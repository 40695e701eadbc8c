"""Invitations: who may invite whom, and how a link or a sign-in makes a user, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fakes
import pytest
from account_clients import account_client
from oidc_issuer import AUDIENCE, CLIENT, OidcIssuer
from scratch import memory_directory
from served_app import serving
from starlette.testclient import TestClient

from leatstream.cli import app as cli_app
from leatstream.cli import sign_ins
from leatstream.identity.issuers import Issuers
from leatstream.identity.settings import Issuer
from leatstream.rest.app import create_app

EVE = "eve@example.com"
PATH = f"/v1/invitations/%22{EVE}%22"
MEMBERS = {"privilege": "manage_members", "on": "organization"}
STORES = {"privilege": "create_store", "on": "organization"}
RULES = [{"claim": "groups", "equals": "data", "role": "reader", "scope": "read"}]


@pytest.fixture
def admin(fresh: Any) -> Iterator[TestClient]:
    """A client of the administrator's, with a role to give."""
    headers = {"Authorization": f"Bearer {fakes.administrator(fresh)}"}
    app = create_app(fresh.env)
    with TestClient(app, headers=headers, raise_server_exceptions=False) as client:
        client.put("/v1/roles/analyst", json={"grants": [STORES]}).raise_for_status()
        yield client


def invite(client: TestClient, path: str = PATH, **body: Any) -> Any:
    """The answer to an invitation."""
    return client.post(path, json={"roles": ["analyst"], **body})


def accept(client: TestClient, value: str) -> Any:
    """The answer to a link, of somebody without a token."""
    anybody = TestClient(client.app, raise_server_exceptions=False)
    return anybody.post("/v1/invitations:accept", json={"value": value})


def code_of(answer: Any) -> tuple[int, str]:
    """Status and code of a refusal."""
    return answer.status_code, answer.json()["code"]


def events(client: TestClient) -> list[tuple[str, str, str, str]]:
    """The audit log, oldest first: who did what to what."""
    items = client.get("/v1/audit-events", params={"page_size": 1000}).json()["items"]
    return [(e["principal"], e["operation"], e["kind"], e["name"]) for e in reversed(items)]


def later(world: Any, **duration: float) -> None:
    """Let time pass for the server."""
    now = world.env.clock.now()
    world.env.clock = SimpleNamespace(now=lambda: now + timedelta(**duration))


class TestLink:
    """The value of a link makes a user, once."""

    def test_a_link_gives_the_user_and_a_token(self, admin: TestClient) -> None:
        made = invite(admin, comment="Sales", scope="read")
        assert made.status_code == 201, made.text
        assert made.json()["created_by"] == "admin"
        taken = accept(admin, made.json()["value"])
        assert taken.status_code == 201, taken.text
        token = taken.json()
        assert (token["account"], token["role"], token["scope"]) == (EVE, "analyst", "read")
        me = admin.get("/v1/me", headers={"Authorization": f"Bearer {token['value']}"}).json()
        assert (me["name"], me["role"], me["roles"]) == (EVE, "analyst", ["analyst"])
        user = admin.get(f"/v1/users/%22{EVE}%22").json()
        assert (user["comment"], user["default_role"]) == ("Sales", "analyst")

    def test_it_counts_once(self, admin: TestClient) -> None:
        value = invite(admin).json()["value"]
        assert accept(admin, value).status_code == 201
        assert code_of(accept(admin, value)) == (401, "unauthenticated")
        assert admin.get(PATH).status_code == 404

    def test_its_value_is_stored_as_a_hash_and_shown_once(self, fresh: Any, admin: TestClient) -> None:
        value = invite(admin).json()["value"]
        with fresh.units(write=False) as unit:
            (row,) = unit.invitations.page()
        assert value.split("_")[2] not in repr(row)
        for path in ("/v1/invitations", PATH, "/v1/audit-events"):
            assert value.split("_")[2] not in admin.get(path).text

    def test_it_ends(self, fresh: Any, admin: TestClient) -> None:
        value = invite(admin).json()["value"]
        later(fresh, days=7, seconds=1)
        assert code_of(accept(admin, value)) == (401, "unauthenticated")
        assert admin.get(f"/v1/users/%22{EVE}%22").status_code == 404
        # Who has let it end can be invited again.
        assert invite(admin, lifetime_days=30).status_code == 201

    def test_a_withdrawn_one_counts_no_more(self, admin: TestClient) -> None:
        value = invite(admin).json()["value"]
        assert admin.delete(PATH).status_code == 204
        assert code_of(accept(admin, value)) == (401, "unauthenticated")

    @pytest.mark.parametrize("value", ["x", "leatinv__", "leatinv_00000000_" + "0" * 56, "leat_a_b"])
    def test_a_guess_is_refused_and_noted(self, admin: TestClient, value: str) -> None:
        assert code_of(accept(admin, value)) == (401, "unauthenticated")
        assert ("", "post", "sign_in", "/v1/invitations:accept") in events(admin)

    def test_a_changed_value_of_an_open_one_is_refused(self, admin: TestClient) -> None:
        value = invite(admin).json()["value"]
        assert code_of(accept(admin, value[:-1] + ("0" if value[-1] != "0" else "1"))) == (
            401,
            "unauthenticated",
        )
        assert accept(admin, value).status_code == 201

    def test_it_is_no_token(self, admin: TestClient) -> None:
        value = invite(admin).json()["value"]
        answer = admin.get("/v1/me", headers={"Authorization": f"Bearer {value}"})
        assert code_of(answer) == (401, "unauthenticated")

    def test_the_audit_log_has_each_step(self, admin: TestClient) -> None:
        accept(admin, invite(admin).json()["value"])
        assert events(admin)[-4:] == [
            ("admin", "create", "invitation", EVE),
            (EVE, "accept", "invitation", EVE),
            (EVE, "create", "account", EVE),
            (EVE, "create", "token", EVE),
        ]

    def test_the_link_is_of_the_public_address(self, fresh: Any, admin: TestClient) -> None:
        assert invite(admin).json()["link"] is None
        fresh.env.settings = replace(fresh.env.settings, public_url="https://leat.example.com")
        made = invite(admin, "/v1/invitations/%22bob@example.com%22").json()
        assert made["link"] == f"https://leat.example.com/ui/invitation#{made['value']}"

    def test_a_user_made_meanwhile_is_not_replaced(self, admin: TestClient) -> None:
        value = invite(admin).json()["value"]
        admin.put(f"/v1/users/%22{EVE}%22", json={"roles": ["public"]}).raise_for_status()
        assert code_of(accept(admin, value)) == (403, "permission-denied")
        assert admin.get(f"/v1/users/%22{EVE}%22").json()["roles"] == ["public"]


class TestInviting:
    """Who may invite whom."""

    def test_nobody_gives_more_than_the_own_rights(self, admin: TestClient) -> None:
        manager = account_client(admin, "manager", MEMBERS, scope="admin")
        assert code_of(invite(manager)) == (403, "permission-denied")
        assert code_of(invite(manager, roles=["manager", "orgadmin"], default_role="manager")) == (
            403,
            "permission-denied",
        )
        assert invite(manager, roles=["manager"]).status_code == 201

    def test_nobody_withdraws_one_of_more_rights(self, admin: TestClient) -> None:
        manager = account_client(admin, "manager", MEMBERS, scope="admin")
        invite(admin).raise_for_status()
        assert code_of(manager.delete(PATH)) == (403, "permission-denied")
        assert admin.get(PATH).status_code == 200

    def test_others_see_none(self, admin: TestClient) -> None:
        invite(admin).raise_for_status()
        other = account_client(admin, "other", STORES, scope="admin")
        assert other.get("/v1/invitations").json()["items"] == []
        assert code_of(other.get(PATH)) == (404, "not-found")
        assert code_of(invite(other)) == (403, "permission-denied")
        assert code_of(other.delete(PATH)) == (403, "permission-denied")

    def test_one_is_open_at_a_time(self, admin: TestClient) -> None:
        assert invite(admin).status_code == 201
        again = invite(admin, "/v1/invitations/%22Eve@Example.COM%22")
        assert code_of(again) == (409, "already-exists")
        assert "DROP INVITATION" in again.text

    def test_a_user_is_not_invited(self, admin: TestClient) -> None:
        admin.put(f"/v1/users/%22{EVE}%22", json={"roles": []}).raise_for_status()
        assert code_of(invite(admin)) == (409, "already-exists")

    @pytest.mark.parametrize("name", ["eve", "eve@", "%22a b@example.com%22", "%22bo\u212a@example.com%22"])
    def test_it_is_for_a_mail_address(self, admin: TestClient, name: str) -> None:
        path = f"/v1/invitations/{name if name.startswith('%22') else f'%22{name}%22'}"
        assert code_of(invite(admin, path)) == (422, "validation")

    @pytest.mark.parametrize(
        "body",
        [
            {"roles": []},
            {"roles": ["nobody"]},
            {"roles": ["analyst", "reader"]},
            {"default_role": "reader"},
            {"lifetime_days": 31},
        ],
    )
    def test_its_roles_make_sense(self, admin: TestClient, body: dict[str, Any]) -> None:
        assert code_of(invite(admin, **body)) == (422, "validation")

    def test_an_invited_role_is_not_dropped(self, admin: TestClient) -> None:
        invite(admin).raise_for_status()
        answer = admin.delete("/v1/roles/analyst")
        assert code_of(answer) == (409, "has-dependents")
        assert answer.json()["dependents"] == [f'invitation "{EVE}"']


class TestStatements:
    """The same in SQL."""

    @staticmethod
    def run(client: TestClient, sql: str) -> Any:
        """The answer to a statement."""
        return client.post("/v1/statements", json={"sql": sql})

    def test_a_person_is_invited_listed_and_accepts(self, admin: TestClient) -> None:
        text = f"INVITE USER '{EVE}' COMMENT 'Sales' WITH ('roles' = 'analyst, reader', 'default.role' = 'reader')"
        (made,) = self.run(admin, text).json()["results"]
        assert made["object"] == {"noun": "invitation", "name": EVE}
        row = dict(zip([c["name"] for c in made["columns"]], made["rows"][0], strict=True))
        assert (row["mail"], row["roles"], row["link"]) == (EVE, "analyst, reader", None)
        (listed,) = self.run(admin, "LIST INVITATIONS").json()["results"]
        assert listed["rows"][0][:4] == [EVE, "analyst, reader", "reader", "write"]
        assert row["value"] not in str(listed)
        assert accept(admin, row["value"]).json()["role"] == "reader"

    @pytest.mark.parametrize("text", ["REVOKE INVITATION", "DROP INVITATION", "DROP INVITATION IF EXISTS"])
    def test_one_is_withdrawn(self, admin: TestClient, text: str) -> None:
        value = invite(admin).json()["value"]
        assert self.run(admin, f"{text} '{EVE}'").status_code == 200
        assert code_of(accept(admin, value)) == (401, "unauthenticated")

    def test_wrong_properties_are_named(self, admin: TestClient) -> None:
        answer = self.run(admin, f"INVITE USER '{EVE}' WITH ('role' = 'analyst', 'lifetime.days' = 99)")
        assert code_of(answer) == (422, "invalid-property")
        assert "'roles'" in answer.text
        assert "30 days" in answer.text

    def test_a_dry_run_invites_nobody(self, admin: TestClient) -> None:
        body = {"sql": f"INVITE USER '{EVE}' WITH ('roles' = 'analyst')"}
        assert admin.post("/v1/statements:validate", json=body).json()["valid"] is True
        assert admin.get(PATH).status_code == 404


@pytest.fixture(scope="module")
def keys() -> Iterator[OidcIssuer]:
    made = OidcIssuer()
    yield made
    made.close()


class Site:
    """A server that people sign in to with a provider."""

    def __init__(self, world: Any, admin: TestClient, issuer: OidcIssuer) -> None:
        self.world, self.admin, self.issuer = world, admin, issuer

    def ask(self, sub: str = "eve", **claims: Any) -> Any:
        """Who somebody is after a sign-in; of no group that a rule knows."""
        token = self.issuer.sign(**{"sub": sub, "groups": None, "email": EVE, **claims})
        anybody = TestClient(self.admin.app, raise_server_exceptions=False)
        return anybody.get("/v1/me", headers={"Authorization": f"Bearer {token}"})


@pytest.fixture
def site(fresh: Any, admin: TestClient, keys: OidcIssuer) -> Site:
    """A server with the provider, and an invitation for a person that no rule knows."""
    trusted = {"issuer": keys.url, "audience": AUDIENCE, "client_id": CLIENT, "rules": RULES}
    fresh.env.identities = Issuers([Issuer.model_validate(trusted)])
    invite(admin, roles=["analyst", "reader"], default_role="analyst").raise_for_status()
    return Site(fresh, admin, keys)


class TestSignIn:
    """A sign-in with the verified address takes the invitation."""

    def test_the_first_sign_in_makes_the_user(self, site: Site) -> None:
        for _ in range(2):
            me = site.ask(email_verified=True).json()
            assert (me["name"], me["role"], me["scope"]) == (EVE, "analyst", "write")
            assert me["roles"] == ["analyst", "reader"]
        assert site.admin.get(PATH).status_code == 404
        assert EVE not in site.admin.get("/v1/tokens").text
        assert events(site.admin)[-3:] == [
            (EVE, "accept", "invitation", EVE),
            (EVE, "create", "account", EVE),
            (EVE, "create", "identity", f"{site.issuer.url}#eve"),
        ]

    def test_letters_of_either_case_are_the_same(self, site: Site) -> None:
        assert site.ask(email="Eve@Example.com", email_verified=True).json()["name"] == EVE

    @pytest.mark.parametrize(
        "claims",
        [
            {"email": "mallory@example.com", "email_verified": True},
            {"email_verified": False},
            {"email_verified": None},
            {"email_verified": "no"},
            {"email": [EVE, "x@example.com"], "email_verified": True},
            {"email": None, "email_verified": True},
        ],
    )
    def test_another_or_an_unverified_address_takes_nothing(self, site: Site, claims: dict[str, Any]) -> None:
        answer = site.ask(**claims)
        assert code_of(answer) == (403, "permission-denied")
        assert EVE not in answer.text
        assert site.admin.get(PATH).status_code == 200

    def test_the_user_is_bound_to_the_person_not_to_the_address(self, site: Site) -> None:
        assert site.ask(email_verified=True).status_code == 200
        # The provider gives the address to somebody else.
        assert code_of(site.ask(sub="mallory", email_verified=True)) == (403, "permission-denied")
        assert site.ask(email="eve@new.example.com", email_verified=False).json()["name"] == EVE

    def test_an_issuer_of_programs_takes_none(self, site: Site, keys: OidcIssuer) -> None:
        trusted = {"issuer": keys.url, "audience": AUDIENCE, "rules": RULES}
        site.world.env.identities = Issuers([Issuer.model_validate(trusted)])
        assert code_of(site.ask(email_verified=True)) == (403, "permission-denied")

    def test_rules_come_first(self, site: Site) -> None:
        me = site.ask(groups=["data"], email_verified=True).json()
        assert (me["name"], me["role"]) == (f"{site.issuer.url}#eve", "reader")
        assert site.admin.get(PATH).status_code == 200

    def test_an_ended_one_is_not_taken(self, site: Site) -> None:
        later(site.world, days=8)
        assert code_of(site.ask(email_verified=True)) == (403, "permission-denied")

    def test_it_can_act_in_its_other_role(self, site: Site) -> None:
        token = site.issuer.sign(sub="eve", groups=None, email=EVE, email_verified=True)
        anybody = TestClient(site.admin.app, headers={"Authorization": f"Bearer {token}"})
        for role, status in (("reader", 200), ("sysadmin", 403)):
            body = {"sql": "LIST STORES", "role": role}
            assert anybody.post("/v1/statements", json=body).status_code == status

    def test_a_disabled_or_deleted_user_signs_in_no_more(self, site: Site) -> None:
        assert site.ask(email_verified=True).status_code == 200
        user = f"/v1/users/%22{EVE}%22"
        body = {"roles": ["analyst"], "default_role": "analyst", "disabled": True}
        site.admin.put(user, json=body).raise_for_status()
        assert code_of(site.ask(email_verified=True)) == (401, "unauthenticated")
        site.admin.delete(user).raise_for_status()
        assert code_of(site.ask(email_verified=True)) == (403, "permission-denied")
        # A new user of this name is not the person of before.
        site.admin.put(user, json={"roles": ["analyst"]}).raise_for_status()
        assert code_of(site.ask(email_verified=True)) == (403, "permission-denied")


Run = Callable[..., SimpleNamespace]


@pytest.fixture(scope="module")
def served() -> Iterator[SimpleNamespace]:
    """A server over HTTP."""
    with memory_directory() as directory:
        world = fakes.make_world(Path(directory))
        with serving(create_app(world.env)) as url:
            yield SimpleNamespace(url=url, token=fakes.administrator(world), world=world)
        world.units.close()


@pytest.fixture
def leat(
    served: SimpleNamespace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs the command line with a token, and a text on standard input."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*argv: str, token: str | None = None, typed: str = "", url: str | None = None) -> SimpleNamespace:
        for name, value in (("TOKEN", token), ("URL", url)):
            if value is None:
                monkeypatch.delenv(f"LEATSTREAM_{name}", raising=False)
            else:
                monkeypatch.setenv(f"LEATSTREAM_{name}", value)
        monkeypatch.setattr("leatstream.cli.invitations.read_text", lambda _file: typed)
        status = cli_app.run(argv)
        out, err = capsys.readouterr()
        return SimpleNamespace(status=int(status), out=out.strip(), err=" ".join(err.split()))

    return run


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestCommandLine:
    """``leat invitation create`` and ``leat login --invitation``."""

    def test_a_link_signs_in_and_logout_ends_it(self, served: SimpleNamespace, leat: Run) -> None:
        create = ("invitation", "create", "fay@example.com", "--role", "reader")
        made = leat(*create, token=served.token, url=served.url)
        assert made.out.startswith(f"{served.url}/ui/invitation#leatinv_"), made.err
        done = leat("login", "--invitation", typed=f"{made.out}\n")
        assert done.status == 0, done.err
        assert "You are user fay@example.com" in done.err
        me = leat("whoami", "-o", "json", url=served.url)
        assert '"fay@example.com"' in me.out
        again = leat("login", "--invitation", typed=made.out)
        assert again.status != 0
        assert "was taken or withdrawn" in again.err
        assert leat("logout", url=served.url).status == 0
        assert sign_ins.find(served.url) is None
        listed = leat("api-token", "list", token=served.token, url=served.url)
        assert "fay@example.com" not in listed.out

    def test_a_link_of_another_server_is_refused(self, served: SimpleNamespace, leat: Run) -> None:
        link = "https://elsewhere.example/ui/invitation#leatinv_1_2"
        refused = leat("login", "--invitation", typed=link, url=served.url)
        assert refused.status != 0
        assert "elsewhere.example" in refused.err

    def test_another_text_is_refused(self, served: SimpleNamespace, leat: Run) -> None:
        refused = leat("login", "--invitation", typed=f"{served.url}/ui/", url=served.url)
        assert (refused.status, "no link of an invitation" in refused.err) == (2, True)
