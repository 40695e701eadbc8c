"""Kinesis Data Streams."""

from __future__ import annotations

from leatstream.rest.schemas.kinds.aws import AwsBody, AwsView


class KinesisBody(AwsBody):
    """Kinesis Data Streams of one AWS region."""


class KinesisView(AwsView):
    """Settings of a Kinesis store, without secrets."""
