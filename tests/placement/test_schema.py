"""The placement schema takes what Kubernetes takes, and says of all else what is wrong with it."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.wording import Wording, mentions
from webhook.placement.capacity import Mode
from webhook.placement.schema import (
    Affinity,
    CapacitySetting,
    Defaults,
    LabelSelectorRequirement,
    NodeSelectorRequirement,
    PlacementModel,
    PlacementSettings,
    PodAffinityTerm,
    PodSecurityContext,
    Strict,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from webhook.policy.model import PolicySpec


def errors(model: type[Strict], data: object) -> list[tuple[str, str]]:
    """Path and message of every error, the path with dots; empty if the model takes the data."""
    try:
        model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        return [
            (".".join(map(str, line["loc"])), line["msg"])
            for line in error.errors(include_url=False)
        ]
    return []


FULL: dict[str, Any] = {
    "patchStrategy": "Replace",
    "nodeSelector": {"pool": "a", "example.com/empty": ""},
    "tolerations": [
        {"operator": "Exists"},
        {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
        {"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": "a", "operator": "In", "values": ["b", ""]},
                            {"key": "cpus", "operator": "Gt", "values": ["8"]},
                            {"key": "gpu", "operator": "DoesNotExist"},
                        ],
                        "matchFields": [
                            {"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}
                        ],
                    }
                ]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                }
            ],
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"a": "b"}},
                    "namespaceSelector": {},
                    "namespaces": ["x"],
                    "matchLabelKeys": ["job"],
                    "mismatchLabelKeys": ["tenant"],
                }
            ],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}
            ],
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {
                "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]
            },
            "minDomains": 2,
            "nodeAffinityPolicy": "Honor",
            "nodeTaintsPolicy": "Ignore",
            "matchLabelKeys": ["job"],
        },
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
    ],
    "nodeName": "node-1",
    "priorityClassName": "high",
    "schedulerName": "volcano",
    "runtimeClassName": "gvisor",
    "securityContext": {
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "runAsNonRoot": True,
        "fsGroup": 2000,
        "fsGroupChangePolicy": "OnRootMismatch",
        "supplementalGroups": [3000],
        "supplementalGroupsPolicy": "Strict",
        "seccompProfile": {"type": "Localhost", "localhostProfile": "p.json"},
        "appArmorProfile": {"type": "RuntimeDefault"},
        "seLinuxOptions": {"user": "u", "role": "r", "type": "t", "level": "s0:c1"},
        "seLinuxChangePolicy": "MountOption",
        "sysctls": [{"name": "net.core.somaxconn", "value": "1024"}],
        "windowsOptions": {"runAsUserName": "x", "hostProcess": False},
    },
    "labels": {"team": "vision"},
    "annotations": {"Example.com/note": "any text: at all"},
    "capacity": [
        {"class": "spot", "mode": "Prefer", "weight": 7},
        {"class": "gpu", "mode": "None"},
    ],
}


def test_a_placement_is_dumped_as_it_was_written() -> None:
    """What was read, dumped by alias, is the JSON that goes into a pod, with nothing added."""
    model = PlacementModel.model_validate(FULL, by_alias=True, by_name=False)

    assert model.model_dump(by_alias=True, exclude_none=True) == FULL


def test_a_model_can_be_made_with_names_in_snake_case() -> None:
    """Code writes the attributes' names, documents the outer ones."""
    setting = CapacitySetting(class_name="spot", mode=Mode.ALLOW)

    assert setting.model_dump(by_alias=True, exclude_none=True) == {
        "class": "spot",
        "mode": "Allow",
    }


def test_a_model_cannot_be_changed() -> None:
    """A policy set is shared between requests: its values are frozen."""
    with pytest.raises(ValidationError, match="frozen"):
        Toleration(operator="Exists").key = "spot"


def test_names_in_snake_case_are_not_fields_of_a_document(wording: Wording) -> None:
    """A document has camelCase only, and the near name is suggested."""
    [(at, said)] = errors(PlacementModel, {"node_selector": {"a": "b"}})
    assert at == "node_selector"
    mentions(said, "no such field", "did you mean 'nodeSelector'?")
    wording(said)


def test_an_unknown_field_that_is_near_to_none_lists_the_fields(wording: Wording) -> None:
    """Whoever cannot be helped with a guess sees what there is."""
    [(at, said)] = errors(Taint, {"key": "a", "effect": "NoExecute", "colour": "red"})
    assert at == "colour"
    mentions(said, "no such field", "key, value, effect")
    wording(said)


