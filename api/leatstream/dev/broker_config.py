"""What the embedded broker reads and writes besides topics: its configuration, its log."""

from __future__ import annotations

from pathlib import Path

from leatstream.dev.ports import LOOPBACK

LOGS_DIR = "topics"
LOGGING_FILE = "log4j2.properties"
LOG_LIMIT = 5_000_000  # bytes; the log of the run before stays as .1

_LOGGING = """\
status = error
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %d{ISO8601} %-5p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.err.ref = err
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
logger.version.name = org.apache.kafka.common.utils.AppInfoParser
logger.version.level = error
"""


def properties(data_dir: Path, port: int, controller_port: int) -> dict[str, str]:
    """The broker's configuration.

    Args:
        data_dir: topics lie in its sub-directory ``topics``.
        port: for clients.
        controller_port: the node talks to itself there.
    """
    single = dict.fromkeys(
        (
            "offsets.topic.replication.factor",
            "transaction.state.log.replication.factor",
            "transaction.state.log.min.isr",
            "share.coordinator.state.topic.replication.factor",
            "share.coordinator.state.topic.min.isr",
        ),
        "1",
    )
    # Fewer partitions of the internal topics: the first commit would else make 50 directories.
    few = dict.fromkeys(
        (
            "offsets.topic.num.partitions",
            "transaction.state.log.num.partitions",
            "share.coordinator.state.topic.num.partitions",
        ),
        "4",
    )
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
        "listeners": f"CLIENT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
        "advertised.listeners": f"CLIENT://{LOOPBACK}:{port}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(data_dir / LOGS_DIR),
        **single,
        **few,
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        "num.partitions": "1",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
        # After a kill the next start waits until the controller gives the old incarnation up; default 9 s.
        "broker.session.timeout.ms": "5000",
        "broker.heartbeat.interval.ms": "1000",
        "log.cleaner.dedupe.buffer.size": "8388608",  # default 128 MB of a 512 MB heap
    }


def write(data_dir: Path, port: int, controller_port: int) -> Path:
    """Write both configuration files; returns the broker's."""
    lines = [f"{key}={value}" for key, value in properties(data_dir, port, controller_port).items()]
    path = data_dir / "server.properties"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (data_dir / LOGGING_FILE).write_text(_LOGGING, encoding="utf-8")
    return path


def rotate(log_file: Path) -> None:
    """Set a log that has grown large aside before a start."""
    if log_file.is_file() and log_file.stat().st_size > LOG_LIMIT:
        log_file.replace(log_file.with_name(log_file.name + ".1"))


def tail(log_file: Path, lines: int = 12) -> str:
    """The last lines of a log, for an error message."""
    try:
        text = log_file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "(no log)"
    return "\n".join(text.splitlines()[-lines:]) or "(empty)"
