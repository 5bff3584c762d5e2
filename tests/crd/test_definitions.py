"""The definitions are made from the models of the files, and the manifests that ship are fresh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.crd.schemas import MOST_BYTES, carried, keys_of_lists, nodes, opaque, rules_of
from tests.fast_yaml import load_yaml
from webhook import names
from webhook.crd.definition import first_sentence
from webhook.frameworks.framework import Roles
from webhook.placement.schema.placement import Defaults, PlacementSettings, Requirements
from webhook.policy.crd.definitions import (
    AS_IN_DEFAULTS,
    RESOURCES,
    custom_resource_definitions,
)
from webhook.policy.crd.policy_rules import RULES
from webhook.policy.model import CapacityClassSpec, PolicySpec, Shape
from webhook.policy.status_model import ClassStatus, PolicyStatus
from webhook.run import crd as run
from webhook.run.model import RunSpec

Json = dict[str, Any]
MANIFESTS = Path(__file__).parents[2] / "manifests/crds"
POLICY, CLASS, RUN = names.POLICY_KIND, names.CLASS_KIND, names.RUN_KIND
NAMES = {**RESOURCES, RUN: run.NAME}
DEFINITIONS: dict[str, Json] = {
    **custom_resource_definitions(),
    RUN: run.custom_resource_definition(),
}
EVERY_RULE = [rule for table in (RULES, run.RULES) for rules in table.values() for rule in rules]
PARTS = ("defaults", "overrides", "requirements")
# The part of an annotation that a definition may have. Room for new fields is made before it is
# used (decision 115).
MOST = {POLICY: 0.75, RUN: 0.6, names.SOURCE_KIND: 0.15, CLASS: 0.05, names.EXCEPTION_KIND: 0.06}
each_kind = pytest.mark.parametrize("kind", NAMES)


def schema_of(kind: str) -> Json:
    (version,) = DEFINITIONS[kind]["spec"]["versions"]
    schema: Json = version["schema"]["openAPIV3Schema"]
    return schema


def fields_at(kind: str, path: str) -> tuple[str, ...]:
    return tuple(dict(nodes(schema_of(kind)))[path]["properties"])


@each_kind
def test_the_manifests_that_ship_are_fresh(kind: str) -> None:
    """`make manifests` makes them again."""
    manifest = MANIFESTS / f"{NAMES[kind]}.yaml"
    assert load_yaml(manifest.read_text()) == DEFINITIONS[kind], "run: make manifests"


def test_every_kind_of_a_cluster_has_a_definition() -> None:
    """And kustomize is told of it."""
    assert list(DEFINITIONS) == list(NAMES)
    listed = load_yaml((MANIFESTS / "Kustomization").read_text())["resources"]
    assert set(listed) == {path.name for path in MANIFESTS.glob("*.yaml")}
    assert {f"{name}.yaml" for name in NAMES.values()} <= set(listed)


@each_kind
def test_kubectl_apply_can_carry_it(kind: str) -> None:
    """It keeps the whole manifest as JSON in an annotation, and much of the room is left."""
    assert 5_000 < carried(DEFINITIONS[kind]) < MOST[kind] * MOST_BYTES


def test_every_field_of_the_models_is_there() -> None:
    """What a file may say, an object may."""
    assert fields_at(POLICY, ".spec") == PolicySpec.outer_names()
    assert set(fields_at(POLICY, ".spec.defaults")) == set(Defaults.outer_names())
    for part, model in (("overrides", PlacementSettings), ("requirements", Requirements)):
        assert set(fields_at(POLICY, f".spec.{part}")) == set(model.outer_names())
    assert fields_at(POLICY, ".spec.exclude[]") == fields_at(POLICY, ".spec.match")
    assert fields_at(CLASS, ".spec") == CapacityClassSpec.outer_names()
    assert fields_at(CLASS, ".spec.nodes[]") == Shape.outer_names()
    assert fields_at(RUN, ".spec") == RunSpec.outer_names()
    assert len(fields_at(POLICY, ".status")) == len(PolicyStatus.model_fields)
    assert len(fields_at(CLASS, ".status")) == len(ClassStatus.model_fields)


@each_kind
def test_every_field_has_its_description(kind: str) -> None:
    """Whatever `kubectl explain` is asked for."""
    for path, node in nodes(schema_of(kind)):
        described = node.get("description", "")
        if path.startswith((".spec", ".status")) and not path.endswith("[]"):
            assert described.endswith((".", "!")), path
            assert first_sentence(described) == described, path
    command = f"`fairlead generate schema {kind.lower()} -o markdown`"
    assert command in schema_of(kind)["description"]


def test_what_the_parts_of_a_policy_share_is_described_in_the_first() -> None:
    """The others refer to it, where it says the same; their own fields say what they do there."""
    schema = dict(nodes(schema_of(POLICY)))
    referring = {path for path, node in schema.items() if node.get("description") == AS_IN_DEFAULTS}
    assert len(referring) > 300
    for path in referring:
        _, spec, part, *rest = path.split(".")
        assert (spec, part in PARTS[1:], len(rest) > 1) == ("spec", True, True)
        same = schema[".".join(("", spec, PARTS[0], *rest))]
        assert same["description"] != AS_IN_DEFAULTS


def test_defaults_are_written_into_the_object() -> None:
    """Columns show it, and a later release may have other defaults. Nothing else is filled in.

    Of a Run only what holds on every engine.
    """
    defaults = {
        f"{kind}{path}": node["default"]
        for kind in NAMES
        for path, node in nodes(schema_of(kind))
        if "default" in node
    }
    assert defaults == {
        "PlacementPolicy.spec.enforcement": "Enforce",
        "PlacementPolicy.spec.priority": 0,
        **{f"PlacementPolicy.spec.{part}.split[].mode": "Constrain" for part in PARTS},
        **{
            f"PlacementPolicy.spec.{part}.{field}[].fallback.then": "Allow"
            for part in PARTS
            for field in ("capacity", "split")
        },
        "PlacementPolicy.spec.requirements.allowedTolerations.remove": False,
        "PlacementPolicy.spec.requirements.values[].key": "",
        "PlacementPolicy.spec.requirements.values[].stated": False,
        "Run.spec.kind": "job",
        "Run.spec.suspend": False,
        "Run.spec.replicas[].count": 1,
    }


@each_kind
def test_policies_keep_unknown_fields_everywhere_and_runs_in_templates_only(
    kind: str,
) -> None:
    """An older definition drops nothing from a policy: its webhook refuses what it does not know.

    A structural schema has no alternatives: the webhook judges values of several types.
    """
    schema = dict(nodes(schema_of(kind)))
    found = {path for path in opaque(schema_of(kind)) if not path.endswith(".in[]")}
    several = opaque(schema_of(kind)) - found
    assert {path.rpartition(".")[2] for path in several} == (
        {"in[]"} if kind == names.SOURCE_KIND else set()
    )
    if kind != RUN:
        at_names_alone = {".metadata"}
        objects = {path for path, node in schema.items() if "properties" in node}
        assert found == objects - at_names_alone
        return
    templates = (".spec.template", ".spec.replicas[].template")
    parts = {f"{path}.{part}" for path in templates for part in ("metadata", "spec")}
    assert found == parts
    # With a type, a rule that compares two of them would not see one key changed for another.
    assert all("type" not in schema[path] for path in parts)


def test_quantities_are_numbers_or_text() -> None:
    """As in a container; floats are not, since no two clients write them alike."""
    limits = dict(nodes(schema_of(RUN)))[".spec.replicas[].resources.limits"]
    assert limits["additionalProperties"]["x-kubernetes-int-or-string"] is True
    assert "type" not in limits["additionalProperties"]


@each_kind
def test_lists_and_mappings_that_rules_look_into_have_a_limit(kind: str) -> None:
    """Or the API server reckons with as many items as a request can hold."""
    unlimited = {
        path
        for path, node in nodes(schema_of(kind)["properties"]["spec"])
        if (
            node.get("type") == "array"
            and node["items"].get("type") == "object"
            and "maxItems" not in node
        )
        or ("additionalProperties" in node and "maxProperties" not in node and kind != RUN)
    }
    assert unlimited == set()


def test_lists_that_are_mappings_have_their_keys() -> None:
    """So that the API server refuses two of one key, and merges server-side applies by it."""
    keys = {field: keys for kind in NAMES for field, keys in keys_of_lists(schema_of(kind)).items()}
    assert keys == {
        "byIndex": ["index"],
        "capacity": ["class"],
        "claims": ["name"],
        "conditions": ["type"],
        "nodeSelectorFrom": ["key"],
        "ports": ["port"],
        "servedHashes": ["replica"],
        "sysctls": ["name"],
        "tolerationsFrom": ["key", "effect"],
        "topologySpreadConstraints": ["topologyKey", "whenUnsatisfiable"],
        "values": ["field", "key"],
    }


def test_every_rule_of_the_table_stands_in_a_schema() -> None:
    """A rule that is listed under a class that is not there would be no rule."""
    written = {rule for kind in NAMES for rule in rules_of(schema_of(kind))}
    assert written == {rule.rule for rule in EVERY_RULE}


def test_every_message_says_the_cure() -> None:
    """What is wrong, and after a colon what to do."""
    for rule in EVERY_RULE:
        assert ": " in rule.message, rule
        assert len(rule.message) < 250, rule


@pytest.mark.parametrize(
    ("kind", "short", "shown", "wide"),
    [
        (
            POLICY,
            "pp",
            ["Priority", "Enforcement", "Rollout", "Pods decided", "Accepted", "In force", "Age"],
            ["Rejected", "Last match", "Satisfiable", "Reason", "Description"],
        ),
        (CLASS, "cc", ["Complement of", "Accepted", "Age"], ["Satisfiable", "Reason", "Nodes"]),
        (
            names.EXCEPTION_KIND,
            "pe",
            ["Policies", "Until", "In force", "Reason", "Age"],
            ["Accepted"],
        ),
        (
            names.SOURCE_KIND,
            "rsrc",
            ["System", "Precedence", "Marks", "Accepted", "Intercepted", "Age"],
            ["Reason"],
        ),
        (
            RUN,
            "flrun",
            ["Phase", "Framework", "Replicas", "Restarts", "Age"],
            ["Kind", "Disruptions", "Duration", "Repeated", "Gang", "Message"],
        ),
    ],
)
def test_the_names_people_type(kind: str, short: str, shown: list[str], wide: list[str]) -> None:
    """`kubectl get pp`, and a column for each thing that is asked first."""
    spec = DEFINITIONS[kind]["spec"]
    columns = spec["versions"][0]["additionalPrinterColumns"]
    assert spec["scope"] == ("Namespaced" if kind == RUN else "Cluster")
    assert spec["names"]["singular"] == kind.lower()
    assert spec["names"]["shortNames"] == [short]
    assert spec["names"]["categories"] == [*(["all"] if kind == RUN else []), "fairlead"]
    assert [column["name"] for column in columns if not column.get("priority")] == shown
    assert [column["name"] for column in columns if column.get("priority")] == wide
    paths = {path for path, _ in nodes(schema_of(kind))} | {".metadata.creationTimestamp"}
    assert {column["jsonPath"] for column in columns if "[?" not in column["jsonPath"]} <= paths


def test_a_role_that_is_single_here_and_not_there_is_an_error() -> None:
    """One rule speaks of the single roles of all frameworks."""
    table: dict[str | None, Roles] = {
        "tensorflow": Roles(("master", "worker"), frozenset({"master"}), (), ()),
        "mpi": Roles(("master",), frozenset(), (), ()),
    }
    with pytest.raises(ValueError, match=r"mpi .* master"):
        run.single_roles(table)
