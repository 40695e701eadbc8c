"""The RPCs, with messages as Terraform sends them; no service is needed for what is asked here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leatstream_terraform.codec import UNKNOWN, decode, encode
from leatstream_terraform.handlers import Handlers
from leatstream_terraform.protocol import PROVIDER, Protocol
from leatstream_terraform.rest import Answer, ProblemError, ServiceDown
from leatstream_terraform.schema import complete, load
from leatstream_terraform.session import Private, Session

PROTOCOL = Protocol()
METHODS = {name: (request, response) for name, request, response, _ in PROTOCOL.methods(PROVIDER)}
RESOURCES = load().resources
SECRET_URLS = ["http://:s3cret@h", "http://u:s3cret@h:85x5", "u:s3cret@h", "http://u:s3cret@[::1"]


@pytest.fixture
def handlers() -> Handlers:
    return Handlers(PROTOCOL, Session(load()))


def call(handlers: Handlers, name: str, /, **fields: Any) -> Any:
    request, response = METHODS[name]
    return handlers.guarded(name)(request(**fields), response())


def dynamic(value: Any) -> Any:
    return PROTOCOL.message("tfplugin6.DynamicValue")(msgpack=encode(value))


def whole(resource: str, **values: Any) -> Any:
    return dynamic(complete(RESOURCES[resource].attributes, values))


def test_schema_tells_everything(handlers: Handlers) -> None:
    answer = call(handlers, "GetProviderSchema")
    assert set(answer.resource_schemas) == set(RESOURCES)
    unread = {name for name, resource in RESOURCES.items() if not resource.data_source}
    assert unread == {"leatstream_grant", "leatstream_role_membership", "leatstream_token"}
    assert set(answer.data_source_schemas) == set(RESOURCES) - unread
    assert set(answer.functions) == {"fqn", "quote_ident"}
    attributes = {item.name: item for item in answer.resource_schemas["leatstream_query"].block.attributes}
    assert json.loads(attributes["sql"].type) == "string"
    assert attributes["timeouts"].write_only
    assert attributes["desired_state"].optional
    assert attributes["desired_state"].computed
    source = {item.name for item in answer.data_source_schemas["leatstream_store"].block.attributes}
    assert "timeouts" not in source


def test_metadata_and_identity_name_the_same(handlers: Handlers) -> None:
    metadata = call(handlers, "GetMetadata")
    assert {one.type_name for one in metadata.resources} == set(RESOURCES)
    identity = call(handlers, "GetResourceIdentitySchemas").identity_schemas
    names = [one.name for one in identity["leatstream_stream"].identity_attributes]
    assert names == ["database", "schema", "name"]


def test_functions(handlers: Handlers) -> None:
    answer = call(handlers, "CallFunction", name="fqn", arguments=[dynamic(p) for p in ("a", "B", "c")])
    assert decode(answer.result.msgpack) == 'a."B".c'
    answer = call(handlers, "CallFunction", name="quote_ident", arguments=[dynamic("")])
    assert answer.error.text == "a name cannot be empty"
    assert answer.error.function_argument == 0
    assert "no function" in call(handlers, "CallFunction", name="x").error.text


def test_an_unconfigured_provider_still_plans_what_needs_no_service(handlers: Handlers) -> None:
    config = whole("leatstream_database", name="demo")
    answer = call(
        handlers,
        "PlanResourceChange",
        type_name="leatstream_database",
        prior_state=dynamic(None),
        proposed_new_state=config,
        config=config,
    )
    assert not answer.diagnostics
    planned = decode(answer.planned_state.msgpack)
    assert planned["name"] == "demo"
    assert planned["id"] is UNKNOWN
    assert decode(answer.planned_identity.identity_data.msgpack) == {"name": "demo"}


def test_a_query_without_a_service_is_known_after_apply(handlers: Handlers) -> None:
    config = whole("leatstream_query", name="q", sql="CREATE STREAM a AS SELECT * FROM b")
    answer = call(
        handlers,
        "PlanResourceChange",
        type_name="leatstream_query",
        prior_state=dynamic(None),
        proposed_new_state=config,
        config=config,
    )
    planned = decode(answer.planned_state.msgpack)
    assert planned["sink"] is UNKNOWN
    assert planned["effective"] is UNKNOWN
    assert planned["desired_state"] == "running"
    assert planned["timeouts"] is None


def test_destroy_plans_nothing_and_keeps_what_it_knows(handlers: Handlers) -> None:
    kept = Private(timeouts={"delete": "1m"}).dump()
    answer = call(
        handlers,
        "PlanResourceChange",
        type_name="leatstream_query",
        prior_state=whole("leatstream_query", name="q", sql="x"),
        proposed_new_state=dynamic(None),
        config=dynamic(None),
        prior_private=kept,
    )
    assert decode(answer.planned_state.msgpack) is None
    assert Private.load(answer.planned_private).timeouts == {"delete": "1m"}


def test_timeouts_go_into_private_data(handlers: Handlers) -> None:
    config = whole("leatstream_query", name="q", sql="x", timeouts={"create": "5m", "delete": None})
    answer = call(
        handlers,
        "PlanResourceChange",
        type_name="leatstream_query",
        prior_state=dynamic(None),
        proposed_new_state=config,
        config=config,
    )
    assert Private.load(answer.planned_private).timeouts == {"create": "5m"}


def test_import_by_id_and_by_identity(handlers: Handlers) -> None:
    by_id = call(handlers, "ImportResourceState", type_name="leatstream_stream", id='demo.public."X"')
    identity = PROTOCOL.message("tfplugin6.ResourceIdentityData")(
        identity_data=dynamic({"database": "demo", "schema": "public", "name": "X"})
    )
    by_identity = call(handlers, "ImportResourceState", type_name="leatstream_stream", identity=identity)
    one, two = by_id.imported_resources[0], by_identity.imported_resources[0]
    assert one.state.msgpack == two.state.msgpack
    assert decode(one.state.msgpack)["name"] == "X"
    assert Private.load(one.private).fresh


def test_a_bad_import_id_shows_the_form(handlers: Handlers) -> None:
    answer = call(handlers, "ImportResourceState", type_name="leatstream_stream", id="demo")
    assert "{database}.{schema}.{name}" in answer.diagnostics[0].detail


def test_stored_state_is_read_with_todays_schema(handlers: Handlers) -> None:
    raw = PROTOCOL.message("tfplugin6.RawState")(json=b'{"name": "demo", "gone": 1}')
    answer = call(handlers, "UpgradeResourceState", type_name="leatstream_database", version=0, raw_state=raw)
    state = decode(answer.upgraded_state.msgpack)
    assert state["name"] == "demo"
    assert "gone" not in state
    assert set(state) == set(RESOURCES["leatstream_database"].attributes)


def test_state_of_a_later_provider_is_refused(handlers: Handlers) -> None:
    raw = PROTOCOL.message("tfplugin6.RawState")(json=b"{}")
    answer = call(handlers, "UpgradeResourceState", type_name="leatstream_database", version=9, raw_state=raw)
    assert "later provider" in answer.diagnostics[0].summary


def test_moving_between_addresses_but_not_types(handlers: Handlers) -> None:
    raw = PROTOCOL.message("tfplugin6.RawState")(json=b'{"name": "demo"}')
    fields = {"target_type_name": "leatstream_database", "source_state": raw}
    answer = call(handlers, "MoveResourceState", source_type_name="leatstream_database", **fields)
    assert decode(answer.target_state.msgpack)["name"] == "demo"
    answer = call(handlers, "MoveResourceState", source_type_name="leatstream_schema", **fields)
    assert "cannot become" in answer.diagnostics[0].detail


@pytest.mark.parametrize("allowed", [True, False])
def test_an_old_terraform_may_not_store_a_password(handlers: Handlers, allowed: bool) -> None:
    sasl = {"mechanism": "plain", "username": "u", "password_wo": "hunter2"}
    config = whole("leatstream_store", name="s", kafka={"bootstrap_servers": "h:1", "sasl": sasl})
    capabilities = PROTOCOL.message("tfplugin6.ClientCapabilities")(write_only_attributes_allowed=allowed)
    answer = call(
        handlers,
        "ValidateResourceConfig",
        type_name="leatstream_store",
        config=config,
        client_capabilities=capabilities,
    )
    assert bool(answer.diagnostics) is not allowed
    assert "hunter2" not in str(answer)


def test_a_provider_without_an_address_says_what_to_set(
    handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEATSTREAM_URL", raising=False)
    answer = call(handlers, "ConfigureProvider", config=dynamic({"url": None, "token": None}))
    assert "LEATSTREAM_URL" in answer.diagnostics[0].detail


@pytest.mark.parametrize(
    "url", ["localhost:8585", "ftp://x", "http://", "http://u@h", "http://h:x", "http://h/?q", *SECRET_URLS]
)
def test_a_bad_address_is_refused(handlers: Handlers, url: str) -> None:
    answer = call(handlers, "ConfigureProvider", config=dynamic({"url": url, "token": None}))
    assert answer.diagnostics[0].attribute.steps[0].attribute_name == "url"
    assert "s3cret" not in str(answer)


@pytest.mark.parametrize("given", ["block", "environment"])
def test_a_token_may_end_as_its_file_does(
    handlers: Handlers, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """`file("token")` and `$(< token)` differ in the line end, and it is no part of the token."""
    greeted: list[Any] = []
    monkeypatch.setattr("leatstream_terraform.session._greet", lambda client: greeted.append(client) or [])
    monkeypatch.setenv("LEATSTREAM_TOKEN", " leat_secret\r\n")
    config = {"url": "http://h:1", "token": "leat_secret\n" if given == "block" else None}
    assert not call(handlers, "ConfigureProvider", config=dynamic(config)).diagnostics
    assert [client.token for client in greeted] == ["leat_secret"]


@pytest.mark.parametrize("token", ["leat_q1 w2", "leat_q1\nw2", "leat_q1\tw2", "leat_q1öw2"])
def test_a_token_that_no_header_takes_is_refused_untold(handlers: Handlers, token: str) -> None:
    answer = call(handlers, "ConfigureProvider", config=dynamic({"url": "http://h:1", "token": token}))
    (problem,) = answer.diagnostics
    assert [step.attribute_name for step in problem.attribute.steps] == ["token"]
    assert "give all of it" in problem.detail
    assert not [part for part in ("leat_", "q1", "w2") if part in str(answer)]


@pytest.mark.parametrize("rpc", ["ConfigureProvider", "ReadResource", "CallFunction", "StopProvider"])
def test_a_defect_is_told_by_its_place_alone(
    handlers: Handlers, monkeypatch: pytest.MonkeyPatch, rpc: str
) -> None:
    """Its text may hold a secret. Two answers have no diagnostics: they tell it where they tell errors."""

    def broken(*_: Any) -> None:
        raise ValueError("leat_secret")

    monkeypatch.setattr(handlers, rpc, broken)
    answer = str(call(handlers, rpc))
    assert f"{rpc} ended with ValueError at test_handlers.py:" in answer
    assert "leat_secret" not in answer


def test_an_address_that_is_not_known_yet_is_waited_for(handlers: Handlers) -> None:
    assert not call(
        handlers, "ConfigureProvider", config=dynamic({"url": UNKNOWN, "token": None})
    ).diagnostics
    answer = call(
        handlers,
        "ReadResource",
        type_name="leatstream_database",
        current_state=whole("leatstream_database", name="demo"),
    )
    assert "not configured yet" in answer.diagnostics[0].summary
    assert decode(answer.new_state.msgpack)["name"] == "demo"


def test_an_unknown_type_is_a_diagnostic(handlers: Handlers) -> None:
    answer = call(handlers, "ValidateResourceConfig", type_name="leatstream_nothing", config=dynamic({}))
    assert "no resource leatstream_nothing" in answer.diagnostics[0].summary


def test_what_the_service_says_at_plan_is_told(handlers: Handlers, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was told as a defect of the provider, to be reported."""

    def busy(request: Any, response: Any) -> None:
        raise ProblemError(
            503, {"code": "engine-unavailable", "detail": "so many statements are being planned"}
        )

    monkeypatch.setattr(handlers, "PlanResourceChange", busy)
    (told,) = call(handlers, "PlanResourceChange").diagnostics
    assert "defect" not in told.summary + told.detail
    assert "so many statements are being planned" in told.summary + told.detail


