"""Every error leatstream raises on purpose.

    LeatstreamError                     /problems/<code>
    ├── RequestError (user)             sql-syntax 400 · invalid-page-token 400 · validation 422
    │                                   unknown-relation 422 · unknown-column 422 · unknown-function 422
    │                                   type-mismatch 422 · not-grouped 422 · within-required 422
    │                                   unsupported 422 · not-computable 422
    │                                   property-required 422 · invalid-property 422 · too-complex 422
    │                                   schema-incompatible 422 · too-large 413
    ├── AccessError (user)              unauthenticated 401 · permission-denied 403
    │                                   too-many-requests 429 (retry)
    ├── IdentityError (external)        issuer-unreachable 503 (retry)
    ├── CatalogError (user)             not-found 404 · already-exists 409 · has-dependents 409
    │                                   requires-replacement 409 · invalid-transition 409 · stale 412
    ├── StoreError (external)           store-unreachable 503 (retry) · store-auth-failed 502
    │                                   entity-not-found 404 · entity-conflict 409 · store-rejected 502
    │                                   address-refused 403
    │                                   registry-unreachable 503 (retry) · registry-auth-failed 502
    │                                   registry-rejected 502 · schema-conflict 409
    ├── SecretStoreError (external)     secret-store-unreachable 503 (retry) · secret-store-refused 502
    │                                   secret-missing 502
    ├── EngineError (external)          engine-unavailable 503 (retry) · fenced 409
    │                                   view-not-ready 503 (retry) · statement-timeout 504
    ├── CheckpointError (external)      checkpoints-unreachable 503 (retry) · checkpoints-refused 502
    │                                   disk-full
    ├── JobError (in a query's status)  job-failed · source-gone · undecodable-record · checkpoint-damaged
    │                                   job-rejected · disk-full · driver-lost · driver-not-started
    ├── StackError (embedded stack)     tool-missing · jars-unavailable · port-taken · already-running
    │                                   part-failed; shown by the command line, never by REST
    └── InternalError (internal)        internal 500 · secret-unreadable 500 · catalog-unreachable 503 (retry)
                                        catalog-busy 503 (retry) · catalog-full 503 (retry)

One class serves all codes of a family; a code never changes once released, its text may.
SQLSTATEs are those of the reference product where it has one, PostgreSQL's otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self


@dataclass(frozen=True, slots=True)
class Position:
    """A stretch of the user's SQL text: line and column count from 1, offset from 0, in characters."""

    line: int
    column: int
    offset: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: what, where, and what to do about it.

    Attributes:
        detail: what is wrong, one sentence.
        code: the fault's own code where it differs from the error's.
        pointer: JSON pointer into the request body, such as ``#/columns/0/type``.
        position: where in the SQL text.
        hint: what to write instead.
        sqlstate: five characters.
    """

    detail: str
    code: str | None = None
    pointer: str | None = None
    position: Position | None = None
    hint: str | None = None
    sqlstate: str | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """What is fixed for a code: its HTTP status, title, SQLSTATE and whether a retry may help."""

    status: int
    title: str
    sqlstate: str
    retryable: bool = False


class LeatstreamError(Exception):
    """Base of the tree. ``kinds`` maps each code of the family to what is fixed for it.

    Attributes:
        retry_after: seconds that a client waits before it tries again, where that may help.
    """

    retry_after = 1
    kinds: ClassVar[dict[str, Kind]] = {}
    domain: ClassVar[str] = "internal"

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        faults: Sequence[Fault] = (),
        position: Position | None = None,
        hint: str | None = None,
        pointer: str | None = None,
        sqlstate: str | None = None,
        **extra: Any,
    ) -> None:
        """Make an error.

        Args:
            code: one of ``kinds``.
            detail: what went wrong, for a person; never a secret, never a traceback.
            faults: every fault found, when there may be several; else one is made of the other arguments.
            position: where in the SQL text.
            hint: what to do.
            pointer: JSON pointer into the request body.
            sqlstate: overrides the code's.
            **extra: more members of the problem document.
        """
        super().__init__(detail)
        self.kind = self.kinds[code]
        self.code = code
        self.detail = detail
        self.sqlstate = sqlstate or self.kind.sqlstate
        single = Fault(detail, code, pointer, position, hint, self.sqlstate)
        self.faults: tuple[Fault, ...] = tuple(faults) or (single,)
        self.extra = extra

    @property
    def status(self) -> int:
        """HTTP status."""
        return self.kind.status

    @property
    def title(self) -> str:
        """Short text that is the same for every error of this code."""
        return self.kind.title

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later without a change."""
        return self.kind.retryable

    def at(self, position: Position | None) -> Self:
        """Give the faults that have no position this one, and return self."""
        if position is not None:
            self.faults = tuple(f if f.position else replace(f, position=position) for f in self.faults)
        return self


