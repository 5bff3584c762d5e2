"""Reading policy files finds every document, and every error with its place and its cure."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fast_yaml import load_all_yaml, load_yaml
from tests.policy.examples import EVERYTHING, changed, places
from tests.run.whole_runs import ALL
from tests.wording import Wording, mentions
from webhook.errors import InvalidDocuments
from webhook.policy.model import PlacementPolicy
from webhook.policy.policy_documents import PolicyDocument, parse
from webhook.policy.reader import MAX_BYTES, Documents
from webhook.policy.yaml_text import MAX_DEPTH
from webhook.run.run_documents import read_runs

HEAD = "apiVersion: fairlead.dev/v1alpha1\nkind: PlacementPolicy\nmetadata: {name: p}\nspec:\n"
GOOD = HEAD + "  overrides: {nodeSelector: {a: b}}\n"


def read(text: str, file: str = "p.yaml") -> Documents[PolicyDocument]:
    return parse({file: text.encode()})


def lines(text: str, file: str = "p.yaml") -> list[str]:
    return [str(finding) for finding in read(text, file).findings]


def test_every_document_of_every_file_is_read_in_the_order_of_names() -> None:
    """Files by name, documents as they stand; empty ones are skipped."""
    other = GOOD.replace("name: p", "name: q")
    read_back = parse(
        {
            "b.yaml": GOOD.encode(),
            "a.yaml": f"# only a comment\n---\n---\n{GOOD}---\n{other}---\n".encode(),
            "empty.yaml": b"",
        }
    )

    assert [(each.file, each.model.name) for each in read_back.documents] == [
        ("a.yaml", "p"),
        ("a.yaml", "q"),
        ("b.yaml", "p"),
    ]
    assert read_back.findings == ()
    assert read_back.sound() == read_back.documents


def test_all_errors_are_reported_at_once_in_order_of_place() -> None:
    """Whoever corrects a file need not read it again for the next error."""
    found = parse(
        {
            "b.yaml": GOOD.replace("PlacementPolicy", "PlacementPolicies").encode(),
            "a.yaml": (
                HEAD
                + "  enforcement: enforce\n"
                + "  match: {roles: [boss], coordinator: 1}\n"
                + "  overrides:\n"
                + "    tolerations: [{key: a, operator: In, tolerationSeconds: 5}]\n"
                + f"---\n{GOOD}  prority: 5\n"
            ).encode(),
        }
    ).findings

    assert [(each.file, each.line, each.path) for each in found] == [
        ("a.yaml", 5, "spec.enforcement"),
        ("a.yaml", 6, "spec.match.roles[0]"),
        ("a.yaml", 6, "spec.match.coordinator"),
        ("a.yaml", 8, "spec.overrides.tolerations[0].operator"),
        ("a.yaml", 8, "spec.overrides.tolerations[0].tolerationSeconds"),
        ("a.yaml", 15, "spec.prority"),
        ("b.yaml", 2, "kind"),
    ]
    assert "did you mean 'PlacementPolicy'?" in found[-1].message


def test_a_file_with_errors_raises_them_all_if_asked_for_its_documents() -> None:
    """`sound` is for those who want documents or nothing."""
    found = read(GOOD + "  prority: 5\n  mach: {}\n")

    with pytest.raises(InvalidDocuments) as caught:
        found.sound()
    assert caught.value.findings == found.errors
    assert len(found.errors) == 2


def test_documents_with_errors_are_named_as_broken() -> None:
    """Who looks for a class that is only broken need not call it unknown."""
    found = read(GOOD + "  prority: 5\n---\n" + GOOD.replace("name: p", "name: q"))

    assert [each.model.name for each in found.documents] == ["q"]
    assert found.broken == {("PlacementPolicy", "p")}


def test_lists_hold_documents() -> None:
    """kubectl get -o yaml prints a List; each item is a document, with its place in the path."""
    items = [
        {**load_yaml(GOOD), "metadata": {"name": "a", "creationTimestamp": None}},
        {**load_yaml(GOOD), "spec": {"overrides": {"labels": {"a": 5}}}},
    ]
    found = read(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2))

    assert [each.model.name for each in found.documents] == ["a"]
    assert [each.path for each in found.findings] == ["items[1].spec.overrides.labels.a"]


def test_json_is_read_with_lines_and_columns(wording: Wording) -> None:
    """JSON as programs write it: tabs, escaped slashes, characters beyond 16 bits."""
    text = json.dumps(load_yaml(GOOD), indent="\t").replace("/", "\\/")
    named = text.replace('"spec": {', '"spec": {"description": "a \\ud83d\\ude00",')

    assert read(text, "p.json").documents == read(GOOD, "p.json").documents
    model = read(named, "p.json").documents[0].model
    assert isinstance(model, PlacementPolicy)
    assert model.spec.description == "a \U0001f600"
    (line,) = lines(text.replace('"b"', "7"), "p.json")
    assert line.startswith("p.json:10:10: spec.overrides.nodeSelector.a: ")
    mentions(line, "text", "7 is a number", "'7'")
    wording(line)


def test_anchors_aliases_and_merge_keys_are_followed() -> None:
    """YAML's own means against repetition work, and what is written beside a merge key wins."""
    [document] = read(
        HEAD
        + "  defaults: &d\n    nodeSelector: &s {a: b, c: d}\n"
        + "  overrides: {<<: *d, nodeSelector: {<<: [*s], c: e}}\n"
    ).documents

    assert isinstance(document.model, PlacementPolicy)
    assert document.model.spec.overrides is not None
    assert document.model.spec.overrides.node_selector == {"a": "b", "c": "e"}


