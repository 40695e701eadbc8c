"""``leat demo``: the main job from nothing to records and back to nothing, in front of the user's eyes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console
from rich.text import Text

from leatstream.cli.client import Client, ProblemAnswer, Unreachable, segment
from leatstream.cli.connection import DATA_DIRECTORY, Connection
from leatstream.cli.demo_deploy import DemoFailure, Deployment, find_example, require_tools, tail
from leatstream.cli.exits import Exit
from leatstream.cli.output import printable, stdout
from leatstream.cli.problems import render
from leatstream.cli.queries import wait_for
from leatstream.cli.records import describe
from leatstream.cli.waiting import WaitTimeout
from leatstream.errors import LeatstreamError

STACK_TIMEOUT = 300.0  # seconds; the first start downloads the jars
QUERY_TIMEOUT = 180.0
RECORDS = 3
RECORDS_TIMEOUT = 60  # seconds without a record

#: What the plan refuses: in words, the variables that make the example do it, what the error must speak of.
REFUSED = (
    (
        "a Kafka topic made from Kinesis without its properties",
        {"NEW_TOPIC": "none"},
        ("topic.partitions", "topic.replicas", "pageviews_kinesis"),
    ),
    (
        "a Kinesis stream whose left-most source is Kafka",
        {"LEFT_MOST": "users"},
        ("topic.shards", "users_kafka"),
    ),
)

Started: TypeAlias = tuple[int, Callable[[], int | None], Callable[[], None]]


@dataclass(slots=True)
class Stack:
    """A running ``leat dev``.

    Attributes:
        ready: what its ready file says: url, token, kafka_bootstrap, kinesis_endpoint, pid.
    """

    ready: dict[str, Any]
    stop: Callable[[], None]


@dataclass(slots=True)
class Demo:
    """One run. ``work`` holds everything it writes."""

    keep: bool
    work: Path
    console: Console = field(default_factory=stdout)
    started: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """All steps; whatever happens, nothing stays unless ``keep`` and all went well."""
        kept = False
        find_example()  # before minutes are spent on what needs it
        require_tools()
        stack = self._start_stack()
        try:
            client = Client(Connection(stack.ready["url"], stack.ready["token"], "the demo"))
            deployment = self._deploy(stack.ready)
            queries = self._wait_for_queries(client)
            for query in queries:
                self._show_sink(client, query)
            self._plan_again(deployment)
            if self.keep:
                self._say_what_stays(stack, deployment)
                kept = True
                return
            with self.step("Destroy everything that was deployed"):
                deployment.destroy()
            self._check_gone(client, queries)
        finally:
            if not kept:
                with self.step("Stop Spark, Kafka, the API and the catalog"):
                    stack.stop()
        self.console.print(f"\nDone in {time.monotonic() - self.started:.0f} s; nothing was left behind.")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """One line for a step: running, then done with its time."""
        began = time.monotonic()
        with self.console.status(Text(title)):
            yield
        taken = f"{time.monotonic() - began:6.1f} s"
        self.console.print(Text.assemble(("✓ ", "green"), f"{title:<62}", (taken, "dim")))

    def _start_stack(self) -> Stack:
        with self.step("Start a catalog, Kafka, Kinesis, Spark, the API and sample data"):
            ready_file, log = self.work / "ready.json", self.work / "dev.log"
            # Kept, it is found by `leat` in the directory where its data lies.
            place = ["--data-dir", str(self.work / DATA_DIRECTORY)] if self.keep else ["--ephemeral"]
            command = [sys.executable, "-m", "leatstream.cli.main", "dev", "--kinesis", "--port", "0", *place]
            command += ["--ready-file", str(ready_file)]
            pid, ended, stop = (_start_free if self.keep else _start_tied)(command, log)
            try:
                ready = _await_ready(ready_file, log, ended)
            except BaseException:
                stop()
                raise
        addresses = (
            f"API {ready['url']}, Kafka {ready['kafka_bootstrap']}, Kinesis {ready['kinesis_endpoint']}"
        )
        self.console.print(f"  {addresses}", style="dim")
        return Stack({**ready, "pid": ready.get("pid", pid)}, stop)

    def _deploy(self, ready: dict[str, Any]) -> Deployment:
        deployment = Deployment(self.work, ready)
        for number, (question, variables, words) in enumerate(REFUSED):
            deployment.synthesize(**variables)
            if number == 0:
                with self.step("terraform init in examples/multi-store/cdktf"):
                    deployment.init()
            with self.step(f"terraform plan refuses {question}"):
                error = deployment.plan_is_refused(*words)
            self.console.print(Text("\n".join(f"  {line}" for line in error.splitlines()), "dim"))
        deployment.synthesize()
        with self.step("terraform apply"):
            summary = deployment.apply()
        self.console.print(Text(f"  {summary}", "dim"))
        return deployment

    def _wait_for_queries(self, client: Client) -> list[dict[str, Any]]:
        queries = client.items("/v1/queries")
        if not queries:
            raise DemoFailure("The example deployed no query.")
        running = []
        for query in queries:
            name = query["name"]
            with self.step(f"Query {name} runs"):
                found = wait_for(client, _path_name(name), ("running", "failed"), QUERY_TIMEOUT)
                if found is None or found["status"]["state"] != "running":
                    raise DemoFailure(f"Query {name} does not run: {_why(found)}")
            job = found["status"].get("job") or {}
            mode = f"{job.get('mode', 'unknown')} mode"
            reason = f" ({job['mode_reason']})" if job.get("mode_reason") else ""
            self.console.print(
                Text(f"  {' + '.join(found['sources'])} → {found['sink']}, {mode}{reason}", "dim")
            )
            running.append(found)
        return running

    def _show_sink(self, client: Client, query: dict[str, Any]) -> None:
        sink = client.call("GET", f"/v1/relations/{segment(query['sink'])}")
        store, entity = sink["store"], sink["effective"].get("topic", {}).get("value") or sink["topic"]
        entities = f"/v1/stores/{segment(_path_name(store))}/entities"
        if entity not in [item["name"] for item in client.items(entities)]:
            raise DemoFailure(f"The store {store} does not list {entity}.")
        params = {"from": "beginning", "limit": RECORDS, "timeout": f"{RECORDS_TIMEOUT}s"}
        with self.step(f"Records flow out of {query['name']} into {store}/{entity}"):
            found = client.records(f"{entities}/{segment(_path_name(entity))}", params)
            records = [json.loads(line) for line in found]
            if not records:
                raise DemoFailure(f"No record arrived in {store}/{entity} within {RECORDS_TIMEOUT} s.")
        for name, value in query["effective"].items():
            if value["origin"] == "left_most_source":
                inferred = f"{name} = {value['value']}, inferred from {value['from']}"
                self.console.print(Text(f"  {inferred}", "dim"))
        for record in records:
            self.console.print(Text("  " + describe(record)), soft_wrap=True)

    def _plan_again(self, deployment: Deployment) -> None:
        with self.step("terraform plan again"):
            summary = deployment.plan_is_empty()
        self.console.print(Text(f"  {summary}", "dim"))

    def _check_gone(self, client: Client, queries: list[dict[str, Any]]) -> None:
        for query in queries:
            if wait_for(client, _path_name(query["name"]), (), 60.0) is not None:
                raise DemoFailure(f"Query {query['name']} is still there after the destroy.")

    def _say_what_stays(self, stack: Stack, deployment: Deployment) -> None:
        leat = Path(sys.executable).parent / "leat"
        pid = stack.ready["pid"]
        ended = f"while kill -0 {pid} 2> /dev/null; do sleep 1; done"  # it writes there until then
        lines = (
            "",
            "Everything keeps running.",
            f"Look around:  cd {self.work} && {leat} query list",
            f"              {leat} sql",
            f"API:          {stack.ready['url']} (token in {DATA_DIRECTORY}/ready.json there)",
            f"Kafka:        {stack.ready['kafka_bootstrap']}",
            f"Kinesis:      {stack.ready['kinesis_endpoint']}",
            f"Terraform:    {deployment.directory}",
            f"End it:       kill {pid}; {ended}; rm -r {self.work}",
        )
        self.console.print(Text("\n".join(lines)), soft_wrap=True)


def run_demo(*, keep: bool) -> int:
    """Run the demo and return the exit status."""
    console = stdout()
    # An end by SIGTERM must clean up as Ctrl-C does.
    signal.signal(signal.SIGTERM, _interrupt)
    work = Path(tempfile.mkdtemp(prefix="leat-demo-"))
    done = False
    try:
        Demo(keep, work, console).run()
        done = True
        return Exit.OK
    except KeyboardInterrupt:
        console.print("Interrupted; everything was stopped.")
        return Exit.INTERRUPTED
    except ProblemAnswer as failure:
        console.print(render(failure.problem))
    except (DemoFailure, Unreachable, WaitTimeout, LeatstreamError) as failure:
        console.print(Text.assemble(("error", "bold red"), f": {printable(str(failure))}"))
    finally:
        if not (done and keep):
            shutil.rmtree(work, ignore_errors=True)
    return Exit.FAILURE


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _start_tied(command: list[str], log: Path) -> Started:
    """Start the stack so that it cannot outlive this process: its pid, its exit status, how to stop it."""
    from leatstream.dev.child import Child

    child = Child(command, log)
    return child.mark.pid, lambda: child.exit_status, lambda: child.stop(60.0)


def _start_free(command: list[str], log: Path) -> Started:
    """Start the stack so that it outlives this process."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )

    def stop() -> None:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    return process.pid, process.poll, stop


def _await_ready(ready_file: Path, log: Path, ended: Callable[[], int | None]) -> dict[str, Any]:
    deadline = time.monotonic() + STACK_TIMEOUT
    while time.monotonic() < deadline:
        if ended() is not None:
            raise DemoFailure(f"The stack did not start:\n{tail(log)}")
        try:
            return dict(json.loads(ready_file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            time.sleep(0.1)
    raise DemoFailure(f"The stack was not ready after {STACK_TIMEOUT:g} s:\n{tail(log)}")


def _path_name(name: str) -> str:
    """An exact name as the paths of the service take it: quoted unless it is plain."""
    from leatstream.model.names import quote

    return quote(name)


def _why(query: dict[str, Any] | None) -> str:
    status = (query or {}).get("status") or {}
    error = status.get("error") or {}
    return str(error.get("detail") or status.get("message") or status.get("state") or "it is gone")
