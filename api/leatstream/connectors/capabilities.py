"""What a store kind can be used for, and what its new entities need."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A delivery guarantee of a sink, and when it holds."""

    name: str
    condition: str


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a kind can be used for; shown by REST and the docs, and asked by the planner.

    Attributes:
        source: queries can read it.
        sink: queries can write it.
        create_as: ``CREATE … AS SELECT`` makes a new entity in it.
        cdc: changes of its tables can be read as they are made.
        view: it can hold materialized views.
        view_swap: from one query of them to the next, such a view can show the rows of another version.
        create_entity: entities can be created and deleted.
        print_records: PRINT shows records.
        insert_values: ``INSERT … VALUES`` writes records.
        realtime: queries over it can run in real-time mode.
        headers: its records have headers, which queries read and write.
        lookup: rows of its tables can be joined with a stream's (``table_reader``).
        batches: changelog operators can write it, batch by batch (``write_batch``, ``table_writer`` or
            ``row_writer``).
        positions: records lie at numbered places of numbered partitions, which can be compared and read again
            (``ends``, ``read_range``): offsets to restart from, blue-green replacement of what reads them.
        bounded_runs: a query can read what is there and complete.
        batch_bounds: how much a micro-batch reads can change from one to the next.
        hand_over: what one version of a query wrote, the next one can continue at one place.
        error_log: records that could not be read can be written beside a query's results.
        delivery: what its sinks promise.
        verified_on: what the tests run against: the real server, or what stands in for it.
        unverified: what has never been run against the real store; empty where nothing is left.
    """

    source: bool = False
    sink: bool = False
    create_as: bool = False
    cdc: bool = False
    view: bool = False
    view_swap: bool = False
    create_entity: bool = False
    print_records: bool = False
    insert_values: bool = False
    realtime: bool = False
    headers: bool = False
    lookup: bool = False
    batches: bool = False
    positions: bool = False
    bounded_runs: bool = False
    batch_bounds: bool = False
    hand_over: bool = False
    error_log: bool = False
    delivery: tuple[Guarantee, ...] = ()
    verified_on: str = ""
    unverified: str = ""


@dataclass(frozen=True, slots=True)
class EntityProperty:
    """A property of this kind's entities that a sink needs a value for.

    Attributes:
        name: canonical relation property, such as ``topic.partitions``.
        aliases: other accepted names, such as ``kafka.partitions``.
        inheritable: whether the left-most source of the same kind may give it.
        minimum: smallest legal value.
        description: what it is, for the API's documentation.
        grows_only: whether the store cannot make it smaller.
    """

    name: str
    aliases: tuple[str, ...]
    inheritable: bool = True
    minimum: int = 1
    description: str = ""
    grows_only: bool = False

    @property
    def short(self) -> str:
        """Its name in bodies, such as ``partitions``."""
        return self.name.rpartition(".")[2]
