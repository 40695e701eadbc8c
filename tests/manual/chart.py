"""What Helm makes of the chart: ``pytest tests/manual/chart.py``, with Helm on PATH.

No package that the project can pin brings Helm, so the run of all tests looks at the chart's text only.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "leatstream"
SECRET = {"token": "leat_x", "catalogUrl": "postgresql://x"}
Render = Callable[..., dict[tuple[str, str], Any]]


class Refused(Exception):
    """What the chart says of values that it does not take."""


@pytest.fixture
def render(tmp_path: Path) -> Render:
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("no Helm on PATH")

    def with_values(**values: Any) -> dict[tuple[str, str], Any]:
        file = tmp_path / "values.yaml"
        file.write_text(yaml.safe_dump({"secret": SECRET, **values}), "utf-8")
        argv = [helm, "template", "leatstream", str(CHART), "--values", str(file)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode:
            raise Refused(done.stderr)
        found = [one for one in yaml.safe_load_all(done.stdout) if one]
        return {(one["kind"], one["metadata"]["name"]): one for one in found}

    return with_values


def server(objects: dict[tuple[str, str], Any]) -> Any:
    return objects["Deployment", "leatstream"]["spec"]["template"]["spec"]


def driver(objects: dict[tuple[str, str], Any]) -> Any:
    return yaml.safe_load(objects["ConfigMap", "leatstream-driver"]["data"]["pod.yaml"])["spec"]


def environment(pod: Any) -> dict[str, Any]:
    return {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}


@pytest.mark.parametrize("launcher", ["local", "kubernetes"])
def test_by_default(render: Render, launcher: str) -> None:
    objects = render(launcher=launcher)
    service = objects["Service", "leatstream"]["spec"]
    assert (service["type"], service["sessionAffinity"]) == ("ClusterIP", "ClientIP")
    assert server(objects)["enableServiceLinks"] is False
    assert "strategy" not in objects["Deployment", "leatstream"]["spec"]
    assert "envFrom" not in server(objects)["containers"][0]


def test_servers_cannot_write_over_what_they_run(render: Render) -> None:
    pod = server(render())
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    kept = {volume["name"] for volume in pod["volumes"] if "emptyDir" in volume}
    writable = {mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] in kept}
    assert writable == {"/tmp", "/var/lib/leatstream"}


def test_numbers_are_settings_as_they_stand(render: Render) -> None:
    settings = {"LEATSTREAM_WATERMARK_DELAY_MS": 3_600_000, "LEATSTREAM_LEASE_SECONDS": 2.5}
    settings |= {"LEATSTREAM_MSK_IAM": True, "LEATSTREAM_SPARK_CONF": {"spark.a": "b"}}
    found = environment(server(render(settings=settings, drivers={"orphanSeconds": 1_000_000})))
    assert found["LEATSTREAM_WATERMARK_DELAY_MS"] == "3600000"
    assert found["LEATSTREAM_DRIVER_ORPHAN_SECONDS"] == "1000000"
    assert found["LEATSTREAM_LEASE_SECONDS"] == "2.5"
    assert (found["LEATSTREAM_MSK_IAM"], found["LEATSTREAM_SPARK_CONF"]) == ("true", '{"spark.a":"b"}')


def test_more_is_for_servers_and_drivers_alike(render: Render) -> None:
    extra = {
        "env": [{"name": "HADOOP_CONF_DIR", "value": "/etc/hadoop"}],
        "envFrom": [{"secretRef": {"name": "more"}}],
        "volumes": [{"name": "hadoop", "configMap": {"name": "hadoop"}}],
        "volumeMounts": [{"name": "hadoop", "mountPath": "/etc/hadoop"}],
    }
    own = {"env": [{"name": "ONLY", "value": "drivers"}]}
    for checkpoints in ({}, {"url": "hdfs://namenode/q"}):
        objects = render(
            launcher="kubernetes",
            extra=extra,
            driverPods=own,
            checkpoints=checkpoints,
            imagePullSecrets=[{"name": "registry"}],
        )
        for pod in (server(objects), driver(objects)):
            container = pod["containers"][0]
            assert environment(pod)["HADOOP_CONF_DIR"] == "/etc/hadoop"
            assert container["envFrom"] == extra["envFrom"]
            assert container["volumeMounts"][-1] == extra["volumeMounts"][0]
            assert pod["volumes"][-1] == extra["volumes"][0]
            assert pod["imagePullSecrets"] == [{"name": "registry"}]
        assert environment(driver(objects))["ONLY"] == "drivers"
        assert "ONLY" not in environment(server(objects))


def test_one_server_on_a_volume_of_one_node_ends_before_the_next(render: Render) -> None:
    def strategy(**values: Any) -> Any:
        return render(**values)["Deployment", "leatstream"]["spec"].get("strategy")

    once = {"accessMode": "ReadWriteOnce"}
    assert strategy(replicas=1, checkpoints=once) == {"type": "Recreate", "rollingUpdate": None}
    assert strategy(replicas=2, checkpoints=once) is None
    assert strategy(replicas=1) is None
    assert strategy(replicas=1, checkpoints={**once, "url": "hdfs://namenode/q"}) is None


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"drivers": {"memory": "1200m"}}, "drivers.memory is 1200m"),
        ({"drivers": {"memory": "2G"}}, "drivers.memory is 2G"),
        ({"driverPods": {"memory": "800Mi"}}, "driverPods.memory, 800Mi"),
        ({"driverPods": {"sharedMemory": "1G"}}, "driverPods.sharedMemory, 1G"),
        ({"settings": {"LEATSTREAM_SHARED_MEMORY": "3g"}}, "LEATSTREAM_SHARED_MEMORY is 3g"),
    ],
)
def test_heaps_that_do_not_fit_are_refused(render: Render, values: dict[str, Any], told: str) -> None:
    with pytest.raises(Refused, match=told):
        render(launcher="kubernetes", **values)
    assert render(launcher="local", **values)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"drivers": {"memory": "1Gi"}}, "drivers.memory is 1Gi, .* such as 512m or 2g"),
        ({"drivers": {"memory": 512}}, "drivers.memory is 512, .* such as 512m or 2g"),
        ({"settings": {"LEATSTREAM_SHARED_MEMORY": "2Gi"}}, "LEATSTREAM_SHARED_MEMORY is 2Gi, "),
        ({"driverPods": {"memory": "1536m"}}, "driverPods.memory is 1536m, .* such as 1536Mi or 2Gi"),
        ({"driverPods": {"sharedMemory": "3GB"}}, "driverPods.sharedMemory is 3GB, "),
        ({"driverPods": {"memory": 1_000_000}}, "driverPods.memory, 1000000"),
    ],
)
def test_sizes_of_another_form_are_refused(render: Render, values: dict[str, Any], told: str) -> None:
    with pytest.raises(Refused, match=told):
        render(launcher="kubernetes", **values)


def test_a_heap_of_another_form_is_refused_where_drivers_are_no_pods_too(render: Render) -> None:
    with pytest.raises(Refused, match=r"drivers\.memory is 1Gi, "):
        render(launcher="local", drivers={"memory": "1Gi"})


@pytest.mark.parametrize("heap", ["384m", "479m", "1k"])
def test_a_heap_that_spark_does_not_start_with_is_refused(render: Render, heap: str) -> None:
    with pytest.raises(Refused, match=f"drivers.memory is {heap}: Spark does not start"):
        render(launcher="local", drivers={"memory": heap})
    assert render(launcher="local", drivers={"memory": "480m"})


def test_heaps_that_fit_are_taken(render: Render) -> None:
    assert render(launcher="kubernetes", driverPods={"memory": 2_000_000_000})
    pods = {"memory": "2Gi", "sharedMemory": "3500M"}
    objects = render(launcher="kubernetes", drivers={"memory": "1g"}, driverPods=pods)
    assert environment(server(objects))["LEATSTREAM_DRIVER_MEMORY"] == "1g"