class RequestError(LeatstreamError):
    """The request or its SQL is wrong."""

    domain = "user"
    kinds: ClassVar[dict[str, Kind]] = {
        "sql-syntax": Kind(400, "SQL syntax error", "42601"),
        "invalid-page-token": Kind(400, "Page token is not valid", "22023"),
        "validation": Kind(422, "Request is not valid", "22023"),
        "unknown-relation": Kind(422, "Relation does not exist", "3D020"),
        "unknown-column": Kind(422, "Column does not exist", "42703"),
        "ambiguous-column": Kind(422, "Column name is ambiguous", "42702"),
        "unknown-function": Kind(422, "Function does not exist", "42883"),
        "type-mismatch": Kind(422, "Types do not fit", "42804"),
        "not-grouped": Kind(422, "Column is neither grouped nor aggregated", "42803"),
        "within-required": Kind(422, "WITHIN is required", "42601"),
        "unsupported": Kind(422, "Not supported", "0A000"),
        "property-required": Kind(422, "Sink property cannot be inferred", "3D021"),
        "invalid-property": Kind(422, "Property is not valid", "3D008"),
        "not-computable": Kind(422, "A value cannot be computed", "22000"),
        "too-complex": Kind(422, "Statement is too complex", "54001"),
        "schema-incompatible": Kind(422, "Schema registry would refuse the schema", "42804"),
        "too-large": Kind(413, "Request body is too large", "54000"),
    }


@dataclass(frozen=True, slots=True)
class Refused:
    """What the audit log has of a refused caller, and no answer shows.

    Attributes:
        account: whose token it was; empty if nobody's.
        role: in use; empty = the one that the caller signed in with.
        token: id of the token.
        reason: why, where the answer says less; empty = the answer's text.
    """

    account: str = ""
    role: str = ""
    token: str | None = None
    reason: str = ""


class AccessError(LeatstreamError):
    """The caller is not known or may not do this."""

    refused = Refused()

    domain = "user"
    kinds: ClassVar[dict[str, Kind]] = {
        "unauthenticated": Kind(401, "Authentication required", "28000"),
        "permission-denied": Kind(403, "Permission denied", "42501"),
        "too-many-requests": Kind(429, "Too many requests", "53300", retryable=True),
    }

    def noted_as(self, refused: Refused) -> Self:
        """Give the audit log this, and return self."""
        self.refused = refused
        return self


class IdentityError(LeatstreamError):
    """An identity provider did not do what was asked."""

    domain = "external"
    kinds: ClassVar[dict[str, Kind]] = {
        "issuer-unreachable": Kind(503, "Identity provider cannot be reached", "57015", retryable=True),
    }


def fewer_rights(role: str) -> AccessError:
    """The role has lost a privilege since an answer that lasts began."""
    return AccessError(
        "permission-denied",
        f"Role {role} has lost a privilege, so this answer ends.",
        hint="Send the request again: it needs the privileges of now.",
    )


