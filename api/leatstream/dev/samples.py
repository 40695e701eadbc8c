"""Sample data: page views and users, as a stream of JSON records with primitive keys.

Columns as declared in SQL (keys are ``VARCHAR``, values JSON):

* ``pageviews (viewtime BIGINT, userid VARCHAR, pageid VARCHAR)``
* ``users (registertime BIGINT, userid VARCHAR, regionid VARCHAR, gender VARCHAR, interests ARRAY<VARCHAR>,
  contactinfo STRUCT<phone VARCHAR, city VARCHAR, "state" VARCHAR, zipcode VARCHAR>)``
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leatstream.errors import StackError, sentence

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from leatstream.dev.kinesis_samples import KinesisOutlet

PAGEVIEWS = "pageviews"
USERS = "users"
USER_COUNT = 9
PAGE_COUNT = 99
CREATE_TIMEOUT = 30.0

_INTERESTS = ("News", "Movies", "Sport", "Travel", "Music", "Games", "Cooking")
_CITIES = (
    ("Palo Alto", "CA", "94301"),
    ("San Mateo", "CA", "94403"),
    ("Irvine", "CA", "92617"),
    ("Austin", "TX", "73301"),
    ("Boston", "MA", "02110"),
)

SAMPLE_SQL = """\
CREATE DATABASE play; USE DATABASE play;
CREATE STREAM pageviews
  (viewtime BIGINT, userid VARCHAR, pageid VARCHAR)
  WITH ('topic' = 'pageviews', 'value.format' = 'json',
        'key.format' = 'primitive', 'key.type' = 'VARCHAR',
        'timestamp' = 'viewtime');
CREATE STREAM pageviews_6 AS
  SELECT * FROM pageviews WHERE userid = 'User_6';"""


@dataclass(frozen=True, slots=True)
class SampleOptions:
    """How much is produced.

    Attributes:
        rate: page views a second; one user record for every second page view.
        partitions: of each topic, 1 to 3.
        seed: equal seeds give equal records, but for the time stamps.
        users_topics: topics that get the user records.
        shards: of the Kinesis stream, where page views go to one too.
    """

    rate: float = 10.0
    partitions: int = 1
    seed: int = 20
    users_topics: tuple[str, ...] = (USERS,)
    shards: int = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """One record to produce: topic, key text, and the value's JSON object."""

    topic: str
    key: str
    value: dict[str, Any]


def records(seed: int) -> Iterator[Sample]:
    """The endless sequence of records; ``viewtime`` and ``registertime`` are milliseconds, set when taken.

    Users come first, once each, so that a join has matches from the beginning.
    """
    dice = random.Random(seed)
    for number in range(1, USER_COUNT + 1):
        yield _user(dice, f"User_{number}")
    while True:
        for _ in range(2):
            yield _pageview(dice)
        yield _user(dice, f"User_{dice.randint(1, USER_COUNT)}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _pageview(dice: random.Random) -> Sample:
    user = f"User_{dice.randint(1, USER_COUNT)}"
    page = f"Page_{dice.randint(10, PAGE_COUNT)}"
    return Sample(PAGEVIEWS, user, {"viewtime": _now_ms(), "userid": user, "pageid": page})


def _user(dice: random.Random, user: str) -> Sample:
    city, state, zipcode = dice.choice(_CITIES)
    phone = "".join(dice.choices("0123456789", k=10))
    value = {
        "registertime": _now_ms(),
        "userid": user,
        "regionid": f"Region_{dice.randint(1, 9)}",
        "gender": dice.choice(("MALE", "FEMALE", "OTHER")),
        "interests": dice.sample(_INTERESTS, 2),
        "contactinfo": {"phone": phone, "city": city, "state": state, "zipcode": zipcode},
    }
    return Sample(USERS, user, value)


class SampleProducer:
    """Produces sample records in a thread until stopped.

    Attributes:
        produced: records the broker has confirmed.
        last_error: why the latest failed record failed, or None.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        options: SampleOptions | None = None,
        kinesis: KinesisOutlet | None = None,
    ) -> None:
        """Describe it; nothing happens before ``start``.

        Args:
            bootstrap_servers: the Kafka cluster.
            options: what to produce.
            kinesis: gets every page view too.
        """
        self._servers = bootstrap_servers
        self._options = options or SampleOptions()
        self._kinesis = kinesis
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.produced = 0
        self.last_error: str | None = None

    def start(self) -> None:
        """Create the topics that do not exist and begin.

        Raises:
            StackError: ``part-failed`` when a topic or the Kinesis stream cannot be created.
        """
        from confluent_kafka import Producer

        topics = (PAGEVIEWS, *self._options.users_topics)
        create_topics(self._servers, topics, self._options.partitions)
        if self._kinesis is not None:
            self._kinesis.open()
        # Sample records must be on the topic soon, not many in a batch.
        producer = Producer({"bootstrap.servers": self._servers, "linger.ms": 5, "log_level": 0})
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, args=(producer,), name="sample-data", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it and wait until the last records are out, or five seconds. May be called twice."""
        self._stop.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(10)

    @property
    def running(self) -> bool:
        """Whether records are being produced."""
        return self._thread is not None and self._thread.is_alive()

    def _run(self, producer: Producer) -> None:
        # Each page view takes 1/rate seconds, and a third of the records are users.
        pause = 1.0 / (self._options.rate * 1.5)
        due = time.monotonic()
        for number, sample in enumerate(records(self._options.seed)):
            self._produce(producer, sample)
            producer.poll(0)
            if number < USER_COUNT:
                continue
            due = max(due + pause, time.monotonic() - 1.0)  # after a stall do not race to catch up
            if self._stop.wait(max(0.0, due - time.monotonic())):
                break
        producer.flush(5)

    def _produce(self, producer: Producer, sample: Sample) -> None:
        value = json.dumps(sample.value, separators=(",", ":")).encode()
        for topic in self._options.users_topics if sample.topic == USERS else (sample.topic,):
            try:
                producer.produce(topic, value, sample.key.encode(), on_delivery=self._delivered)
            except BufferError:
                self.last_error = "the broker takes no records; its queue here is full"
        if self._kinesis is not None and sample.topic == PAGEVIEWS:
            try:
                self._kinesis.put(sample)
            except Exception as error:  # whatever fails there, Kafka continues
                self.last_error = f"Kinesis: {error}"

    def _delivered(self, error: object, _message: object) -> None:
        if error is None:
            self.produced += 1
        else:
            self.last_error = str(error)


def create_topics(bootstrap_servers: str, topics: tuple[str, ...], partitions: int) -> None:
    """Create topics that do not exist yet, with as many replicas as the cluster's default.

    Args:
        bootstrap_servers: the cluster.
        topics: names.
        partitions: of each new topic.

    Raises:
        StackError: ``part-failed`` naming the topic and the broker's reason.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    wanted = [NewTopic(topic, num_partitions=partitions) for topic in topics]
    for topic, outcome in admin.create_topics(wanted, operation_timeout=CREATE_TIMEOUT).items():
        try:
            outcome.result(CREATE_TIMEOUT)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise StackError(
                    "part-failed",
                    sentence(
                        f"Topic {topic} cannot be created on {bootstrap_servers}: {error.args[0].str()}"
                    ),
                    hint="Is the broker up and writable? --no-sample starts without sample data.",
                ) from error
