"""What became of a pod of a run by dry run."""

from __future__ import annotations

import pytest

from webhook.installation.probe import Probe, pod


@pytest.mark.parametrize(
    ("words", "answered", "failed"),
    [
        ("", False, False),
        ('admission webhook "pods-0.fairlead.dev" denied the request: no class', True, False),
        ('admission webhook "of.others" denied the request: no', False, False),
        ("ValidatingAdmissionPolicy 'fairlead-stamp' denied request: no placement", False, False),
        ('failed calling webhook "pods-0.fairlead.dev": no endpoints', False, True),
        ('pods "p" is forbidden: exceeded quota', False, False),
    ],
)
def test_only_an_answer_of_our_webhook_counts(words: str, answered: bool, failed: bool) -> None:
    """A refusal is one too; a guard's is not, for it tells that nobody answered."""
    probe = Probe("default", stamped=False, words=words)
    assert (probe.was_answered, probe.failed) == (answered, failed)
    assert Probe("default", stamped=True).was_answered


def test_the_pod_asks_for_nothing_that_a_strict_namespace_forbids() -> None:
    """Pod Security's restricted level, users of OpenShift, and quotas that want requests."""
    spec = pod()["spec"]
    assert "runAsUser" not in spec["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert set(container["resources"]) == {"requests", "limits"}
