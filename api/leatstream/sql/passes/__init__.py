"""The steps of binding: scopes, columns, functions, joins, and the writing of Spark SQL."""
