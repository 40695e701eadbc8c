"""The driver process: its warm-up, its loop, and the interactive SELECTs that it runs."""
