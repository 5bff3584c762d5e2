"""What became of a pod of a run by dry run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.kube.fake_api import answer_of
from tests.wording import mentions
from webhook import names
from webhook.errors import WrongUsage
from webhook.installation.probe import (
    Probe,
    choose_namespace,
    describe_unsent,
    find_namespace,
    pod,
)
from webhook.interception import Record, webhooks

TRIAL = {"key": "trial", "operator": "In", "values": ["yes"]}


@pytest.mark.parametrize(
    ("words", "answered", "failed", "prevented"),
    [
        ("", False, False, False),
        (
            'admission webhook "pods-0.fairlead.dev" denied the request: no class',
            True,
            False,
            False,
        ),
        ('admission webhook "of.others" denied the request: no', False, False, True),
        ("ValidatingAdmissionPolicy 'fairlead-stamp' denied request: no", False, False, False),
        ('failed calling webhook "pods-0.fairlead.dev": no endpoints', False, True, False),
        ('pods "p" is forbidden: exceeded quota', False, False, True),
    ],
)
def test_only_an_answer_of_our_webhook_counts(
    words: str, answered: bool, failed: bool, prevented: bool
) -> None:
    """A refusal is one too, and a guard's is not. Of refusals of others nothing is known."""
    probe = Probe("default", stamped=False, words=words)
    found = (probe.was_answered, probe.failed, probe.was_prevented)
    assert found == (answered, failed, prevented)
    assert Probe("default", stamped=True).was_answered


@pytest.mark.parametrize(
    ("record", "namespace"),
    [
        (Record({}), "default"),
        (Record({}, ("research", "lab")), "research"),
        (Record({}, (), (TRIAL,)), "lab"),
        (Record({}, ("team", "lab"), (TRIAL,)), "lab"),
        (Record({}, ("team",), (TRIAL,)), "default"),
    ],
)
def test_a_pod_is_tried_where_pods_are_sent(record: Record, namespace: str) -> None:
    """Within the limit that is recorded, and never in a namespace that no installation sends."""
    labels = {"trial": "yes"}
    assert choose_namespace(record, {"kube-system": labels, "lab": labels, "team": {}}) == namespace


@pytest.mark.parametrize(
    ("limits", "namespace", "sent"),
    [
        ({}, "default", True),
        ({}, "kube-system", False),
        ({}, names.NAMESPACE, False),
        ({"only_namespaces": ["lab"]}, "lab", True),
        ({"only_namespaces": ["lab"]}, "default", False),
        ({"namespace_labels": [TRIAL]}, "team", False),
        ({"namespace_labels": [TRIAL]}, "trial", True),
    ],
)
def test_where_no_pod_is_sent_none_can_be_tried(
    limits: dict[str, Any], namespace: str, *, sent: bool
) -> None:
    """The entries decide: our own namespaces, and whatever limit they have."""
    labels = {"trial": "yes"} if namespace == "trial" else {}
    reason = describe_unsent(webhooks(**limits), namespace, labels)
    if sent:
        assert reason == ""
    else:
        mentions(reason, namespace, "--namespace NAME")


def test_the_pod_asks_for_nothing_that_a_strict_namespace_forbids() -> None:
    """Pod Security's restricted level, users of OpenShift, and quotas that want requests."""
    spec = pod()["spec"]
    assert "runAsUser" not in spec["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert set(container["resources"]) == {"requests", "limits"}


def test_a_namespace_that_is_given_has_to_be_there(tmp_path: Path) -> None:
    """Unless it may not be read."""
    objects = {"/api/v1/namespaces/lab": {"metadata": {"name": "lab"}}}
    for name, forbidden in (("lab", ()), ("nosuch", ("/api/v1/namespaces/nosuch",))):
        find = partial(find_namespace, controller={}, given=name)
        assert answer_of(objects, tmp_path, find, forbidden) == name
    with pytest.raises(WrongUsage, match="--namespace nosuch: there is no such namespace"):
        answer_of(objects, tmp_path, partial(find_namespace, controller={}, given="nosuch"))
