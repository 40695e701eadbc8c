"""Which commands of Terraform destroy everything."""

from __future__ import annotations

import pytest

from leatstream_terraform.command import destroys


@pytest.mark.parametrize(
    ("line", "arguments", "expected"),
    [
        ("terraform destroy -auto-approve", {}, True),
        ("/usr/bin/terraform -chdir=x destroy", {}, True),
        ("terraform plan -destroy -out p", {}, True),
        ("tofu apply --destroy", {}, True),
        ("python /venv/leatstream/dev/terraform_cli.py destroy", {}, True),
        ("terraform plan", {"TF_CLI_ARGS_plan": "-destroy"}, True),
        ("terraform apply", {"TF_CLI_ARGS": "-destroy=true -input=false"}, True),
        ("terraform plan", {"TF_CLI_ARGS_apply": "-destroy"}, False),
        ("terraform plan -out destroy", {}, False),
        ("terraform apply destroy", {}, False),
        ("terraform plan -destroy=false", {}, False),
        ("python -m pytest -k destroy", {}, False),
        ("terraform", {}, False),
        ("", {}, False),
    ],
)
def test_a_command_destroys(line: str, arguments: dict[str, str], expected: bool) -> None:
    assert destroys(line.split(), arguments) is expected
