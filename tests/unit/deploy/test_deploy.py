"""What ``deploy/`` says agrees with the product: settings, versions, pins."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from leatstream.settings import Settings

TOP = Path(__file__).resolve().parents[3]
DEPLOY = TOP / "deploy"
CHART = DEPLOY / "helm" / "leatstream"
# Read where they are used, not settings of the server.
OTHERS = {"LEATSTREAM_BOOTSTRAP_TOKEN", "LEATSTREAM_CACHE_DIR"}


def project() -> dict[str, Any]:
    return tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]


def pins(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9][a-z0-9.-]*)==([^ \\]+)", lock.read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize(
    "file", ["Dockerfile", "compose.yaml", "helm/leatstream/templates/deployment.yaml", ".env.example"]
)
def test_settings_that_are_named_exist(file: str) -> None:
    known = {f"LEATSTREAM_{name.upper()}" for name in Settings.model_fields} | OTHERS
    named = set(re.findall(r"LEATSTREAM_[A-Z_]+", (DEPLOY / file).read_text("utf-8")))
    assert named
    assert named <= known


def test_every_setting_is_in_the_operators_manual() -> None:
    manual = (TOP / "docs" / "operations.md").read_text("utf-8")
    assert [n for n in Settings.model_fields if f"LEATSTREAM_{n.upper()}`" not in manual] == []


def test_the_image_has_the_versions_that_were_tested() -> None:
    image, tested = pins(DEPLOY / "requirements.lock"), pins(TOP / "requirements.lock")
    assert {name: version for name, version in image.items() if tested.get(name) != version} == {}
    extras = project()["optional-dependencies"]
    wanted = [*project()["dependencies"]]
    for extra in ("server", "spark", "kafka", "avro", "kinesis", "s3", "jars"):
        wanted += extras[extra]
    names = {re.split(r"[<>=\[; ]", line)[0].lower() for line in wanted}
    assert names <= image.keys()
    assert not {"pytest", "mypy", "moto"} & image.keys()


def test_what_drivers_leave_behind_has_a_parent() -> None:
    """Without one each driver's end leaves a dead process in the container, until there is room for no more."""
    file = (DEPLOY / "Dockerfile").read_text("utf-8")
    entry = re.findall(r"^ENTRYPOINT (.+)$", file, re.MULTILINE)
    assert [json.loads(one) for one in entry] == [["tini", "--", "leat"]]
    assert "tini" in file.split("apt-get install", 1)[1].split("&&", 1)[0].split()
    pods = (CHART / "templates" / "deployment.yaml").read_text("utf-8")
    assert "command:" not in pods, "it would pass the entry point over"


def test_the_image_has_all_jars_that_drivers_may_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver in a pod of its own has the image's, and none that its server has fetched."""
    fetched: list[str] = []
    monkeypatch.setattr("leatstream.dev.jars.ensure", lambda name, _=None: fetched.append(name) or [])
    programs = re.findall(r"^RUN (\S+python) -c \"(.+)\"$", (DEPLOY / "Dockerfile").read_text("utf-8"), re.M)
    assert programs[0][0] == "/opt/leatstream/bin/python"
    exec(programs[0][1], {})  # what the image's own Python does
    assert sorted(fetched) == ["msk", "spark"]


def test_the_image_is_asked_for_its_health_where_it_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """At its own port, and past the proxy that an engine may have put into the environment."""
    command = re.findall(
        r"^HEALTHCHECK [^\n]*\\\n +CMD (.+)$", (DEPLOY / "Dockerfile").read_text("utf-8"), re.M
    )
    _, _, program = json.loads(command[0])
    asked: list[tuple[Any, ...]] = []
    statuses = [200, 503]

    class Connection:
        def __init__(self, host: str, port: int) -> None:
            asked.append((host, port))

        def request(self, *what: str) -> None:
            asked.append(what)

        def getresponse(self) -> Any:
            return SimpleNamespace(status=statuses.pop(0))

    monkeypatch.setattr("http.client.HTTPConnection", Connection)
    monkeypatch.setenv("LEATSTREAM_PORT", "9000")
    for exit_status in (0, 1):
        with pytest.raises(SystemExit) as ended:
            exec(program, {})
        assert int(ended.value.code or 0) == exit_status
    assert asked[:2] == [("127.0.0.1", 9000), ("GET", "/healthz")]


def test_the_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert chart["version"] == chart["appVersion"] == project()["version"]


def test_templates_use_values_that_exist() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    used = set()
    for template in (CHART / "templates").iterdir():
        used |= set(re.findall(r"\.Values\.([A-Za-z.]+)", template.read_text("utf-8")))
    assert used
    for path in used:
        found: Any = values
        for step in path.split("."):
            assert step in found, path
            found = found[step]


