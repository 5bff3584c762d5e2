"""Who needs which rights, and what is said of those that are missing."""

from __future__ import annotations

from typing import Any

from tests.installation.doctor.cluster_states import by_key, configuration, seen, text_of
from tests.wording import Wording, mentions
from webhook import names
from webhook.guards import stamp_guard
from webhook.installation.doctor.cluster_state import ReadKind, Right
from webhook.installation.doctor.policy_checks import guards, needed, permissions
from webhook.installation.manifests import render
from webhook.installation.object_kinds import GUARD, GUARD_BINDING

Json = dict[str, Any]
LISTING = Right("list", "", "pods")


def test_what_a_program_needs_is_what_its_roles_grant() -> None:
    """In one namespace by a Role, everywhere by a ClusterRole; by name where they say so."""
    found = needed(render().values())
    assert set(found) == {"fairlead-controller", "fairlead-webhook"}
    serving = Right("watch", "", "secrets", "fairlead-webhook-tls", "fairlead-system")
    assert serving in found["fairlead-webhook"]
    assert Right("update", "fairlead.dev", "runs/status") in found["fairlead-controller"]
    reads = ("get", "list", "watch")
    written = [each for each in found["fairlead-webhook"] if each.verb not in reads]
    assert written == [Right("create", "", "events")]


def test_rights_that_are_missing_are_reported_once_for_each_account(wording: Wording) -> None:
    """A program's are an error, one's own a warning."""
    many = [("fairlead-webhook", Right("list", "", f"r{n}")) for n in range(7)]
    own, webhook = permissions(seen(missing_rights=[*many, ("", LISTING)]))
    assert (own.severity, webhook.severity) == ("warning", "error")
    mentions(own.what, "you may not list pods")
    mentions(webhook.what, "fairlead-webhook may not ", "list r4 and 2 more")
    wording(text_of(own))
    wording(text_of(webhook))


def test_missing_rights_on_nodes_block_nothing(wording: Wording) -> None:
    """A warning with a cure of its own; of the controller it is an error as any other."""
    verbs = [Right(verb, "", "nodes") for verb in ("list", "watch")]
    webhooks = [("fairlead-webhook", right) for right in verbs]
    (told,) = permissions(seen(missing_rights=webhooks))
    assert told.severity == "warning"
    mentions(told.what, "fairlead-webhook may not list nodes; watch nodes", "--nodes")
    wording(text_of(told))
    assert told.cure.startswith("fairlead install --nodes")
    (told,) = permissions(seen(missing_rights=[("fairlead-controller", verbs[0])]))
    assert told.severity == "error"


def test_unreadable_objects_are_reported(wording: Wording) -> None:
    """A check that was left out is no check that found nothing."""
    (finding,) = permissions(seen(unread={ReadKind.POLICIES: "forbidden"}))
    mentions(finding.what, "not checked", "the policies: forbidden")
    wording(text_of(finding))


def test_a_right_is_written_as_kubectl_asks_for_it(wording: Wording) -> None:
    """`kubectl auth can-i` takes it so."""
    right = Right("patch", "admissionregistration.k8s.io", "webhooks", "fairlead", "ns")
    verb, kind, name, *namespace = str(right).split()
    assert (verb, kind) == ("patch", "webhooks.admissionregistration.k8s.io")
    assert (name, namespace[-1]) == ("fairlead", "ns")
    wording(str(right))


SHIPPED = by_key(
    [
        {
            "kind": kind,
            "metadata": {"name": names.RUN_AUTHORS_GUARD},
            "spec": spec,
        }
        for kind, spec in (
            (GUARD, {"validations": [{"expression": "false"}]}),
            (GUARD_BINDING, {"policyName": names.RUN_AUTHORS_GUARD, "validationActions": ["Deny"]}),
        )
    ]
)


def test_a_guard_that_is_gone_or_changed_is_an_error(wording: Wording) -> None:
    """What the API server fills in is no change."""
    filled = {
        title: {**each, "spec": {**each["spec"], "failurePolicy": "Fail"}}
        for title, each in SHIPPED.items()
    }
    assert list(guards(seen(expected=SHIPPED, guard_objects=filled))) == []
    for title, each in filled.items():
        gone = {other: live for other, live in filled.items() if other != title}
        (finding,) = guards(seen(expected=SHIPPED, guard_objects=gone))
        assert finding.severity == "error"
        mentions(finding.what, str(title))
        wording(text_of(finding))
        changed = {**each, "spec": {**each["spec"], "validations": [], "validationActions": []}}
        found = guards(seen(expected=SHIPPED, guard_objects={**filled, title: changed}))
        assert [(each.severity, str(title) in each.what) for each in found] == [("error", True)]


def test_a_guard_that_does_nothing_is_reported(wording: Wording) -> None:
    """It looks as if it held."""
    policy, *bindings = stamp_guard(configuration()["webhooks"], deny=True)
    assert list(guards(seen(guard_objects=by_key([policy, *bindings])))) == []
    (finding,) = guards(seen(guard_objects=by_key([policy])))
    mentions(finding.what, "no binding names ValidatingAdmissionPolicy fairlead-stamp")
    wording(text_of(finding))
    for finding in guards(seen(guard_objects=by_key(bindings))):
        assert finding.severity == "error"
        mentions(finding.what, "ValidatingAdmissionPolicy fairlead-stamp, which is not there")
    audited = [
        {**each, "spec": {**each["spec"], "validationActions": ["Audit"]}} for each in bindings
    ]
    found = list(guards(seen(guard_objects=by_key([policy, *audited]))))
    assert len(found) == len(bindings)
    mentions(found[0].what, "neither denies nor warns")
