"""A Secret's certificate is served at once; what cannot be served leaves the last good one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from certs.issue import issue_server
from certs.kept import Serving
from certs.pair import Pair
from tests.server.serving import NAMES, authority, leaf
from tests.wording import Wording, mentions
from webhook.server.certificate_sources import CertificateFromSecret
from webhook.server.tls import ServedCertificate, ServerTls

WHERE = "ns/tls"
AUTHORITY = authority()


class Kept:
    """A KeptCertificate, and what it told."""

    def __init__(self) -> None:
        self.served: list[ServedCertificate] = []
        self.refusals = 0
        self.tls = ServerTls()
        self.certificate = CertificateFromSecret(
            WHERE, self.tls, on_served=self.served.append, on_refused=self._refused
        )

    def _refused(self) -> None:
        self.refusals += 1

    def offered(self, pair: Pair, bundle: bytes = b"") -> None:
        self.certificate.offered(Serving(pair, bundle))


def test_an_absent_secret_is_not_ready_with_the_cure(wording: Wording) -> None:
    """Until it is there; then what it holds serves, and its bundle is known."""
    kept = Kept()
    condition = kept.certificate.condition()
    assert not condition.ready
    mentions(condition.reason, "ns/tls does not exist", "`fairlead controller --certificates`")
    wording(condition.reason)
    kept.offered(leaf(AUTHORITY), b"bundle")
    assert kept.certificate.condition().ready
    assert [kept.tls.served] == kept.served
    assert kept.certificate.bundle == b"bundle"


def expired() -> Pair:
    """A pair whose life is over."""
    then = datetime.now(UTC) - timedelta(minutes=30)
    return issue_server(AUTHORITY, "t", NAMES, then, lifetime=timedelta(minutes=1))


def other_key() -> Pair:
    """A certificate beside a key that is not its own."""
    return Pair(leaf(AUTHORITY).certificate, leaf(AUTHORITY).private_key)


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        (other_key(), "does not belong"),
        (Pair(b"garbled", b"garbled"), "can be read"),
        (Pair(b"", b""), "no tls.crt"),
        (expired(), "expired at"),
    ],
    ids=["another's key", "garbled", "empty", "expired"],
)
def test_what_cannot_be_served_is_refused_and_the_one_before_serves_on(
    pair: Pair, says: str
) -> None:
    """Ready still, with the refusal in the reason; mended, the reason says no more of it."""
    kept = Kept()
    good = leaf(AUTHORITY)
    kept.offered(good)
    before = kept.tls.served
    kept.offered(pair)
    assert kept.tls.served == before
    assert kept.refusals == 1
    condition = kept.certificate.condition()
    assert condition.ready
    assert says in condition.reason
    assert "Secret ns/tls refused" in condition.reason
    assert kept.certificate.refused()
    kept.offered(good)
    assert not kept.certificate.refused()
    assert "refused" not in kept.certificate.condition().reason
    kept.offered(leaf(AUTHORITY))
    assert kept.tls.served != before


def test_what_cannot_be_served_at_first_is_not_ready() -> None:
    kept = Kept()
    kept.offered(other_key())
    assert not kept.certificate.condition().ready
    assert "does not belong" in kept.certificate.condition().reason


def test_a_deleted_secret_leaves_its_certificate_serving() -> None:
    """It will be healed: until then nobody is refused, and the reason says what is wrong."""
    kept, kept_before = Kept(), leaf(AUTHORITY)
    kept.offered(kept_before, b"bundle")
    kept.certificate.offered(None)
    condition = kept.certificate.condition()
    assert condition.ready
    mentions(condition.reason, "ns/tls does not exist")
    assert kept.certificate.bundle == b""
    assert kept.certificate.refused()
    kept.offered(kept_before)
    assert not kept.certificate.refused()


def test_the_same_pair_with_another_bundle_is_not_a_new_certificate() -> None:
    """A rotation writes the bundle first."""
    kept = Kept()
    pair = leaf(AUTHORITY)
    kept.offered(pair, b"one")
    kept.offered(pair, b"two")
    assert len(kept.served) == 1
    assert kept.certificate.bundle == b"two"


def test_no_key_shows_in_what_is_kept() -> None:
    """A log line or a traceback cannot carry it away."""
    pair = leaf(AUTHORITY)
    assert pair.private_key.decode().splitlines()[1] not in repr(Serving(pair, b""))
