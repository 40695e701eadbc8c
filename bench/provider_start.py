"""What starting the Terraform provider costs until its handshake line, and a plan without changes.

Terraform starts the provider several times per command, so its start is most of what a plan waits for. CPU is
that of the whole process at the moment the line is out, from the kernel's per-process clock.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from report import Spread, conditions, keep, table, verdict
from stack import BenchError, Stack, running_stack
from topics import Topics

GOAL_CPU_SECONDS = 0.4
PROVIDER = [sys.executable, "-P", "-m", "leatstream_terraform"]
# What any provider in Python on these libraries pays before its own first line.
BOUND = [
    sys.executable,
    "-P",
    "-c",
    "import grpc, google.protobuf, msgpack; print('1|', flush=True); input()",
]
BARE = [sys.executable, "-P", "-c", "print('1|', flush=True); input()"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--streams", type=int, default=0, help="also plan so many streams on a running stack")
    parser.add_argument("--json", help="write the raw numbers here")
    options = parser.parse_args()

    print(conditions())
    contenders = {"provider": PROVIDER, "libraries alone (bound)": BOUND, "Python alone": BARE}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for number in range(options.rounds + 1):
        for name, command in contenders.items():
            taken = start_once(command)
            if number:  # the first one fills the page cache
                found[name].append(taken)
    rows = []
    for name, values in found.items():
        for what, index in (("CPU", 0), ("wall", 1)):
            spread = Spread.of([v[index] for v in values])
            rows.append([f"{name}, {what}", spread.n, spread.p50, spread.p99, spread.largest])
    print(table(["seconds until the handshake line", "n", "p50", "p99", "max"], rows))
    cpu = Spread.of([v[0] for v in found["provider"]]).p50
    print(verdict("provider start", cpu, GOAL_CPU_SECONDS, "s CPU"))
    bound = Spread.of([v[0] for v in found["libraries alone (bound)"]]).p50
    print(f"Ratio to importing the libraries alone (CPU, p50): {cpu / bound:.2f}")
    if options.streams:
        plan_streams(options.streams)
    print(conditions())
    keep(options.json, {"start": found})


def start_once(command: list[str]) -> tuple[float, float]:
    """CPU and wall seconds from the start to the first line on standard output."""
    environment = os.environ | {
        "TF_PLUGIN_MAGIC_COOKIE": "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
        "PLUGIN_PROTOCOL_VERSIONS": "6",
        "PLUGIN_CLIENT_CERT": "wanted",
    }
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        wall = time.perf_counter() - began
        cpu = time.clock_gettime(~process.pid << 3 | 2)  # clock_getcpuclockid(3): all threads, nanoseconds
    finally:
        process.terminate()
        process.communicate(timeout=30)
    if not line.startswith(b"1|"):
        raise BenchError(f"{command[-1]} printed {line!r} instead of a handshake")
    return cpu, wall


def plan_streams(count: int) -> None:
    """Apply so many streams, then time plans that must show no change."""
    terraform = shutil.which("terraform") or shutil.which("tofu")
    if terraform is None:
        print("No terraform or tofu on PATH: the plan of many streams is left out.")
        return
    with running_stack({"LEATSTREAM_WARM_DRIVERS": "0"}) as stack, _workspace(stack, terraform, count) as run:
        began = time.perf_counter()
        run("apply", "-auto-approve")
        applied = time.perf_counter() - began
        plans = []
        for _ in range(3):
            began = time.perf_counter()
            run("plan", "-detailed-exitcode")
            plans.append(time.perf_counter() - began)
        began = time.perf_counter()
        run("destroy", "-auto-approve")
        rows = [
            [f"apply {count} streams", 1, applied],
            ["plan without changes (median)", len(plans), Spread.of(plans).p50],
            ["destroy", 1, time.perf_counter() - began],
        ]
        print(table(["Terraform, seconds", "n", "wall"], rows))


@contextlib.contextmanager
def _workspace(stack: Stack, terraform: str, count: int) -> Iterator[object]:
    """Initialise a configuration of so many streams on one topic; yields a function that runs a command."""
    topics = Topics(stack.kafka)
    topics.create("pageviews", 2)
    topics.close()
    with tempfile.TemporaryDirectory(prefix="leat-bench-tf-") as name:
        work = Path(name)
        mirror = work / "mirror"
        install = [sys.executable, "-m", "leatstream_terraform", "install", "--mirror", str(mirror)]
        subprocess.run(install, check=True, capture_output=True)
        (work / "terraform.rc").write_text(
            f'provider_installation {{\n  filesystem_mirror {{\n    path = "{mirror}"\n  }}\n}}\n'
        )
        (work / "main.tf").write_text(CONFIGURATION.replace("COUNT", str(count)))
        environment = os.environ | {
            "LEATSTREAM_URL": stack.url,
            "LEATSTREAM_TOKEN": stack.token,
            "TF_CLI_CONFIG_FILE": str(work / "terraform.rc"),
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "CHECKPOINT_DISABLE": "1",
        }

        def run(*arguments: str) -> None:
            done = subprocess.run(
                [terraform, *arguments, "-no-color"],
                cwd=work,
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            if done.returncode != 0:
                raise BenchError(f"terraform {arguments[0]}: {done.returncode}\n{done.stdout}{done.stderr}")

        run("init")
        yield run


CONFIGURATION = """
terraform {
  required_providers {
    leatstream = { source = "leatstream.dev/leatstream/leatstream" }
  }
}
resource "leatstream_database" "bench" {
  name = "bench"
}
resource "leatstream_stream" "view" {
  count    = COUNT
  database = leatstream_database.bench.name
  schema   = "public"
  name     = "view_${count.index}"
  store    = "embedded"
  topic    = "pageviews"
  columns = [
    { name = "viewtime", type = "BIGINT" },
    { name = "userid", type = "VARCHAR" },
    { name = "pageid", type = "VARCHAR" },
  ]
  value_format = "json"
}
"""


if __name__ == "__main__":
    main()
