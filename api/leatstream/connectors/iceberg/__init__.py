"""Iceberg tables of a REST catalog or of AWS Glue: two kinds, each of which opens its catalog."""
