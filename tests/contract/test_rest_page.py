"""The commands of docs/rest.md and docs/graphql.md, in their order, against the real service over fakes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

ROOT = Path(__file__).resolve().parents[2]
# These have no end; that their paths exist is seen in the routes.
ENDLESS = ("logs:follow", "/records", "/v1/events")


def commands(page: str = "rest.md") -> list[list[str]]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    # A command goes on while a quote is open or its line ends in a backslash.
    found: list[list[str]] = []
    part = ""
    for line in blocks.replace("\\\n", " ").splitlines():
        part = f"{part}\n{line}" if part else line
        try:
            words = shlex.split(part)
        except ValueError:
            continue
        part = ""
        found += [words] if words[:1] == ["curl"] else []
    return found


def request_of(words: list[str]) -> dict[str, Any]:
    """What curl would send."""
    headers: dict[str, str] = {}
    found: dict[str, Any] = {"method": "GET", "headers": headers}
    left = iter(words[1:])
    for word in left:
        if word == "-X":
            found["method"] = next(left)
        elif word == "-H":
            name, _, value = next(left).partition(": ")
            headers |= {name: value} if value else {}
        elif word in ("-d", "--json"):
            kind = "json" if word == "--json" else "x-www-form-urlencoded"
            headers.setdefault("Content-Type", f"application/{kind}")
            found |= {"content": next(left)} | ({"method": "POST"} if found["method"] == "GET" else {})
        elif word.startswith("$URL"):
            found["url"] = word.removeprefix("$URL")
        else:
            assert word in ("--fail-with-body", "-N"), word
    return found


def test_every_command_of_the_page_is_answered(client: TestClient) -> None:
    done = [request_of(words) for words in commands()]
    assert len(done) >= 12
    for request in done:
        if request["url"].partition("?")[0].endswith(ENDLESS):
            continue
        url = request.pop("url").replace("timeout=30s", "timeout=0s")
        answer = client.request(url=url, **request)
        assert answer.status_code < 300, (url, answer.text)


def test_every_document_of_the_page_about_graphql_has_data(client: TestClient) -> None:
    made = [request for words in commands() if (request := request_of(words))["method"] == "PUT"]
    asked = [request_of(words) for words in commands("graphql.md")]
    assert len(asked) >= 5
    for request in [*made, *asked]:
        answer = client.request(url=request.pop("url"), **request)
        assert answer.status_code < 300, answer.text
        assert '"errors"' not in answer.text, answer.text


def test_paths_without_an_end_exist() -> None:
    paths = re.findall(r"^  (/\S+):$", (ROOT / "openapi.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    known = [re.compile(re.sub(r"\{[^}]*\}", "[^/]+", path) + r"\Z") for path in paths]
    urls = [request_of(words)["url"].partition("?")[0] for words in commands()]
    assert [url for url in urls if not any(pattern.match(url) for pattern in known)] == []
