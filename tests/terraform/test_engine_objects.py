"""Single objects under the real Terraform: passwords, names, faults; against the in-memory REST double."""

from __future__ import annotations

from typing import Any

STORE = """
resource "leatstream_store" "s" {
  name  = "secure"
  %s
  kafka = {
    bootstrap_servers = "localhost:9092"
    security_protocol = "sasl_plaintext"
    sasl = { mechanism = "plain", username = "u", password_wo = "%s" %s }
  }
}
"""


def test_password_is_sent_and_never_stored(with_double: Any, double: Any, terraform_at: Any) -> None:
    terraform = with_double
    terraform.write(STORE % ("", "hunter2", ""))
    terraform.init()
    terraform.apply()
    assert double.objects["store", "secure"]["_password"] == "hunter2"
    assert "hunter2" not in terraform.state_text()
    terraform.is_settled()
    # A new value alone is invisible to Terraform; the version says that it is new.
    terraform.write(STORE % ("", "hunter3", ", password_wo_version = 1"))
    assert terraform.plan().actions() == {"leatstream_store.s": ["update"]}
    terraform.apply()
    assert double.objects["store", "secure"]["_password"] == "hunter3"
    terraform.is_settled()
    # Every other change sends it too, because PUT replaces the whole object.
    terraform.write(STORE % ('comment = "x"', "hunter3", ", password_wo_version = 1"))
    terraform.apply()
    assert double.objects["store", "secure"]["_password"] == "hunter3"
    second = terraform_at(double.url, double.token, "second")
    second.write(STORE % ('comment = "x"', "hunter3", ""))
    second.init()
    second.run("import", "leatstream_store.s", "secure")
    second.is_settled()
    # Nobody can tell whether a version that comes after an import came with another password.
    second.write(STORE % ('comment = "x"', "hunter4", ", password_wo_version = 1"))
    assert second.plan().actions() == {"leatstream_store.s": ["update"]}
    second.apply()
    assert double.objects["store", "secure"]["_password"] == "hunter4"
    second.is_settled()


def test_a_plan_says_that_a_store_refuses_the_login(with_double: Any, double: Any) -> None:
    terraform = with_double
    terraform.write(STORE % ("", "hunter2", ""))
    terraform.init()
    double.next_state["secure"] = "errored"
    done = terraform.run("plan", "-no-color", "-detailed-exitcode", ok=(2,))
    said = " ".join((done.stdout + done.stderr).split())
    assert "leatstream_store secure would be errored" in said
    assert "the login is refused" in said
    assert (double.log, "hunter2" in said) == ([], False), "a plan writes nothing"
    del double.next_state["secure"]
    terraform.apply()
    double.next_state["secure"] = "errored"
    assert "would be" not in terraform.is_settled(), "what does not change is not asked"


def test_name_in_any_script_replaces_and_imports(with_double: Any, terraform_at: Any, double: Any) -> None:
    terraform = with_double
    text = 'resource "leatstream_database" "d" {\n  name = "%s"\n}\n'
    terraform.write(text % 'Ünï.cöde 数\\"x')
    terraform.init()
    terraform.apply()
    terraform.is_settled()
    terraform.write(text % "Plain")
    assert terraform.plan().actions() == {"leatstream_database.d": ["delete", "create"]}
    terraform.apply()
    assert ("database", "Plain") in double.objects
    assert ("database", "plain") not in double.objects


def test_bad_input_is_told_at_its_attribute(with_double: Any) -> None:
    terraform = with_double
    terraform.write(
        """
        resource "leatstream_store" "a" { name = "a" }
        resource "leatstream_query" "q" {
          name = "q"
          sql = "x"
          desired_state = "walking"
          timeouts = { create = "soon" }
        }
        """
    )
    terraform.init()
    said = terraform.fails("validate")
    assert "kafka" in said
    assert "kinesis" in said
    assert "must be set" in said
    assert 'use one of "running", "stopped"' in said
    assert "is not a duration" in said


def test_existing_object_is_not_adopted(with_double: Any, terraform_at: Any, double: Any) -> None:
    terraform = with_double
    terraform.write('resource "leatstream_database" "d" {\n  name = "demo"\n}\n')
    terraform.init()
    terraform.apply()
    second = terraform_at(double.url, double.token, "second")
    second.write('resource "leatstream_database" "d" {\n  name = "demo"\n}\n')
    second.init()
    said = second.fails("apply", "-auto-approve")
    assert "terraform import ADDRESS 'demo'" in said
