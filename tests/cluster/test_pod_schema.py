"""The pod schema in the package is that of a real API server, and its faults are refused there."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cluster.spaces import Json
from tests.eventually import eventually
from tests.objects import an_object
from tests.pod_schema.templates import NAMES, NEGATIVE, PREFERRED, RIGHT, WRONG, template
from tests.policy_tests.writing import policy
from tests.wording import mentions
from tools.pod_schema import compact
from webhook.cli.check import command as check
from webhook.evaluation.plugins import priority_fault
from webhook.pod_schema.field_checks import faults, schema
from webhook.policy.findings import path_text
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl
from webhook.workloads.object import Object
from webhook.workloads.template_search import pod_templates
from webhook.workloads.workload_faults import template_faults

JOB: Json = {"template": {"spec": {**template()["spec"], "restartPolicy": "Never"}}}
# That of a StatefulSet with a name of 53 characters.
REVISION = {"controller-revision-hash": f"{'n' * 53}-0123456789"}


def test_the_schema_is_the_api_servers(control_plane: ControlPlane) -> None:
    """Else `kubectl get --raw /openapi/v3/api/v1 | python -m tools.pod_schema` of a sandbox."""
    served = compact(control_plane.api.get("/openapi/v3/api/v1"))
    assert (schema().version, schema().types) == (served["kubernetes"], served["types"])


def test_no_field_that_the_api_server_serves_is_an_error(control_plane: ControlPlane) -> None:
    """On a later version, too: a field that the schema does not have yet is only a warning."""
    for kind, fields in compact(control_plane.api.get("/openapi/v3/api/v1"))["types"].items():
        if kind in schema().types:
            unset = {name.rstrip("!"): None for name in fields}
            found = [each for each in faults(unset, kind, whole=False) if each.severity == "error"]
            assert found == [], kind


def created(kubectl: Kubectl, template: Json) -> tuple[int, str]:
    """What kubectl says to the creation of a pod of this template, as a dry run."""
    metadata = {"name": "p", **template.get("metadata", {})}
    pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}
    done = kubectl.run("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
    return done.returncode, done.stderr


def refused(plane: ControlPlane, namespace: str, template: Json) -> str:
    """Why the API server refuses a pod of this template; empty if it takes it."""
    metadata = {"name": "p", **template.get("metadata", {})}
    pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict"
    status, answer = plane.api.call("POST", path, pod)
    return str(answer["message"]) if status >= HTTPStatus.BAD_REQUEST else ""


@pytest.mark.parametrize(("template", "fault"), WRONG, ids=[each for _, each in WRONG])
def test_what_is_called_an_error_is_refused(
    control_plane: ControlPlane, namespace: str, template: Json, fault: str
) -> None:
    """So nothing is an error here that is none there."""
    assert refused(control_plane, namespace, template), f"taken: {fault}"


@pytest.mark.parametrize(("metadata", "fault"), NAMES)
def test_a_name_that_is_none_is_refused(
    cluster_kubectl: Kubectl, namespace: str, metadata: Json, fault: str
) -> None:
    """Or a prefix that no name can begin with."""
    given = {**template(), "metadata": metadata}
    code, said = created(cluster_kubectl.within(namespace), given)
    assert code == 1, f"taken: {fault}"
    assert fault.partition(":")[0].removeprefix("metadata.").removesuffix("Name") in said


def test_a_template_without_a_fault_is_taken(
    control_plane: ControlPlane, cluster_kubectl: Kubectl, namespace: str
) -> None:
    """With every field that is tried above, as it should be."""
    for each in (NEGATIVE, PREFERRED, *RIGHT):
        assert refused(control_plane, namespace, each) == ""
    assert created(cluster_kubectl.within(namespace), RIGHT[0]) == (0, "")


def test_a_class_that_is_not_there_is_an_error_of_check(
    control_plane: ControlPlane, cluster_kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    """For the API server refuses pods that name it; with those of the cluster all is well."""
    for field, missing, there in (
        ("priorityClassName", "nowhere", "system-node-critical"),
        ("runtimeClassName", "nowhere", ""),
    ):
        naming = template()
        naming["spec"][field] = missing
        code, said = created(cluster_kubectl.within(namespace), naming)
        assert code == 1
        assert missing in said
        for name, errors in ((missing, 1), (there, 0)):
            settings = f"{field}: {name}" if name else "schedulerName: s"
            file = tmp_path / "policy.yaml"
            file.write_text(policy("names-one", f"defaults: {{{settings}}}"))
            where = ("--nodes", "cluster", "--kubeconfig", str(control_plane.kubeconfig))
            done = CliRunner().invoke(check, [str(file), *where, "-o", "json"])
            # What an unknown RuntimeClass asks of nodes is reported as unknown.
            assert bool(done.stderr) == (field == "runtimeClassName" and name == missing)
            found = json.loads(done.stdout)
            assert (found["errors"], done.exit_code) == (errors, errors)


def test_a_dot_in_a_name_that_is_a_hostname_is_refused(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Of a StatefulSet, and of a Job whose pods have an index; another Job may have one."""
    indexed = {**JOB, "completionMode": "Indexed", "completions": 1}
    labels = {"matchLabels": {"a": "b"}}
    lasting = {**template(), "metadata": {"labels": {"a": "b"}}}
    for group, kind, spec, code in (
        ("apps", "StatefulSet", {"selector": labels, "template": lasting, "serviceName": "s"}, 422),
        ("batch", "Job", indexed, 422),
        ("batch", "Job", JOB, 201),
    ):
        made = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "a.b"}}
        path = f"/apis/{group}/v1/namespaces/{namespace}/{kind.lower()}s?dryRun=All"
        status, answer = control_plane.api.call("POST", path, {**made, "spec": spec})
        assert status == code, answer
        (found,) = pod_templates(Object("f.yaml", {**made, "spec": spec}), [])
        assert bool([*template_faults(found)]) == (code != 201)