def no_provider() -> CatalogError:
    """No issuer of the configuration is for people."""
    return CatalogError(
        "not-found",
        "This server has no identity provider for people.",
        hint="Give one issuer in LEATSTREAM_OIDC a client_id, or use an API token.",
    )


def no_public_client(issuer: str) -> CatalogError:
    """The client of people has a secret, which no command line can keep."""
    return CatalogError(
        "not-found",
        f"Issuer {issuer} signs people in to the console only: its client has a secret.",
        hint="Set cli_client_id of the issuer in LEATSTREAM_OIDC to a public client, or use an API token.",
    )


# SQLSTATEs of an object that is missing, and of a name that is taken, by noun. The reference product writes
# some with six characters, such as 42P017 for a relation: these have no 0 in the middle here.
MISSING = {
    "database": "3D002",
    "schema": "3D003",
    "store": "3D006",
    "entity": "3D007",
    "schema registry": "3D009",
    "descriptor source": "3D011",
    "secret": "3D016",
    "function": "3D017",
    "function source": "3D018",
    "query": "3D019",
    "relation": "3D020",
    "index": "42704",
}
TAKEN = {
    "database": "42P04",
    "store": "42P05",
    "schema": "42P06",
    "index": "42P07",
    "secret": "42P14",
    "function": "42P15",
    "function source": "42P16",
    "relation": "42P17",
    "schema registry": "42P18",
}
_KINDS_OF_RELATIONS = ("stream", "changelog", "table", "materialized view")


class CatalogError(LeatstreamError):
    """The catalog's state does not allow the request.

    With a ``noun``, what is missing or exists already has that noun's SQLSTATE.
    """

    def __init__(
        self, code: str, detail: str, *, noun: str | None = None, sqlstate: str | None = None, **more: Any
    ) -> None:
        """Make an error; see ``LeatstreamError``."""
        states = {"not-found": MISSING, "already-exists": TAKEN}.get(code, {})
        word = _word(noun or "")
        word = "relation" if word in _KINDS_OF_RELATIONS else word
        state = states.get(word)
        super().__init__(code, detail, sqlstate=sqlstate or state, **more)

    domain = "user"
    kinds: ClassVar[dict[str, Kind]] = {
        "not-found": Kind(404, "Object does not exist", "3D000"),
        "already-exists": Kind(409, "Object already exists", "42710"),
        "has-dependents": Kind(409, "Other objects depend on this one", "2BP01"),
        "requires-replacement": Kind(409, "Change needs a new object", "0A000"),
        "invalid-transition": Kind(409, "State does not allow this", "55000"),
        "stale": Kind(412, "Object has changed meanwhile", "40001"),
    }


def not_found(noun: str, name: str, **more: Any) -> CatalogError:
    """The error of an object that the catalog does not have.

    Args:
        noun: what it is, such as ``schema registry``; an underscore stands for a blank.
        name: its name as SQL writes it, quoted where that is needed.
        **more: further arguments of ``CatalogError``, such as ``hint`` and ``position``.
    """
    return CatalogError("not-found", sentence(f"{_word(noun)} {name} does not exist"), noun=noun, **more)


def ambiguous(name: str, choices: Sequence[str]) -> RequestError:
    """The error of a name that objects of several kinds have, where no kind was given.

    Args:
        name: as it was written.
        choices: the name with each of its kinds.
    """
    hint = f"Write {' or '.join(choices)}."
    return RequestError("validation", f"Objects of several kinds are named {name}.", hint=hint)


def already_exists(noun: str, name: str, **more: Any) -> CatalogError:
    """The error of a name that another object of the catalog has.

    Args:
        noun: what it is, such as ``schema registry``; an underscore stands for a blank.
        name: its name as SQL writes it, quoted where that is needed.
        **more: further arguments of ``CatalogError``, such as ``hint`` and ``position``.
    """
    return CatalogError("already-exists", sentence(f"{_word(noun)} {name} exists already"), noun=noun, **more)


