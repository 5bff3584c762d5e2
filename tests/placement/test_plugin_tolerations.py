"""What each plugin and controller adds to a pod is neither its author's nor forbidden."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.laws.strategies import document
from tests.laws.world import CLUSTER, decided, patched, policy_set
from tests.wording import mentions
from webhook import names
from webhook.decision.arrival import Cluster
from webhook.decision.decision import Decision
from webhook.placement.plugin_tolerations import (
    AnnotatedLabels,
    Facts,
    added,
    default_tolerations_of,
    namespace_tolerations,
)

Json = dict[str, Any]
DEFAULTS = "scheduler.alpha.kubernetes.io/defaultTolerations"
GPU: Json = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
PRESSURE: Json = {
    "key": "node.kubernetes.io/memory-pressure",
    "operator": "Exists",
    "effect": "NoSchedule",
}
MAINT: Json = {"key": "maint", "operator": "Exists"}
NARROW: Json = {"key": "narrow", "operator": "Equal", "value": "a", "effect": "NoExecute"}
OWN: Json = {"key": "own", "operator": "Exists"}
KATA = {"scheduling": {"tolerations": [MAINT]}}
WITH_CLASS = Cluster(runtime_classes={"kata": KATA})


def container(**resources: Json) -> Json:
    return {"name": "main", "resources": resources}


def pod(*tolerations: Json, **spec: Any) -> Json:
    """A pod of a run, as plugins left it."""
    spec = {"containers": [container()], "tolerations": [*tolerations], **spec}
    return {"metadata": {"labels": {names.RUN: "r"}}, "spec": spec}


def asking(*tolerations: Json, **resources: Json) -> Json:
    return pod(*tolerations, containers=[container(**resources)])


def annotated(*tolerations: Json) -> AnnotatedLabels:
    return AnnotatedLabels.of({}, {DEFAULTS: json.dumps(tolerations)})


# A pod that has what others add to it, the cluster, and the namespace's labels.
BY_OTHERS: dict[str, tuple[Json, Cluster, AnnotatedLabels]] = {
    "an extended resource": (
        asking(GPU, limits={"nvidia.com/gpu": "1"}),
        CLUSTER,
        AnnotatedLabels(),
    ),
    "of an init container": (
        pod(GPU, initContainers=[container(requests={"nvidia.com/gpu": 2})]),
        CLUSTER,
        AnnotatedLabels(),
    ),
    "requests": (asking(PRESSURE, requests={"cpu": "1"}), CLUSTER, AnnotatedLabels()),
    "limits": (asking(PRESSURE, limits={"memory": "1Gi"}), CLUSTER, AnnotatedLabels()),
    "pod-level requests": (
        pod(PRESSURE, resources={"requests": {"cpu": "1"}}),
        CLUSTER,
        AnnotatedLabels(),
    ),
    "the namespace": (pod(NARROW), CLUSTER, annotated(NARROW)),
    "the RuntimeClass": (pod(MAINT, runtimeClassName="kata"), WITH_CLASS, AnnotatedLabels()),
}
# One that nobody but its author can have written.
BY_AUTHOR: dict[str, tuple[Json, Cluster, AnnotatedLabels]] = {
    "another resource": (asking(GPU, limits={"amd.com/gpu": "1"}), CLUSTER, AnnotatedLabels()),
    "another effect": (
        asking({**GPU, "effect": "NoExecute"}, limits={"nvidia.com/gpu": "1"}),
        CLUSTER,
        AnnotatedLabels(),
    ),
    "BestEffort": (asking(PRESSURE, requests={"cpu": "0"}), CLUSTER, AnnotatedLabels()),
    "pod-level resources without any": (
        pod(PRESSURE, resources={}, containers=[container(requests={"cpu": "1"})]),
        CLUSTER,
        AnnotatedLabels(),
    ),
    "another namespace": (pod(NARROW), CLUSTER, annotated(MAINT)),
    "wider than the namespace's": (pod({**NARROW, "effect": ""}), CLUSTER, annotated(NARROW)),
    "for another time": (
        pod({**NARROW, "tolerationSeconds": 9}),
        CLUSTER,
        annotated({**NARROW, "tolerationSeconds": 5}),
    ),
    "another RuntimeClass": (pod(MAINT, runtimeClassName="std"), WITH_CLASS, AnnotatedLabels()),
    "no RuntimeClass": (pod(MAINT), WITH_CLASS, AnnotatedLabels()),
}


def allowing(case: tuple[Json, Cluster, AnnotatedLabels], *, remove: bool = False) -> Decision:
    """The decision of a policy that allows nothing."""
    what, cluster, labels = case
    allowed = {"allowedTolerations": {"patterns": [], "remove": remove}}
    policies = policy_set([document("PlacementPolicy", "few", {"requirements": allowed})])
    return _decided(what, policies, cluster, labels)


def defaulting(case: tuple[Json, Cluster, AnnotatedLabels]) -> bool:
    """Whether a default under IsNull is added."""
    what, cluster, labels = case
    default = {"patchStrategy": "IsNull", "tolerations": [OWN]}
    policies = policy_set([document("PlacementPolicy", "p", {"defaults": default})])
    return OWN in patched(what, _decided(what, policies, cluster, labels))["spec"]["tolerations"]


def _decided(what: Json, policies: Any, cluster: Cluster, labels: AnnotatedLabels) -> Decision:
    return decided(what, policies, cluster, space=labels)


@pytest.mark.parametrize("name", BY_OTHERS)
def test_what_others_add_is_allowed_and_stays(name: str) -> None:
    """With and without `remove`."""
    case = BY_OTHERS[name]
    assert allowing(case).allowed
    removing = allowing(case, remove=True)
    assert not removing.warnings
    assert patched(case[0], removing)["spec"]["tolerations"] == case[0]["spec"]["tolerations"]


@pytest.mark.parametrize("name", BY_OTHERS)
def test_what_others_add_is_not_the_authors(name: str) -> None:
    """A default under IsNull applies to a pod whose author wrote none."""
    assert defaulting(BY_OTHERS[name])


@pytest.mark.parametrize("name", BY_AUTHOR)
def test_what_nobody_else_adds_is_the_authors(name: str) -> None:
    """It is rejected, taken away with `remove`, and keeps defaults under IsNull away."""
    case = BY_AUTHOR[name]
    assert allowing(case).result == "rejected"
    left = patched(case[0], allowing(case, remove=True))["spec"].get("tolerations")
    assert not left
    assert not defaulting(case)


FLAVORS = Cluster(
    flavors=[
        {"spec": {"nodeLabels": {"pool": "spot"}, "tolerations": [MAINT]}},
        {"spec": {"nodeLabels": {"pool": "other"}, "tolerations": [OWN]}},
        {"spec": {"tolerations": [GPU]}},
    ]
)


def of_kueue(*tolerations: Json) -> Json:
    """A pod that Kueue has admitted on the first flavor."""
    what = pod(*tolerations, nodeSelector={"pool": "spot", "zone": "a"})
    what["metadata"]["labels"][names.KUEUE_PODSET] = "main"
    return what


@pytest.mark.parametrize(
    ("toleration", "kept", "allows"),
    [(MAINT, True, True), (MAINT, False, False), (OWN, True, False), (GPU, True, False)],
)
def test_a_flavor_of_kueue_adds_its_tolerations_where_the_namespace_trusts_kueue(
    toleration: Json, kept: bool, allows: bool
) -> None:
    """Any author may write Kueue's label; only the flavor whose labels the pod selects counts."""
    labels = AnnotatedLabels({names.KUEUE: names.KUEUE_KEEP} if kept else {})
    assert allowing((of_kueue(toleration), FLAVORS, labels)).allowed == allows