@pytest.mark.parametrize("kind", ["DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"])
@pytest.mark.parametrize(
    ("selector", "fault"),
    [
        ([{"key": "a", "operator": "In", "values": ["b"]}], ""),
        ([{"key": "a", "operator": "Exists"}, {"key": "c", "operator": "DoesNotExist"}], ""),
        ([{"key": "c", "operator": "notin", "values": ["d"]}], "[0].operator: 'notin': want"),
        ([{"key": "c", "operator": "NotIn", "values": []}], "[0].values: NotIn needs one"),
        ([{"key": "a", "operator": "NotIn", "values": ["b"]}], "wants a NotIn [b] of its pods"),
        ([{"key": "c", "operator": "Exists"}], "wants c Exists of its pods"),
    ],
)
def test_a_selector_that_is_none_or_misses_the_template_is_refused(
    control_plane: ControlPlane, namespace: str, kind: str, selector: list[Json], fault: str
) -> None:
    """Else its controller would release each pod, and create others without end."""
    labelled = {**template(), "metadata": {"labels": {"a": "b"}}}
    spec: Json = {"selector": {"matchExpressions": selector}, "template": labelled}
    group = "apps"
    if kind == "Job":
        ending = {**labelled["spec"], "restartPolicy": "Never"}
        spec |= {"manualSelector": True, "template": {**labelled, "spec": ending}}
        group = "batch"
    made = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "w"}, "spec": spec}
    path = f"/apis/{group}/v1/namespaces/{namespace}/{kind.lower()}s?dryRun=All"
    status, answer = control_plane.api.call("POST", path, made)
    assert status == (422 if fault else 201), answer
    (found,) = pod_templates(Object("f.yaml", made), [])
    said = [f"{path_text(each.path)}: {each.message}" for each in template_faults(found)]
    assert [fault in each for each in said] == ([True] if fault else [])