def sentence(text: str) -> str:
    """A text from elsewhere as a sentence: with a capital first letter and a full stop.

    A first word that is code, such as ``value.format``, keeps its letters.
    """
    text = text.strip()
    first = text.partition(" ")[0].rstrip(",:;")
    if first.isalpha():
        text = f"{text[:1].upper()}{text[1:]}"
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def _word(noun: str) -> str:
    return noun.replace("_", " ")


class StoreError(LeatstreamError):
    """A store of the user's did not do what was asked."""

    domain = "external"
    kinds: ClassVar[dict[str, Kind]] = {
        "store-unreachable": Kind(503, "Store cannot be reached", "57015", retryable=True),
        "store-auth-failed": Kind(502, "Store refused the credentials", "28000"),
        "store-rejected": Kind(502, "Store refused the operation", "58000"),
        "address-refused": Kind(403, "Server does not connect to the address", "42501"),
        "entity-not-found": Kind(404, "Entity does not exist in the store", "3D007"),
        "entity-conflict": Kind(409, "Entity exists with other properties", "42710"),
        "registry-unreachable": Kind(503, "Schema registry cannot be reached", "57015", retryable=True),
        "registry-auth-failed": Kind(502, "Schema registry refused the credentials", "28000"),
        "registry-rejected": Kind(502, "Schema registry refused the operation", "58000"),
        "schema-conflict": Kind(409, "Schema registry refused the schema", "42804"),
    }


def no_entity(store: str, entity: str) -> StoreError:
    """The error of an entity that a store does not have.

    Args:
        store: its name as SQL writes it.
        entity: the name that was asked for.
    """
    hint = f"LIST ENTITIES IN STORE {store} names those it has."
    return StoreError("entity-not-found", f"Store {store} has no entity '{entity}'.", hint=hint)


class AttemptBehindError(StoreError):
    """A sink has been written by a later attempt of the query than this one.

    Raised in a job that its server gave up, or after the catalog was restored from a backup.

    Attributes:
        newest: number of the attempt that has written last.
    """

    def __init__(self, detail: str, newest: int) -> None:
        super().__init__("store-rejected", detail)
        self.newest = newest


class SecretStoreError(LeatstreamError):
    """A secret store outside the catalog did not give a value."""

    domain = "external"
    kinds: ClassVar[dict[str, Kind]] = {
        "secret-store-unreachable": Kind(503, "Secret store cannot be reached", "57015", retryable=True),
        "secret-store-refused": Kind(502, "Secret store refused the server", "28000"),
        "secret-missing": Kind(502, "Secret store does not have the value", "58000"),
    }


class EngineError(LeatstreamError):
    """The engine cannot do its part now."""

    domain = "external"
    kinds: ClassVar[dict[str, Kind]] = {
        "engine-unavailable": Kind(503, "No Spark driver is ready", "53000", retryable=True),
        "fenced": Kind(409, "A newer attempt has taken over", "55000"),
        "view-not-ready": Kind(503, "Materialized view cannot be read yet", "55000", retryable=True),
        "statement-timeout": Kind(504, "Statement took too long", "57014"),
    }


class CheckpointError(LeatstreamError):
    """The file system that holds the checkpoints did not do what was asked."""

    domain = "external"
    kinds: ClassVar[dict[str, Kind]] = {
        "checkpoints-unreachable": Kind(503, "Checkpoints cannot be reached", "57015", retryable=True),
        "checkpoints-refused": Kind(502, "The checkpoints' file system refused", "58000"),
        "disk-full": Kind(500, "The disk is full", "53100", retryable=True),
    }


# Condition of a job that could not load its state: the disk may be missing, or the checkpoint be damaged.
STATE_UNREADABLE = "state-unreadable"


