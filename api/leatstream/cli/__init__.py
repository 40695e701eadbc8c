"""The command line, ``leat``: a thin client of the REST service, and the starter of the embedded stack."""
