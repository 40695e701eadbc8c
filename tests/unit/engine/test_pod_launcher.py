"""What the launcher makes of a cluster that is slow, away, or full of leftovers; the cluster is a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from own_clock import set_clock

from leatstream.engine import pods
from leatstream.engine.pod_manifests import SERVER_LABEL, PodPlan, pod_name
from leatstream.engine.pods import PodLauncher
from leatstream.errors import EngineError, StackError
from leatstream.launching import open_launcher
from leatstream.settings import Settings


class Table:
    """Objects by kind and name."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {
            ("serviceaccounts", "drivers"): {"metadata": {"name": "drivers", "uid": "uid-0"}}
        }
        self.away = False
        self.refused = ""
        self.stuck = False
        self.graces: list[int] = []
        self.lists = 0

    def create(self, kind: str, manifest: dict[str, Any]) -> dict[str, Any] | None:
        self._see(kind)
        key = kind, manifest["metadata"]["name"]
        if key in self.objects:
            return None
        made = {**manifest, "status": {"phase": "Pending"}}
        now = datetime.now(UTC).isoformat()
        made["metadata"] = {**manifest["metadata"], "uid": "u", "creationTimestamp": now}
        self.objects[key] = made
        return made

    def find(self, kind: str, name: str) -> dict[str, Any] | None:
        self._see(kind)
        return self.objects.get((kind, name))

    def list(self, kind: str, labels: dict[str, str]) -> list[dict[str, Any]]:
        self.lists += 1
        self._see(kind)
        return [found for (k, _), found in self.objects.items() if k == kind]

    def delete(self, kind: str, name: str, grace: int) -> None:
        self._see(kind)
        self.graces.append(grace)
        if not self.stuck:
            self.objects.pop((kind, name), None)

    def log(self, pod: str, container: str) -> str | None:
        self._see("log")
        return None

    def _see(self, kind: str) -> None:
        if self.away or kind == self.refused:
            raise EngineError("engine-unavailable", "the Kubernetes API cannot be reached")


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
def launcher(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PodLauncher:
    monkeypatch.setattr(pods, "_FRESH", 0.0)
    monkeypatch.setattr(pods, "_UNTIL_GONE", 0.0)
    plan = PodPlan(image="i", service_account="drivers", environment={}, slots=1)
    api: Any = table
    return PodLauncher(api, plan, "srv_1", "http://server", tmp_path)


def test_a_cluster_that_is_away_kills_nobody(launcher: PodLauncher, table: Table) -> None:
    launcher.start("drv_1", "dedicated", "t")
    table.away = True
    assert launcher.is_alive("drv_1", 0), "it may well run"
    with pytest.raises(EngineError):
        launcher.end("drv_1", 0, grace=0)
    launcher.ask_to_end("drv_1", 0, grace=1)
    with pytest.raises(StackError, match="cannot be reached"):
        PodLauncher(launcher._api, launcher._plan, "srv_1", "u", Path()).check()
    table.away = False
    assert launcher.is_alive("drv_1", 0)


def test_a_pod_that_does_not_go_is_not_taken_for_dead(launcher: PodLauncher, table: Table) -> None:
    launcher.start("drv_1", "dedicated", "t")
    table.stuck = True
    with pytest.raises(EngineError, match="has not ended"):
        launcher.end("drv_1", 0, grace=0)
    assert launcher.is_alive("drv_1", 0)
    assert table.graces == [1], "of 0 the API would forget it before its node has ended it"


def test_a_pod_that_does_not_go_is_waited_for_once(
    launcher: PodLauncher, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher.start("drv_1", "dedicated", "t")
    table.stuck, now, slept = True, [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    set_clock(monkeypatch, pods, monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(pods, "_UNTIL_GONE", 30.0)
    for least, most in ((30.0, 31.0), (0.1, 1.0)):
        slept.clear()
        with pytest.raises(EngineError, match="has not ended"):
            launcher.end("drv_1", 0, grace=0)
        assert least < sum(slept) < most, "who waits here keeps all queries waiting"
    table.stuck = False
    launcher.end("drv_1", 0, grace=0)
    assert not launcher.is_alive("drv_1", 0)


def test_no_pod_is_left_whose_secret_was_refused(launcher: PodLauncher, table: Table) -> None:
    table.refused = "secrets"
    with pytest.raises(EngineError):
        launcher.start("drv_1", "dedicated", "t")
    assert [kind for kind, _ in table.objects] == ["serviceaccounts"]


def test_why_a_pod_never_ran_is_its_log(launcher: PodLauncher, table: Table) -> None:
    launcher.start("drv_1", "dedicated", "t")
    waiting = {"reason": "ErrImagePull", "message": "no such image"}
    status = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": waiting}}]}
    table.objects["pods", pod_name("drv_1")]["status"] = status
    launcher.end("drv_1", 0, grace=0)
    assert launcher.log("drv_1") == "ErrImagePull: no such image"


@pytest.mark.parametrize(("minutes", "stays"), [(20, 0), (5, 1)])
@pytest.mark.parametrize("server", ["srv_1", "srv_2"])
def test_pods_that_a_dead_server_left_are_taken_away(
    launcher: PodLauncher, table: Table, server: str, minutes: int, stays: int
) -> None:
    launcher.start("drv_1", "dedicated", "t")
    pod = table.objects["pods", pod_name("drv_1")]
    pod["metadata"]["labels"][SERVER_LABEL] = server
    end = {"terminated": {"finishedAt": (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()}}
    pod["status"] = {"phase": "Succeeded", "containerStatuses": [{"state": end}]}
    assert not launcher.is_alive("drv_2", 0)
    assert sum(kind == "pods" for kind, _ in table.objects) == stays


@pytest.mark.parametrize(("minutes", "stays"), [(20, 0), (5, 1)])
def test_a_pod_goes_whose_server_died_before_it_made_the_secret(
    launcher: PodLauncher, table: Table, minutes: int, stays: int
) -> None:
    launcher.start("drv_1", "dedicated", "t")
    made = datetime.now(UTC) - timedelta(minutes=minutes)
    table.objects["pods", pod_name("drv_1")]["metadata"]["creationTimestamp"] = made.isoformat()
    assert not launcher.is_alive("drv_2", 0)
    assert sum(kind == "pods" for kind, _ in table.objects) == stays


def test_settings_that_do_not_fit_are_told_at_once(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, launcher="kubernetes")
    with pytest.raises(StackError) as told:
        open_launcher(settings, "srv_1", tmp_path / "url", {})
    for part in ("SQLite", "LEATSTREAM_KUBERNETES_IMAGE", "LEATSTREAM_DRIVER_API_URL"):
        assert part in str(told.value)


def _own(tmp_path: Path, **more: Any) -> Settings:
    """Settings of pods that mount the checkpoints of one query each."""
    template = tmp_path / "pod.yaml"
    template.write_text(
        "spec: {volumes: [{name: c, emptyDir: {}}], containers: [{name: driver, volumeMounts: "
        f"[{{name: c, mountPath: {tmp_path}/points}}]}}]}}"
    )
    given: dict[str, Any] = {
        "launcher": "kubernetes",
        "catalog_url": "postgresql://h/d",
        "kubernetes_image": "i",
        "driver_api_url": "http://server",
        "kubernetes_own_checkpoints": True,
        "kubernetes_pod_template": str(template),
        "checkpoint_root": f"{tmp_path}/points",
        "warm_drivers": 0,
        **more,
    }
    return Settings(**given)


def test_the_folder_of_a_query_is_there_before_its_pod(table: Table, tmp_path: Path) -> None:
    api: Any = table
    template = {"spec": {"containers": [{"name": "driver", "volumeMounts": []}]}}
    plan = PodPlan(
        image="i",
        service_account="drivers",
        environment={},
        slots=1,
        template=template,
        checkpoints=str(tmp_path / "points"),
    )
    own = PodLauncher(api, plan, "srv_1", "http://server", tmp_path)
    assert own.for_one_query
    own.start("drv_1", "dedicated", "t", "qry_1")
    assert (tmp_path / "points" / "queries" / "qry_1").is_dir()
    (tmp_path / "points" / "queries" / "qry_2").write_text("in the way")
    with pytest.raises(EngineError, match="cannot be made"):
        own.start("drv_2", "dedicated", "t", "qry_2")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"warm_drivers": 1}, "LEATSTREAM_WARM_DRIVERS=0"),
        ({"checkpoint_root": "s3a://bucket/points"}, "on a volume"),
        ({"checkpoint_root": "/elsewhere"}, "mounts no volume at /elsewhere"),
    ],
)
def test_own_checkpoints_need_a_volume_and_cold_pods(tmp_path: Path, more: Any, text: str) -> None:
    with pytest.raises(StackError, match=text):
        open_launcher(_own(tmp_path, **more), "srv_1", tmp_path / "url", {})
