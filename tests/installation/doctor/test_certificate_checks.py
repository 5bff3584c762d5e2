"""What is said of certificates."""

from __future__ import annotations

import pytest

from certs.authority import new_authority
from certs.issue import Names, issue_server
from tests.installation.doctor.cluster_states import (
    AUTHORITY,
    LEAF,
    NOW,
    SERVER_NAME,
    bundle,
    configuration,
    days,
    judging,
    seen,
    text_of,
)
from tests.wording import Wording, mentions
from webhook import names
from webhook.installation.doctor.cluster_state import Finding, ReadKind
from webhook.installation.doctor.program_checks import certificates, trust
from webhook.interception import webhooks


def of_leaf(age: float, life: float = 30) -> list[Finding]:
    """What is said of a leaf of so many days, whose authority is as good as new."""
    names = Names((SERVER_NAME,))
    leaf = issue_server(AUTHORITY, "w", names, NOW, lifetime=days(life))
    serving = {"tls.crt": leaf.certificate, "ca.crt": AUTHORITY.certificate}
    return list(certificates(seen(serving=serving, now=NOW + days(age))))


@pytest.mark.parametrize(
    ("age", "severity"), [(0, None), (19, None), (24, "warning"), (29.9, "warning"), (30, "error")]
)
def test_a_leaf_is_renewed_at_two_thirds_of_its_life(age: float, severity: str | None) -> None:
    """A little later it should have been; at its end nobody believes it."""
    assert [finding.severity for finding in of_leaf(age)] == ([severity] if severity else [])


def test_a_leaf_that_is_not_valid_yet_is_reported(wording: Wording) -> None:
    """Some clock is wrong."""
    (leaf, authority) = certificates(seen(now=NOW - days(1)))
    mentions(leaf.what, "serving certificate", "not valid before 2026-03-01")
    mentions(authority.what, "authority CN=fairlead", "not valid before 2026-03-01")
    wording(text_of(leaf))
    wording(text_of(authority))


def test_an_authority_that_expired_is_reported(wording: Wording) -> None:
    """Beside the leaf that it cannot outlive."""
    found = list(certificates(seen(now=NOW + days(400))))
    (authority,) = (each for each in found if "authority CN=fairlead" in each.what)
    mentions(authority.what, "expired", "2027-03-01")
    for each in found:
        wording(text_of(each))


def test_under_cert_manager_the_cures_are_its_own(wording: Wording) -> None:
    """`fairlead certs rotate` would do nothing: nobody of ours looks at the Secret."""
    found = configuration()
    found["metadata"]["annotations"] = {names.INJECTED_BY_CERT_MANAGER: "fairlead-system/x"}
    expired, *_ = certificates(seen(configuration=found, now=NOW + days(40)))
    assert expired.cure.startswith("cmctl -n fairlead-system renew fairlead-webhook; kubectl")
    wording(expired.cure)
    garbled = seen(configuration=found, serving={"tls.crt": b"garbled"})
    (finding,) = certificates(garbled)
    mentions(finding.cure, "delete secret fairlead-webhook-tls", "cert-manager")
    wording(text_of(finding))


def test_the_cure_recreates_an_unreadable_leaf(wording: Wording) -> None:
    """Its Secret has to go."""
    (finding,) = certificates(seen(serving={"tls.crt": b"garbled"}))
    mentions(finding.cure, "delete secret fairlead-webhook-tls")
    assert "cert-manager" not in finding.cure
    wording(text_of(finding))


@pytest.mark.parametrize("text", ["", "!!!", bundle(b"garbled"), None])
def test_a_bundle_that_vouches_for_nothing_is_an_error(text: str | None) -> None:
    """Absent, or garbled in whatever way."""
    found = configuration()
    found["webhooks"][0]["clientConfig"] = {"service": {}, "caBundle": text}
    errors = [each for each in trust(seen(configuration=found)) if each.severity == "error"]
    assert len(errors) == 1
    assert "pods-0.fairlead.dev" in errors[0].what


def test_a_bundle_of_several_authorities_needs_one_that_vouches() -> None:
    """So it is while they change."""
    other = new_authority("other", NOW).certificate
    found, judged = configuration(), judging()
    for entry in (*found["webhooks"], *judged["webhooks"]):
        entry["clientConfig"]["caBundle"] = bundle(other + AUTHORITY.certificate)
    assert list(trust(seen(configuration=found, judging=judged))) == []


def test_a_webhook_elsewhere_has_its_own_certificates() -> None:
    """They are none of ours to judge."""
    entries = webhooks(url="https://192.0.2.1/mutate", ca_bundle=b"pem")
    elsewhere = seen(configuration={**configuration(), "webhooks": entries}, serving=None)
    assert [*certificates(elsewhere), *trust(elsewhere)] == []


def test_what_may_not_be_read_is_not_called_absent() -> None:
    """The permissions say so instead."""
    unread = seen(serving=None, unread={ReadKind.SERVING: "forbidden"})
    assert [*certificates(unread), *trust(unread)] == []


def test_without_a_bundle_in_the_secret_the_leaf_is_judged_by_the_configuration() -> None:
    """As with a Secret that cert-manager has written for an issuer without one."""
    alone = seen(serving={"tls.crt": LEAF.certificate})
    assert [*certificates(alone), *trust(alone)] == []