def test_a_request_of_zero_is_the_cure() -> None:
    """The author cannot remove what the API server adds for it, and may not have it."""
    case = (asking(GPU, limits={"nvidia.com/gpu": "0"}), CLUSTER, AnnotatedLabels())
    decision = allowing(case)
    mentions(decision.reason, "nvidia.com/gpu:NoSchedule: remove the request of 0 nvidia.com/gpu")
    assert "remove it" not in decision.reason
    assert defaulting(case), "the author did not write it"


@pytest.mark.parametrize(
    "text", ["", "{", "{}", "null", "3", '["a"]', '[{"key": 3}]', "[" * 2000 + "]" * 2000]
)
def test_an_annotation_that_cannot_be_read_adds_nothing(text: str) -> None:
    """The plugin refuses the namespace's pods then."""
    assert namespace_tolerations(text) == []


def test_labels_with_another_annotation_are_not_equal() -> None:
    """Else a cache would keep the old one."""
    assert annotated(MAINT) != annotated(NARROW)
    assert annotated(MAINT) == annotated(MAINT)
    assert AnnotatedLabels({"a": "b"}) == {"a": "b"}
    assert annotated(MAINT) != {}


def test_a_namespace_keeps_its_annotation_when_labels_are_added() -> None:
    """`kubectl apply` of a Namespace adds to what is there."""
    known = annotated(MAINT)
    labelled = AnnotatedLabels({"a": "b"}).added_to(known)
    assert default_tolerations_of(labelled) == json.dumps([MAINT])
    changed = annotated(NARROW).added_to(known)
    assert default_tolerations_of(changed) == json.dumps([NARROW])


def test_the_daemon_set_controller_tolerates_a_missing_network_on_the_host_only() -> None:
    """The other conditions of a node it tolerates always."""
    always = {each.toleration["key"] for each in added(Facts(daemon_set=True), ["DaemonSet"])}
    host = added(Facts({"hostNetwork": True}, daemon_set=True), ["DaemonSet"])
    more = {each.toleration["key"] for each in host} - always
    assert more == {"node.kubernetes.io/network-unavailable"}
    assert len(always) == 6
    assert added(Facts(), ["DaemonSet"]) == []


def test_the_stamp_says_what_was_taken_also_after_a_second_call() -> None:
    """The API server calls again if a plugin changed the pod; it has lost the toleration then."""
    what = pod(MAINT, GPU)
    case = (what, CLUSTER, AnnotatedLabels())
    first = allowing(case, remove=True)
    stored = patched(what, first)
    stamp = json.loads(stored["metadata"]["annotations"][names.PLACEMENT])
    assert stamp["removed"] == {"few": ["maint", "nvidia.com/gpu:NoSchedule"]}
    assert [each.outcome for each in first.trace] == ["removed"]
    assert allowing((stored, CLUSTER, AnnotatedLabels()), remove=True).patch == []
