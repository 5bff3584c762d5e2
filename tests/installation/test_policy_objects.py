"""Policies as objects: of which files, whose each is, and in which order they come."""

from __future__ import annotations

from typing import Any

import pytest

from tests.manifests.generated import ROOT
from tests.objects import an_object
from tests.policy.examples import EVERYTHING
from webhook import names
from webhook.errors import InvalidDocuments
from webhook.installation.object_kinds import key_of
from webhook.installation.policy_files import GIVEN, SHIPPED
from webhook.installation.policy_plan import (
    content_of,
    is_still,
    marked,
    of_files,
    ordered,
)
from webhook.policy.load import load
from webhook.server.folder import is_test_file, read_folder

Json = dict[str, Any]
FILES = sorted(path for path in (ROOT / "policies").rglob("*.yaml") if not is_test_file(path.name))
HEAD = "apiVersion: fairlead.dev/v1alpha1\nkind: CapacityClass\n"


def capacity_class(name: str, **spec: object) -> Json:
    return an_object(
        names.API_VERSION, names.CLASS_KIND, name, spec or {"nodes": [{"labels": {"pool": name}}]}
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_that_ships_says_the_same_as_objects(path: Any) -> None:
    """To the hash of the set, by which replicas are told apart."""
    classes = ROOT / "policies" / "capacity" / "any-provider.yaml"
    files = {
        **read_folder(path),
        **({} if path.parent.name == "capacity" else read_folder(classes)),
    }
    assert content_of(ordered(of_files(files))) == load(files).policies.hash


def test_a_policy_with_every_field_says_the_same_as_an_object() -> None:
    """And its labels and annotations come along."""
    files = {"all.yaml": EVERYTHING.encode()}
    objects = of_files(files)
    assert content_of(ordered(objects)) == load(files).policies.hash
    words = "metadata: {name: w, labels: {team: a}, annotations: {b: c}}"
    (named,) = of_files({"a.yaml": f"{HEAD}{words}\nspec: {{complementOf: spot}}\n".encode()})
    assert named["metadata"] == {"name": "w", "labels": {"team": "a"}, "annotations": {"b": "c"}}


def test_documents_with_errors_are_not_objects() -> None:
    """Every one of them is told."""
    with pytest.raises(InvalidDocuments, match=r"a\.yaml"):
        of_files({"a.yaml": b"kind: PlacementPolicy"})


def test_installed_objects_are_distinguished_from_a_users() -> None:
    """By who chose it, too; labels and annotations of others are no change."""
    spot = marked(capacity_class("spot"), SHIPPED)
    assert is_still(spot, SHIPPED)
    assert is_still(spot, GIVEN, SHIPPED)
    assert not is_still(spot, GIVEN)
    assert not is_still({**spot, "spec": {"complementOf": "x"}}, SHIPPED)
    assert not is_still(capacity_class("spot"), SHIPPED, GIVEN)
    metadata = spot["metadata"]
    theirs = {**metadata, "annotations": {**metadata["annotations"], "a": "b"}}
    assert is_still({**spot, "metadata": theirs}, SHIPPED)


def test_what_others_name_comes_before_them() -> None:
    """A class before its complement, however long the chain, and classes before policies."""
    policy = {**capacity_class("any"), "kind": names.POLICY_KIND}
    chain = [
        capacity_class("a", complementOf="b"),
        capacity_class("b", complementOf="c"),
        capacity_class("c"),
        capacity_class("d"),
    ]
    found = [at.name for at in ordered([policy, *chain])]
    assert found == ["c", "d", "b", "a", "any"]
    circle = [capacity_class("a", complementOf="b"), capacity_class("b", complementOf="a")]
    assert list(ordered(circle)) == [key_of(names.CLASS_KIND, name) for name in "ab"]
