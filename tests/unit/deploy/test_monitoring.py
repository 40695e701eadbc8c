"""Alert rules and the dashboard name only metrics, labels and states that the server has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from leatstream.model.objects import QueryState
from leatstream.rest import metrics

MONITORING = Path(__file__).resolve().parents[3] / "deploy" / "monitoring"
OF_PROMETHEUS = {"le", "instance", "job"}


def rules() -> list[dict[str, Any]]:
    return [
        rule
        for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]
        for rule in group["rules"]
    ]


def panels() -> list[dict[str, Any]]:
    return json.loads((MONITORING / "grafana-dashboard.json").read_text())["panels"]


def expressions() -> list[str]:
    return [rule["expr"] for rule in rules()] + [t["expr"] for p in panels() for t in p.get("targets", ())]


@pytest.fixture(scope="module")
def series() -> dict[str, set[str]]:
    """Labels by the name of each series that ``GET /metrics`` can have."""
    passes = SimpleNamespace(count=1, seconds=1.0)
    env: Any = SimpleNamespace(passes=passes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "all_queries", lambda _env: [])
        families = list(metrics.QueryMetrics(env).collect())
    families += list(metrics.RequestTimes().registry.collect())
    suffixes = {"counter": ("_total",), "gauge": ("",), "summary": ("_sum", "_count")}
    found = {
        family.name + suffix: set(getattr(family, "_labelnames", ()))
        for family in families
        if family.type != "histogram"
        for suffix in suffixes[family.type]
    }
    times = metrics.RequestTimes()._seconds._labelnames
    return found | {
        f"leatstream_api_request_seconds_{part}": set(times) for part in ("bucket", "sum", "count")
    }


@pytest.mark.parametrize("text", expressions())
def test_an_expression_names_what_there_is(text: str, series: dict[str, set[str]]) -> None:
    named = re.findall(r"leatstream_\w+", text)
    assert named
    assert set(named) <= set(series)
    labels = set().union(*(series[name] for name in named)) | OF_PROMETHEUS
    grouped = {label for group in re.findall(r"by \(([^)]*)\)", text) for label in group.split(", ")}
    matched = set(re.findall(r'[{,](\w+)=~?"', text))
    assert grouped | matched <= labels
    states = {one for group in re.findall(r'state=~?"([^"]*)"', text) for one in group.split("|")}
    assert states <= {state.value for state in QueryState}


def test_every_alert_says_what_to_do() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert set(rule["annotations"]) == {"summary", "action"}


def test_panels_are_apart() -> None:
    taken = set()
    for panel in panels():
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
