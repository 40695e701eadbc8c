"""The console's files under /ui/ and the reference at /docs: what is open, what is cached, what stays closed."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fakes
import pytest
from fastapi import FastAPI
from scratch import memory_directory
from starlette.testclient import TestClient

from leatstream.model.access import OBJECT_PRIVILEGES
from leatstream.rest import console, problem
from leatstream.rest.app import create_app

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture(scope="module")
def world() -> Iterator[Any]:
    """One for all: these tests write nothing."""
    with memory_directory() as directory:
        made = fakes.make_world(Path(directory))
        yield made
        made.units.close()


@pytest.fixture(scope="module")
def anybody(world: Any) -> Iterator[TestClient]:
    """A client without a token."""
    app = create_app(world.env)
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as opened:
        yield opened


def assets(client: TestClient, page: str = "/ui/") -> list[str]:
    """The addresses of scripts and styles that the page names."""
    return re.findall(r'(?:src|href)="(/ui/[^"]+)"', client.get(page, headers=BROWSER).text)


@pytest.mark.parametrize("page", ["/ui/", "/docs"])
def test_the_page_needs_no_token_and_has_a_strict_policy(anybody: TestClient, page: str) -> None:
    answer = anybody.get(page, headers=BROWSER)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", answer.text), (
        "inline code would be refused"
    )


@pytest.mark.parametrize("page", ["/ui/", "/docs"])
def test_files_have_their_types_and_last(anybody: TestClient, page: str) -> None:
    found = assets(anybody, page)
    types = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
    assert {path.rpartition(".")[2] for path in found} == set(types)
    for path in found:
        answer = anybody.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, types[path.rpartition(".")[2]])
        lasting = "public, max-age=31536000, immutable" if "/assets/" in path else "no-cache"
        assert answer.headers["cache-control"] == lasting
        assert len(answer.content) < 500 or answer.headers["content-encoding"] == "gzip"


def test_the_first_page_is_small(anybody: TestClient) -> None:
    scripts = [path for path in assets(anybody) if path.endswith(".js")]
    assert 0 < sum(len(gzip.compress(anybody.get(path).content)) for path in scripts) <= 180_000


def test_the_reference_is_a_page_of_its_own_that_the_console_does_not_load(anybody: TestClient) -> None:
    page = anybody.get("/docs").text
    assert page == anybody.get("/docs", headers=BROWSER).text != anybody.get("/ui/", headers=BROWSER).text
    (script,) = (
        path
        for path in assets(anybody, "/docs")
        if path.rpartition("/")[2].startswith("reference-") and path.endswith(".js")
    )
    code = anybody.get(script).text
    assert "customElements.define" in code
    assert '"/openapi.json"' in code or "`/openapi.json`" in code
    assert len(gzip.compress(code.encode())) <= 180_000
    # Neither its page nor any file that the console loads at once or later leads to the package.
    files = (
        path for path in (console.DIRECTORY / "assets").glob("*.js") if path.name != script.rpartition("/")[2]
    )
    name = script.rpartition("/")[2].encode()
    assert not [path.name for path in files if name in path.read_bytes()]


def test_no_file_loads_anything_from_another_host() -> None:
    """The policy would refuse it; the test finds what a browser would ask for, and fail to get."""
    markup = rb"""\b(?:src|href|action)=["']?(?:https?:)?//"""
    ways = {
        ".html": markup,
        ".svg": markup,
        ".css": rb"""@import|url\(\s*["']?(?!data:)[^)]*//""",
        ".js": rb"""(?:\b(?:import|fetch|importScripts|WebSocket|EventSource)\(|\bfrom)["'`](?:https?:|wss?:)?//"""
        rb"|@import[^;]{0,40}//|@font-face",
    }
    found = {
        path.name: re.findall(ways[path.suffix], path.read_bytes())
        for path in console.DIRECTORY.rglob("*")
        if path.suffix in ways
    }
    assert {"index.html", "reference.html"} < set(found)
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_only_the_reference_itself_is_open(anybody: TestClient) -> None:
    for path in ("/docs/", "/docs/x", "/docsx", "/redoc", "/docs/oauth2-redirect"):
        assert anybody.get(path, headers=BROWSER).status_code == 401, path
    assert anybody.post("/docs", content=b"").headers["allow"] == "GET, HEAD"


def test_the_console_offers_the_privileges_that_there_are() -> None:
    source = (Path(__file__).parents[2] / "api/console/src/access/privileges.ts").read_text()
    entity, table = re.findall(
        r"ENTITY: Privilege\[\] = (\[.*?\]);|PRIVILEGES: .*? = \{(.*?)\n\};", source, re.S
    )
    rows = re.findall(r"(\w+): (\[.*?\]),", table[1].replace("...ENTITY", entity[0].strip("[]")), re.S)
    offered = {kind: re.findall(r'"(\w+)"', names) for kind, names in rows}
    assert offered == {kind: [one.value for one in found] for kind, found in OBJECT_PRIVILEGES.items()}


def test_the_pages_of_the_application_are_the_index(anybody: TestClient) -> None:
    page = anybody.get("/ui/", headers=BROWSER).text
    for path in ("/ui/queries/a%2Fb?tab=logs", "/ui/stores/k/entities/x.y", "/ui/%00", "/ui/../etc/passwd"):
        answer = anybody.get(path, headers=BROWSER)
        assert path.startswith("/ui/..") or answer.text == page, path
    assert anybody.head("/ui/queries", headers=BROWSER).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/ui/assets/none.js", "/ui/..%2f..%2fpyproject.toml", "/ui/%2e%2e/app.py", "/ui/assets/../../errors.py"],
)
def test_nothing_else_is_there(anybody: TestClient, path: str) -> None:
    answer = anybody.get(path)
    assert answer.status_code in (401, 404)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"


def test_files_are_only_read(anybody: TestClient) -> None:
    answer = anybody.post("/ui/", content=b"")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert answer.json()["code"] == "method-not-allowed"


def test_a_browser_is_led_to_the_console(anybody: TestClient) -> None:
    for path in ("/", "/ui"):
        answer = anybody.get(path, headers=BROWSER)
        assert (answer.status_code, answer.headers["location"]) == (307, "/ui/")
        assert answer.headers["cache-control"] == "no-store"


def test_others_get_what_they_got(anybody: TestClient, world: Any) -> None:
    assert anybody.get("/").json()["code"] == "unauthenticated"
    assert anybody.post("/", headers=BROWSER).status_code == 401
    nothing = anybody.get("/", headers=world.headers).json()
    assert nothing["code"] == "no-such-path"
    assert "/docs" in nothing["errors"][0]["hint"]


@pytest.mark.parametrize("path", ["/v1/queries", "/v1/server", "/metrics", "/ui/../v1/queries", "/uix"])
def test_the_api_still_needs_its_token(anybody: TestClient, path: str) -> None:
    answer = anybody.get(path, headers=BROWSER)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_missing_files_are_said(tmp_path: Path) -> None:
    app = FastAPI(docs_url=None)
    console.install(app, tmp_path / "none")
    problem.install(app, [])
    for path in ("/ui/", "/docs"):
        answer = TestClient(app).get(path, headers=BROWSER)
        assert answer.status_code == 404
        assert "make console" in answer.json()["errors"][0]["hint"]
