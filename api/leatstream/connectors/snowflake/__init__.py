"""Snowflake: the tables of an account, asked and written with its Python connector."""
