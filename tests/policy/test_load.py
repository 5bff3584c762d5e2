"""From files to a policy set: what only the whole set can tell is wrong, all at once."""

from __future__ import annotations

import pytest

from tests.wording import Wording, mentions
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


def findings(**files: str) -> list[str]:
    """What is wrong with the files, as printed; their names get .yaml."""
    with pytest.raises(InvalidDocuments) as caught:
        load({f"{name}.yaml": text.encode() for name, text in files.items()})
    return [str(finding) for finding in caught.value.findings]


def test_two_documents_of_one_kind_and_name_collide(wording: Wording) -> None:
    """The message says where the other one is; a policy and a class may share a name."""
    load({"a": SPOT.encode(), "b": (POLICY % ("spot", "defaults: {labels: {a: b}}")).encode()})
    (line,) = findings(a=SPOT, b=SPOT)
    assert line.startswith("b.yaml:3:18: metadata.name: ")
    mentions(line, "CapacityClass 'spot'", "a.yaml:3")
    wording(line)


def test_a_class_that_no_document_describes_is_an_error_where_it_is_named(wording: Wording) -> None:
    """In a policy, and in complementOf; the classes that there are, are listed."""
    setting = "overrides: {capacity: [{class: sopt, mode: Allow}]}"
    rest = CLASS % ("rest", "{complementOf: nothing}")
    slip, unknown = findings(a=SPOT, b=POLICY % ("p", setting), c=rest)
    assert slip.startswith("b.yaml:5:34: spec.overrides.capacity[0].class: ")
    mentions(slip, "capacity class 'sopt'", "classes: rest, spot", "did you mean 'spot'?")
    wording(slip)
    assert unknown.startswith("c.yaml:4:22: spec.complementOf: ")
    mentions(unknown, "capacity class 'nothing'", "classes: rest, spot", "create the class")
    wording(unknown)


def test_a_broken_class_is_reported_once_and_not_where_it_is_named() -> None:
    """One mistake is one finding."""
    broken = CLASS % ("spot", "{nodes: []}")
    setting = "overrides: {capacity: [{class: spot, mode: Allow}]}"
    seen = findings(a=broken, b=POLICY % ("p", setting))
    assert len(seen) == 1
    assert seen[0].startswith("a.yaml:4:")


def test_a_complement_of_a_complement_is_an_error(wording: Wording) -> None:
    """A class is described once; its complement leads back to a description."""
    rest = CLASS % ("rest", "{complementOf: spot}")
    rest_of_rest = CLASS % ("other", "{complementOf: rest}")
    (line,) = findings(a=SPOT, b=rest, c=rest_of_rest)
    mentions(line, "c.yaml:4:22: spec.complementOf:", "'rest'", "complement itself")
    wording(line)


@pytest.mark.parametrize(
    ("spec", "facts"),
    [
        (
            (
                "{nodes: [{labels: {a: b}}, "
                "{matchExpressions: [{key: a, operator: NotIn, values: [b]}]}]}"
            ),
            ("class 'c'", "every node"),
        ),
        (
            "{nodes: [{labels: {a: b}, matchExpressions: [{key: a, operator: DoesNotExist}]}]}",
            ("class 'c'", "no node", "label 'a'"),
        ),
        (
            "{nodes: [" + ", ".join(f"{{labels: {{a{i}: x, b{i}: x}}}}" for i in range(7)) + "]}",
            ("more than 64 terms",),
        ),
    ],
)
def test_a_class_that_cannot_be_is_an_error(
    spec: str, facts: tuple[str, ...], wording: Wording
) -> None:
    """Every node, no node, or a negation that is too large."""
    (seen,) = findings(a=CLASS % ("c", spec))
    mentions(seen, *facts)
    wording(seen)


def test_no_policy_may_write_what_decides_which_policies_match(wording: Wording) -> None:
    """A label that a selector or the table of marks reads, by whichever policy."""
    reader = POLICY % (
        "reader",
        (
            "match: {podSelector: {matchLabels: {stage: prod}}}\n"
            "  exclude: [{podSelector: {matchExpressions: [{key: tier, operator: Exists}]}}]\n"
            "  defaults: {labels: {fine: yes-it-is}}"
        ),
    )
    writer = POLICY % (
        "writer",
        (
            "overrides: {labels: {stage: prod, tier: a, training.kubeflow.org/job-name: x, "
            "kueue.x-k8s.io/podset: x}}"
        ),
    )
    seen = findings(a=reader, b=writer)
    expected = [
        ("stage", "policy reader (spec.match.podSelector)"),
        ("tier", "policy reader (spec.exclude[0].podSelector)"),
        ("training.kubeflow.org/job-name", "`fairlead sources`"),
        ("kueue.x-k8s.io/podset", "Kueue"),
    ]
    for line, (label, reader) in zip(seen, expected, strict=True):
        mentions(line, "b.yaml:", "spec.overrides.labels", label, reader)
        wording(line)


def test_every_error_of_every_file_is_reported_at_once_in_order() -> None:
    """Errors of one document, of the set, and of YAML itself."""
    seen = findings(
        a="a: [",
        b=POLICY % ("p", "priority: high\n  defaults: {nodeSelector: {a: 1}}"),
        c=SPOT,
        d=SPOT,
    )
    assert [line.split(":")[0] for line in seen] == ["a.yaml", "b.yaml", "b.yaml", "d.yaml"]


def test_warnings_do_not_keep_a_set_from_loading() -> None:
    """They come with it."""
    text = POLICY % ("p", "defaults: {nodeSelector: {kubernetes.io/hostname: n1}}")
    loaded = load({"p.yaml": text.encode()})
    assert [p.name for p in loaded.policies.policies] == ["p"]
    assert len(loaded.warnings) == 1


def test_no_files_are_an_empty_set() -> None:
    """Which matches nothing."""
    assert load({}).policies.policies == ()
