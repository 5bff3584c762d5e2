"""What is asked of an API server about live objects, and what it may not tell."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from tests.cli.live import daemon_sets
from tests.kube.fake_api import answer_of
from tests.wording import Wording, mentions
from webhook import names, validating
from webhook.cli.decisions import decisions
from webhook.cli.live import report
from webhook.cli.live.focus import Focus
from webhook.cli.live.live_answers import ask
from webhook.cli.live.live_objects import NoSuchKind, NoSuchObject, ObjectReference
from webhook.cli.live.live_pods import Answers, LivePod, LiveWorkload, recreated
from webhook.errors import ClusterError
from webhook.evaluation.replicas import Replicas
from webhook.interception import webhooks

Json = dict[str, Any]
GROUP = "/apis/fairlead.dev/v1alpha1"
POOL = {
    "metadata": {"name": "pool"},
    "spec": {"overrides": {"nodeSelector": {"pool": "b"}}},
}
STAMP = json.dumps({"set": "12ab", "policies": {"pool": ["nodeSelector[pool]"]}})

JOB_LABELS = {"batch.kubernetes.io/job-name": "train", "job-name": "train"}


def resource(name: str, kind: str, *short: str) -> Json:
    """A kind, as discovery has it."""
    return {"name": name, "kind": kind, "namespaced": True, "shortNames": list(short)}


def pod(name: str, owner: Json | None = None, **annotations: str) -> Json:
    """A live pod of a run that has the pool a."""
    return {
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": f"uid-{name}",
            "labels": {names.RUN: "r", **(JOB_LABELS if owner else {})},
            "annotations": {names.PLACEMENT: STAMP, **annotations},
            "ownerReferences": [owner] if owner else [],
            "creationTimestamp": "2026-11-22T08:00:00Z",
        },
        "spec": {
            "nodeName": "n1",
            "nodeSelector": {"pool": "a"},
            "containers": [{"name": "main"}],
        },
    }


OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-train"} | {
    "controller": True
}
JOB = {
    "metadata": {"name": "train", "namespace": "ml", "uid": "uid-train"},
    "spec": {
        "template": {
            "metadata": {"labels": {names.RUN: "r"}},
            "spec": {"nodeSelector": {"own": "x"}, "containers": [{"name": "main"}]},
        }
    },
}
SENDING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/fairlead"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
JUDGING = SENDING.replace("mutating", "validating")
POLICIES_SENT = {"webhooks": [{"name": validating.POLICIES}]}
PODS_SENT = {"metadata": {}, "webhooks": webhooks(url="https://example.com")}
# What tells which set the webhook serves.
ASKED_ANYWAY = {
    f"/api/v1/namespaces/{names.NAMESPACE}/pods",
    "/api/v1/namespaces/ml/limitranges",
}
# Owners that the API server takes, as it looks at no more than that a name is not empty.
LEADING = (
    {**OWNER, "name": "../../../ml/pods/own/proxy/x"},
    {**OWNER, "name": "train?watch=1"},
    {**OWNER, "apiVersion": "../api/v1/namespaces/ml/pods/own/proxy"},
    {**OWNER, "apiVersion": "../v1"},
    {**OWNER, "apiVersion": "v1?x"},
)
# A pod of a kind whose controller makes others, which make the pods.
NOTEBOOK = {"apiVersion": "kubeflow.org/v1", "kind": "Notebook", "name": "nb", "uid": "uid-nb"}
SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "nb", "uid": "uid-set"}
SETS = "/apis/apps/v1/namespaces/ml/statefulsets"
LOOSE: Json = pod("loose")
LOOSE["metadata"] |= {"labels": {}, "annotations": {}}
BARE: Json = pod("bare")
BARE["metadata"]["annotations"] = {}
CLUSTER: Mapping[str, Any] = {
    "/apis": {
        "groups": [
            {"name": "batch", "preferredVersion": {"groupVersion": "batch/v1"}},
            {"name": "apps", "preferredVersion": {"groupVersion": "apps/v1"}},
            {"name": "kubeflow.org", "preferredVersion": {"groupVersion": "kubeflow.org/v1"}},
            {"name": "example.com", "preferredVersion": {"groupVersion": "example.com/v1"}},
        ]
    },
    "/api/v1": {"resources": [resource("pods", "Pod", "po"), {"name": "pods/log", "kind": "Pod"}]},
    "/apis/batch/v1": {"resources": [resource("jobs", "Job")]},
    "/apis/apps/v1": {"resources": [resource("statefulsets", "StatefulSet")]},
    "/apis/kubeflow.org/v1": {"resources": [resource("notebooks", "Notebook")]},
    "/apis/kubeflow.org/v1/namespaces/ml/notebooks/nb": {
        **JOB,
        "metadata": {"name": "nb", "namespace": "ml", "uid": "uid-nb"},
    },
    SETS: [
        {"metadata": {"uid": "uid-set", "ownerReferences": [{**NOTEBOOK, "controller": True}]}},
        {"metadata": {"uid": "uid-other"}},
    ],
    "/apis/example.com/v1": {"resources": [resource("trainings", "Training", "tr")]},
    f"{GROUP}/placementpolicies": [POOL],
    f"{GROUP}/capacityclasses": [],
    SENDING: PODS_SENT,
    JUDGING: POLICIES_SENT,
    f"{GROUP}/placementexceptions": [],
    f"{GROUP}/runsources": [],
    "/api/v1/namespaces/ml": {"metadata": {"name": "ml"}},
    "/apis/scheduling.k8s.io/v1/priorityclasses": [],
    RUNTIMES: [],
    "/api/v1/namespaces/ml/pods/solo": pod("solo"),
    "/api/v1/namespaces/ml/pods/made": pod("made", OWNER),
    "/api/v1/namespaces/ml/pods/loose": LOOSE,
    "/api/v1/namespaces/ml/pods/bare": BARE,
    **{f"/api/v1/namespaces/ml/pods/led-{at}": pod("led", each) for at, each in enumerate(LEADING)},
    "/api/v1/namespaces/ml/pods": [
        pod("solo"),
        pod("made", OWNER),
        pod("nb-0", {**SET, "controller": True}),
    ],
    "/apis/batch/v1/namespaces/ml/jobs/train": JOB,
}


def asked(
    folder: Path,
    kind: str,
    name: str,
    forbidden: tuple[str, ...] = (),
    gone: str = "",
    paths: list[str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Answers:
    """The answers of a cluster in which some paths are forbidden, and one is not there.

    What is asked goes into `paths`; `more` is there too.
    """
    cluster = {**CLUSTER, **(more or {}), gone: None}
    objects = [ObjectReference(kind, name)]
    return answer_of(
        cluster, folder, lambda client: ask(client, objects, "ml", (), None), forbidden, paths
    )


def told(answers: Answers) -> tuple[str, list[tuple[str, Any, Any]]]:
    """Of one pod: where its author's word is from, and what differs."""
    (live,) = answers.found
    assert isinstance(live, LivePod)
    return live.origin.evidence, [(each.field, each.has, each.would) for each in live.differences]