def test_a_key_that_is_merged_twice_is_refused_of_pods_alone(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The Deployment is taken: only we can say that none of its pods is."""
    labels = {"matchLabels": {"a": "b"}}
    spread = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
    twice = template(
        labels={"a": "b"},
        topologySpreadConstraints=[{**spread, "labelSelector": labels, "matchLabelKeys": ["a"]}],
    )
    made = an_object("apps/v1", "Deployment", "w", {"selector": labels, "template": twice})
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All"
    status, answer = control_plane.api.call("POST", path, made)
    assert status == 201, answer
    mentions(refused(control_plane, namespace, twice), "exists in both matchLabelKeys and")
    (found,) = pod_templates(Object("f.yaml", made), [])
    (fault,) = template_faults(found)
    mentions(fault.message, "'a' is in labelSelector too")


def test_a_priority_that_its_class_contradicts_is_refused_of_pods_alone(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The Deployment is taken; that of a class with its own policy, of the system, and of none."""
    quiet = an_object("scheduling.k8s.io/v1", "PriorityClass", "quiet", value=5)
    quiet["preemptionPolicy"] = "Never"
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    assert control_plane.api.call("POST", classes, quiet)[0] == 201
    known = {"quiet": quiet}
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All"
    try:
        named = template(priorityClassName="quiet")
        eventually("it is known", lambda: refused(control_plane, namespace, named) == "")
        for name, priority, preempting in (
            ("quiet", 5, "Never"),
            ("quiet", 6, "Never"),
            ("quiet", 5, "PreemptLowerPriority"),
            ("system-node-critical", 2_000_001_000, "PreemptLowerPriority"),
            ("system-node-critical", 2_000_000_000, "PreemptLowerPriority"),
            ("", 0, "PreemptLowerPriority"),
            ("", 3, "PreemptLowerPriority"),
            ("", 0, "Never"),
        ):
            asked = template(
                labels={"a": "b"},
                priorityClassName=name,
                priority=priority,
                preemptionPolicy=preempting,
            )
            spec = {"selector": {"matchLabels": {"a": "b"}}, "template": asked}
            made = an_object("apps/v1", "Deployment", "w", spec)
            assert control_plane.api.call("POST", deployments, made)[0] == 201
            said = refused(control_plane, namespace, asked)
            assert bool(said) == bool(priority_fault(asked["spec"], known, "").reason), said
    finally:
        control_plane.api.call("DELETE", f"{classes}/quiet")


@pytest.mark.parametrize(
    ("kind", "length", "spec"),
    [
        ("CronJob", 52, {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}),
        ("Job", 61, {**JOB, "completionMode": "Indexed", "completions": 10}),
        ("Job", 60, {**JOB, "completionMode": "Indexed", "completions": 11}),
        ("Job", 63, JOB),
    ],
)
def test_a_name_has_room_for_what_is_added_to_it(
    control_plane: ControlPlane, namespace: str, kind: str, length: int, spec: Json
) -> None:
    """One character more is refused: of the workload here, of a StatefulSet's pods by a label."""
    path = f"/apis/batch/v1/namespaces/{namespace}/{kind.lower()}s?dryRun=All"
    said = []
    for name in ("n" * length, "n" * (length + 1)):
        made = {"apiVersion": "batch/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        status, _ = control_plane.api.call("POST", path, made)
        (found,) = pod_templates(Object("f.yaml", made), [])
        wrong = [each for each in template_faults(found) if each.path == ("metadata", "name")]
        assert bool(wrong) == (status == HTTPStatus.UNPROCESSABLE_ENTITY)
        said.append(status)
    assert said == [HTTPStatus.CREATED, HTTPStatus.UNPROCESSABLE_ENTITY]
    assert refused(control_plane, namespace, {**template(), "metadata": {"labels": REVISION}})
