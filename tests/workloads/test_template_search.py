"""Pod templates are found in any object, and known kinds are told by group and kind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wording import mentions
from tests.workloads.manifests import POD_SPEC, Json, made_by, template, templates, written
from webhook.workloads.by_kind import KINDS
from webhook.workloads.object import Object
from webhook.workloads.template_search import unread


def test_unknown_kinds_are_searched_by_shape() -> None:
    """Whatever has a spec with containers, by the name and count beside it."""
    found = written("""
apiVersion: example.com/v1
kind: Gang
metadata: {name: mnist}
spec:
  tasks:
  - name: ps
    replicas: 2
    template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main}]}}
  - name: worker
    replicas: 4
    template: {spec: {containers: [{name: main}]}}
""")
    assert [each.describe() for each in found] == ["ps × 2", "worker × 4"]
    assert found[0].labels_path == "spec.tasks[0].template.metadata.labels"
    assert found[0].pod(0)["metadata"] == {"labels": {"a": "b"}}


def test_a_part_is_called_by_the_way_to_it() -> None:
    """The template may be the part itself, with its count in it."""
    found = written("""
apiVersion: example.com/v1
kind: Gang
metadata: {name: mnist}
spec:
  worker: {replicas: 2, spec: {containers: [{name: worker}]}}
  scheduler: {spec: {containers: [{name: scheduler}]}, service: {type: ClusterIP}}
""")
    assert [each.describe() for each in found] == ["worker × 2", "scheduler"]


@pytest.mark.parametrize(
    "text",
    [
        "kind: Service\nspec: {selector: {app: a}, ports: [{port: 80}]}",
        "kind: ConfigMap\ndata: {spec: containers}",
        "kind: Job\napiVersion: batch/v1",
        "kind: Widget\nstatus: {template: {spec: {containers: [{name: a}]}}}",
        "kind: Widget\nspec: {containers: []}",
    ],
)
def test_what_makes_no_pods_has_no_templates(text: str) -> None:
    """Nor has a Job without one, nor what only reports pods in its status."""
    assert written(text) == []


def test_a_kind_of_another_group_is_another_kind() -> None:
    """Only batch's Job numbers its pods."""
    (found,) = templates("example.com/v1", "Job", {"template": template(a="b")})
    assert found.pod(0)["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(("group", "kind"), KINDS)
def test_every_known_kind_stands_malformed_objects(group: str, kind: str) -> None:
    """A spec that is missing, or of another shape, gives no templates, and no exception."""
    version = f"{group}/v1" if group else "v1"
    lists = {"replicatedJobs": [1], "workerGroupSpecs": [1]}
    specs: list[Any] = [{}, [], "x", {"template": []}, lists]
    for spec in specs:
        found = templates(version, kind, spec)
        assert found == [] or kind == "Pod"


def test_replicas_are_named_by_their_indexes() -> None:
    """All of them by their count, some by which."""
    (found,) = templates("apps/v1", "Deployment", {"replicas": 6, "template": template()})
    assert found.describe(range(6)) == "6 pods"
    assert found.describe([0, 2, 3, 4]) == "pods 0, 2-4 of 6"


def test_a_mutated_template_leaves_out_what_the_controller_adds() -> None:
    """What a policy adds stays, in the order of the template; metadata comes first if it is new."""
    spec = {"completions": 2, "template": {"spec": POD_SPEC}}
    (found,) = templates("batch/v1", "Job", spec)
    pod = found.pod(0)
    after = {
        **pod,
        "metadata": {**pod["metadata"], "annotations": {"a": "b"}},
        "spec": {**POD_SPEC, "nodeSelector": {"pool": "ml"}},
    }
    mutated = found.mutated(0, after)
    assert mutated == {"metadata": {"annotations": {"a": "b"}}, "spec": after["spec"]}
    assert list(mutated) == ["metadata", "spec"]


def test_an_unchanged_pod_gives_back_its_template() -> None:
    """Also where the controller replaces a label that the template has."""
    labels = {"job-name": "mine", "a": "b"}
    spec = {"template": {"metadata": {"labels": labels}, "spec": POD_SPEC}}
    (found,) = templates("batch/v1", "Job", spec)
    assert found.pod(0)["metadata"]["labels"]["job-name"] == "mnist"
    assert found.mutated(0, found.pod(0)) == spec["template"]


def of(version: str, kind: str, name: str = "a") -> Object:
    """An object without a template."""
    return Object("f", {"apiVersion": version, "kind": kind, "metadata": {"name": name}})


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "ConfigMap"),
        ("apps/v1", "ControllerRevision"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("kustomize.config.k8s.io/v1beta1", "Kustomization"),
        ("monitoring.coreos.com/v1", "ServiceMonitor"),
        ("fairlead.dev/v1alpha1", "PlacementPolicy"),
    ],
)
def test_objects_without_pods_are_ignored(version: str, kind: str) -> None:
    """Of these groups every kind that makes pods is known."""
    assert unread([of(version, kind)]) == []


@pytest.mark.parametrize(
    ("version", "kind", "facts"),
    [
        ("flow.volcano.sh/v1alpha1", "JobFlow", ["JobFlow makes pods", "not read", "JobFlow/a"]),
        ("monitoring.coreos.com/v1", "Prometheus", ["Prometheus makes pods"]),
        ("apps/v1", "Deployment", ["Deployment makes pods", "pod template is missing"]),
        ("example.com/v1", "Thing", ["Thing", "unknown"]),
        ("other.dev/v1", "Workflow", ["Workflow", "unknown"]),
    ],
)
def test_kinds_that_may_create_pods_are_reported(version: str, kind: str, facts: list[str]) -> None:
    """By group and kind, for kinds of one name mean different things."""
    (line,) = unread([of(version, kind)])
    mentions(line, *facts)


def test_each_kind_is_reported_once() -> None:
    """And all that nobody knows in one line."""
    flows = [of("flow.volcano.sh/v1alpha1", "JobFlow", name) for name in "abc"]
    known, unknown = unread([*flows, of("x.dev/v1", "A"), of("y.dev/v1", "B")])
    mentions(known, "JobFlow/a and 2 more")
    mentions(unknown, "A, B")


def test_pods_that_no_mark_shows_are_named_with_the_cure() -> None:
    """The pod that submits a RayJob; with a run's label it is like any other."""
    spec: Json = {"rayClusterSpec": {"headGroupSpec": {"template": template()}}}
    (line,) = unread([made_by("ray.io/v1", "RayJob", spec)])
    mentions(line, "RayJob/mnist, submitter", "fairlead.dev/run", "spec.submitterPodTemplate")
    marked = {"metadata": {"labels": {"fairlead.dev/run": "r"}}, **template()}
    own = made_by("ray.io/v1", "RayJob", {**spec, "submitterPodTemplate": marked})
    assert unread([own]) == []
