"""What the pages on deploying tell to type fits ``deploy/``."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from leatstream.sql.parser import parse
from leatstream.sql.statements import CreateStore
from leatstream.sql.store_properties import read_store_properties

TOP = Path(__file__).resolve().parents[3]
CHART = TOP / "deploy" / "helm" / "leatstream"
PAGE = (TOP / "docs" / "deploy.md").read_text("utf-8")


def test_the_store_of_the_page_is_composes_broker() -> None:
    compose = yaml.safe_load((TOP / "deploy" / "compose.yaml").read_text("utf-8"))
    (text,) = re.findall(r'leat sql "(CREATE STORE [^"]+)"', PAGE)
    (statement,) = parse(text)
    assert isinstance(statement, CreateStore)
    kind, config = read_store_properties(statement.properties)
    listener = compose["services"]["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert listener == f"PLAINTEXT://{config['bootstrap_servers']}"
    assert (kind, config["security_protocol"]) == ("kafka", "plaintext")


def test_the_chart_takes_the_image_that_is_pushed() -> None:
    """Without a tag it takes its own version, and nothing of that name was built."""
    version = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))["appVersion"]
    (pushed,) = re.findall(r"^docker push (\S+)$", PAGE, re.MULTILINE)
    repository, tag = re.findall(r"--set image\.repository=(\S+) --set image\.tag=(\S+)", PAGE)[0]
    assert pushed == f"{repository}:{tag}"
    assert tag == version
    assert f"docker tag leatstream {pushed}\n" in PAGE
    assert "docker build -f deploy/Dockerfile -t leatstream .\n" in PAGE


def test_the_way_back_finds_the_deployment_by_its_release() -> None:
    """Its name is made of the release's and the chart's, so the release's alone is another one."""
    page = (TOP / "docs" / "operations.md").read_text("utf-8")
    label, release = re.findall(r"kubectl scale deployment --selector (\S+)=(\S+) --replicas=0", page)[0]
    assert f"{label}: {{{{ .Release.Name }}}}" in (CHART / "templates" / "_names.tpl").read_text("utf-8")
    assert f"helm rollback {release}`" in page
    assert "deployment/" not in page
