"""The CustomResourceDefinition is made from the model, and the manifest that ships is fresh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crd.schemas import MOST_BYTES, carried, keys_of_lists, nodes, opaque, rules_of
from tests.fast_yaml import load_yaml
from webhook.frameworks.framework import Roles
from webhook.run.crd import NAME, RULES, custom_resource_definition, single_roles
from webhook.run.model import RunSpec

Json = dict[str, Any]
MANIFEST = Path(__file__).parents[2] / "manifests/crds" / f"{NAME}.yaml"

DEFINITION = custom_resource_definition()
(VERSION,) = DEFINITION["spec"]["versions"]
SCHEMA: Json = VERSION["schema"]["openAPIV3Schema"]


def at(path: str) -> Json:
    """The schema of what is at this path."""
    return dict(nodes(SCHEMA))[path]


def test_the_manifest_that_ships_is_fresh() -> None:
    """`fairlead schema crd run > manifests/crds/runs.fairlead.dev.yaml` makes it again."""
    assert load_yaml(MANIFEST.read_text()) == DEFINITION, (
        f"run: fairlead schema crd run > manifests/crds/{MANIFEST.name}"
    )


def test_kubectl_apply_can_carry_it() -> None:
    """It keeps the whole manifest as JSON in an annotation, and most of the room is left."""
    assert 100_000 < carried(DEFINITION) < 0.65 * MOST_BYTES


def test_every_field_of_the_model_is_there_with_its_description() -> None:
    """Whatever `kubectl explain` is asked for."""
    spec = at(".spec")["properties"]

    assert tuple(spec) == RunSpec.outer_names()
    for path, node in nodes(SCHEMA):
        inner = path.startswith((".spec", ".status"))
        if inner and not path.endswith("[]") and path != ".metadata":
            assert node.get("description", "").endswith((".", "!")), path


def test_only_defaults_that_hold_on_every_engine_are_stored() -> None:
    """The API server stores no value that nobody wrote and that an engine may not have."""
    defaults = {path: node["default"] for path, node in nodes(SCHEMA) if "default" in node}

    assert defaults == {
        ".spec.kind": "job",
        ".spec.suspend": False,
        ".spec.replicas[].count": 1,
    }


def test_templates_are_opaque_and_nothing_else_is() -> None:
    """Unknown fields of a Run are refused or dropped; those of a pod are the pod's."""
    found = opaque(SCHEMA)

    templates = (".spec.template", ".spec.replicas[].template")
    assert found == {f"{path}.{part}" for path in templates for part in ("metadata", "spec")}
    # With a type, a rule that compares two of them would not see one key changed for another.
    assert all("type" not in at(path) for path in found)


def test_quantities_are_numbers_or_text() -> None:
    """As in a container; floats are not, since no two clients write them alike."""
    limits = at(".spec.replicas[].resources.limits")["additionalProperties"]

    assert limits["x-kubernetes-int-or-string"] is True
    assert "type" not in limits


def test_lists_that_are_mappings_have_their_keys() -> None:
    """So that the API server refuses two of one key, and merges server-side applies by it."""
    assert keys_of_lists(SCHEMA) == {
        "byIndex": ["index"],
        "capacity": ["class"],
        "claims": ["name"],
        "conditions": ["type"],
        "ports": ["port"],
        "sysctls": ["name"],
        "topologySpreadConstraints": ["topologyKey", "whenUnsatisfiable"],
    }


def test_lists_of_objects_have_a_limit() -> None:
    """Or the API server reckons with as many as a request can hold, for every rule below."""
    unlimited = {
        path
        for path, node in nodes(SCHEMA["properties"]["spec"])
        if node.get("type") == "array"
        and node["items"].get("type") == "object"
        and "maxItems" not in node
    }

    assert unlimited == set()


def test_every_rule_of_the_table_stands_in_the_schema() -> None:
    """A rule that is listed under a class that is not there would be no rule."""
    assert rules_of(SCHEMA) == {rule.rule for rules in RULES.values() for rule in rules}


def test_every_message_says_the_cure() -> None:
    """What is wrong, and after a colon what to do."""
    for rules in RULES.values():
        for rule in rules:
            assert ": " in rule.message, rule
            assert len(rule.message) < 250, rule


def test_the_names_people_type() -> None:
    """`kubectl get flrun`, `kubectl get all`, and a column for each thing that is asked first."""
    names = DEFINITION["spec"]["names"]
    columns = VERSION["additionalPrinterColumns"]

    assert (names["plural"], names["singular"], names["shortNames"]) == ("runs", "run", ["flrun"])
    assert names["categories"] == ["all", "fairlead"]
    assert [column["name"] for column in columns if not column.get("priority")] == [
        *("Phase", "Framework", "Replicas", "Restarts", "Age")
    ]
    assert [column["name"] for column in columns if column.get("priority")] == [
        *("Kind", "Disruptions", "Duration", "Repeated", "Message")
    ]
    paths = {path for path, _ in nodes(SCHEMA)} | {".metadata.creationTimestamp"}
    assert {column["jsonPath"] for column in columns} <= paths


def test_a_role_that_is_single_here_and_not_there_is_an_error() -> None:
    """One rule speaks of the single roles of all frameworks."""
    table: dict[str | None, Roles] = {
        "tensorflow": Roles(("master", "worker"), frozenset({"master"}), (), ()),
        "mpi": Roles(("master",), frozenset(), (), ()),
    }

    with pytest.raises(ValueError, match=r"mpi .* master"):
        single_roles(table)
