"""The process and its JVM: the session, the calls to the API, and what both use of the machine."""