def test_the_chart_takes_the_heaps_that_a_server_takes() -> None:
    """Others, such as Kubernetes' own 1Gi, end a server at its start: the chart says so before."""
    names = (CHART / "templates" / "_names.tpl").read_text("utf-8")
    (pattern,) = re.findall(r'regexMatch "(.+)" \$heapText', names)
    for text in ("512m", "2g", "2G", "1t", "512", "0m", "1.5g", "1Gi", "512Mi", "2gb", "m", "", "2g\n"):
        try:
            taken = Settings(driver_memory=text).driver_memory == text
        except ValueError:
            taken = False
        # Go's $ is the end of the text, Python's may stand before a line end.
        assert bool(re.search(pattern.replace("$", r"\Z"), text)) is taken, text
    server = (CHART / "templates" / "deployment.yaml").read_text("utf-8")
    assert 'include "leatstream.heap" (list "drivers.memory" .Values.drivers.memory)' in server


def test_servers_cannot_write_over_what_they_run() -> None:
    """`tests/manual/image.py` runs the image so: with no place to write in but its data, /tmp and what is mounted."""
    pods = (CHART / "templates" / "deployment.yaml").read_text("utf-8")
    assert re.findall(r"^            readOnlyRootFilesystem: (\w+)$", pods, re.MULTILINE) == ["true"]
    mounted = dict(re.findall(r"^            - name: ([a-z]+)\n +mountPath: (\S+)$", pods, re.MULTILINE))
    kept = re.findall(r"^        - name: ([a-z]+)\n          emptyDir: {}$", pods, re.MULTILINE)
    assert {mounted[name] for name in kept} == {"/tmp", "/var/lib/leatstream"}
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    for name in ("server-1", "server-2"):
        server = compose["services"][name]
        assert (server["read_only"], server["tmpfs"]) == (True, ["/tmp"])


def test_compose_starts_servers_that_share_what_they_must() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    one, two = (compose["services"][f"server-{i}"] for i in (1, 2))
    assert one["environment"] == two["environment"]
    mounts = [{v.split(":")[1]: v.split(":")[0] for v in server["volumes"]} for server in (one, two)]
    assert mounts[0]["/shared"] == mounts[1]["/shared"]
    assert mounts[0]["/var/lib/leatstream"] != mounts[1]["/var/lib/leatstream"]
    assert {v for mount in mounts for v in mount.values()} <= compose["volumes"].keys()


def test_records_outlive_the_brokers_container() -> None:
    """As catalog and checkpoints do: else queries go on after `down` and `up`, and their topics are gone."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    kafka = compose["services"]["kafka"]
    mounts = {v.split(":")[1]: v.split(":")[0] for v in kafka["volumes"]}
    # The image has this directory for its user, and a new volume there takes that owner.
    assert kafka["environment"]["KAFKA_LOG_DIRS"] == "/var/lib/kafka/data"
    assert mounts["/var/lib/kafka/data"] in compose["volumes"]


def test_one_service_makes_the_image_of_all_servers() -> None:
    """Two that make it beside each other end with `already exists`; and nobody looks for it in a registry."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    one, two = (compose["services"][f"server-{i}"] for i in (1, 2))
    assert one["image"] == two["image"]
    assert ("build" in one, "build" in two) == (True, False)
    assert two["pull_policy"] == "never"


def test_what_ends_a_server_waits_for_its_jobs() -> None:
    """Else batches are cut off at each rolling update, and their records written twice."""
    rest = 35  # seconds: open requests, the catalog, the drivers' own end
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    grace = int(Settings.model_fields["stop_grace_seconds"].default)
    for name in ("server-1", "server-2"):
        assert int(compose["services"][name]["stop_grace_period"].removesuffix("s")) >= grace + rest
    pods = (CHART / "templates" / "deployment.yaml").read_text("utf-8")
    added = re.findall(
        r"terminationGracePeriodSeconds: {{ add .Values.drivers.stopGraceSeconds (\d+) }}", pods
    )
    assert [int(more) >= rest for more in added] == [True]


def test_no_service_of_the_cluster_becomes_a_setting() -> None:
    """For a Service called leatstream Kubernetes would set LEATSTREAM_PORT=tcp://… in every pod."""
    pods = (CHART / "templates" / "deployment.yaml").read_text("utf-8")
    assert re.findall(r"^( +)enableServiceLinks: (\w+)$", pods, re.MULTILINE) == [("      ", "false")]


def test_a_client_stays_with_the_server_that_has_its_select() -> None:
    """Its rows are in that process alone: from another pod they are 404."""
    service = (CHART / "templates" / "service.yaml").read_text("utf-8").split("---")[0]
    assert re.findall(r"^  sessionAffinity: (\w+)$", service, re.MULTILINE) == ["ClientIP"]


def test_servers_wait_for_the_database_that_is_to_stay() -> None:
    """While PostgreSQL's image makes the database, one that listens on a socket alone is there, and goes."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    assert "--host=127.0.0.1" in compose["services"]["postgres"]["healthcheck"]["test"]


def test_a_server_in_a_cluster_lets_its_pods_have_what_it_has() -> None:
    """Of images, environment and volumes: a driver that cannot read the checkpoints is of no use."""
    templates = [
        (CHART / "templates" / name).read_text("utf-8") for name in ("deployment.yaml", "drivers.yaml")
    ]
    for name in ("imagePullSecrets", "extra.env", "extra.envFrom", "extra.volumes", "extra.volumeMounts"):
        assert all(re.search(rf"\.Values\.{name}\b", text) for text in templates), name