@pytest.mark.parametrize(
    ("model", "data", "path"),
    [
        (CapacitySetting, {"class": "a", "mode": "Prefer", "weight": "5"}, "weight"),
        (CapacitySetting, {"class": "a", "mode": "Prefer", "weight": 5.0}, "weight"),
        (CapacitySetting, {"class": "a", "mode": "Prefer", "weight": True}, "weight"),
        (Toleration, {"key": "a", "value": 5}, "value"),
        (Toleration, {"key": "a", "value": True}, "value"),
        (PodSecurityContext, {"runAsNonRoot": 1}, "runAsNonRoot"),
        (PlacementModel, {"labels": {"a": None}}, "labels.a"),
        (PlacementModel, {"tolerations": {}}, "tolerations"),
        (PlacementModel, {"affinity": []}, "affinity"),
    ],
)
def test_no_value_is_turned_into_another_type(model: type[Strict], data: object, path: str) -> None:
    """A number is no text, text is no number, one is not true, and null is no label's value."""
    assert [at for at, _ in errors(model, data)] == [path]


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        ({}, "", "operator Exists"),
        ({"operator": "Exists", "value": "x"}, "value", "Exists takes no value"),
        ({"key": "a", "tolerationSeconds": 3}, "tolerationSeconds", "effect NoExecute only"),
        (
            {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3},
            "tolerationSeconds",
            "effect NoExecute only",
        ),
        ({"key": "a", "effect": "NoExecute", "tolerationSeconds": -1}, "tolerationSeconds", ""),
        ({"key": "a", "operator": "Lt", "value": "5"}, "operator", ""),
        ({"key": "a", "effect": ""}, "effect", ""),
        ({"key": "a b"}, "key", "'a b'"),
        ({"key": "a", "value": "-"}, "value", "'-'"),
    ],
)
def test_a_toleration_is_one_that_the_api_server_takes(
    data: object, path: str, message: str, wording: Wording
) -> None:
    """Key, operator, value, effect and seconds go together as ValidateTolerations has it."""
    [(at, said)] = errors(Toleration, data)

    assert at == path
    mentions(said, message)
    if message:  # else it is pydantic's
        wording(said)


@pytest.mark.parametrize("model", [NodeSelectorRequirement, LabelSelectorRequirement])
@pytest.mark.parametrize(
    ("operator", "values", "path", "message"),
    [
        ("In", None, "values", "In needs one value"),
        ("NotIn", [], "values", "NotIn needs one value"),
        ("Exists", ["a"], "values", "Exists takes no values"),
        ("DoesNotExist", ["a"], "values", "DoesNotExist takes no values"),
        ("In", ["a b"], "values.0", "not a label value"),
    ],
)
def test_each_operator_has_its_number_of_values(
    model: type[Strict], operator: str, values: list[str] | None, path: str, message: str
) -> None:
    """In and NotIn need values, Exists and DoesNotExist take none."""
    data = {"key": "a", "operator": operator}
    [(at, said)] = errors(model, data if values is None else {**data, "values": values})

    assert at == path
    assert message in said


@pytest.mark.parametrize(
    ("values", "path"),
    [(None, "values"), ([], "values"), (["1", "2"], "values"), (["1.5"], "values.0")],
)
def test_gt_and_lt_compare_with_one_whole_number(values: list[str] | None, path: str) -> None:
    """Gt and Lt need exactly one value, and that one an integer of 64 bits."""
    data = {"key": "a", "operator": "Gt"}

    assert [
        at
        for at, _ in errors(
            NodeSelectorRequirement, data if values is None else {**data, "values": values}
        )
    ] == [path]


def test_label_selectors_do_not_compare_numbers() -> None:
    """Gt and Lt belong to node affinity alone."""
    assert errors(LabelSelectorRequirement, {"key": "a", "operator": "Gt", "values": ["1"]})


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("terms", "path"),
    [
        ([], "nodeSelectorTerms"),
        ([{}], "nodeSelectorTerms.0"),
        (
            [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}],
            "nodeSelectorTerms.0.matchFields.0.values",
        ),
        (
            [{"matchFields": [{"key": "spec.x", "operator": "In", "values": ["a"]}]}],
            "nodeSelectorTerms.0.matchFields.0.key",
        ),
    ],
)
def test_required_node_affinity_says_something(terms: list[object], path: str) -> None:
    """No terms, an empty term, and a field other than the node's name are errors."""
    data = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}

    assert [at for at, _ in errors(Affinity, data)] == [f"nodeAffinity.{REQUIRED}.{path}"]


