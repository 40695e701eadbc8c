"""Where the executors of a query's driver are: in the driver itself, or on a Spark or YARN cluster.

The driver stays a process beside the server (client mode): Spark's standalone cluster takes no Python driver,
and so the pool keeps drivers warm, sees their end and ends them alike everywhere.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from leatstream.errors import StackError, sentence

# Spark settings end up in the JVM's command line, which any user of the machine can read.
_SECRET = re.compile(r"(?i)secret|password|passwd|token|access[.]?key|jaas|credential")
_SECRET_VALUE = re.compile(r"(?i)(secret|password|passwd|token|access[.]?key)=")
_OWN = ("spark.master", "spark.submit.deployMode", "spark.jars", "spark.local.dir", "spark.submit.pyFiles")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster for executors.

    Attributes:
        kind: which one.
        master: ``spark://host:port`` of a standalone cluster; not used on YARN.
        executors: how many a query has.
        executor_cores: tasks at once in each.
        executor_memory: heap of each.
        driver_host: where executors reach the driver; empty = this machine's address towards the master.
        conf: more Spark settings, without secrets.
        hadoop_conf: directory of Hadoop's settings, which Spark reads itself; YARN needs it.
        yarn_queue, yarn_principal, yarn_keytab: of YARN; empty = its default, or no Kerberos.
    """

    kind: Literal["standalone", "yarn"]
    master: str = ""
    executors: int = 2
    executor_cores: int = 2
    executor_memory: str = "1g"
    driver_host: str = ""
    conf: Mapping[str, str] = field(default_factory=dict)
    hadoop_conf: str = ""
    yarn_queue: str = ""
    yarn_principal: str = ""
    yarn_keytab: str = ""

    @property
    def slots(self) -> int:
        """Tasks at once of one query."""
        return self.executors * self.executor_cores

    def spark_conf(self) -> dict[str, str]:
        """Spark settings of a driver on this cluster.

        Raises:
            StackError: ``part-failed``: what is wrong with the settings, all of it.
        """
        faults = self._faults()
        if faults:
            raise StackError(
                "part-failed",
                sentence("; ".join(faults)),
                hint="See docs/deploy.md for what each launcher needs.",
            )
        address = "" if self.driver_host else self._own_address()
        wanted = {
            "spark.master": self.master if self.kind == "standalone" else "yarn",
            "spark.submit.deployMode": "client",
            "spark.executor.instances": str(self.executors),
            "spark.executor.cores": str(self.executor_cores),
            "spark.executor.memory": self.executor_memory,
            "spark.driver.host": self.driver_host or address,
            # A name that executors know need not be one of this machine's own.
            "spark.driver.bindAddress": address or "0.0.0.0",  # noqa: S104 - executors connect to it
            # Idle executors of a warm driver are what makes its query start at once.
            "spark.dynamicAllocation.enabled": "false",
        }
        if self.kind == "standalone":
            wanted["spark.cores.max"] = str(self.slots)
        else:
            wanted |= self._yarn()
        return {**wanted, **self.conf}

    def environment(self) -> dict[str, str]:
        """What a driver process receives of it."""
        return {"LEATSTREAM_SPARK_CONF": json.dumps(self.spark_conf(), sort_keys=True)}

    def _yarn(self) -> dict[str, str]:
        found = {
            # The driver runs Python of its own; the tag marks leatstream's applications in YARN.
            "spark.yarn.tags": "leatstream",
            "spark.yarn.queue": self.yarn_queue,
            "spark.kerberos.principal": self.yarn_principal,
            "spark.kerberos.keytab": self.yarn_keytab,
        }
        return {key: value for key, value in found.items() if value}

    def _faults(self) -> list[str]:
        faults = []
        if self.kind == "standalone" and not re.fullmatch(
            r"spark://[^\s,:]+:\d+(,[^\s,:]+:\d+)*", self.master
        ):
            faults.append(f"LEATSTREAM_SPARK_MASTER is {self.master!r}, not spark://host:port")
        if self.kind == "yarn" and not self.hadoop_conf:
            faults.append("HADOOP_CONF_DIR is not set, so Spark cannot find YARN")
        if bool(self.yarn_principal) != bool(self.yarn_keytab):
            faults.append("LEATSTREAM_YARN_PRINCIPAL and LEATSTREAM_YARN_KEYTAB go together")
        if self.executors < 1 or self.executor_cores < 1:
            faults.append("LEATSTREAM_EXECUTORS and LEATSTREAM_EXECUTOR_CORES must be at least 1")
        return faults + conf_faults(self.conf)

    def _own_address(self) -> str:
        """This machine's address as the master sees it; no packet is sent."""
        if self.kind != "standalone":
            return socket.getfqdn()
        first = urlsplit(self.master.split(",")[0])
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                first.hostname, first.port, type=socket.SOCK_DGRAM
            )[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.connect(address)
                return str(probe.getsockname()[0])
        except OSError as error:
            raise StackError(
                "part-failed",
                sentence(
                    f"The network route to {self.master} cannot be determined: {error.strerror or error}"
                ),
                hint="Correct LEATSTREAM_SPARK_MASTER, or set LEATSTREAM_DRIVER_HOST.",
            ) from None


def conf_faults(conf: Mapping[str, str]) -> list[str]:
    """What is wrong with Spark settings that an operator gave."""
    faults = [
        f"{key} in LEATSTREAM_SPARK_CONF is no Spark setting" for key in conf if not key.startswith("spark.")
    ]
    faults += [f"{key} in LEATSTREAM_SPARK_CONF is set by leatstream itself" for key in conf if key in _OWN]
    faults += [
        f"{key} in LEATSTREAM_SPARK_CONF looks like a secret, and Spark shows settings in its command line"
        for key, value in conf.items()
        # The path of a file reveals no secret: spark.authenticate.secret.file.
        if (_SECRET.search(key) and not key.endswith(".file")) or _SECRET_VALUE.search(value)
    ]
    return faults