def today(answers: Answers) -> Sequence[Replicas]:
    """What new pods of the one object would be."""
    (found,) = answers.found
    return [found.today] if isinstance(found, LivePod) else found.replicas


def test_a_pod_is_taken_as_the_template_of_its_maker_says(tmp_path: Path, wording: Wording) -> None:
    """What the template has, and the pod has not, was taken away; the node is the scheduler's."""
    said, differences = told(asked(tmp_path, "po", "made"))
    wording(said)
    assert differences == [
        ("nodeSelector[pool]", "a", "b"),
        ("nodeSelector[own]", None, "x"),
    ]


def test_a_maker_that_may_not_be_read_leaves_the_stamp(tmp_path: Path, wording: Wording) -> None:
    """The answer says so, and never that all is well: the template may say more than the pod."""
    answers = asked(tmp_path, "pod", "made", (f"{JOBS}/train",))
    said, differences = told(answers)
    wording(said)
    assert differences == [("nodeSelector[pool]", "a", "b")]
    wording(answers.notes[0])
    as_policies = {"spec": {"overrides": {"nodeSelector": {"pool": "a"}}}}
    more = {f"{GROUP}/placementpolicies": [{**POOL, **as_policies}]}
    answers = asked(tmp_path, "pod", "made", (f"{JOBS}/train",), more=more)
    assert told(answers)[1] == []
    assert not answers.same
    (first, *_) = report.lines(answers, Focus())
    wording(click.unstyle(first))
    (live,) = asked(tmp_path, "pod", "made", gone=f"{JOBS}/train", more=more).found
    assert live.same


