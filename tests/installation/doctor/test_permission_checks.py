"""Who needs which rights, and what is said of those that are missing."""

from __future__ import annotations

from tests.installation.doctor.cluster_states import seen, text_of
from tests.wording import Wording, mentions
from webhook.installation.doctor.cluster_state import AccessAnswer, ReadKind, Right
from webhook.installation.doctor.permission_checks import needed, permissions
from webhook.installation.manifests import render

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
    many = [AccessAnswer("fairlead-webhook", Right("list", "", f"r{n}"), False) for n in range(7)]
    granted = AccessAnswer("fairlead-controller", LISTING, True)
    own, webhook = permissions(seen(rights=[*many, granted, AccessAnswer("", LISTING, False)]))
    assert (own.severity, webhook.severity) == ("warning", "error")
    mentions(own.what, "you may not list pods")
    mentions(webhook.what, "fairlead-webhook may not ", "list r4 and 2 more")
    wording(text_of(own))
    wording(text_of(webhook))


def test_missing_rights_on_nodes_block_nothing(wording: Wording) -> None:
    """A warning with a cure of its own; of the controller it is an error as any other."""
    verbs = [Right(verb, "", "nodes") for verb in ("list", "watch")]
    webhooks = [AccessAnswer("fairlead-webhook", right, False) for right in verbs]
    (told,) = permissions(seen(rights=webhooks))
    assert told.severity == "warning"
    mentions(told.what, "fairlead-webhook may not list nodes; watch nodes", "--nodes")
    wording(text_of(told))
    assert told.cure.startswith("fairlead install --nodes")
    (told,) = permissions(seen(rights=[AccessAnswer("fairlead-controller", verbs[0], False)]))
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