def test_pod_affinity_needs_a_topology_key() -> None:
    """Without a topologyKey nobody knows what is near."""
    assert errors(PodAffinityTerm, {"labelSelector": {}})[0][0] == "topologyKey"


def test_namespaces_have_no_dots() -> None:
    """A namespace's name is one DNS label, unlike other names."""
    assert errors(PodAffinityTerm, {"topologyKey": "z", "namespaces": ["a.b"]})[0][0] == (
        "namespaces.0"
    )


def test_match_label_keys_require_a_selector(wording: Wording) -> None:
    """Both lists of label keys add to a selector, and share no key."""
    [(at, said)] = errors(PodAffinityTerm, {"topologyKey": "z", "matchLabelKeys": ["a"]})
    assert at == "matchLabelKeys"
    mentions(said, "needs a labelSelector")
    wording(said)
    both = {"labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["b", "a"]}
    [(at, said)] = errors(PodAffinityTerm, {"topologyKey": "z", **both})
    assert at == "mismatchLabelKeys.1"
    mentions(said, "'a'", "also in matchLabelKeys")
    wording(said)


SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"maxSkew": 0}, "maxSkew"),
        ({"minDomains": 0}, "minDomains"),
        ({"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}, "minDomains"),
        ({"whenUnsatisfiable": "Never"}, "whenUnsatisfiable"),
        ({"nodeTaintsPolicy": "honor"}, "nodeTaintsPolicy"),
        ({"matchLabelKeys": ["a"]}, "matchLabelKeys"),
        (
            {"matchLabelKeys": ["a"], "labelSelector": {"matchLabels": {"a": "b"}}},
            "matchLabelKeys.0",
        ),
        (
            {
                "matchLabelKeys": ["a"],
                "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            },
            "matchLabelKeys.0",
        ),
    ],
)
def test_a_spread_constraint_is_one_that_the_api_server_takes(
    change: dict[str, object], path: str
) -> None:
    """The fields of a constraint go together as validateTopologySpreadConstraints has it."""
    assert [at for at, _ in errors(TopologySpreadConstraint, {**SPREAD, **change})] == [path]


def test_one_pair_of_topology_key_and_action_has_one_constraint(wording: Wording) -> None:
    """The API server refuses two constraints of one pair, so a policy cannot have them."""
    other = {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}

    [(at, said)] = errors(PlacementSettings, {"topologySpreadConstraints": [SPREAD, other, SPREAD]})
    assert at == "topologySpreadConstraints.2"
    mentions(said, "topologyKey and whenUnsatisfiable", "used by [0]")
    wording(said)


def test_one_class_has_one_setting() -> None:
    """Two settings of one placement for one class contradict each other."""
    settings = [{"class": "spot", "mode": "Allow"}, {"class": "spot", "mode": "Prevent"}]

    assert [at for at, _ in errors(PlacementSettings, {"capacity": settings})] == [
        "capacity.1.class"
    ]


@pytest.mark.parametrize("mode", ["Allow", "Constrain", "Prevent", "None"])
def test_a_weight_goes_with_prefer_only(mode: str, wording: Wording) -> None:
    """A weight beside another mode would mean nothing."""
    [(at, said)] = errors(CapacitySetting, {"class": "spot", "mode": mode, "weight": 5})
    assert at == "weight"
    mentions(said, "mode Prefer only", f"is {mode}")
    wording(said)


@pytest.mark.parametrize("weight", [0, 101, -1, 2**70])
def test_a_weight_is_from_1_to_100(weight: int) -> None:
    """Other weights are refused, as the API server refuses them."""
    assert errors(CapacitySetting, {"class": "spot", "mode": "Prefer", "weight": weight})


@pytest.mark.parametrize("model", [Defaults, PlacementSettings])
def test_policies_may_not_set_node_name(model: type[Strict], wording: Wording) -> None:
    """A node's name passes by the scheduler and by taints: it is the environment's alone."""
    [(at, said)] = errors(model, {"nodeName": "n1"})
    assert at == "nodeName"
    mentions(said, "policies may not", "nodeName")
    wording(said)


def test_defaults_know_two_strategies() -> None:
    """Defaults fill in key by key or only where nothing is; they never replace."""
    assert not errors(Defaults, {"patchStrategy": "IsNull"})
    assert not errors(Defaults, {"patchStrategy": "PreMerge"})
    assert errors(Defaults, {"patchStrategy": "PostMerge"})
    assert errors(Defaults, {"patchStrategy": "Replace"})


def test_overrides_and_requirements_have_no_strategy() -> None:
    """What wins or rejects leaves nothing to choose, and the error says where it belongs."""
    [(at, said)] = errors(PlacementSettings, {"patchStrategy": "IsNull"})

    assert at == "patchStrategy"
    assert "it belongs to defaults" in said


def test_errors_between_fields_do_not_wait_for_errors_within_them() -> None:
    """One reading tells all: a wrong operator does not hide seconds without NoExecute."""
    data = {"key": "a", "operator": "Exist", "effect": "NoSchedule", "tolerationSeconds": 3}

    assert {at for at, _ in errors(Toleration, data)} == {"operator", "tolerationSeconds"}


@pytest.mark.parametrize(
    ("context", "path"),
    [
        ({"runAsUser": -1}, "runAsUser"),
        ({"fsGroup": 2**31}, "fsGroup"),
        ({"seccompProfile": {"type": "Localhost"}}, "seccompProfile"),
        (
            {"appArmorProfile": {"type": "Unconfined", "localhostProfile": "x"}},
            "appArmorProfile.localhostProfile",
        ),
        ({"sysctls": [{"name": "", "value": "1"}]}, "sysctls.0.name"),
        ({"sysctls": [{"name": "A", "value": "1"}]}, "sysctls.0.name"),
        (
            {"sysctls": [{"name": "a.b", "value": "1"}, {"name": "a.b", "value": "2"}]},
            "sysctls.1.name",
        ),
        ({"windowsOptions": {"runAsUserName": "a/b"}}, "windowsOptions.runAsUserName"),
        ({"windowsOptions": {"hostProcess": True}}, "windowsOptions.hostProcess"),
        ({"privileged": True}, "privileged"),
    ],
)
def test_a_security_context_is_one_that_the_api_server_takes(
    context: dict[str, object], path: str
) -> None:
    """Numbers are in range, profiles have their files, and containers' fields are not the pod's."""
    assert [at for at, _ in errors(PodSecurityContext, context)] == [path]


@pytest.mark.parametrize(
    ("shares", "at", "facts"),
    [
        ([{}], "split.0.class", ()),
        ([{"class": "a", "count": 1}], "split.0", ("the last share has the rest",)),
        ([{"class": "a"}, {"class": "b"}], "split.0", ("only the last share",)),
        (
            [{"class": "a", "percent": 5}, {"class": "b", "count": 1}, {"class": "a"}],
            "split.1",
            ("count come before",),
        ),
        (
            [{"class": "a", "percent": 60}, {"class": "b", "percent": 41}, {"class": "a"}],
            "split.1",
            ("101 together",),
        ),
        (
            [{"class": "a", "percent": 5, "count": 1}, {"class": "b"}],
            "split.0.percent",
            ("count is given too",),
        ),
        ([{"class": "a", "percent": 0}, {"class": "b"}], "split.0.percent", ()),
        ([{"class": "a", "count": 10_001}, {"class": "b"}], "split.0.count", ()),
        ([{"class": "a", "weight": 5}], "split.0.weight", ("mode Prefer only",)),
        ([{"class": "spot"}], "split.0.class", ("is in capacity too",)),
        ([], "split", ()),
    ],
)
def test_a_split_that_is_not_one_is_an_error(
    shares: list[dict[str, Any]], at: str, facts: tuple[str, ...], wording: Wording
) -> None:
    """Sizes in order, at most 100 %, and the rest for the last share alone."""
    given = {"split": shares, "capacity": [{"class": "spot", "mode": "Allow"}]}
    [(where, said)] = errors(PlacementSettings, given)
    assert where == at
    mentions(said, *facts)
    wording(said)


def test_a_policy_has_one_split() -> None:
    """Another part needs a policy of its own."""
    split = {"split": [{"class": "spot"}]}
    found = errors(PolicySpec, {"defaults": split, "overrides": split})
    assert found == [("overrides.split", "is in defaults too: write a policy for each")]