@pytest.mark.parametrize("timeouts", [UNKNOWN, None, {"create": "1m"}, {"create": UNKNOWN}])
def test_timeouts_may_not_be_known_yet(timeouts: Any) -> None:
    private = Private()
    private.take_timeouts({"timeouts": timeouts})
    assert private.timeouts == ({"create": "1m"} if timeouts == {"create": "1m"} else {})


class Service:
    """Answers one request after another, and keeps what was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, str, Any]]()

    def request(self, method: str, path: str, body: Any = None, *_: Any, **__: Any) -> Answer:
        self.asked.append((method, path, body))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Answer(200, answer, {})


@pytest.mark.parametrize(
    "ending", [None, ProblemError(404, {}), ProblemError(409, {"detail": "It is in use."})]
)
def test_a_token_that_exists_while_terraform_runs(handlers: Handlers, ending: Any) -> None:
    """What cannot be deleted at the end is a warning: what was to be done is done."""
    service = Service(
        {"name": "x", "value": "leat_v", "account": "ci", "role": "web", "scope": "read"}, ending
    )
    handlers.session.client = service  # type: ignore[assignment]
    kind = {"type_name": "leatstream_token"}
    ephemeral = handlers.session.schema.ephemerals["leatstream_token"]
    config = dynamic(complete(ephemeral.attributes, {"account": "ci", "token_scope": "read"}))
    assert not call(handlers, "ValidateEphemeralResourceConfig", **kind, config=config).diagnostics
    opened = call(handlers, "OpenEphemeralResource", **kind, config=config)
    value = decode(opened.result.msgpack)
    assert (value["value"], value["token_scope"]) == ("leat_v", "read")
    assert b"leat_v" not in opened.private
    closed = call(handlers, "CloseEphemeralResource", **kind, private=opened.private)
    (made, path, body), (deleted, same, _) = service.asked
    assert (made, deleted, body) == ("POST", "DELETE", {"account": "ci", "scope": "read", "lifetime_days": 1})
    assert path == same
    assert path.startswith("/v1/tokens/")
    assert [one.severity for one in closed.diagnostics] == (
        [2] if getattr(ending, "status", 404) == 409 else []
    )


@pytest.mark.parametrize(("given", "sent"), [(None, True), (None, False), ("mine", True)])
def test_a_token_whose_answer_was_lost_does_not_stay(
    handlers: Handlers, given: str | None, sent: bool
) -> None:
    """Only where the provider chose the name: another one may have been there before."""
    lost = ServiceDown("http://h", ConnectionResetError(), in_doubt=sent)
    lost.after_doubt = sent
    service = Service(lost, None)
    handlers.session.client = service  # type: ignore[assignment]
    ephemeral = handlers.session.schema.ephemerals["leatstream_token"]
    config = dynamic(complete(ephemeral.attributes, {"account": "ci", "name": given}))
    opened = call(handlers, "OpenEphemeralResource", type_name="leatstream_token", config=config)
    assert "does not answer" in opened.diagnostics[0].summary
    undone = ["DELETE"] if sent and given is None else []
    assert [method for method, *_ in service.asked] == ["POST", *undone]
    assert len({path for _, path, _ in service.asked}) == 1
