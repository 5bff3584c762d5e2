"""Certificates are renewed at two thirds of their life."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from certs.authority import new_authority
from certs.life import renewal_due, renewal_time
from certs.pair import read_certificate

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_renewal_is_due_from_two_thirds_of_life_on() -> None:
    """Of a life of 24 hours that began an hour ago, sixteen have passed in fifteen hours."""
    pair = new_authority("Fairlead", NOW, lifetime=timedelta(hours=23))
    certificate = read_certificate(pair.certificate)
    assert renewal_time(certificate) == NOW + timedelta(hours=15)
    assert not renewal_due(certificate, NOW + timedelta(hours=15, seconds=-1))
    assert renewal_due(certificate, NOW + timedelta(hours=15))
