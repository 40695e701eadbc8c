"""Malformed SQL without end, and the services that have to answer it.

Texts come from the corpus of every statement shape (fixtures/statements), taken apart and put together again: by
the grammar's own pieces, by tokens, and by characters.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fakes

from leatstream.errors import InternalError, LeatstreamError
from leatstream.services.environment import Context, Principal
from leatstream.services.statements.dry_run import validate
from leatstream.services.statements.execution import execute

CORPUS = Path(__file__).parents[1] / "fixtures" / "statements" / "corpus.sql"
CONTEXT = Context("demo", "public", "k")
WHO = Principal("ann", "sysadmin")
WORLD = """CREATE DATABASE IF NOT EXISTS demo; CREATE SCHEMA IF NOT EXISTS demo.raw;
CREATE STORE IF NOT EXISTS k WITH ('type'=KAFKA, 'uris'='h:1', 'tls.disabled'=TRUE);
CREATE ENTITY IF NOT EXISTS t IN STORE k WITH ('topic.partitions'=1, 'topic.replicas'=1);
CREATE ENTITY IF NOT EXISTS u IN STORE k WITH ('topic.partitions'=1, 'topic.replicas'=1);
USE DATABASE demo; USE STORE k;
CREATE STREAM IF NOT EXISTS s (a BIGINT, b VARCHAR, st STRUCT<f STRUCT<g INTEGER>>, arr ARRAY<INTEGER>,
  m MAP<VARCHAR, INTEGER>) WITH ('topic'='t', 'value.format'='json');
CREATE STREAM IF NOT EXISTS t (a BIGINT, b VARCHAR) WITH ('topic'='u', 'value.format'='json');
CREATE STREAM IF NOT EXISTS w (a BIGINT, b VARCHAR, d DECIMAL(20, 4), r DOUBLE, day DATE, at TIMESTAMP,
  ok BOOLEAN) WITH ('topic'='u', 'value.format'='json');
CREATE CHANGELOG IF NOT EXISTS c (a BIGINT, b VARCHAR, PRIMARY KEY (a))
  WITH ('topic'='u', 'value.format'='json');
CREATE MATERIALIZED VIEW IF NOT EXISTS mv AS SELECT * FROM w;
CREATE STORE IF NOT EXISTS pg
  WITH ('type'=POSTGRESQL, 'uris'='postgresql://h:5432/d', 'postgres.username'='u');
