"""No answer repeats a secret, nor what may be one: answers end up in logs and in files of plans."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

SECRET = "CANARY-pw-7f3a"
WORD = "canary_pw_7f3a"
KAFKA = "'type'=KAFKA, 'uris'='localhost:9092', 'tls.disabled'=TRUE"
LOGIN = "'kafka.sasl.hash_function'=PLAIN, 'kafka.sasl.username'='u'"
TEXTS = [
    f"CREATE STORE a WITH ({KAFKA}, {LOGIN}, 'kafka.sasl.password'='{SECRET}')",
    f"CREATE STORE b WITH ({KAFKA}, 'kafka.sasl.pasword'='{SECRET}')",
    f"CREATE STORE c WITH ({KAFKA}, 'comment'='{SECRET}')",
    f"CREATE STORE d WITH ('type'=KAFKA, 'uris'='u:{SECRET}@localhost:9092')",
    f"CREATE STORE e WITH ('type'=POSTGRESQL, 'uris'='postgresql://u:{SECRET}@h/d')",
    f"CREATE STORE f WITH ('type'='{SECRET}')",
    f"CREATE STORE g WITH ('type'=KINESIS, 'kinesis.secret_access_key'='{SECRET}')",
    f"CREATE STORE h WITH ({KAFKA}, {LOGIN}, 'kafka.sasl.password'={WORD})",
    f"CREATE STORE i WITH ({KAFKA}, {LOGIN}, 'kafka.sasl.password'=\"{SECRET}\")",
    f"CREATE STORE k WITH ('kafka.sasl.password' '{SECRET}')",
    f"CREATE STORE k WITH ('kafka.sasl.password'='{SECRET}'",
    f"CREATE STORE k WITH ('kafka.sasl.password'='{SECRET})",
    f"CREATE STORE k WITH ('kafka.sasl.password'='{SECRET}'; LIST STORES",
    f"CREATE STORE k WITH ('kafka.sasl.password'={WORD} 'x')",
    f"CREATE STOR k WITH ('kafka.sasl.password'='{SECRET}')",
    f"UPDATE STORE k WITH ('kafka.sasl.password'='{SECRET}')",
    f"UPDATE STORE k WITH ({LOGIN}, 'kafka.sasl.password'='{SECRET}')",
    f"CREATE SECRET s WITH ('type'=generic_string, 'secret_string'='{SECRET}')",
    f"CREATE SECRET t WITH ('type'=generic_string, 'secret_strng'='{SECRET}')",
    f"CREATE SECRET u '{SECRET}'",
    f"CREATE SECRET v WITH ('type'=generic_string, 'reference'='{SECRET}')",
    f"CREATE SECRET w WITH ('type'=generic_string, 'reference'='secret://{SECRET}')",
    f"UPDATE SECRET s WITH ('secret_string'='{SECRET}')",
    f"CREATE SCHEMA_REGISTRY r WITH ('type'=confluent, 'uris'='http://h', 'confluent.username'='u',"
    f" 'confluent.password'='{SECRET}')",
    f"CREATE SCHEMA_REGISTRY q WITH ('type'=confluent, 'uris'='http://u:{SECRET}@h')",
    f"UPDATE SCHEMA_REGISTRY r WITH ('confluent.password'='{SECRET}')",
    f"CREATE STREAM s (a BIGINT) WITH ('topic'='t', 'value.format'='json', 'kafka.sasl.password'='{SECRET}')",
    f"CREATE STREAM z AS SELECT * FROM demo.public.pageviews QUERY WITH ('password'='{SECRET}')",
    f"CREATE ENTITY e IN STORE k WITH ('sasl.jaas.config'='{SECRET}')",
    f"BEGIN APPLICATION a CREATE STREAM z WITH ('token'='{SECRET}') AS SELECT * FROM demo.public.pageviews;"
    " END APPLICATION",
    f"SET password = '{SECRET}'",
    f"LIST STORES; -- {SECRET}\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_no_answer_to_a_text_repeats_its_secret(pageviews: TestClient, text: str) -> None:
    answers = [
        pageviews.post("/v1/statements:validate", json={"sql": text}),
        pageviews.post("/v1/statements:validate", json={"sql": f"DESCRIBE {text}"}),
        pageviews.post("/v1/statements:validate", json={"sql": f"LIST STORES; {text}; LIST SECRETS"}),
        pageviews.post("/v1/statements", json={"sql": f"DESCRIBE {text}"}),
        pageviews.post("/v1/statements", json={"sql": text, "atomic": True}),
        pageviews.post("/v1/statements", json={"sql": text}),
        *(pageviews.get(f"/v1/{noun}") for noun in ("stores", "secrets", "schema-registries", "relations")),
        pageviews.post("/v1/statements", json={"sql": "LIST STORES; DESCRIBE STORE k; LIST SECRETS"}),
    ]
    for answer in answers:
        assert answer.status_code < 500
        assert SECRET not in answer.text
        assert WORD not in answer.text.lower()


def test_what_is_no_secret_is_shown(client: TestClient) -> None:
    def told(sql: str) -> Any:
        return client.post("/v1/statements:validate", json={"sql": sql}).json()

    made = told(TEXTS[0])
    assert made["canonical"] == (
        "CREATE STORE a WITH ('kafka.sasl.hash_function' = '***', 'kafka.sasl.password' = '***',"
        " 'kafka.sasl.username' = '***', 'tls.disabled' = TRUE, 'type' = KAFKA, 'uris' = 'localhost:9092')"
    )
    # Passwords can be guessed from hashes, so the hash is that of what is shown.
    assert made["hash"] == told(TEXTS[0].replace(SECRET, "another"))["hash"]
    text = "CREATE STREAM s (a BIGINT) WITH ('topic'='t', 'value.format'='json', 'key.type'='BIGINT', 'key.format'=x)"
    shown = told(text)["canonical"]
    assert all(
        part in shown for part in ("'topic' = 't'", "'key.type' = 'BIGINT'", "'value.format' = 'json'")
    )
    assert (
        "'uris' = 'kafka://***@h:1,***@i:2'"
        in told("CREATE STORE k WITH ('uris'='kafka://u:p@h:1,v:q@i:2')")["canonical"]
    )
