"""What a RunSource of an admin may not say is told with the cure."""

from __future__ import annotations

import pytest

from tests.cli.test_added_source import POLICY, SOURCE
from tests.wording import mentions
from webhook.errors import InvalidDocuments
from webhook.judgement.set_judgement import judge_set, load_served
from webhook.policy.findings import Kind
from webhook.policy.load import load
from webhook.policy.policy_documents import parse
from webhook.sources import SHIPPED

LIKE = "    - like: {group: GROUP, kind: KIND, spec: spec, name: x}\n"


def told(*texts: str) -> str:
    """What is said of these files."""
    with pytest.raises(InvalidDocuments) as caught:
        load({f"{at}.yaml": text.encode() for at, text in enumerate(texts)})
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
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
    ],
)
def test_what_belongs_to_fairlead_is_refused(old: str, new: str, facts: list[str]) -> None:
    """Precedences, labels and modules of its own."""
    assert old in SOURCE
    mentions(told(SOURCE.replace(old, new)), *facts)


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
    (found,) = [each for each in judge_set(documents).findings if each.severity == "error"]
    assert found.kind is Kind.SHIPS_ALREADY
    mentions(str(found), *facts)
    served = load_served(documents)
    assert list(served.faults) == [found]
    sources = served.policies.sources
    for key, shipped in SHIPPED.pod_kinds.items():
        assert sources.pod_kinds[key] == shipped
    assert [each for each in sources.systems if each.name == "dask"] == [
        each for each in SHIPPED.systems if each.name == "dask"
    ]


def warned(*texts: str, kind: Kind = Kind.SAME_MARK) -> list[str]:
    """The warnings of a kind about these files."""
    files = {f"{at}.yaml": text.encode() for at, text in enumerate(texts)}
    return [str(each) for each in load(files).warnings if each.kind is kind]


@pytest.mark.parametrize(
    ("label", "whose"),
    [
        ("app", "all kinds of applications"),
        ("app.kubernetes.io/name", "all kinds of applications"),
        ("batch.kubernetes.io/job-name", "Jobs"),
        ("pod-template-hash", "Deployments"),
    ],
)
def test_a_mark_that_pods_of_all_kinds_have_is_a_warning(label: str, whose: str) -> None:
    """It says whose pods would become part of a run; a value makes it narrow."""
    text = SOURCE.replace("acme.example.com/job", label)
    (found,) = warned(text, kind=Kind.GENERAL_MARK)
    mentions(found, "identity.marks[0]", label, whose, "add a value", "Acme training")
    narrow = text.replace(
        f"[{{label: {label}}}]\n    run", f"[{{label: {label}, value: x}}]\n    run"
    )
    assert narrow != text
    assert warned(narrow, kind=Kind.GENERAL_MARK) == []
    assert warned(SOURCE, kind=Kind.GENERAL_MARK) == []


def test_pods_that_get_no_mark_are_a_warning() -> None:
    """They are of no run, whatever the source says of their role."""
    assert warned(SOURCE, kind=Kind.PODS_WITHOUT_MARK) == []
    boss = '{acme.example.com/job: "{name}", acme.example.com/part: boss}'
    (found,) = warned(
        SOURCE.replace(boss, "{acme.example.com/part: boss}"), kind=Kind.PODS_WITHOUT_MARK
    )
    mentions(found, "spec.kinds[0].pods[0]", "Training", "acme.example.com/job", "adds")
    # Another value than the mark's is no mark; a placeholder may be.
    for value, count in (("other", 2), ("hand", 1), ('"{.part}"', 0)):
        marked = SOURCE.replace(
            "marks: [{label: acme.example.com/job}]",
            "marks: [{label: acme.example.com/part, value: hand}]",
        ).replace("part: hand\n          acme", f"part: {value}\n          acme")
        marked = marked.replace("part: boss}", f"part: {value if count != 1 else 'boss'}}}")
        assert len(warned(marked, kind=Kind.PODS_WITHOUT_MARK)) == count


@pytest.mark.parametrize(
    ("group", "kind", "count"), [("jobset.x-k8s.io", "JobSet", 0), ("apps", "Deployment", 1)]
)
def test_pods_of_another_kind_have_the_marks_of_its_system(
    group: str, kind: str, count: int
) -> None:
    """A JobSet's have one; a Deployment's have none."""
    start = SOURCE.index("    pods:\n") + len("    pods:\n")
    text = SOURCE[:start] + LIKE.replace("GROUP", group).replace("KIND", kind)
    assert len(warned(text, kind=Kind.PODS_WITHOUT_MARK)) == count


def test_a_mark_of_two_sources_is_a_warning_with_the_order() -> None:
    """The higher precedence has the pod; of equal ones the name decides."""
    start = SOURCE.index("  kinds:")
    other = SOURCE[:start].replace("{name: acme}", "{name: other}")
    first, second = warned(SOURCE, other)
    for each in (first, second):
        mentions(each, "acme.example.com/job", "a pod with it belongs to acme")
    higher, _ = warned(SOURCE, other.replace("precedence: 650", "precedence: 651"))
    mentions(higher, "belongs to other")
    jobset = SOURCE.replace(
        "acme.example.com/job}]\n    run", "jobset.sigs.k8s.io/jobset-name}]\n    run"
    )
    (shipped,) = warned(jobset)
    mentions(shipped, "jobset", "belongs to")
    value = other.replace(
        "{label: acme.example.com/job}]\n    run", "{label: a.b/c, value: x}]\n    run"
    )
    assert warned(SOURCE, value) == []


def test_an_object_does_not_create_itself() -> None:
    """The reader would never end."""
    start = SOURCE.index("    pods:\n") + len("    pods:\n")
    itself = '    - like: {object: ., name: "{name}"}\n'
    mentions(told(SOURCE[:start] + itself), "like.object", "itself")
    each = '    - like: {object: ., name: "{name}"}\n      each: spec.parts\n'
    load({"a.yaml": (SOURCE[:start] + each).encode()})


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


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        ("Acme training", "x" * 254, "spec.system"),
        (
            "{label: acme.example.com/job}]\n    run",
            "{label: a}" + ", {label: a}" * 16 + "]\n    run",
            "marks",
        ),
        ("from: [spec.hands]", f"from: [{', '.join(['spec.hands'] * 65)}]", "count.from"),
    ],
)
def test_a_source_has_limits(old: str, new: str, at: str) -> None:
    """Texts, lists and marks."""
    assert old in SOURCE
    mentions(told(SOURCE.replace(old, new)), at, "at most")


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
