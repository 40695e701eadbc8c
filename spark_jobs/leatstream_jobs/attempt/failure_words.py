"""The words by which the errors of Spark, of its clients and of Python are known."""

from __future__ import annotations

NO_TOPIC = ("UnknownTopicOrPartition", "UnknownTopicId")
# A producer waits for a topic that does not exist, and then says this.
NOT_IN_METADATA = "not present in metadata"
TOPIC_MISSING = (*NO_TOPIC, NOT_IN_METADATA)
GONE = (
    *NO_TOPIC,
    "KAFKA_DATA_LOSS",
    "OffsetOutOfRange",
    "Cannot fetch record for offset",
    "have been deleted",
    "Some data may have been lost",
    "partitions have been lost",
    "PARTITIONS_DELETED",
    "PARTITION_OFFSET_CHANGED",
    "InvalidTopicException",
)
# Of the checkpoint's own files, of which Spark says as well that they "have been deleted".
STATE_GONE = ("STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY",)
# The system's own words, from Java, RocksDB and Python.
FULL = ("No space left on device", "Disk quota exceeded", "There is not enough space on the disk")
# Errors of the other queries while a JVM ends that one query has ended.
STOPPED = ("SparkContext was shut down", "SparkContext has been shut", "stopped SparkContext")
AUTH = ("SaslAuthenticationException", "SslAuthenticationException", "AuthorizationException")
# What clients say of an unreachable server, or of one that ends connections as it stops.
UNREACHABLE = (
    "common.errors.TimeoutException",
    "common.errors.DisconnectException",
    "common.errors.NetworkException",
    "common.errors.BrokerNotAvailableException",
    "common.errors.CoordinatorNotAvailableException",
    "common.errors.NotCoordinatorException",
    "common.errors.NotLeaderOrFollowerException",
    "common.errors.LeaderNotAvailableException",
    "No resolvable bootstrap urls",
    "Timed out waiting for a node assignment",
    "java.net.ConnectException",
    "java.net.NoRouteToHostException",
    "java.net.SocketTimeoutException",
    "java.net.UnknownHostException",
    "psycopg.OperationalError",
    "psycopg.errors.ConnectionException",
    "psycopg.errors.ConnectionTimeout",
    "psycopg.errors.AdminShutdown",
    "psycopg.errors.CrashShutdown",
    "psycopg.errors.CannotConnectNow",
)
# What Hadoop's client says when a cluster does not answer: a call that breaks off ends as a file does.
FAR = (
    "Call From ",
    "DestHost:destPort ",
    "End of File Exception between local host",
    "ipc.RetriableException",
    "ipc.StandbyException",
    "SafeModeException",
    "BlockMissingException",
    "could only be written to 0 of",
    "All datanodes",
)
# What passes while a checkpoint is whole, wherever it was met.
PASSING = (
    "OUT_OF_MEMORY",
    "OutOfMemoryError",
    "UNRELEASED_THREAD_ERROR",
    "Stale file handle",
    "Too many open files",
    "Transport endpoint is not connected",
    "Host is down",
)
# A file of the checkpoint is missing, holds nonsense, or was written for another query or by another Spark.
CHECKPOINT = (
    "CANNOT_LOAD_STATE_STORE.CANNOT_FIND_BASE_SNAPSHOT_CHECKPOINT",
    "CANNOT_LOAD_STATE_STORE.CANNOT_READ_",
    "CANNOT_LOAD_STATE_STORE.INVALID_CHANGE_LOG_READER_VERSION",
    "CANNOT_LOAD_STATE_STORE.INVALID_CHECKPOINT_LINEAGE",
    "CANNOT_LOAD_STATE_STORE.KEY_ROW_FORMAT_VALIDATION_FAILURE",
    "CANNOT_LOAD_STATE_STORE.SNAPSHOT_PARTITION_ID_NOT_FOUND",
    "CANNOT_LOAD_STATE_STORE.VALUE_ROW_FORMAT_VALIDATION_FAILURE",
    "STATE_STORE_BASE_CHECKPOINT_ID_MISMATCH",
    "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY",
    "STATE_STORE_COLUMN_FAMILY_SCHEMA_INCOMPATIBLE",
    "STATE_STORE_INVALID_CONFIG_AFTER_RESTART",
    "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION",
    "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE",
    "STATE_STORE_KEY_ROW_FORMAT_VALIDATION_FAILURE",
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_ROW_CHECKSUM_VERIFICATION_FAILED",
    "STATE_STORE_STATE_SCHEMA_FILES_THRESHOLD_EXCEEDED",
    "STATE_STORE_VALUE_ROW_FORMAT_VALIDATION_FAILURE",
    "STATE_STORE_VALUE_SCHEMA_EVOLUTION_THRESHOLD_EXCEEDED",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    "STATE_REPARTITION",
    "STREAMING_CHECKPOINT",
    "CHECKPOINT_",
    *STATE_GONE,
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
    "INVALID_OFFSET_LOG",
    "BATCH_METADATA_NOT_FOUND",
    "MISSING_METADATA_FILE",
    "RESOURCE_CLOSED_STATE",
    "batchId",
)
# Spark wraps whatever it meets while it loads state in these: the disk may be missing, or the state damaged.
STATE = ("CANNOT_LOAD_STATE_STORE", "STATE_STORE_")
# The client's own bounds; the broker names none.
TOO_LARGE_TO_SEND = ("max.request.size", "buffer.memory")
LOST_ROWS = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
CHECKPOINT_TEXT = ("Incomplete log file", "Malformed log file", "offset log", "commit log", "delta file")
# Where Spark reads its checkpoint, and what reading nonsense ends in.
READING = (
    "MetadataLog",
    "OffsetSeq",
    "CommitLog",
    "StreamMetadata",
    "populateStartOffsets",
    "OffsetMap",
    "SchemaHelper",
)
NONSENSE = (
    "JsonEOFException",
    "JsonParseException",
    "MismatchedInputException",
    "MappingException",
    "MalformedInputException",
    "EOFException",
    "NumberFormatException",
    "IllegalStateException",
    "IllegalArgumentException",
    "AssertionError",
)
REJECTED = (
    "AnalysisException",
    "ParseException",
    "STREAMING_REAL_TIME_MODE",
    "UNSUPPORTED_OPERATION",
    "SparkUnsupportedOperationException",
)
# Spark's arithmetic and cast errors: the same record fails again after every restart.
VALUE = {
    "DIVIDE_BY_ZERO": "a number is divided by zero",
    "ARITHMETIC_OVERFLOW": "the result is too large for its type",
    "CAST_INVALID_INPUT": "a text is no value of the type that it is cast to",
    "CAST_OVERFLOW": "a value is too large for the type that it is cast to",
    "NUMERIC_VALUE_OUT_OF_RANGE": "a number has more digits than its DECIMAL takes",
    "INVALID_ARRAY_INDEX": "an array has no element of this number",
    "DATETIME_OVERFLOW": "a time is beyond the years that can be kept",
    "CANNOT_PARSE_TIMESTAMP": "a text is no time of the pattern",
}
