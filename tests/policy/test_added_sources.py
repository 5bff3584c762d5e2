"""What a RunSource of an admin may not say is told with the cure."""

from __future__ import annotations

import pytest

from tests.cli.test_added_source import POLICY, SOURCE
from tests.wording import mentions
from webhook.errors import InvalidDocuments
from webhook.judgement.set_judgement import judge_set, load_served
from webhook.judgement.together.warnings import UNBOUNDED
from webhook.policy.findings import Kind
from webhook.policy.load import load
from webhook.policy.policy_documents import parse
from webhook.sources import SHIPPED


def told(*texts: str) -> str:
    """What is said of these files."""
    with pytest.raises(InvalidDocuments) as caught:
        load({f"{at}.yaml": text.encode() for at, text in enumerate(texts)})
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ("{name: acme}", "{name: dask}", ["metadata.name", "'dask'", "choose another name"]),
        (
            "group: acme.example.com\n    kind: Training",
            "group: batch\n    kind: Job",
            ["kinds[0]", "kubernetes", "Job", "is used instead"],
        ),
    ],
)
def test_what_ships_already_is_an_error_and_used_instead(
    old: str, new: str, facts: list[str]
) -> None:
    """A later version may bring it: then the stored set still serves, with what ships."""
    objects = {"a.yaml": SOURCE.replace(old, new).encode(), "b.yaml": POLICY.encode()}
    documents = parse(objects)
    (found,) = [
        each for each in judge_set(documents, UNBOUNDED).findings if each.severity == "error"
    ]
    assert found.kind is Kind.SHIPS_ALREADY
    mentions(str(found), *facts)
    served = load_served(documents)
    assert served.faults == (found,)
    sources = served.policies.sources
    for key, shipped in SHIPPED.pod_kinds.items():
        assert sources.pod_kinds[key] == shipped
    assert [each for each in sources.systems if each.name == "dask"] == [
        each for each in SHIPPED.systems if each.name == "dask"
    ]


def test_kinds_that_create_each_other_have_a_limit() -> None:
    """Of 20 groups each, three levels are thousands."""
    kind = "  - group: a.example.com\n    kind: K{0}\n    pods:\n"
    like = "    - like: {{group: a.example.com, kind: K{0}, spec: spec, name: x}}\n"
    last = "    - template: spec.template\n"
    levels = [kind.format(at) + like.format(at + 1) * 20 for at in range(3)]
    text = SOURCE[: SOURCE.index("  - group")] + "".join(levels) + kind.format(3) + last
    mentions(told(text), "spec.kinds[0].pods", "256 groups")
    pair = SOURCE[: SOURCE.index("  - group")] + levels[2] + kind.format(3) + last
    load({"a.yaml": pair.encode()})
    ring = pair.replace(last, like.format(2))
    mentions(told(ring), "creates a K2 again")


def test_a_kind_that_ships_without_pods_may_be_described() -> None:
    """SeldonDeployment is known to create pods, and nothing else is known of it."""
    own = SOURCE.replace("group: acme.example.com", "group: machinelearning.seldon.io")
    own = own.replace("kind: Training", "kind: SeldonDeployment")
    sources = load({"a.yaml": own.encode()}).policies.sources
    (kind,) = sources.pod_kinds["machinelearning.seldon.io", "SeldonDeployment"]
    assert len(kind.pods) == 2
