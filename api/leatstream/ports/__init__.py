"""What the services need from the outside, as protocols; ``bootstrap`` chooses who provides it."""

from leatstream.ports.catalog import (
    AuditRows,
    ChangeRows,
    Clock,
    DriverRow,
    DriverRows,
    OpenUnit,
    QueryLogRows,
    Repository,
    SecretBox,
    SecretRows,
    TokenRows,
    UnitOfWork,
)
from leatstream.ports.checkpoints import CheckpointFiles
from leatstream.ports.drivers import AnalysisRequest, Analyzer, Drivers, Launcher, Leases, Sharing
from leatstream.ports.identities import Identities, Identity, PeoplesProvider, SignIn, Tokens, Visit
from leatstream.ports.secret_stores import SecretProvider
from leatstream.ports.views import Freshness, Snapshot, ViewStore

__all__ = [
    "AnalysisRequest",
    "Analyzer",
    "AuditRows",
    "ChangeRows",
    "CheckpointFiles",
    "Clock",
    "DriverRow",
    "DriverRows",
    "Drivers",
    "Freshness",
    "Identities",
    "Identity",
    "Launcher",
    "Leases",
    "OpenUnit",
    "PeoplesProvider",
    "QueryLogRows",
    "Repository",
    "SecretBox",
    "SecretProvider",
    "SecretRows",
    "Sharing",
    "SignIn",
    "Snapshot",
    "TokenRows",
    "Tokens",
    "UnitOfWork",
    "ViewStore",
    "Visit",
]
