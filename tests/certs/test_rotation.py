"""Each step of a rotation, and what it waits for."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from certs.authority import new_authority
from certs.bundle import certificates, same
from certs.issue import issue_server
from certs.kept import Authority, Serving
from certs.life import AUTHORITY_LIFETIME, LEAF_LIFETIME
from certs.rotation import (
    LOOK_AGAIN,
    KeepAuthority,
    KeepServing,
    Observed,
    Publish,
    Step,
    Wait,
    phase,
    step,
)
from tests.certs.world import BEGIN, SETTLE, TERMS
from tests.wording import Wording, line_with, mentions

SECOND = timedelta(seconds=1)


def steady() -> Observed:
    """One authority, its leaf, published in two places and served by three replicas."""
    signing = new_authority("fairlead", BEGIN)
    leaf = issue_server(signing, "fairlead-webhook", TERMS.names, BEGIN)
    authority = Authority(signing=signing)
    return served(
        Observed(authority, Serving(leaf, authority.bundle), (authority.bundle, authority.bundle))
    )


def served(observed: Observed) -> Observed:
    """Every replica serves the leaf that is kept."""
    assert observed.serving is not None
    serial = observed.serving.leaf.check().serial_number
    return replace(observed, replicas=(serial, serial, serial))


def carried_out(observed: Observed, decided: Step) -> Observed:
    """What is seen once that is done; what was asked for is granted."""
    if isinstance(decided, KeepAuthority):
        kept = Authority.read(decided.authority.data())
        return replace(observed, authority=kept, renew_authority=False)
    if isinstance(decided, KeepServing):
        kept_leaf = Serving.read(decided.serving.data())
        return replace(observed, serving=kept_leaf, renew_leaf=False)
    if isinstance(decided, Publish):
        return replace(observed, published=tuple(decided.bundle for _ in observed.published))
    return observed


def run(observed: Observed, now: datetime = BEGIN) -> tuple[Observed, list[str], Wait]:
    """Go on until it waits: what is then seen, the reasons of the writes, and the wait."""
    reasons: list[str] = []
    for _ in range(20):
        decided = step(observed, now, TERMS)
        if isinstance(decided, Wait):
            return observed, reasons, decided
        reasons.append(decided.why)
        observed = carried_out(observed, decided)
    raise AssertionError(f"it writes for ever: {reasons}")


def switched() -> Observed:
    """The new authority signs, its leaf is kept, and the replicas serve the one before."""
    staged, _, _ = run(replace(steady(), renew_authority=True))
    seen, _, _ = run(staged, BEGIN + SETTLE)
    return seen


def test_the_first_authority_and_leaf_need_no_waiting(wording: Wording) -> None:
    """Nobody is served yet, so nobody can be refused."""
    seen, reasons, wait = run(Observed(None, None, (b"", b"")))
    wording("\n".join([*reasons, wait.why]))
    assert phase(seen.authority) == "steady"


def test_where_nothing_is_due_it_waits_for_the_leafs_renewal() -> None:
    """Which comes long before the authority's."""
    _, reasons, wait = run(steady())
    assert reasons == []
    least = LEAF_LIFETIME * 2 / 3 - LEAF_LIFETIME / 20 - timedelta(hours=1)
    assert BEGIN + least < wait.until <= BEGIN + LEAF_LIFETIME * 2 / 3


def test_a_leaf_is_renewed_without_touching_the_bundle(wording: Wording) -> None:
    """Two thirds into its life."""
    seen, reasons, _ = run(steady(), BEGIN + LEAF_LIFETIME * 2 / 3)
    wording("\n".join(reasons))
    assert phase(seen.authority) == "steady"


@pytest.mark.parametrize("asked", [True, False])
def test_a_new_authority_is_published_with_the_old_one_before_it_signs(
    asked: bool, wording: Wording
) -> None:
    """Asked for, or two thirds into the life of the old one; whose leaf serves on meanwhile."""
    before = steady()
    now = BEGIN if asked else BEGIN + AUTHORITY_LIFETIME * 2 / 3
    seen, reasons, wait = run(replace(before, renew_authority=asked), now)
    assert before.authority is not None
    assert before.authority.signing is not None
    assert seen.authority is not None
    assert len(certificates(seen.authority.bundle)) == 2
    assert all(same(each, seen.authority.bundle) for each in seen.published)
    assert seen.authority.signing == before.authority.signing
    assert phase(seen.authority) == "published"
    assert wait.until == now + SETTLE
    mentions(wait.why, "client", "staged authority")
    mentions(reasons[0], "authority", "requested" if asked else "renewal")
    mentions(reasons[1], "clients", "bundle")
    wording(f"{reasons[0]}\n{wait.why}")


def test_the_staged_authority_signs_once_every_client_has_had_time_to_see_it(
    wording: Wording,
) -> None:
    """Not a second earlier."""
    staged, _, _ = run(replace(steady(), renew_authority=True))
    _, early, _ = run(staged, BEGIN + SETTLE - SECOND)
    assert early == []
    seen, reasons, _ = run(staged, BEGIN + SETTLE)
    wording("\n".join(reasons))
    assert phase(seen.authority) == "retiring"


def test_the_wait_restarts_if_the_bundle_was_changed_meanwhile(wording: Wording) -> None:
    """Some client may have seen it without the staged authority."""
    staged, _, _ = run(replace(steady(), renew_authority=True))
    wiped = replace(staged, published=(staged.published[0], b""))
    _, reasons, wait = run(wiped, BEGIN + SETTLE)
    wording("\n".join(reasons))
    assert wait.until == BEGIN + SETTLE + SETTLE


