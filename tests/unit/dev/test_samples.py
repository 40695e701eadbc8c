from __future__ import annotations

from itertools import islice
from typing import Any

from leatstream.dev.samples import PAGEVIEWS, SAMPLE_SQL, USER_COUNT, USERS, Sample, records


def without_times(sample: Sample) -> tuple[str, str, dict[str, Any]]:
    timeless = {k: v for k, v in sample.value.items() if k not in ("viewtime", "registertime")}
    return sample.topic, sample.key, timeless


def test_equal_seeds_give_equal_records() -> None:
    first = [without_times(sample) for sample in islice(records(7), 60)]
    assert first == [without_times(sample) for sample in islice(records(7), 60)]
    assert first != [without_times(sample) for sample in islice(records(8), 60)]


def test_every_user_is_known_before_the_first_page_view() -> None:
    head = list(islice(records(1), USER_COUNT))
    assert {sample.topic for sample in head} == {USERS}
    views = [sample for sample in islice(records(1), 300) if sample.topic == PAGEVIEWS]
    assert {sample.key for sample in views} <= {sample.key for sample in head}


def test_columns_are_the_usual_ones_and_the_key_is_the_user() -> None:
    by_topic = {sample.topic: sample for sample in islice(records(1), 30)}
    view, user = by_topic[PAGEVIEWS], by_topic[USERS]
    assert list(view.value) == ["viewtime", "userid", "pageid"]
    assert list(user.value) == ["registertime", "userid", "regionid", "gender", "interests", "contactinfo"]
    assert list(user.value["contactinfo"]) == ["phone", "city", "state", "zipcode"]
    assert view.key == view.value["userid"]
    assert user.key == user.value["userid"]
    assert isinstance(view.value["viewtime"], int)
    assert isinstance(user.value["interests"], list)


def test_the_sql_shown_names_the_columns_produced() -> None:
    view = next(sample for sample in records(1) if sample.topic == PAGEVIEWS)
    assert all(column in SAMPLE_SQL for column in view.value)
