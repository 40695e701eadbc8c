"""From the rows that the compiled SQL gives to a sink."""
