"""Asking a Kafka cluster, with a bound on every wait and an error that says what is really wrong.

librdkafka retries for ever and reports a refused login only through a callback; ``KafkaAdmin`` turns both
into a StoreError within the time given.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from leatstream.connectors.entities import Entity
from leatstream.connectors.kafka.passing import passes
from leatstream.connectors.kafka.settings import KafkaConfig, librdkafka_settings
from leatstream.connectors.kafka.tokens import tokens_of
from leatstream.errors import StoreError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.admin._metadata import ClusterMetadata, TopicMetadata

T = TypeVar("T")
PARTITIONS, REPLICAS = "topic.partitions", "topic.replicas"
_MEMORY = 100  # errors
_SLICE = 0.25  # seconds between looks at what the callback has heard


class KafkaAdmin:
    """One cluster's admin client; safe to share between threads."""

    def __init__(self, store: str, config: KafkaConfig) -> None:
        self.store = store
        self.servers = config.bootstrap_servers
        self._settings = librdkafka_settings(config)
        self._tokens = tokens_of(store, config.sasl)
        self._login_hint = config.sasl.hint if config.sasl else None
        self._client: AdminClient | None = None
        self._connecting = threading.Lock()
        # When each was heard: one that is over says nothing about a question that comes after it.
        self._heard: deque[tuple[float, KafkaError]] = deque(maxlen=_MEMORY)

    def settings(self) -> dict[str, Any]:
        """librdkafka settings for a client of this store that reports its errors here.

        Raises:
            StoreError: the store logs in with a token that cannot be had.
        """
        tokens: dict[str, Any] = {}
        if self._tokens is not None:
            # Before the client is made: it would wait for its first token and not say why there is none.
            self._tokens.token()
            tokens["oauth_cb"] = self._tokens.answer
        return (
            self._settings
            | tokens
            | {
                "error_cb": self._hear,
                "client.id": "leatstream",
                "socket.connection.setup.timeout.ms": 5000,
                "reconnect.backoff.max.ms": 1000,
                "logger": _silent(),
            }
        )

    @property
    def client(self) -> AdminClient:
        """The client, connected on first use."""
        # Two threads that made one each would destroy the first under the calls that wait for its answers.
        with self._connecting:
            if self._client is None:
                from confluent_kafka import KafkaException
                from confluent_kafka.admin import AdminClient

                try:
                    self._client = AdminClient(self.settings())
                except KafkaException as error:
                    raise self._error("store-rejected", f"its settings are refused: {_text(error)}") from None
            return self._client

    def metadata(self, timeout: float, topic: str | None = None) -> ClusterMetadata:
        """Cluster metadata; StoreError within ``timeout`` seconds."""
        from confluent_kafka import KafkaException

        client = self.client
        begun = time.monotonic()
        end = begun + timeout
        while True:
            left = end - time.monotonic()
            try:
                return (
                    client.list_topics(topic, timeout=max(0.05, min(_SLICE, left)))
                    if topic
                    else (client.list_topics(timeout=max(0.05, min(_SLICE, left))))
                )
            except KafkaException as error:
                client.poll(0)
                self.raise_if_final(begun)
                if time.monotonic() >= end:
                    raise self.unreachable(error, timeout) from None

    def topic(self, name: str, timeout: float) -> TopicMetadata | None:
        """A topic's metadata, or None when it does not exist. Unlike a plain question, never creates it."""
        topics = self.metadata(timeout).topics
        found = topics.get(name)
        if found is not None and found.error is not None:
            # No leader yet just after creation; anything else is said.
            code = found.error.name()
            if code in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
                return None
            if code == "TOPIC_AUTHORIZATION_FAILED":
                raise self._error("store-auth-failed", f"the user may not see topic {name}")
        return found

    def brokers(self, timeout: float) -> int:
        """How many brokers are there now."""
        return len(self.metadata(timeout).brokers)

    def wait(self, futures: Mapping[Any, Future[T]], what: str, timeout: float) -> T:
        """The one result of an admin call.

        Raises:
            KafkaException: the cluster's own answer, for the caller to tell apart.
            StoreError: no answer in time, or the login was refused.
        """
        from concurrent.futures import TimeoutError as FutureTimeout

        from confluent_kafka import KafkaException

        (future,) = futures.values()
        begun = time.monotonic()
        end = begun + timeout
        while True:
            try:
                return future.result(max(0.05, min(_SLICE, end - time.monotonic())))
            except FutureTimeout:
                self.client.poll(0)
                self.raise_if_final(begun)
                if time.monotonic() >= end:
                    raise self._error("store-unreachable", f"no answer to {what} in {timeout:g} s") from None
            except KafkaException as error:
                code = error.args[0].name()
                if code in ("_TIMED_OUT", "_TRANSPORT", "REQUEST_TIMED_OUT"):
                    self.raise_if_final(begun)
                    raise self.unreachable(error, timeout) from None
                if code.endswith("AUTHORIZATION_FAILED"):
                    raise self._error("store-auth-failed", f"the user may not {what}") from None
                raise

    def configs(self, topic: str, timeout: float) -> dict[str, str]:
        """Settings that were made on the topic itself; empty where the user may not read them."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin._config import ConfigResource, ConfigSource

        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        asked = self.client.describe_configs([resource], request_timeout=timeout)
        try:
            entries = self.wait(asked, f"read the settings of topic {topic}", timeout)
        except StoreError as error:
            if error.code == "store-auth-failed":
                return {}
            raise
        except KafkaException as error:
            raise self.rejected(error, f"reading the settings of topic {topic}") from None
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {e.name: e.value for e in entries.values() if e.source == own and e.value is not None}

    def topic_id(self, topic: str, timeout: float) -> str | None:
        """The id that the cluster gave this topic when it was made, or None when the topic is not there."""
        from confluent_kafka import KafkaException, TopicCollection

        asked = self.client.describe_topics(TopicCollection([topic]), request_timeout=timeout)
        try:
            description = self.wait(asked, f"describe topic {topic}", timeout)
        except KafkaException as error:
            if error.args[0].name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
                return None
            raise self.rejected(error, f"describing topic {topic}") from None
        return str(description.topic_id)

    def until(self, condition: Callable[[], bool], what: str, timeout: float) -> None:
        """Wait until the cluster shows it."""
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() >= end:
                raise self._error(
                    "store-unreachable", f"the cluster does not show {what} after {timeout:g} s"
                )
            time.sleep(0.05)

    def unreachable(self, error: Exception, timeout: float) -> StoreError:
        """What to say when nothing answered."""
        since = time.monotonic() - timeout - 1
        heard = [e.str() for at, e in list(self._heard) if at > since and e.name() != "_ALL_BROKERS_DOWN"]
        why = f" ({_first_clause(heard[-1])})" if heard else ""
        return StoreError(
            "store-unreachable",
            f"Store {self.store}: no Kafka broker answered at {self.servers} within {timeout:g} s{why}.",
            hint="Check bootstrap_servers (in SQL 'uris'), security_protocol ('tls.disabled') and that the "
            "brokers' advertised listeners can be reached from here.",
        )

    def rejected(self, error: Exception, what: str) -> StoreError:
        """What to say when the cluster said no, or not now."""
        if error.args and hasattr(error.args[0], "retriable") and passes(error.args[0]):
            return self._error("store-unreachable", f"{what} has to wait: {_text(error)}")
        return self._error("store-rejected", f"{what} was refused: {_text(error)}")

    def raise_if_final(self, since: float) -> None:
        """Stop waiting when a refused login was heard of: waiting longer would not help.

        Args:
            since: on the monotonic clock; what was heard before has passed.
        """
        if self._tokens is not None and self._tokens.fault is not None:
            raise self._tokens.fault
        for at, error in list(self._heard):  # other threads hear meanwhile
            if at >= since and error.name() in ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"):
                raise StoreError(
                    "store-auth-failed",
                    f"Store {self.store}: the Kafka brokers at {self.servers} refused the login.",
                    hint=self._login_hint,
                )

    def _hear(self, error: KafkaError) -> None:
        self._heard.append((time.monotonic(), error))

    def _error(self, code: str, text: str) -> StoreError:
        return StoreError(code, f"Store {self.store}: {text}.")


def entity_of(topic: TopicMetadata, configs: Mapping[str, str] | None = None) -> Entity:
    """The catalog's face of a topic."""
    replicas = {len(p.replicas) for p in topic.partitions.values()}
    properties = {PARTITIONS: len(topic.partitions), REPLICAS: max(replicas) if replicas else None}
    return Entity(str(topic.topic), properties, dict(configs or {}))


def _text(error: Exception) -> str:
    cause = error.args[0] if error.args else error
    said = cause.str() if hasattr(cause, "str") else str(cause)
    return str(said).strip().rstrip(".")


def _first_clause(text: str) -> str:
    # librdkafka puts "<thread>: <address>: reason (after 3ms in state CONNECT, …)"; the reason is what helps.
    return text.split(" (after ", 1)[0].strip().rstrip(".")


def _silent() -> Any:
    """librdkafka writes to stderr unless it is given a logger; what matters arrives by the callback."""
    import logging

    logger = logging.getLogger("leatstream.kafka.client")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger
