"""A certificate's life: how long it is, and when renewal is due."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography import x509

AUTHORITY_LIFETIME: Final = timedelta(days=365)
LEAF_LIFETIME: Final = timedelta(days=30)
# Clocks differ between a cluster's machines; a new certificate must be valid on all at once.
BACKDATED: Final = timedelta(hours=1)


def whole_seconds(now: datetime) -> datetime:
    """Return `now` in X.509's precision; raise ValueError if it has no time zone."""
    if now.tzinfo is None:
        raise ValueError("now has no time zone: give a datetime in UTC")
    return now.replace(microsecond=0)


def renewal_time(certificate: x509.Certificate) -> datetime:
    """Return the time (UTC) when the certificate should be renewed: two thirds into its life.

    It is up to a twentieth of its life earlier, by its random serial number, so that certificates
    of the same age are not all renewed together.
    """
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    jitter = life / 20 * (certificate.serial_number % 1000) / 1000
    return certificate.not_valid_before_utc + life * 2 / 3 - jitter


def renewal_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Return True if the certificate should be renewed now."""
    return now >= renewal_time(certificate)
