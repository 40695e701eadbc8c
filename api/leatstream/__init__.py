"""leatstream: streaming SQL over your own stores, deployed as code."""

__version__ = "0.1.0"
