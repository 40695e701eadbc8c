"""The schema that Terraform gets from the running provider, against the golden ``provider-schema/terraform.json``.

``UPDATE_GOLDEN=1`` rewrites the golden; read the difference before committing it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.core

GOLDEN = Path(__file__).parents[2] / "provider-schema" / "terraform.json"
ADDRESS = "leatstream.dev/leatstream/leatstream"
# Terraform tells it from 1.12 on; before, and in OpenTofu, the rest is compared.
IDENTITIES = "resource_identity_schemas"


def test_terraform_sees_the_golden_schema(terraform_at: Any) -> None:
    """No service is asked for it: the schema is the provider's own."""
    terraform = terraform_at("http://127.0.0.1:1", "unused")
    terraform.write("")
    terraform.init()
    seen = json.loads(terraform.run("providers", "schema", "-json").stdout)["provider_schemas"]
    if os.environ.get("UPDATE_GOLDEN"):
        if IDENTITIES not in seen[ADDRESS]:
            pytest.fail(f"this Terraform does not tell {IDENTITIES}; write the golden with 1.12 or newer")
        text = json.dumps({"provider_schemas": seen}, indent=2, sort_keys=True, ensure_ascii=False)
        GOLDEN.write_text(text + "\n", encoding="utf-8")
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))["provider_schemas"]
    assert list(seen) == list(golden) == [ADDRESS]
    assert golden[ADDRESS].keys() - seen[ADDRESS].keys() <= {IDENTITIES}
    for part, content in seen[ADDRESS].items():
        assert content == golden[ADDRESS][part], part
