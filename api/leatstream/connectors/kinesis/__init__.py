"""Amazon Kinesis."""