class JobError(LeatstreamError):
    """Why a job failed; appears in a query's status, never as an HTTP answer of its own.

    ``retryable`` says whether a restart from the checkpoint may cure it.
    """

    domain = "external"
    kinds: ClassVar[dict[str, Kind]] = {
        "job-failed": Kind(500, "Job failed", "58000", retryable=True),
        "job-rejected": Kind(500, "Spark refused the job", "0A000"),
        "source-gone": Kind(500, "A source entity or its records are gone", "58000"),
        "undecodable-record": Kind(500, "A record could not be decoded", "22000"),
        "checkpoint-damaged": Kind(500, "The checkpoint cannot be used", "58000"),
        "disk-full": Kind(500, "The disk is full", "53100", retryable=True),
        "driver-lost": Kind(500, "The job's driver ended", "57015", retryable=True),
        "driver-not-started": Kind(500, "No driver for the job starts", "53000", retryable=True),
    }


class StackError(LeatstreamError):
    """The embedded stack cannot start or lacks a piece."""

    domain = "external"
    kinds: ClassVar[dict[str, Kind]] = {
        "tool-missing": Kind(503, "A tool is missing", "58000"),
        "jars-unavailable": Kind(503, "Libraries cannot be had", "58000", retryable=True),
        "port-taken": Kind(503, "Port is taken", "58000"),
        "already-running": Kind(409, "Already running", "55000"),
        "part-failed": Kind(503, "A part did not start", "58000"),
    }


class InternalError(LeatstreamError):
    """A fault of leatstream itself."""

    kinds: ClassVar[dict[str, Kind]] = {
        "internal": Kind(500, "Internal error", "XX000"),
        "secret-unreadable": Kind(500, "A stored secret cannot be opened", "58000"),
        "catalog-unreachable": Kind(503, "Catalog cannot be reached", "57015", retryable=True),
        "catalog-busy": Kind(503, "Catalog is busy", "55P03", retryable=True),
        "catalog-full": Kind(503, "The catalog's disk is full", "53100", retryable=True),
    }


class CatalogAway(Exception):
    """The catalog's database does not answer.

    Not in the tree above: code that handles the faults of a request must not handle this one.
    """

    def for_caller(self) -> InternalError:
        """The error that the caller gets."""
        return InternalError(
            "catalog-unreachable",
            "The database that holds the catalog does not answer.",
            hint="Try again. A change that was just being written may have been kept.",
        )


class CatalogBusy(CatalogAway):
    """The catalog took nothing down: another change of it did not end in time."""

    def for_caller(self) -> InternalError:
        """The error that the caller gets."""
        return InternalError(
            "catalog-busy",
            str(self),
            hint="Try again. If it stays so, a leatstream server on this catalog stands still: restart it.",
        )


class CatalogFull(CatalogAway):
    """The catalog took nothing down: its disk is full."""

    def for_caller(self) -> InternalError:
        """The error that the caller gets."""
        return InternalError(
            "catalog-full",
            "The disk of the database that holds the catalog is full; nothing was changed.",
            hint="Make room on that disk and try again.",
        )


FAMILIES: tuple[type[LeatstreamError], ...] = (
    RequestError,
    AccessError,
    IdentityError,
    CatalogError,
    StoreError,
    SecretStoreError,
    EngineError,
    CheckpointError,
    JobError,
    StackError,
    InternalError,
)


@dataclass(slots=True)
class Faults:
    """Collects faults so that all are reported at once, not the first."""

    items: list[Fault] = field(default_factory=list)

    def add(self, code: str, detail: str, **more: Any) -> None:
        """Note one fault of a ``RequestError`` code."""
        kind = RequestError.kinds[code]
        self.items.append(Fault(detail, code, **{"sqlstate": kind.sqlstate, **more}))

    def raise_if_any(self) -> None:
        """Raise one ``RequestError`` with every fault noted, under the first one's code."""
        if self.items:
            first = self.items[0]
            # A WITH query that is read twice is bound twice, and so are sub-selects that are merged.
            once = [fault for index, fault in enumerate(self.items) if fault not in self.items[:index]]
            raise RequestError(first.code or "validation", first.detail, faults=once)
