"""Objects of a cluster become the policy set that the same documents in files become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.fast_yaml import load_all_yaml
from tests.policy.examples import EVERYTHING
from tests.wording import Wording, mentions
from webhook import names
from webhook.errors import InvalidDocuments
from webhook.judgement.set_judgement import Objects, load_objects, read_object
from webhook.placement.capacity_setting import CapacitySetting
from webhook.policy.load import load
from webhook.policy.yaml_text import MAX_DEPTH
from webhook.server.folder import is_policy_file

POLICIES = Path(__file__).parents[2] / "policies"
SHIPPED = [path for path in sorted(POLICIES.rglob("*.yaml")) if is_policy_file(path.name)]
PROVIDERS = [path for path in SHIPPED if path.parent.name == "capacity"]
OTHERS = [path for path in SHIPPED if path not in PROVIDERS]
LABELLED = {"defaults": {"nodeSelector": {"pool": "a"}}}


def objects(*documents: dict[str, Any]) -> dict[str, bytes]:
    return {
        f"{names.POLICY_RESOURCES[each['kind']]}/{each['metadata']['name']}": orjson.dumps(each)
        for each in documents
    }


def of_yaml(text: str) -> dict[str, bytes]:
    """The documents of a file as objects."""
    return objects(*(each for each in load_all_yaml(text) if each))


def policy(name: str = "p", **spec: Any) -> dict[str, Any]:
    """A policy that may be wrong."""
    return {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": name, "uid": "u", "resourceVersion": "7", "managedFields": None},
        "spec": spec or {"defaults": {"nodeSelector": {"pool": "a"}}},
    }


def findings(*documents: dict[str, Any]) -> list[str]:
    """What is wrong with the objects, as printed."""
    with pytest.raises(InvalidDocuments) as caught:
        load_objects(objects(*documents))
    return [str(finding) for finding in caught.value.findings]


def test_the_hash_is_that_of_the_same_documents_in_files() -> None:
    """And so are the policies, the classes, and what is warned of."""
    by_file = load({"a.yaml": EVERYTHING.encode()})
    by_object = load_objects(of_yaml(EVERYTHING))
    assert by_object.policies.hash == by_file.policies.hash
    assert [p.settings for p in by_object.policies.policies] == [
        p.settings for p in by_file.policies.policies
    ]
    assert by_object.policies.classes == by_file.policies.classes
    assert sorted((w.path, w.message) for w in by_object.warnings) == sorted(
        (w.path, w.message) for w in by_file.warnings
    )


@pytest.mark.parametrize("classes", PROVIDERS, ids=lambda path: path.stem)
def test_shipped_policies_have_the_hash_of_their_files(classes: Path) -> None:
    """With the classes of each provider."""
    shipped = (classes, *OTHERS)
    files = {str(path): path.read_bytes() for path in shipped}
    made = {place: text for path in shipped for place, text in of_yaml(path.read_text()).items()}
    assert load_objects(made).policies.hash == load(files).policies.hash


def test_no_objects_are_an_empty_set() -> None:
    """As an empty folder is."""
    assert load_objects({}).policies.hash == load({}).policies.hash


def test_a_finding_s_place_is_resource_and_name_with_the_field() -> None:
    """All errors of all objects at once, with the value seen and those allowed."""
    wrong = policy("b", defaults={"tolerations": [{"operator": "Exist"}]}, priority="high")
    unknown = policy("a", overrides={"capacity": [{"class": "spot", "mode": "Allow"}]})
    expected = [
        ("placementpolicies/a: spec.overrides.capacity[0].class: ", "'spot'"),
        (
            "placementpolicies/b: spec.defaults.tolerations[0].operator: ",
            "'Exist'",
            "Exists, Equal",
        ),
        ("placementpolicies/b: spec.priority: ", "whole number", "'high'"),
    ]
    for line, (place, *facts) in zip(findings(wrong, unknown), expected, strict=True):
        assert line.startswith(place)
        mentions(line, *facts)


@pytest.mark.parametrize(
    ("spec", "path", "facts"),
    [
        (None, "spec", ("null",)),
        ([1], "spec", ("mapping", "list")),
        (5, "spec", ("mapping", "'5'")),
        ({"defaults": None}, "spec.defaults", ("null",)),
        ({"defaults": {"labels": {"a": True}}}, "spec.defaults.labels.a", ("text", "'true'")),
    ],
)
def test_garbage_is_a_finding(
    spec: Any, path: str, facts: tuple[str, ...], wording: Wording
) -> None:
    """Nothing that can stand in JSON raises anything else."""
    found = findings({**policy(), "spec": spec})
    (line,) = (each for each in found if each.startswith(f"placementpolicies/p: {path}: "))
    mentions(line, *facts)
    wording(line)


def test_a_document_that_is_not_an_object_or_too_deep_is_a_finding() -> None:
    """The API server sends none of it."""
    deep = policy(defaults={"labels": {}})
    at = deep["spec"]["defaults"]
    for _ in range(MAX_DEPTH):
        at["labels"] = at = {}
    mentions(
        str(read_object("x/deep", orjson.dumps(deep)).errors[0]), "x/deep: ", f"{MAX_DEPTH} levels"
    )
    assert "x/text" in str(read_object("x/text", b"{").errors[0])
    assert "x/list: want a document" in str(read_object("x/list", b"[]").errors[0])


def test_an_invalid_class_is_not_reported_as_unknown() -> None:
    """One mistake is one finding, as in files."""
    broken = {**policy("spot"), "kind": "CapacityClass", "spec": {"nodes": []}}
    setting = policy(overrides={"capacity": [{"class": "spot", "mode": "Allow"}]})
    assert [line.split(":")[0] for line in findings(broken, setting)] == ["capacityclasses/spot"]


def test_a_changed_object_is_read_again_and_a_deleted_one_is_forgotten() -> None:
    """Whatever is remembered, the set is that of the objects at hand."""
    remembered = Objects()
    one, two = policy("one"), policy("two")
    changed = policy("one", overrides={"schedulerName": "volcano"})
    for at_hand in ([one, two], [changed, two], [two], [one, two]):
        made = objects(*at_hand)
        assert remembered.load(made).policies.hash == load_objects(made).policies.hash
    with pytest.raises(InvalidDocuments):
        remembered.load(objects(policy("one", priority="x")))
    assert remembered.load(objects(one)).policies.hash == load_objects(objects(one)).policies.hash


def capacity(name: str, pool: str) -> dict[str, Any]:
    return {
        **policy(name),
        "kind": "CapacityClass",
        "spec": {"nodes": [{"labels": {"pool": pool}}]},
    }


def test_a_policy_means_the_class_that_there_is_now() -> None:
    """Also where it was itself compiled before; and what did not change is the same object."""
    remembered = Objects()
    setting = policy("setting", overrides={"capacity": [{"class": "spot", "mode": "Constrain"}]})
    other = policy("other", match={"podSelector": {"matchLabels": {"team": "a"}}}, **LABELLED)
    kept = None
    for spot in (capacity("spot", "a"), capacity("spot", "b"), capacity("spot", "b")):
        made = objects(setting, other, spot, capacity("rest", "c"))
        got, fresh = remembered.load(made).policies, load_objects(made).policies
        assert [p.settings for p in got.policies] == [p.settings for p in fresh.policies]
        assert got.tested["pod_selector"] == fresh.tested["pod_selector"] == {("team", "a")}
        named = {p.name: p for p in got.policies}
        (meant,) = named["setting"].settings
        assert isinstance(meant, CapacitySetting)
        assert meant.capacity is got.classes["spot"]
        assert kept is None or kept is named["other"]
        kept = named["other"]
