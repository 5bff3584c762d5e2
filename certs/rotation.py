"""Rotation as a pure function: from what is stored, published and served to the next write.

A new authority is staged: its certificate joins the bundle, and the old one still signs. It is
published when every place that clients read has held both for a while. Then it signs: the leaf is
issued again, and every replica serves with it. Then the old one retires from the bundle. The whole
progress is in the stored objects, so that the next leader can continue. Each step is one write,
which fails if an object that it depends on has changed. At any time, each leaf in use is trusted by
each bundle that a client may still have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from certs.authority import new_authority
from certs.bundle import alive, certificates, join, same, signer
from certs.issue import Names, issue_server, names_of
from certs.kept import Authority, Serving
from certs.life import (
    AUTHORITY_LIFETIME,
    BACKDATED,
    LEAF_LIFETIME,
    renewal_due,
    renewal_time,
)

if TYPE_CHECKING:
    from datetime import datetime

    from cryptography import x509

    from certs.pair import Pair

# The interval of checks for changes that no event reports: the replicas' certificates.
LOOK_AGAIN: Final = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Terms:
    """The parameters of the certificates.

    settle: how long after the publication of a bundle clients may still have the previous one.
    """

    names: Names
    authority_name: str = "fairlead"
    leaf_name: str = "fairlead-webhook"
    authority_lifetime: timedelta = AUTHORITY_LIFETIME
    leaf_lifetime: timedelta = LEAF_LIFETIME
    settle: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Observed:
    """The observed state, with the authority read last.

    (So nothing is published or issued from an older authority than the one that is replaced: such a
    write fails, because its object has changed.)

    authority, serving: as stored; None if absent or invalid.
    published: the bundle in each place that clients read; empty if it was erased.
    replicas: the serial number of the leaf that each serving replica presents; None if it did not
    answer.
    renew_authority, renew_leaf: a renewal was requested.
    unchanged: how long the observer has seen the authority and the serving Secret unchanged, on a
    monotonic clock. Times in them may be from the clock of another leader.
    """

    authority: Authority | None
    serving: Serving | None
    published: tuple[bytes, ...] = ()
    replicas: tuple[int | None, ...] = ()
    renew_authority: bool = False
    renew_leaf: bool = False
    unchanged: timedelta = timedelta.max


@dataclass(frozen=True, slots=True)
class KeepAuthority:
    """Write the authority's Secret."""

    authority: Authority
    why: str


@dataclass(frozen=True, slots=True)
class KeepServing:
    """Write the serving Secret."""

    serving: Serving
    why: str