@pytest.mark.parametrize("number", range(len(LEADING)))
def test_no_pod_leads_who_asks_to_another_path(tmp_path: Path, number: int) -> None:
    """An admin's rights read what the admin asks for, and a pod's author names its owner freely."""
    paths: list[str] = []
    said, _ = told(asked(tmp_path, "pod", f"led-{number}", paths=paths))
    mentions(said, "the pod itself", "without", "stamp")
    assert set(paths) <= CLUSTER.keys() | ASKED_ANYWAY


JOBS = "/apis/batch/v1/namespaces/ml/jobs"


def shown(folder: Path, name: str) -> str:
    """What is told of a pod, in one line."""
    lines = report.lines(asked(folder, "pod", name, gone=SENDING), Focus())
    return " ".join(click.unstyle(" ".join(lines)).split())


def test_a_pod_of_a_run_without_a_stamp_has_a_cure(tmp_path: Path, wording: Wording) -> None:
    """Deleting it is one only where a new pod would be placed."""
    cure = shown(tmp_path, "bare").partition(" cure ")[2]
    mentions(cure, "fairlead install;", "delete it")
    wording(cure.partition(" Today")[0])


def test_a_pod_of_no_run_needs_no_cure(tmp_path: Path, wording: Wording) -> None:
    """Nothing is amiss: it has no stamp for good, and a new one would have none."""
    said = shown(tmp_path, "loose")
    mentions(said, "no stamp it", "not part of a run")
    mentions(said.partition(" cure ")[2], "fairlead.dev/run: NAME", "metadata.labels")
    assert "delete" not in said
    wording(said.partition(" no stamp ")[2])


def test_a_new_decision_uses_the_given_time(tmp_path: Path) -> None:
    """Without a time no exception would hold."""
    answers = asked(tmp_path, "pod", "solo")
    assert recreated(answers, whole=False).world.now == answers.world.now


def test_a_workloads_pods_are_found_by_their_owner(tmp_path: Path) -> None:
    """And no other's."""
    (found,) = asked(tmp_path, "jobs.batch", "train").found
    assert isinstance(found, LiveWorkload)
    assert [each.pod.name for each in found.pods] == ["made"]
    assert not found.same


def test_what_is_not_sent_to_the_webhook_is_not_told_to_be_placed(
    tmp_path: Path, wording: Wording
) -> None:
    """The webhook's own configuration says which pods come to it."""
    entry = {"objectSelector": {"matchExpressions": [{"key": "other", "operator": "Exists"}]}}
    more = {SENDING: {"metadata": {}, "webhooks": [entry]}}
    (found,) = asked(tmp_path, "job", "train", more=more).found
    assert isinstance(found, LiveWorkload)
    assert [each.decision.result for each in found.replicas] == ["not-sent"]
    answers = asked(tmp_path, "pod", "solo", more=more)
    (live,) = answers.found
    assert isinstance(live, LivePod)
    assert not answers.same
    ((why,),) = [each.why for each in live.differences]
    wording(why)
    assert [each.decision.result for each in decisions(recreated(answers, whole=False))] == [
        "not-sent"
    ]


def test_no_pod_is_as_policies_would_have_it_that_is_not_sent(
    tmp_path: Path, wording: Wording
) -> None:
    """Though it has all that they would give it."""
    placed = pod("solo")
    placed["spec"] = {**placed["spec"], "nodeSelector": {}}
    placed["metadata"]["annotations"] = {names.PLACEMENT: json.dumps({"set": "12ab"})}
    path = "/api/v1/namespaces/ml/pods/solo"
    more = {path: placed, f"{GROUP}/placementpolicies": []}
    assert asked(tmp_path, "pod", "solo", more=more).same
    answers = asked(tmp_path, "pod", "solo", gone=SENDING, more=more)
    assert not answers.same
    (first, *_) = report.lines(answers, Focus())
    wording(click.unstyle(first))
    (note, *_) = asked(tmp_path, "pod", "solo", (SENDING,)).notes
    mentions(note, "may not get", "not known")
    (found,) = asked(tmp_path, "job", "train", gone=SENDING).found
    assert not found.same