@pytest.mark.parametrize(
    ("content", "place", "fact"),
    [
        (b"a: \xff", "p:1:4", "byte 0xff is not UTF-8"),
        (b"\xef\xbb\xbfa: b\nc: \xc3", "p:2:4", "byte 0xc3 is not UTF-8"),
        (b"a: \x01", "p:1:4", "'\\x01'"),
        (b"a:\n\tb: c", "p:2:1", "tab"),
        (b"a: *b", "p:1:4", "no anchor &b"),
        (b"a: &b [*b]", "p:1:8", "*b"),
        (b"a: b: c", "p:1:5", "not YAML: mapping values"),
        (b"a: [", "p:2:1", "not YAML: did not find"),
        (b'a: "\\ud800"', "p:1:7", "not YAML: found invalid Unicode"),
        (b"? [a]\n: b", "p:1:3", "key"),
        (b"<<: 5", "p:1:5", "<<"),
    ],
)
def test_a_text_that_cannot_be_read_is_an_error_at_its_place(
    content: bytes, place: str, fact: str, wording: Wording
) -> None:
    """Bytes, characters, tabs, aliases and syntax each have their line and column."""
    found = map(str, parse({"p": content}).findings)
    (line,) = (each for each in found if each.startswith(f"{place}: ") and fact in each)
    wording(line)


def test_what_stands_before_a_syntax_error_is_read() -> None:
    """The first document is judged though the second breaks off."""
    found = read(f"{GOOD}---\na: [")

    assert len(found.documents) == 1
    assert len(found.errors) == 1


def test_a_file_that_is_too_large_is_refused_unread() -> None:
    """A policy file has the size of a ConfigMap, not of a disk."""
    [finding] = parse({"p": b" " * (MAX_BYTES + 1)}).findings

    assert "too much" in finding.message


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_nesting_has_a_limit(opening: str) -> None:
    """A hundred thousand brackets end neither the process nor its patience."""
    [finding] = read(opening * 100_000).findings

    assert f"more than {MAX_DEPTH} levels" in finding.message


def test_aliases_that_multiply_are_refused() -> None:
    """Nine aliases of nine aliases of nine … are a bomb, found before it grows."""
    levels = [f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9)}]" for n in range(1, 12)]
    text = "k0: &k0 [a, a, a, a, a, a, a, a, a]\n" + "\n".join(levels)

    [finding] = read(text).findings
    assert "aliases repeat more than" in finding.message


def test_aliases_that_nest_count_for_depth() -> None:
    """Depth counts what an alias brings with it, or a chain of aliases could hide it."""
    deep = "[" * 40 + "]" * 40

    [finding] = read(f"a: &a {deep}\nb: {'[' * 40}*a{']' * 40}").findings
    assert f"more than {MAX_DEPTH} levels" in finding.message


