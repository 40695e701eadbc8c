"""What the oracle of fault runs reads in S3 and Kinesis, and what it says of too little and too much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from aws_server import aws_server, bucket, kinesis_of, s3_of
from fault_load import BUCKET
from fault_oracle import differences, read_files, read_shards


@pytest.fixture(scope="module")
def aws() -> Iterator[str]:
    with aws_server() as address:
        bucket(address, BUCKET)
        yield address


def test_files_count_once_they_are_whole(aws: str) -> None:
    s3 = s3_of(aws)
    s3.put_object(Bucket=BUCKET, Key="files/", Body=b"")
    s3.put_object(Bucket=BUCKET, Key="files/a.json", Body=b'{"n": 0}\n{"n": 1}\n')
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="files/b.json")["UploadId"]
    s3.upload_part(Bucket=BUCKET, Key="files/b.json", UploadId=upload, PartNumber=1, Body=b'{"n": 2}\n')
    found = Counter(row["n"] for row in read_files(aws, "files"))
    assert differences(Counter(range(3)), found, once=True) == "1 missing, such as [2]"
    s3.put_object(Bucket=BUCKET, Key="files/c.json", Body=b'{"n": 1}\n{"n": 2}\n')
    found = Counter(row["n"] for row in read_files(aws, "files"))
    assert differences(Counter(range(3)), found, once=True) == "1 more than once, such as [1]"


def test_records_of_all_shards_count(aws: str) -> None:
    kinesis = kinesis_of(aws)
    kinesis.create_stream(StreamName="shards", ShardCount=2)
    for n in (*range(20), 7):
        kinesis.put_record(StreamName="shards", PartitionKey=str(n), Data=b'{"n": %d}' % n)
    found = Counter(value["n"] for value in read_shards(aws, "shards"))
    assert differences(Counter(range(20)), found, once=False) == ""
    assert differences(Counter(range(21)), found, once=True) == (
        "1 missing, such as [20]; 1 more than once, such as [7]"
    )
