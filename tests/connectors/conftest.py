"""The conformance suite lies beside the tests that use it; importlib mode leaves the folder out."""

from __future__ import annotations