def test_a_pod_that_has_lost_its_mark_says_so_and_not_that_policies_are_gone(
    tmp_path: Path, wording: Wording
) -> None:
    """The policy of its stamp is in force as before."""
    lost = pod("solo")
    lost = {**lost, "metadata": {**lost["metadata"], "labels": {}}}
    (live,) = asked(tmp_path, "pod", "solo", more={"/api/v1/namespaces/ml/pods/solo": lost}).found
    assert isinstance(live, LivePod)
    ((why,),) = [each.why for each in live.differences]
    wording(why)


def edited(value: Json) -> Json:
    """The pod after `kubectl edit` has added a toleration."""
    fields: Json = {"f:spec": {"f:tolerations": {}}}
    entry = {"manager": "kubectl-edit", "time": "2026-11-22T09:00:00Z", "fieldsV1": fields}
    spec = {**value["spec"], "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    return {**value, "metadata": {**value["metadata"], "managedFields": [entry]}, "spec": spec}


def test_a_toleration_that_was_added_since_is_reported(tmp_path: Path, wording: Wording) -> None:
    """Where the author's own text is known; where it is not, that is said."""
    path = "/api/v1/namespaces/ml/pods"
    more = {f"{path}/made": edited(pod("made", OWNER)), f"{path}/solo": edited(pod("solo"))}
    _, differences = told(asked(tmp_path, "pod", "made", more=more))
    assert ("tolerations[gpu]", None) in [(field, would) for field, _, would in differences]
    said, _ = told(asked(tmp_path, "pod", "solo", more=more))
    wording(said)


def test_pods_are_found_by_the_owners_of_their_owners(tmp_path: Path, wording: Wording) -> None:
    """Of whatever kind these are; those that may not be listed are named."""
    (found,) = asked(tmp_path, "notebook", "nb").found
    assert isinstance(found, LiveWorkload)
    assert [each.pod.name for each in found.pods] == ["nb-0"]
    answers = asked(tmp_path, "notebook", "nb", (SETS,))
    (note,) = [each for each in answers.notes if "StatefulSet" in each]
    wording(note)


def test_unreadable_additional_objects_are_noted(tmp_path: Path, wording: Wording) -> None:
    """Namespaces and PriorityClasses matter to few policies."""
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    found = asked(tmp_path, "pod", "solo", ("/api/v1/namespaces/ml", classes))
    *notes, _ = found.notes  # the last is of what the webhook serves
    for note, kind in zip(notes, ("namespaces", "priorityclasses"), strict=True):
        mentions(note, "may not read", kind)
    wording("\n".join(notes))
    assert told(found)[1] == [("nodeSelector[pool]", "a", "b")]


@pytest.mark.parametrize(("kind", "name"), [("pod", "solo"), ("job", "train")])
def test_a_class_that_the_cluster_does_not_have_refuses_new_pods(
    tmp_path: Path, kind: str, name: str, wording: Wording
) -> None:
    """It names field and policy, and the answer is never that all is well."""
    defaults = {"runtimeClassName": "gvisor", "nodeSelector": {"pool": "a"}}
    named = {**POOL, "spec": {"defaults": defaults}}
    more = {f"{GROUP}/placementpolicies": [named]}
    there = {**more, RUNTIMES: [{"metadata": {"name": "gvisor"}}]}
    (known,) = today(asked(tmp_path, kind, name, more=there))
    assert known.admitted
    answers = asked(tmp_path, kind, name, more=more)
    (refused,) = today(answers)
    (line,) = refused.refusals
    wording(line)
    assert not refused.admitted
    assert not answers.same
    unread = asked(tmp_path, kind, name, (RUNTIMES,), more=more)
    assert not today(unread)[0].refusals
    (note,) = [each for each in unread.notes if "RuntimeClass" in each]
    wording(note)


def test_a_daemon_sets_pod_is_judged_by_its_node(tmp_path: Path, wording: Wording) -> None:
    """Its controller creates the next one for the same node, which a requirement excludes."""
    more = daemon_sets.PATHS
    answers = asked(tmp_path, "pod", "agent-x", more=more)
    (rejected,) = today(answers)
    mentions(rejected.decision.reason, "policy pool", "node n1 does not meet it", "pool='a'")
    first, *_ = report.lines(answers, Focus())
    wording(click.unstyle(first))
    (workload,) = asked(tmp_path, "daemonset", "agent", more=more).found
    assert isinstance(workload, LiveWorkload)
    assert not workload.pods[0].today.admitted
    assert [each.admitted for each in workload.replicas] == [False]


def test_a_daemon_sets_pod_is_unknown_without_its_node(tmp_path: Path, wording: Wording) -> None:
    """Also if it has what the requirement sets, and so does not differ."""
    placed = copy.deepcopy(daemon_sets.POD)
    placed["spec"]["nodeSelector"] = {"pool": "b"}
    placed["metadata"]["annotations"] = {names.PLACEMENT: STAMP}
    path = "/api/v1/namespaces/ml/pods"
    more = {**daemon_sets.PATHS, f"{path}/agent-x": placed, path: [placed]}
    answers = asked(tmp_path, "pod", "agent-x", (daemon_sets.NODES,), more=more)
    assert not answers.same
    first, *_ = report.lines(answers, Focus())
    mentions(first, "unknown")
    (note,) = [each for each in answers.notes if "--nodes" in each]
    mentions(note, "Pod/agent-x in ml", "nodes are unknown here")
    of_set = asked(tmp_path, "daemonset", "agent", (daemon_sets.NODES,), more=more)
    _, row = click.unstyle(" ".join(report.lines(of_set, Focus()))).split("would be")
    mentions(row, "unknown 1 agent-x: ", "may not list nodes")
    wording("\n".join([click.unstyle(first), note, " ".join(row.split())]))


def test_a_pod_whose_template_cannot_be_told_is_unknown(tmp_path: Path, wording: Wording) -> None:
    """An answer about another template would be wrong."""
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "w", "uid": "uid-w"}
    steps = [
        {"name": name, "container": {"name": "main"}, "nodeSelector": {"step": name}}
        for name in ("a", "b")
    ]
    version = "argoproj.io/v1alpha1"
    groups = [{"name": "argoproj.io", "preferredVersion": {"groupVersion": version}}]
    more: Json = {
        "/apis": {"groups": groups},
        f"/apis/{version}": {"resources": [resource("workflows", "Workflow")]},
        f"/apis/{version}/namespaces/ml/workflows/w": {
            "metadata": {"name": "w", "namespace": "ml", "uid": "uid-w"},
            "spec": {"templates": steps},
        },
        "/api/v1/namespaces/ml/pods/made": pod("made", {**owner, "controller": True}),
    }
    more["/api/v1/namespaces/ml/pods/made"]["spec"]["nodeSelector"] = {"pool": "b"}
    answers = asked(tmp_path, "pod", "made", more=more)
    evidence, _ = told(answers)
    first, *_ = report.lines(answers, Focus())
    (note,) = [each for each in answers.notes if "Workflow/w" in each]
    wording(f"{evidence}\n{click.unstyle(first)}\n{note}")
    assert not answers.same


def test_an_object_that_may_not_be_read_has_a_cure(tmp_path: Path, wording: Wording) -> None:
    """How to ask whether one has the right."""
    with pytest.raises(NoSuchObject) as refused:
        asked(tmp_path, "pod", "solo", ("/api/v1/namespaces/ml/pods/solo",))
    wording(str(refused.value))


def test_a_cluster_without_definitions_says_how_policies_are_given(tmp_path: Path) -> None:
    """By definitions, or by the files that the webhook serves."""
    with pytest.raises(ClusterError, match="--policies DIR"):
        asked(tmp_path, "pod", "solo", gone=f"{GROUP}/placementpolicies")


def test_a_kind_may_belong_to_any_group(tmp_path: Path) -> None:
    """By its short name; a word that nobody knows is told with those that are near."""
    with pytest.raises(NoSuchObject, match="training x: not found"):
        asked(tmp_path, "tr", "x")
    with pytest.raises(NoSuchKind, match="Did you mean training"):
        asked(tmp_path, "trianing", "x")
