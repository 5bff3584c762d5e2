"""A certificate's life: how long it is, and when renewal is due."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography import x509

AUTHORITY_LIFETIME: Final = timedelta(days=365)
LEAF_LIFETIME: Final = timedelta(days=30)
# Clocks of a cluster's machines differ: what is valid here must be valid there at once.
BACKDATED: Final = timedelta(hours=1)


def whole_seconds(now: datetime) -> datetime:
    """Return `now` as X.509 can hold it; raise ValueError if it has no time zone."""
    if now.tzinfo is None:
        raise ValueError("now has no time zone: give a datetime in UTC")
    return now.replace(microsecond=0)


def renewal_time(certificate: x509.Certificate) -> datetime:
    """Return the moment (UTC) when the certificate should be renewed: two thirds into its life.

    Up to a twentieth of its life earlier, by its random serial number, so that certificates made
    together are not all renewed together.
    """
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    jitter = life / 20 * (certificate.serial_number % 1000) / 1000
    return certificate.not_valid_before_utc + life * 2 / 3 - jitter


def renewal_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Tell whether the certificate should be renewed by now."""
    return now >= renewal_time(certificate)
