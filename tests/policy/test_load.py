"""From files to a policy set: what only the whole set can tell is wrong, all at once."""

from __future__ import annotations

import pytest

from webhook.errors import InvalidDocuments
from webhook.policy.load import load

CLASS = """\
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: %s}
spec: %s
"""
SPOT = CLASS % ("spot", "{nodes: [{labels: {spot: 'true'}}]}")
POLICY = """\
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: %s}
spec:
  %s
"""


def test_every_error_of_every_file_is_reported_at_once_in_order() -> None:
    """Errors of one document, of the set, and of YAML itself."""
    wrong = POLICY % ("p", "priority: high\n  defaults: {nodeSelector: {a: 1}}")
    files = {"a.yaml": "a: [", "b.yaml": wrong, "c.yaml": SPOT, "d.yaml": SPOT}
    with pytest.raises(InvalidDocuments) as caught:
        load({name: text.encode() for name, text in files.items()})
    seen = [str(finding).split(":")[0] for finding in caught.value.findings]
    assert seen == ["a.yaml", "b.yaml", "b.yaml", "d.yaml"]


def test_warnings_do_not_keep_a_set_from_loading() -> None:
    """They come with it."""
    text = POLICY % ("p", "defaults: {nodeSelector: {kubernetes.io/hostname: n1}}")
    loaded = load({"p.yaml": text.encode()})
    assert [p.name for p in loaded.policies.policies] == ["p"]
    assert len(loaded.warnings) == 1


def test_no_files_are_an_empty_set() -> None:
    """Which matches nothing."""
    assert load({}).policies.policies == ()
