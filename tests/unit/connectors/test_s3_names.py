"""Names of the files that a query writes: whose they are."""

from __future__ import annotations

from leatstream.connectors.s3.write import stem, written_by


def test_a_file_s_name_tells_whose_it_is_whatever_the_query_was_called() -> None:
    made = stem("query_0018c2aa11112222", "my query-g1", 3)
    assert made == "my_query-g1-11112222-g3"
    for name in (f"{made}-1a2b3c4d-b00000000-p00000.json", "other-11112222-g1-b00000000-p00000-0001.csv.gz"):
        assert written_by("query_0018c2aa11112222", f"lake/e/day=1/{name}")
        assert not written_by("query_0018c2aa33334444", f"lake/e/day=1/{name}")
    assert not written_by("query_0018c2aa11112222", f"lake/day={made}/x-33334444-g1-b00000000-p00000.json")