CREATE ENTITY IF NOT EXISTS lt IN STORE pg
  WITH ('postgresql.columns'='a BIGINT, b VARCHAR, d DECIMAL(20, 4), r DOUBLE, day DATE, at TIMESTAMP,
    ok BOOLEAN, PRIMARY KEY (a)');
CREATE TABLE IF NOT EXISTS lt WITH ('store'='pg');"""
# What streams have none of: taken apart and put together as the corpus is.
OVER_VIEWS = """
SELECT a, b, d, r, day, at, ok FROM mv WHERE a > 1 AND d < 1.50 ORDER BY a DESC NULLS LAST LIMIT 10 OFFSET 2
SELECT DISTINCT upper ( b ) AS u, round ( d ) AS x, greatest ( a , 2 , - 3 ) AS g FROM mv WHERE b LIKE 'x%'
SELECT b, count ( * ) AS n, sum ( d ) AS s, avg ( r ) FROM mv GROUP BY b HAVING count ( * ) > 1 ORDER BY n
SELECT x.a, y.b FROM mv x FULL JOIN mv y ON x.a = y.a AND x.d < y.d WHERE y.ok IS NOT TRUE
WITH p AS ( SELECT a, b FROM mv ) SELECT p.a FROM p CROSS JOIN p q WHERE p.a IN ( SELECT a FROM mv WHERE ok )
SELECT a FROM mv UNION ALL SELECT a FROM mv UNION SELECT CAST ( b AS BIGINT ) AS a FROM mv ORDER BY 1
SELECT at + INTERVAL '1' DAY AS x, day - INTERVAL '2' MONTH AS y, date_trunc ( 'month' , at ) AS z FROM mv
SELECT CASE WHEN ok THEN 1 ELSE a END AS x, rpad ( b , 10 , 'y' ) AS y, CAST ( d AS INTEGER ) % 7 AS z FROM mv
SELECT CAST ( d AS FLOAT ) * CAST ( r AS FLOAT ), day + INTERVAL '5' HOUR AS y FROM mv FETCH NEXT ROW ONLY
SELECT a FROM mv EXCEPT SELECT a FROM mv WHERE EXISTS ( SELECT b FROM mv ) INTERSECT SELECT a FROM mv
SELECT x.a FROM mv x , mv y WHERE x.a = y.a AND x.b NOT IN ( SELECT b FROM mv MINUS SELECT 'x' AS b FROM mv )
SELECT substring ( b , 1 , 2 ) || '-' || coalesce ( b , 'x' ) AS s, - d / 3 AS q, year ( day ) AS y FROM mv
""".strip().splitlines()
# And of tables the corpus, whose streams are declared by each statement, has few.
OVER_TABLES = """
CREATE STREAM x AS SELECT t.a, upper ( lt.b ) AS u FROM t LEFT JOIN lt ON t.a = lt.a AND lt.d > 1 WHERE lt.ok
CREATE STREAM x AS SELECT w.*, l.d AS p FROM w JOIN lt l WITH ( 'lookup.cache.ttl.millis' = 9 ) ON w.a = l.a
CREATE STREAM x AS SELECT l.b, m.ok FROM t JOIN lt l ON t.b = l.b JOIN lt m ON m.a = l.a AND m.b = t.b
CREATE CHANGELOG x AS SELECT c.a, l.b FROM c LEFT JOIN lt l ON l.a = c.a AND l.b = upper ( c.b ) WHERE l.ok
CREATE STREAM x AS SELECT q.a, l.b FROM ( SELECT a FROM w UNION ALL SELECT a FROM t ) q JOIN lt l ON q.a = l.a
CREATE TABLE x WITH ( 'store' = 'pg' ) AS SELECT b, count ( * ) AS n, max ( a ) AS m FROM t GROUP BY b
CREATE TABLE x ( a BIGINT, b VARCHAR, PRIMARY KEY ( a ) ) WITH ( 'store' = 'pg', 'topic' = 'public.lt' )
INSERT INTO lt SELECT * FROM w WHERE a IS NOT NULL
INSERT INTO lt ( a, b, d, ok ) VALUES ( 1, 'x', 1.5, TRUE ), ( 2, NULL, NULL, FALSE )
SELECT w.a, l.b FROM w JOIN lt l ON w.a = l.a AND w.day > DATE '2026-01-01' LIMIT 3
PRINT ENTITY lt IN STORE pg
""".strip().splitlines()
_ODD = (
    "",
    " ",
    "\x00",
    "\n",
    "'",
    '"',
    "`",
    "--",
    "/*",
    "*/",
    ";",
    "(",
    ")",
    "é",
    "日",
    "\ud7ff",
    "\U0001f600",
)
_WORDS = """
SELECT FROM WHERE GROUP BY HAVING JOIN LEFT FULL WITHIN ON AS WITH QUERY UNION ALL CREATE OR REPLACE STREAM
CHANGELOG STORE ENTITY DROP LIST DESCRIBE IF NOT EXISTS INSERT INTO VALUES NULL TRUE CASE WHEN THEN ELSE END
CAST BETWEEN IN LIKE IS TUMBLE HOP SIZE ADVANCE MINUTES , . ( ) [ ] + - * / % = <> <= -> || :: ; 1 0 -1 1e999
.5 'x' '' 'type' "A" a b s t st arr m count( sum( MATCH_RECOGNIZE BEGIN APPLICATION UNNEST DISTINCT COMMENT
mv c w d r day at ok CAST( greatest( round( rpad( FETCH EXCEPT EXISTS CROSS OFFSET DATE lt pg TABLE INTERSECT
ARRAY[ MAP[ 99999999999999999999 SET DEFAULT SECRET OVER PARTITION ORDER LIMIT INTERVAL EXTRACT
"""
_TOKENS = [*_WORDS.split(), "9" * 5_000, "1." + "7" * 400, f"'{'9' * 400}'"]


def corpus() -> list[str]:
    """The texts of the corpus, without titles and codes."""
    blocks = CORPUS.read_text(encoding="utf-8").strip().split("\n\n")
    return [block.partition("\n")[2].partition("\n=> ")[0] for block in blocks]


def texts(seed: int) -> Iterator[str]:
    """Texts without end, the same for the same seed."""
    pick = random.Random(seed)
    whole = corpus() + (OVER_VIEWS + OVER_TABLES) * 8
    pieces = [text.split(" ") for text in whole]
    while True:
        how = pick.random()
        if how < 0.35:
            yield _by_tokens(pick, list(pick.choice(pieces)))
        elif how < 0.6:
            yield _spliced(pick, pieces)
        elif how < 0.85:
            yield _by_characters(pick, pick.choice(whole))
        elif how < 0.95:
            yield _nested(pick, pick.choice(whole))
        else:
            yield "; ".join(pick.choice(whole) for _ in range(pick.randint(2, 5)))


def _by_tokens(pick: random.Random, tokens: list[str]) -> str:
    for _ in range(pick.randint(1, 4)):
        at = pick.randrange(len(tokens) + 1)
        what = pick.random()
        if what < 0.4:
            tokens.insert(at, pick.choice(_TOKENS))
        elif what < 0.7:
            tokens[at : at + 1] = [pick.choice(_TOKENS)]
        elif what < 0.85:
            del tokens[at : at + pick.randint(1, 3)]
        else:
            tokens[at:at] = tokens[: pick.randint(1, 5)] * pick.choice((1, 1, 1, 50))
    return " ".join(tokens)


def _spliced(pick: random.Random, pieces: list[list[str]]) -> str:
    one, other = pick.choice(pieces), pick.choice(pieces)
    return " ".join(one[: pick.randint(1, len(one))] + other[pick.randrange(len(other)) :])


def _by_characters(pick: random.Random, text: str) -> str:
    for _ in range(pick.randint(1, 5)):
        at = pick.randrange(len(text) + 1)
        odd = pick.choice(_ODD) if pick.random() < 0.7 else chr(pick.randrange(0x3000))
        text = text[:at] + odd + text[at + pick.choice((0, 0, 1, 4)) :]
    return text


def _nested(pick: random.Random, text: str) -> str:
    """Something that opens and opens, in the middle of a statement."""
    opening, closing = pick.choice(
        (("(", ")"), ("(SELECT a FROM (", ") x)"), ("CASE WHEN ", " END"), ("NOT ", ""))
    )
    opening, closing = (opening, closing) if pick.random() < 0.7 else ("ARRAY<", ">")
    depth = pick.choice((1, 5, 40, 200, 3000))
    at = pick.randrange(len(text) + 1)
    return text[:at] + opening * depth + pick.choice(("a", "1", "")) + closing * depth + text[at:]


class Fuzz:
    """Runs texts and gathers what came of them.

    Attributes:
        outcomes: how often each code, or ``ok``.
        failures: text and what was wrong.
        slowest: seconds and text, the slowest first.
    """

    def __init__(self, directory: Path) -> None:
        self.world = fakes.make_world(directory)
        self.env = self.world.with_tables()
        execute(self.env, WHO, WORLD, Context())
        self.outcomes: Counter[str] = Counter()
        self.failures: list[tuple[str, str]] = []
        self.slowest: list[tuple[float, str]] = []

    def check(self, text: str, *, run: bool) -> None:
        """Validate one text and, if asked, run it."""
        begin = time.perf_counter()
        try:
            answer = validate(self.env, WHO, text, CONTEXT)
            problems = [p for one in answer.statements for p in one["problems"]]
            for problem in problems:
                self.outcomes[problem["code"]] += 1
                self._check_place(text, problem)
            self.outcomes["ok"] += not problems
            if run:
                execute(self.env, WHO, text, CONTEXT)
                # What it has dropped is there again for the next one.
                execute(self.env, WHO, WORLD, Context())
        except InternalError as error:
            self.failures.append((text, f"internal: {error.detail}"))
        except LeatstreamError:
            pass
        except Exception as error:
            self.failures.append((text, repr(error)))
        self.slowest.append((time.perf_counter() - begin, text))
        self.slowest = sorted(self.slowest, reverse=True)[:5]

    def _check_place(self, text: str, problem: dict[str, Any]) -> None:
        place = problem["position"]
        if problem["sqlstate"] is None or not problem["detail"]:
            self.failures.append((text, f"says too little: {problem}"))
        if place is not None and not 0 <= place["offset"] <= place["offset"] + place["length"] <= len(text):
            self.failures.append((text, f"place outside the text: {problem}"))

    def close(self) -> None:
        """Close the catalog."""
        self.world.units.close()
