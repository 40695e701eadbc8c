"""PEM texts as people paste them."""

from __future__ import annotations

import ssl
from pathlib import Path

import certifi
import pytest

from leatstream.model.certificates import is_certificate, trust_of

BUNDLE = Path(certifi.where()).read_text()
ONE = BUNDLE[BUNDLE.index("-----BEGIN") : BUNDLE.index("-----END CERTIFICATE-----") + 26]


def test_what_is_none() -> None:
    assert not is_certificate("-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n")
    assert not is_certificate("no certificate at all, whatever its length may be ............")
    assert not is_certificate("ein Zertifikat ist das nicht, so sehr man es sich wünschen mag ÿ\ud800")
    with pytest.raises(ssl.SSLError):
        trust_of("größer als nichts")


def test_comments_in_any_language_are_passed_over() -> None:
    text = f"# Főtanúsítvány\n{ONE}"
    assert is_certificate(text)
    trust = trust_of(text)
    assert isinstance(trust, ssl.SSLContext)
    assert len(trust.get_ca_certs()) == 1
