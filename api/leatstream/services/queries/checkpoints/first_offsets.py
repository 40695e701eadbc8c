"""Where a query has begun to read its sources, so that another one may begin there too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from leatstream.model.objects import Query
from leatstream.plan.job_spec import JobSpec, SourceSpec
from leatstream.ports import CheckpointFiles
from leatstream.services.environment import Environment
from leatstream.services.queries.checkpoints.origin import checkpoint_path


def beginning_as(env: Environment, old: Query, job: JobSpec) -> JobSpec:
    """The job, reading from where the old one began what it would otherwise read from now on.

    What both read is the same then. Sources that the old query does not read leave the job as its statement
    says.

    Args:
        env: the environment.
        old: the query before.
        job: of the new one.

    Raises:
        CheckpointError: its checkpoint's file system does not answer, or refuses.
    """
    begun = first_offsets(env.checkpoints, checkpoint_path(old))
    return job.model_copy(update={"sources": [_begun(source, begun) for source in job.sources]})


def _begun(source: SourceSpec, begun: dict[str, dict[str, int]]) -> SourceSpec:
    if source.starting_position != "latest" or source.entity not in begun:
        return source
    offsets = begun[source.entity]
    return source.model_copy(update={"starting_position": "offsets", "starting_offsets": offsets})


def first_offsets(files: CheckpointFiles, checkpoint: str) -> dict[str, dict[str, int]]:
    """Entity to partition to the first offset that was to be read; of two reads of one the earlier."""
    found: dict[str, dict[str, int]] = {}
    for offsets in _first_words(files, f"{checkpoint}/sources"):
        for entity, parts in offsets.items():
            if not isinstance(parts, dict) or not all(isinstance(at, int) for at in parts.values()):
                continue
            before = found.setdefault(entity, {})
            found[entity] = {p: min(at, before.get(p, at)) for p, at in (before | parts).items()}
    return found


def _first_words(files: CheckpointFiles, folder: str) -> Iterator[dict[str, Any]]:
    """What each source has noted when it began; those that keep nothing of the kind are left out."""
    for number in files.names(folder):
        try:
            text = files.read(f"{folder}/{number}/0")
            yield json.loads(text[text.index("{") :])
        except (OSError, ValueError):
            continue
