"""SELECT over materialized views, written in the SQL of the database that keeps them; Spark has no part."""
