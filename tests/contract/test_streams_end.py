"""An answer that is under way ends when its token is revoked, or its role loses a privilege."""

from __future__ import annotations

from itertools import islice
from typing import Any

import fakes
import httpx2
import pytest
from serving import serving

from leatstream.rest import accepted
from leatstream.rest.streams import EVENTS, NDJSON

STORE = {"kafka": {"bootstrap_servers": "h:1"}}
ENTITY = {"kafka": {"partitions": 1, "replicas": 1}}
DISABLED = {"roles": ["prints"], "disabled": True}
READS = [{"privilege": "read_entity", "on": "store", "name": "k"}]


@pytest.mark.parametrize(
    ("accept", "method", "path", "body", "code"),
    [
        (EVENTS, "DELETE", "/v1/tokens/t", None, "unauthenticated"),
        (NDJSON, "DELETE", "/v1/tokens/t", None, "unauthenticated"),
        (EVENTS, "PUT", "/v1/roles/prints", {"grants": []}, "permission-denied"),
        (EVENTS, "PUT", "/v1/service-accounts/prints", DISABLED, "unauthenticated"),
    ],
)
def test_records_end(
    fresh: Any,
    monkeypatch: pytest.MonkeyPatch,
    accept: str,
    method: str,
    path: str,
    body: Any,
    code: str,
) -> None:
    fresh.cluster.endless = True
    monkeypatch.setattr(accepted, "LOOK_AGAIN", 0.0)
    admin = {"Authorization": f"Bearer {fakes.administrator(fresh)}"}
    with serving(fresh) as url, httpx2.Client(base_url=url, trust_env=False, timeout=20) as client:

        def do(how: str, where: str, what: Any = None) -> Any:
            answer = client.request(how, where, json=what, headers=admin)
            assert answer.status_code < 300, answer.text
            return answer.json() if answer.content else None

        do("PUT", "/v1/stores/k", STORE)
        do("PUT", "/v1/stores/k/entities/e", ENTITY)
        do("PUT", "/v1/roles/prints", {"grants": READS})
        do("PUT", "/v1/service-accounts/prints", {"roles": ["prints"]})
        token = do("POST", "/v1/tokens/t", {"account": "prints"})["value"]
        headers = {"Authorization": f"Bearer {token}", "Accept": accept}
        with client.stream("GET", "/v1/stores/k/entities/e/records", headers=headers) as answer:
            assert answer.status_code == 200
            lines = (line for line in answer.iter_lines() if line)
            if accept == EVENTS:
                assert next(lines) == ": idle"
            do(method, path, body)
            rest = "\n".join(islice(lines, 500))
        assert ("event: error" in rest) is (accept == EVENTS)
        assert f'"code":"{code}"' in rest