@dataclass(frozen=True, slots=True)
class Publish:
    """Write the bundle to every place that clients read."""

    bundle: bytes
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to write before `until` without a change. `why` is the reason."""

    until: datetime
    why: str


Step: TypeAlias = KeepAuthority | KeepServing | Publish | Wait


def step(observed: Observed, now: datetime, terms: Terms) -> Step:
    """Return the next step. Carry it out, observe and call again, until the result is Wait."""
    authority = observed.authority
    if authority is None:
        return _first(observed, now, terms)
    if authority.signing is None and (forgotten := _forgotten(authority, observed, now)):
        # It was created from reads that are older than what another controller has published.
        kept = replace(authority, retiring=(*authority.retiring, *forgotten))
        return KeepAuthority(kept, "clients trust another authority")
    if authority.staged is None and (why := _outdated(authority, observed, now)):
        staged = new_authority(terms.authority_name, now, lifetime=terms.authority_lifetime)
        return KeepAuthority(replace(authority, staged=staged, published_since=None), why)
    bundle = authority.bundle
    published = all(same(each, bundle) for each in observed.published)
    if not published:
        if authority.published_since:
            # Clients may have read the erased bundle, so the waiting time starts again.
            return KeepAuthority(replace(authority, published_since=None), "the bundle was changed")
        return Publish(bundle, "clients have another bundle")
    if authority.signing and _valid(authority.signing.check(), now):
        if why := _unfit(observed, authority.signing, now, terms):
            return KeepServing(_issued(authority.signing, bundle, now, terms), why)
        if observed.serving and not same(observed.serving.bundle, bundle):
            return KeepServing(observed.serving.trusting(bundle), "the bundle has changed")
    if authority.staged:
        return _promote(authority, authority.staged, observed, now, terms)
    if authority.retiring:
        return _retire(authority, observed, now, terms)
    return Wait(_next_renewal(observed, authority), "nothing is due")


def phase(authority: Authority | None) -> str:
    """Return the phase of an authority, for status, metrics and logs."""
    if authority is None:
        return "absent"
    if authority.staged:
        return "published" if authority.published_since else "staged"
    return "retiring" if authority.retiring else "steady"


def _first(observed: Observed, now: datetime, terms: Terms) -> Step:
    """Create an authority; keep all that clients trust, as leaves by those may be in use."""
    staged = new_authority(terms.authority_name, now, lifetime=terms.authority_lifetime)
    return KeepAuthority(
        Authority(staged=staged, retiring=_trusted(observed, now)),
        "there is no authority that can be read",
    )


def _trusted(observed: Observed, now: datetime) -> tuple[x509.Certificate, ...]:
    bundles = [*observed.published, observed.serving.bundle if observed.serving else b""]
    known = certificates(join(each for pem in bundles for each in certificates(pem)))
    return alive(known, now)


def _forgotten(
    authority: Authority, observed: Observed, now: datetime
) -> tuple[x509.Certificate, ...]:
    known = {*authority.retiring, *([authority.staged.check()] if authority.staged else ())}
    return tuple(each for each in _trusted(observed, now) if each not in known)


def _outdated(authority: Authority, observed: Observed, now: datetime) -> str:
    """Return why a new authority must be staged; empty if it need not."""
    if authority.signing is None:
        return "there is no authority that signs"
    if observed.renew_authority:
        return "a new authority was requested"
    if not _valid(authority.signing.check(), now):
        return "the authority is not valid now"
    if renewal_due(authority.signing.check(), now):
        return "the authority's renewal is due"
    return ""


def _unfit(observed: Observed, signing: Pair, now: datetime, terms: Terms) -> str:
    """Return why the leaf must be issued again; empty if it need not."""
    if observed.serving is None:
        return "there is no leaf that can be read"
    leaf = observed.serving.leaf.check()
    if signer(leaf, [signing.check()]) is None:
        return "another authority signed the leaf"
    if not {*terms.names.dns, *terms.names.addresses} <= {*names_of(leaf)}:
        return "the leaf has other names"
    if observed.renew_leaf:
        return "a new leaf was requested"
    if not _valid(leaf, now):
        return "the leaf is not valid now"
    if renewal_due(leaf, now):
        return "the leaf's renewal is due"
    return ""


def _issued(signing: Pair, bundle: bytes, now: datetime, terms: Terms) -> Serving:
    leaf = issue_server(signing, terms.leaf_name, terms.names, now, lifetime=terms.leaf_lifetime)
    return Serving(leaf, bundle)


def _promote(
    authority: Authority, staged: Pair, observed: Observed, now: datetime, terms: Terms
) -> Step:
    """Let the staged authority sign, once every client trusts it."""
    before = authority.retiring
    if authority.signing:
        before = (*before, authority.signing.check())
    retiring = alive(before, now)
    promoted = Authority(signing=staged, retiring=retiring)
    if not retiring:
        return KeepAuthority(promoted, "no leaf of another authority is served")
    if authority.published_since is None or authority.published_since > now:
        # A future time comes from a clock that ran ahead, and must not delay the rotation.
        return KeepAuthority(
            replace(authority, published_since=now), "the staged authority is published"
        )
    settled = _settled(authority.published_since, observed, now, terms)
    if now < settled:
        return Wait(settled, "waiting until every client has seen the staged authority")
    return KeepAuthority(promoted, "every client knows the staged authority")


def _retire(authority: Authority, observed: Observed, now: datetime, terms: Terms) -> Step:
    """Remove retiring authorities from the bundle, once no replica can use their leaves."""
    if not alive(authority.retiring, now):
        return KeepAuthority(replace(authority, retiring=()), "what retired has expired")
    if observed.serving is None:
        return Wait(now + LOOK_AGAIN, "there is no leaf")
    leaf = observed.serving.leaf.check()
    # A replica that starts now may have read the previous leaf without serving yet.
    settled = _settled(_issued_at(leaf), observed, now, terms)
    if now < settled:
        return Wait(settled, "waiting until every replica has seen the new leaf")
    behind = sum(serial != leaf.serial_number for serial in observed.replicas)
    if behind:
        of = len(observed.replicas)
        return Wait(now + LOOK_AGAIN, f"{behind} of {of} replicas do not serve the new leaf yet")
    return KeepAuthority(replace(authority, retiring=()), "every replica serves the new leaf")


def _settled(written: datetime, observed: Observed, now: datetime, terms: Terms) -> datetime:
    """Return when a write has settled, by the writer's clock and by ours."""
    left = terms.settle - min(observed.unchanged, terms.settle)
    return max(written + terms.settle, now + left)


def _next_renewal(observed: Observed, authority: Authority) -> datetime:
    pairs = (authority.signing, observed.serving and observed.serving.leaf)
    return min(renewal_time(pair.check()) for pair in pairs if pair)


def _valid(certificate: x509.Certificate, now: datetime) -> bool:
    # A certificate from a clock that ran ahead is not valid yet.
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _issued_at(leaf: x509.Certificate) -> datetime:
    return leaf.not_valid_before_utc + BACKDATED
