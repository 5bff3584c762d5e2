"""What a RunSource of an admin may not say is told with the cure."""

from __future__ import annotations

import pytest

from tests.cli.test_added_source import POLICY, SOURCE
from tests.wording import mentions
from webhook.errors import InvalidDocuments
from webhook.policy.load import load

LIKE = "    - like: {group: GROUP, kind: KIND, spec: spec, name: x}\n"


def told(*texts: str) -> str:
    """What is said of these files."""
    with pytest.raises(InvalidDocuments) as caught:
        load({f"{at}.yaml": text.encode() for at, text in enumerate(texts)})
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ("{name: acme}", "{name: dask}", ["metadata.name", "'dask'", "choose another name"]),
        ("precedence: 650", "precedence: 1000", ["identity.precedence", "1000", "1 to 999"]),
        ("precedence: 650", "precedence: 0", ["identity.precedence", "1 to 999"]),
        (
            "marks: [{label: acme.example.com/job}]",
            "marks: [{label: fairlead.dev/run}]",
            ["identity.marks[0].label", "fairlead.dev/"],
        ),
        (
            "marks: [{label: acme.example.com/job}]",
            "marks: [{namespaceLabel: acme.example.com/all}]",
            ["identity.marks[0].namespaceLabel", "label of the pod"],
        ),
        ("kind: Training", "kind: Training\n    code: x.py", ["kinds[0].code", "module"]),
        (
            "group: acme.example.com\n    kind: Training",
            "group: batch\n    kind: Job",
            ["kinds[0]", "kubernetes", "Job", "already"],
        ),
    ],
)
def test_what_belongs_to_fairlead_is_refused(old: str, new: str, facts: list[str]) -> None:
    """Names, precedences, labels and kinds of its own."""
    assert old in SOURCE
    mentions(told(SOURCE.replace(old, new)), *facts)


def test_two_sources_do_not_describe_one_kind() -> None:
    """Nor have one name."""
    again = SOURCE.replace("{name: acme}", "{name: other}")
    mentions(told(SOURCE, again), "acme", "Training", "already")
    mentions(told(SOURCE, SOURCE), "there is a RunSource 'acme' already")


def test_a_kind_that_creates_another_needs_its_description() -> None:
    """And does not create itself."""
    start = SOURCE.index("    pods:\n") + len("    pods:\n")
    unknown = LIKE.replace("GROUP", "a.example.com").replace("KIND", "Thing")
    mentions(told(SOURCE[:start] + unknown), "Thing", "nothing describes")
    itself = LIKE.replace("GROUP", "acme.example.com").replace("KIND", "Training")
    mentions(told(SOURCE[:start] + itself), "Training", "again")


def test_a_source_without_marks_and_kinds_says_nothing() -> None:
    """So it is a mistake."""
    start = SOURCE.index("  identity:")
    mentions(told(SOURCE[:start]), "want identity, kinds, or both")


def test_a_kind_that_ships_without_pods_may_be_described() -> None:
    """SeldonDeployment is known to create pods, and nothing else is known of it."""
    own = SOURCE.replace("group: acme.example.com", "group: machinelearning.seldon.io")
    own = own.replace("kind: Training", "kind: SeldonDeployment")
    sources = load({"a.yaml": own.encode()}).policies.sources
    (kind,) = sources.pod_kinds["machinelearning.seldon.io", "SeldonDeployment"]
    assert len(kind.pods) == 2


def test_a_policy_may_not_write_what_an_added_source_reads() -> None:
    """As for the systems that ship."""
    writes = POLICY.replace("nodeSelector: {pool: hands}", "labels: {acme.example.com/part: hand}")
    mentions(told(SOURCE, writes), "acme.example.com/part", "no policy may write")
    load({"a.yaml": writes.encode()})