@pytest.mark.parametrize("lagging", ["older", "unasked"])
def test_the_old_authority_stays_trusted_while_a_replica_may_serve_by_it(
    lagging: str, wording: Wording
) -> None:
    """One that presents the leaf of before, and one that could not be asked."""
    seen = switched()
    now = BEGIN + 3 * SETTLE
    behind = seen.replicas[0] if lagging == "older" else None
    third = replace(served(seen), replicas=(*served(seen).replicas[:2], behind))
    _, reasons, wait = run(third, now)
    assert reasons == []
    assert wait.until == now + LOOK_AGAIN
    mentions(wait.why, "1 of 3 replicas", "new leaf")
    wording(wait.why)
    _, reasons, wait = run(served(seen), now)
    mentions(wait.why, "nothing is due")
    wording("\n".join(reasons))


def test_the_old_authority_stays_until_a_starting_replica_has_the_new_leaf(
    wording: Wording,
) -> None:
    """It may have read the leaf of before, and is in no list of replicas yet."""
    seen = served(switched())
    _, reasons, wait = run(seen, BEGIN + SETTLE + SECOND)
    assert reasons == []
    mentions(wait.why, "every replica", "new leaf")
    wording(wait.why)
    assert wait.until == BEGIN + 2 * SETTLE


def test_a_lost_authority_is_replaced_and_the_trusted_ones_stay() -> None:
    """Its certificate is still in their bundle; the leaf by it serves on until the end."""
    before = steady()
    assert before.authority is not None
    seen, _, wait = run(replace(before, authority=None))
    assert seen.authority is not None
    assert len(certificates(seen.authority.bundle)) == 2
    assert seen.serving is not None
    assert before.serving is not None
    assert seen.serving.leaf == before.serving.leaf
    mentions(wait.why, "client", "staged authority")
    seen, _, _ = run(seen, BEGIN + SETTLE)
    seen, _, wait = run(served(seen), BEGIN + 2 * SETTLE)
    assert wait.why == "nothing is due"
    assert phase(seen.authority) == "steady"
    assert seen.authority is not None
    assert not same(seen.authority.bundle, before.authority.bundle)


def test_a_leaf_that_is_lost_is_recreated_by_the_same_authority() -> None:
    """No client notices."""
    before = steady()
    seen, reasons, _ = run(replace(before, serving=None))
    (reason,) = reasons
    mentions(reason, "no leaf", "read")
    assert seen.authority == before.authority


def test_a_bundle_that_is_wiped_is_published_again() -> None:
    """By one write."""
    before = steady()
    seen, reasons, _ = run(replace(before, published=(b"", before.published[1])))
    (reason,) = reasons
    mentions(reason, "clients", "bundle")
    assert seen.published == before.published


def test_a_leaf_with_wrong_names_is_recreated(wording: Wording) -> None:
    """A Service of another name, or one name more on request."""
    before = steady()
    assert before.authority is not None
    assert before.authority.signing is not None
    names = replace(TERMS.names, dns=TERMS.names.dns[:2])
    other = issue_server(before.authority.signing, "fairlead-webhook", names, BEGIN)
    assert before.serving is not None
    _, reasons, _ = run(replace(before, serving=Serving(other, before.serving.bundle)))
    wording("\n".join(reasons))


def test_after_years_of_standing_still_nothing_has_to_be_waited_for() -> None:
    """All has expired: there is no leaf left that anybody trusts."""
    seen, reasons, wait = run(steady(), BEGIN + timedelta(days=800))
    line_with(reasons, "no leaf", "served")
    assert wait.why == "nothing is due"
    assert phase(seen.authority) == "steady"


def test_certificates_of_a_clock_that_was_ahead_are_recreated(wording: Wording) -> None:
    """Else every handshake would fail until the others' clocks are there."""
    future = BEGIN + timedelta(hours=3)
    ahead, _, _ = run(Observed(None, None, (b"",)), future)
    _, reasons, _ = run(served(ahead), BEGIN)
    mentions(reasons[0], "the authority", "not valid now")
    wording(reasons[0])
    before = steady()
    assert before.authority is not None
    assert before.authority.signing is not None
    assert before.serving is not None
    leaf = issue_server(before.authority.signing, "fairlead-webhook", TERMS.names, future)
    late = replace(before, serving=Serving(leaf, before.serving.bundle))
    _, reasons, _ = run(late, BEGIN)
    (reason,) = reasons
    mentions(reason, "the leaf", "not valid now")
    staged, _, _ = run(replace(before, renew_authority=True), future)
    _, reasons, wait = run(staged, BEGIN + timedelta(hours=2))
    (reason,) = reasons
    mentions(reason, "staged authority", "published")
    assert wait.until == BEGIN + timedelta(hours=2) + SETTLE


@pytest.mark.parametrize("ahead", [timedelta(minutes=10), timedelta(0)])
def test_a_published_bundle_settles_after_being_observed_long_enough(
    ahead: timedelta,
) -> None:
    """When it was published was noted by the clock of another leader."""
    staged, _, _ = run(replace(steady(), renew_authority=True))
    now = BEGIN + SETTLE + ahead
    for unchanged in (timedelta(0), SETTLE - SECOND):
        wait = step(replace(staged, unchanged=unchanged), now, TERMS)
        assert isinstance(wait, Wait)
        assert wait.until == now + SETTLE - unchanged
    assert isinstance(step(replace(staged, unchanged=SETTLE), now, TERMS), KeepAuthority)
    switched_now = replace(served(switched()), unchanged=timedelta(0))
    assert isinstance(step(switched_now, BEGIN + 5 * SETTLE + ahead, TERMS), Wait)
