"""Clients of accounts whose rights a test chooses."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient


def account_client(admin: TestClient, name: str, *grants: dict[str, Any], scope: str = "write") -> TestClient:
    """A client with the token of a new account; its role has these grants.

    Args:
        admin: of an administrator, on the same application.
        name: of the role, the account and the token.
        grants: as JSON.
        scope: of the token.
    """
    admin.put(f"/v1/roles/{name}", json={"grants": list(grants)}).raise_for_status()
    admin.put(f"/v1/service-accounts/{name}", json={"roles": [name]}).raise_for_status()
    made = admin.post(f"/v1/tokens/{name}", json={"account": name, "scope": scope}).raise_for_status()
    headers = {"Authorization": f"Bearer {made.json()['value']}"}
    return TestClient(admin.app, headers=headers, raise_server_exceptions=False)
