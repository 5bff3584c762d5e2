"""Certificates are renewed at two thirds of their life."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from certs.authority import new_authority
from certs.life import renewal_due, renewal_time
from certs.pair import read_certificate

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_renewal_is_due_at_two_thirds_of_life_or_a_twentieth_earlier() -> None:
    """Of a life of 20 hours that began an hour ago: thirteen to fourteen of it have passed."""
    pair = new_authority("Fairlead", NOW, lifetime=timedelta(hours=19))
    certificate = read_certificate(pair.certificate)
    latest = NOW - timedelta(hours=1) + timedelta(hours=20) * 2 / 3
    due = renewal_time(certificate)
    assert latest - timedelta(hours=1) < due <= latest
    assert not renewal_due(certificate, due - timedelta(seconds=1))
    assert renewal_due(certificate, due)


def test_certificates_made_together_are_not_renewed_together() -> None:
    """The random serial number spreads them."""
    authorities = [read_certificate(new_authority("A", NOW).certificate) for _ in range(8)]
    assert len({renewal_time(each) for each in authorities}) > 1