def test_a_document_tells_where_a_path_stands() -> None:
    """Later judges of the whole set report at the scalar, the key, or the nearest parent."""
    [document] = read(
        HEAD + "  priority: 5\n  match:\n    roles: [ps,\n      worker]\n  overrides:\n"
        "    nodeSelector: {a: b}\n"
    ).documents

    assert document.locate(()) == (1, 1)
    assert document.locate(("spec", "priority")) == (5, 13)
    assert document.locate(("spec", "match")) == (6, 3)
    assert document.locate(("spec", "match", "roles", 1)) == (8, 7)
    assert document.locate(("spec", "match", "kinds")) == (6, 3)
    assert document.locate(("spec", "overrides", "nodeSelector", "a", 0)) == (10, 23)
    finding = document.finding(("spec", "priority"), "x", "warning")
    assert str(finding) == "p.yaml:5:13: warning: spec.priority: x"


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_make_reading_fail(content: bytes) -> None:
    """Whatever is in a file, the answer is documents and findings."""
    assert isinstance(parse({"x": content}), Documents)


SNIPPETS = st.sampled_from(
    [
        *"[]{},:-?&*!|>'\"%@`#~\t\n ",
        "a",
        "&a ",
        "*a",
        "<<: ",
        "---\n",
        "...\n",
        "\n  ",
        "? ",
        ": ",
        "!!int ",
        "yes",
        "null",
        "\\ud83d",
        "\u2028",
        "\x00",
        "kind: List\nitems: ",
        HEAD,
        "overrides: ",
        "nodeSelector: ",
    ]
)


@settings(deadline=None)
@given(st.lists(SNIPPETS, max_size=40).map("".join))
def test_no_mixture_of_yaml_makes_reading_fail(text: str) -> None:
    """Pieces of YAML in any order, valid or not, are read or reported."""
    found = read(text)

    assert all(each.line >= 1 and each.column >= 1 for each in found.findings)


FIELDS = st.sampled_from(
    [
        *("apiVersion", "kind", "metadata", "name", "spec", "match", "exclude", "podSelector"),
        *("matchLabels", "matchExpressions", "operator", "values", "key", "defaults", "overrides"),
        *("nodeSelector", "tolerations", "tolerationSeconds", "affinity", "nodeAffinity", "items"),
        *("topologySpreadConstraints", "matchLabelKeys", "labelSelector", "capacity", "class"),
        *(
            "nodes",
            "complementOf",
            "labels",
            "taints",
            "securityContext",
            "status",
            "patchStrategy",
        ),
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.dates()
    | st.text(max_size=8)
    | st.sampled_from(["fairlead.dev/v1alpha1", "PlacementPolicy", "CapacityClass", "List"])
    | st.sampled_from(["In", "Gt", "Exists", "NoExecute", "Prefer", "DoNotSchedule", "yes"])
)
STRUCTURES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(FIELDS | st.text(max_size=4) | st.integers(), inner, max_size=6)
    ),
    max_leaves=30,
)
POLICIES = st.fixed_dictionaries(
    {
        "apiVersion": st.just("fairlead.dev/v1alpha1"),
        "kind": st.sampled_from(["PlacementPolicy", "CapacityClass"]),
        "metadata": st.just({"name": "a"}) | STRUCTURES,
        "spec": STRUCTURES,
    }
)


@settings(deadline=None)
@given(
    STRUCTURES | POLICIES | st.lists(POLICIES).map(lambda items: {"kind": "List", "items": items})
)
def test_no_structure_makes_reading_fail(data: Any) -> None:
    """Whatever YAML can say, of whatever type where, is read or reported."""
    found = read(yaml.safe_dump(data, allow_unicode=True))

    assert found.documents or found.findings or not data or data.get("kind") == "List"


@settings(deadline=None)
@given(st.permutations(["a.yaml", "b.yaml", "c.yaml"]))
def test_the_order_of_files_changes_nothing(order: list[str]) -> None:
    """A folder is read the same whatever order the file system lists it in."""
    contents = {
        "a.yaml": GOOD.encode(),
        "b.yaml": (GOOD + "  prority: 5").encode(),
        "c.yaml": GOOD.replace("name: p", "name: q").encode(),
    }

    assert parse({name: contents[name] for name in order}) == parse(contents)


@pytest.mark.parametrize(
    "whole", [*load_all_yaml(EVERYTHING), *ALL], ids=lambda whole: whole["metadata"]["name"]
)
def test_a_mapping_or_a_list_in_any_place_makes_no_rule_fail(whole: dict[str, Any]) -> None:
    """A rule between fields meets no value of a type that the field beside it cannot have."""
    values: list[Any] = [{"a": "b"}, [{}]]
    for path in places(whole):
        for value in values:
            text = json.dumps(changed(whole, path, value)).encode()

            (read_runs if whole["kind"] == "Run" else parse)({"x.json": text})
