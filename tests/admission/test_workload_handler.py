"""The answer to whoever writes a workload: allowed, whatever happens, and what its pods meet."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.admission.reviews import POOL, SECRET, Asked, Json, Known, policy_set, review
from tests.examples import examples
from tests.fuzz.mutations import Mutation, encoded, mutated, mutations
from tests.policy_tests.writing import policy
from tests.wording import Wording, mentions
from webhook import names
from webhook.admission.handler import Reply
from webhook.admission.workload_handler import MOST_ASKED, MOST_VALUES, WorkloadHandler
from webhook.decision.arrival import DecisionInputs, NamespaceLabels
from webhook.decision.decision import Decision
from webhook.errors import ClusterError
from webhook.evaluation.templates import queued_templates, refers_to
from webhook.placement.nodes import Node, by_name
from webhook.policy.policy_set import PolicySet
from webhook.server.webhook_metrics import Metrics
from webhook.sources import SHIPPED
from webhook.sources.table import SourceTable
from webhook.workloads.template import PodTemplate

NOW = datetime(2026, 1, 2, tzinfo=UTC)
WORKERS = policy(
    "workers-on-arm",
    "match: {roles: [worker]}, requirements: {nodeSelector: {kubernetes.io/arch: arm64}}",
)
THIRD = policy(
    "third", "match: {replicaIndexes: [2]}, requirements: {nodeSelector: {pool: experiments}}"
)
OFF_SPOT = """
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: spot}
spec: {nodes: [{labels: {spot: "true"}}]}
---
""" + policy("off-spot", "overrides: {capacity: [{class: spot, mode: Prevent}]}")
REJECTED = ("nodeSelector[pool]", "'experiments'", "'other'")
ELSEWHERE = {"nodeSelector": {"pool": "other"}}


def template(labels: Mapping[str, str] | None = None, **spec: object) -> Json:
    container = {"name": "main", "image": "i", "env": [{"name": "TOKEN", "value": SECRET}]}
    return {
        "metadata": {"labels": {names.RUN: "r"} if labels is None else dict(labels)},
        "spec": {"containers": [container], **spec},
    }


def job(made: Json, **spec: object) -> Json:
    return workload("batch/v1", "Job", {"template": made, **spec})


def workload(api_version: str, kind: str, spec: Json) -> Json:
    """Any object by the name of train."""
    about = {"name": "train", "namespace": "ml-team", "uid": "u"}
    return {"apiVersion": api_version, "kind": kind, "metadata": about, "spec": spec}


def run(**spec: object) -> Json:
    """A Run of PyTorch, or of another kind."""
    made = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    about = {"framework": "pytorch"} if "replicas" in spec else {"kind": "notebook"}
    return workload(names.API_VERSION, names.RUN_KIND, {"template": made, **about, **spec})


def workers(**wanted: object) -> Json:
    """The replicas of a Run: one master, and two workers that ask for this selector."""
    environment = {"environment": {"nodeSelector": wanted}} if wanted else {}
    return {"master": {"count": 1}, "worker": {"count": 2, **environment}}


class Webhook:
    """The handler with everything that it needs."""

    def __init__(
        self,
        policies: PolicySet | None,
        *,
        find: Callable[[Json, SourceTable], Sequence[PodTemplate]] = queued_templates,
        namespaces: NamespaceLabels | None = None,
        unplaceable: Callable[[Json, Decision, PolicySet], str] = lambda *_: "",
        nodes: Sequence[Node] | None = None,
        **options: Any,
    ) -> None:
        self.metrics = Metrics()
        inputs = DecisionInputs(
            lambda: policies,
            namespaces or Known({"ml-team": {}}),
            lambda: None,
            unplaceable=unplaceable,
            now=lambda: NOW,
            nodes=lambda: nodes,
            node=lambda: by_name(nodes),
        )
        self._handler = WorkloadHandler(
            inputs, self.metrics, pods_of=find, **{"budget": 60, **options}
        )

    def post(self, body: bytes) -> Reply:
        return asyncio.run(self._handler.handle(body))

    def post_all(self, bodies: Sequence[bytes]) -> list[Reply]:
        async def main() -> list[Reply]:
            return await asyncio.gather(*map(self._handler.handle, bodies))

        return asyncio.run(main())

    def told(self, new: Json, old: Json | None = None) -> list[str]:
        """The warnings for the creation of a workload, or for its change. It is always allowed."""
        reply = self.post(reviewed(new, old))
        response = json.loads(reply.body)["response"]
        assert (reply.status, response["uid"], response["allowed"]) == (200, "0df28fbd", True)
        assert set(response) <= {"uid", "allowed", "warnings"}
        found: list[str] = response.get("warnings", [])
        return found

    def counted(self, name: str) -> float:
        return self.metrics.registry.get_sample_value(f"fairlead_{name}_total") or 0.0


def reviewed(new: Json, old: Json | None = None) -> bytes:
    """The review of a workload's creation, or of its change."""
    operation = "UPDATE" if old else "CREATE"
    return json.dumps(review(new, name="train", oldObject=old, operation=operation)).encode()


def test_template_errors_are_reported_after_the_results_of_pods() -> None:
    """Once a workload; nothing where its pods are those that were there before."""
    told = ["spec.template.spec.nodeSelectors: there is no such field"]
    webhook = Webhook(policy_set(POOL), faults_of=lambda *_: told)
    rejected, fault = webhook.told(job(template(**ELSEWHERE)))
    mentions(rejected, "rejected")
    assert fault == f"fairlead: Job train: {told[0]}"
    assert webhook.told(job(template(**ELSEWHERE)), job(template(**ELSEWHERE))) == []


def test_a_mark_on_the_workload_alone_is_reported(wording: Wording) -> None:
    """Nobody copies it to the pods: no policy would reach them. So it is when it comes later."""
    plain = job(template({"app": "x"}))
    marked = {**plain, "metadata": {**plain["metadata"], "labels": {names.RUN: "r"}}}
    webhook = Webhook(policy_set(POOL))
    (warning,) = webhook.told(marked)
    mentions(warning, "Job train", f"label {names.RUN}", "template")
    wording(warning)
    assert webhook.told(marked, plain) == [warning]
    assert webhook.told(marked, marked) == []
    both = job(template())
    assert webhook.told({**both, "metadata": marked["metadata"]}) == []


def test_the_author_of_a_daemon_set_gets_warnings_about_requirements(wording: Wording) -> None:
    """Its pods are refused, with a mark of its own or without. Where the namespace spares those
    without, he is told what would refuse them."""
    whole = {names.PLACE: names.PLACE_ALL}
    spared = {**whole, names.DAEMON_SETS: names.DAEMON_SETS_KEEP}
    for labels, space, facts in (
        ({names.RUN: "r"}, spared, ("would be rejected",)),
        ({}, whole, ("would be rejected",)),
        ({}, spared, ("left alone",)),
    ):
        webhook = Webhook(policy_set(POOL), namespaces=Known({"ml-team": space}))
        made = {"template": template(labels, **ELSEWHERE)}
        (said,) = webhook.told(workload("apps/v1", "DaemonSet", made))
        mentions(said, "DaemonSet train", "pool-required", *facts)
        wording(said)


def test_a_daemon_set_gets_a_warning_about_nodes_where_its_pods_are_rejected(
    wording: Wording,
) -> None:
    """One template is for all of its nodes, and each of its pods is judged by its own."""
    nodes = [Node(name, {"kubernetes.io/arch": name}, ()) for name in ("arm64", "amd64", "x")]
    made = workload(
        "apps/v1", "DaemonSet", {"template": template({names.RUN: "r", names.ROLE: "worker"})}
    )
    (said,) = Webhook(policy_set(WORKERS), nodes=nodes).told(made)
    mentions(said, "DaemonSet train", "2 of its 3 nodes", "amd64")
    wording(said)
    assert Webhook(policy_set(WORKERS), nodes=nodes[:1]).told(made) == []


def test_pods_that_never_come_here_are_not_warned_of() -> None:
    """Whose marks no entry of the configuration selects goes by no policy."""
    webhook = Webhook(policy_set(POOL), reaches=lambda pod, _namespace: "mine" in pod)
    assert webhook.told(job(template(**ELSEWHERE))) == []
    marked = {names.RUN: "r", "mine": ""}
    assert len(webhook.told(job(template(marked, **ELSEWHERE)))) == 1


def test_replicas_that_are_not_sent_are_distinguished_from_others() -> None:
    """Also where no policy reads the label by which the configuration selects them."""
    index = "batch.kubernetes.io/job-completion-index"
    webhook = Webhook(policy_set(POOL), reaches=lambda pod, _namespace: pod[index] == "2")
    indexed = job(template(**ELSEWHERE), completions=4, completionMode="Indexed")
    (said,) = webhook.told(indexed)
    mentions(said, "Job train", "ml-team", "pods 2 of 4", "rejected", "policy pool-required")


def test_pods_that_no_node_admits_are_reported(wording: Wording) -> None:
    """Once for all that ask for the same, and for those that ask for more by themselves."""
    asked: list[Json] = []

    def unplaceable(made: Json, _decision: Decision, _policies: PolicySet) -> str:
        asked.append(made)
        return "0 of 3 nodes: no room" if made["spec"]["containers"][0].get("resources") else ""

    webhook = Webhook(policy_set(), unplaceable=unplaceable)
    greedy = {"resources": {"limits": {"nvidia.com/gpu": 8}}}
    replicas = {"master": {"count": 1}, "worker": {"count": 4, "byIndex": [{"index": 1, **greedy}]}}
    (said,) = webhook.told(run(replicas=replicas))
    mentions(said, "fairlead: Run train", "worker 1: 0 of 3 nodes: no room")
    wording(said)
    assert len(asked) == 3


def test_a_namespace_that_is_new_is_asked_for() -> None:
    """Its labels may be all that marks the pods."""
    labels = {"ml-team": {names.PLACE: names.PLACE_ALL}}
    webhook = Webhook(policy_set(POOL), namespaces=Asked(labels))
    assert len(webhook.told(job(template({}, **ELSEWHERE)))) == 1


ANYTHING = (
    job(template(**ELSEWHERE), completions=2, completionMode="Indexed"),
    workload("batch/v1", "CronJob", {"jobTemplate": {"spec": {"template": template()}}}),
    workload("apps/v1", "StatefulSet", {"template": template(), "ordinals": {"start": 2}}),
    workload("kubeflow.org/v1", "Notebook", {"template": template()}),
    workload("kubeflow.org/v2beta1", "MPIJob", {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}),
    run(replicas=workers(a="b")),
)


@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(
    st.sampled_from(ANYTHING),
    st.sampled_from([None, *ANYTHING]),
    st.lists(mutations, min_size=1, max_size=3),
)
def test_no_workload_is_too_odd(new: Json, old: Json | None, changes: list[Mutation]) -> None:
    """Definitions may let anything in: it is allowed, or no review, and never a bug."""
    labels = {"ml-team": {names.PLACE: names.PLACE_ALL}}
    webhook = Webhook(policy_set(POOL, WORKERS, THIRD), namespaces=Known(labels))
    sent = review(new, name="train", oldObject=old, operation="UPDATE" if old else "CREATE")
    for change in changes:
        sent = mutated(sent, change)
    reply = webhook.post(encoded(sent))
    assert reply.status in (200, 400)
    if reply.status == 200:
        assert json.loads(reply.body)["response"]["allowed"] is True
    assert webhook.counted("engine_errors") == 0


class Silent(Known):
    """A namespace whose labels never come."""

    async def labels(self, name: str) -> Mapping[str, str]:
        await asyncio.Event().wait()
        return await super().labels(name)


def broken(_workload: Json, _sources: SourceTable) -> Sequence[PodTemplate]:
    raise ValueError("a bug")


@pytest.mark.parametrize(
    ("webhook", "made", "bug"),
    [
        (Webhook(None), template(**ELSEWHERE), 0),
        (Webhook(policy_set(POOL), namespaces=Known({})), template(**ELSEWHERE), 0),
        (Webhook(policy_set(POOL), namespaces=Silent({}), budget=0.01), template(**ELSEWHERE), 0),
        (Webhook(policy_set(POOL)), template(nodeSelector=["no", "pod"]), 0),
        (Webhook(policy_set(POOL), find=broken), template(**ELSEWHERE), 1),
    ],
    ids=["no policies", "unknown namespace", "silence", "no pod's shape", "a bug"],
)
def test_whatever_happens_the_workload_is_allowed(webhook: Webhook, made: Json, bug: int) -> None:
    """It is only ever a warning: nothing may stand in the way."""
    before = webhook.counted("engine_errors")
    reply = webhook.post(reviewed(job(made)))
    assert json.loads(reply.body)["response"] == {"uid": "0df28fbd", "allowed": True}
    assert (reply.status, reply.result) == (200, "unforeseen")
    assert webhook.counted("engine_errors") - before == bug


def deployment(made: Json, **spec: object) -> Json:
    return workload("apps/v1", "Deployment", {"template": made, **spec})


def pytorch_job(**replicas: Json) -> Json:
    return workload("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas})


OTHER_ARCH = {"kubernetes.io/arch": "x"}
WANTING = run(replicas=workers(**OTHER_ARCH))


@pytest.mark.parametrize(
    ("policy", "new", "old", "facts"),
    [
        (POOL, job(template(**ELSEWHERE), completions=3), None, ["3 pods of Job train", *REJECTED]),
        (POOL, job(template()), None, []),
        (POOL, job(template({}, **ELSEWHERE)), None, []),
        (POOL, job(template({"fairlead.dev/runs": "r"})), None, ["did you mean fairlead.dev/run?"]),
        (POOL, job(template({names.RUN: "r", names.ROLE: "boss"})), None, ["dev/role:", "'boss'"]),
        (
            WORKERS,
            pytorch_job(
                Master={"template": template({})},
                Worker={"replicas": 4, "template": template({}, nodeSelector=OTHER_ARCH)},
            ),
            None,
            ["PyTorchJob train", "worker × 4", "rejected", "workers-on-arm"],
        ),
        (WORKERS, WANTING, None, ["Run train", "worker × 2", "policy workers-on-arm"]),
        (WORKERS, WANTING, run(), ["Run train", "worker × 2", "policy workers-on-arm"]),
        (
            POOL,
            run(ports=[{"port": 8888}], environment=ELSEWHERE),
            None,
            ["pod of Run train", "policy pool-required"],
        ),
        (POOL, run(), None, ["fairlead: Run train", "spec.ports:"]),
        (
            THIRD,
            job(template(**ELSEWHERE), completions=4, completionMode="Indexed"),
            None,
            ["Job train", "pods 2 of 4", "policy third"],
        ),
        (
            POOL,
            deployment(template(**ELSEWHERE), replicas=9),
            deployment(template(**ELSEWHERE)),
            [],
        ),
        (POOL, deployment(template(**ELSEWHERE)), deployment(template()), REJECTED),
        (POOL, deployment(template()), deployment(template(**ELSEWHERE)), []),
        (OFF_SPOT, deployment(template(nodeSelector={"spot": "true"})), None, ["off-spot"]),
        (
            OFF_SPOT,
            workload("apps/v1", "DaemonSet", {"template": template(nodeSelector={"spot": "true"})}),
            None,
            [],
        ),
    ],
    ids=[
        "a Job's pods never come",
        "valid pods",
        "pods of no run",
        "a misspelt run label",
        "a label that cannot be read",
        "what an operator adds",
        "the plan of a Run",
        "a Run that could not be read before",
        "a Run that is a Deployment",
        "a Run that cannot have pods",
        "a replica by its index",
        "a change of anything but the pods",
        "a change of the pods",
        "a change of the pods for the better",
        "an override",
        "an override does not reach a DaemonSet's pods",
    ],
)
def test_the_author_of_a_workload_is_told_what_its_pods_meet(
    policy: str, new: Json, old: Json | None, facts: Sequence[str], wording: Wording
) -> None:
    """Nobody else would see why pods never come; where all is well nothing is said or counted."""
    webhook = Webhook(policy_set(policy))
    said = webhook.told(new, old)
    assert (len(said), webhook.counted("workload_warnings")) == (bool(facts), bool(facts))
    for each in said:
        mentions(each, *facts)
        wording(each)


def test_without_time_left_the_first_replica_speaks_for_all() -> None:
    """A workload of many templates must not keep anybody waiting."""
    webhook = Webhook(policy_set(POOL), clock=iter(range(100)).__next__)
    indexed = job(template(**ELSEWHERE), completions=4, completionMode="Indexed")
    (said,) = webhook.told(indexed)
    assert "4 pods of Job train" in said


def test_a_body_that_is_not_a_review_has_no_answer() -> None:
    """There is no uid to answer with; the entry's failurePolicy lets the workload pass."""
    assert Webhook(policy_set()).post(b"{}").status == 400
    assert (
        Webhook(policy_set()).post(reviewed(job(template())).replace(b'"object"', b'"x"')).status
        == 400
    )


def test_a_few_workloads_are_looked_at_and_the_others_answered_without() -> None:
    """Whoever reaches the port can post some; those that wait are not even read."""
    asked: list[str] = []

    class Waiting(Asked):
        async def labels(self, name: str) -> Mapping[str, str]:
            asked.append(name)
            return await super().labels(name)

    webhook = Webhook(policy_set(POOL), namespaces=Waiting({"ml-team": {}}), budget=60)
    body = reviewed(job(template(**ELSEWHERE)))
    replies = webhook.post_all([body] * (MOST_ASKED + 3) + [b"{"])
    assert [each.result for each in replies].count("foreseen") == MOST_ASKED
    assert [each.result for each in replies].count("unforeseen") == 3
    assert replies[-1].status == 400
    assert len(asked) == MOST_ASKED
    assert webhook.post(body).result == "foreseen"


def test_one_workload_is_held_read_at_a_time() -> None:
    """Read, each takes many times its bytes; those that wait for their labels are bytes as well."""
    held: list[int] = []

    def count() -> None:
        gc.collect()
        held.append(sum(type(each).__name__ == "_Workload" for each in gc.get_objects()))

    class Counting(Asked):
        async def labels(self, name: str) -> Mapping[str, str]:
            for _ in range(10):
                await asyncio.sleep(0)
            return await super().labels(name)

    def find(new: Json, _sources: SourceTable) -> Sequence[PodTemplate]:
        found = queued_templates(new)
        count()
        return found

    webhook = Webhook(policy_set(POOL), find=find, namespaces=Counting({"ml-team": {}}), budget=60)
    replies = webhook.post_all([reviewed(job(template(**ELSEWHERE)))] * MOST_ASKED)
    assert [each.result for each in replies] == ["foreseen"] * MOST_ASKED
    assert held == [1] * MOST_ASKED


def test_a_workload_with_too_many_values_is_not_checked() -> None:
    """It is allowed, and its author is told of which object nothing else is said, and why."""
    new = job(template(**ELSEWHERE))
    new["junk"] = [{}] * MOST_VALUES
    kind = {"group": "batch", "version": "v1", "kind": "Job"}
    for name, subject in (("train", "Job train: "), ("", "")):
        body = json.dumps(review(new, name=name, kind=kind)).encode()
        (said,) = json.loads(Webhook(policy_set(POOL)).post(body).body)["response"]["warnings"]
        assert said.startswith(f"fairlead: {subject}its pods ")
        mentions(said, "not checked", str(MOST_VALUES))


RUNTIME = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/torch"


def train_job(**spec: Any) -> Json:
    named = {"runtimeRef": {"name": "torch"}, **spec}
    return workload("trainer.kubeflow.org/v1alpha1", "TrainJob", named)


def runtime(made: Json) -> Json:
    """The runtime torch, whose nodes have this pod template."""
    job = {"name": "node", "template": {"spec": {"template": made}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch"},
        "spec": {"mlPolicy": {"numNodes": 2}, "template": {"spec": {"replicatedJobs": [job]}}},
    }


def test_the_pods_of_a_train_job_are_those_of_the_runtime_that_is_read() -> None:
    """Its author gets the warning, although the pod template is in another object."""
    read: list[str] = []

    async def reading(path: str) -> Json:
        read.append(path)
        return runtime(template(**ELSEWHERE))

    webhook = Webhook(policy_set(POOL), refers_to=refers_to, read=reading)
    (warning,) = webhook.told(train_job())
    mentions(warning, "TrainJob train in ml-team", "would be rejected", "policy")
    assert read == [RUNTIME]
    assert webhook.told(train_job(), train_job(suspend=True)) == []


def test_a_runtime_that_cannot_be_read_is_a_warning() -> None:
    """It is not known then what becomes of the pods."""

    async def failing(_: str) -> Json:
        raise ClusterError("not found", status=404, reason="NotFound")

    webhook = Webhook(policy_set(POOL), refers_to=refers_to, read=failing)
    (warning,) = webhook.told(train_job())
    mentions(warning, "TrainJob train", "not checked", "clustertrainingruntimes torch", "not found")


def test_a_workload_that_refers_to_nothing_is_not_read() -> None:
    """Nor is a runtime whose name is none, or of another kind."""

    async def failing(path: str) -> Json:
        raise AssertionError(path)

    webhook = Webhook(policy_set(POOL), refers_to=refers_to, read=failing)
    assert webhook.told(job(template(**ELSEWHERE))) != []
    for reference in ({"name": "../../x"}, {"name": "torch", "kind": "Secret"}, {}):
        assert webhook.told(train_job(runtimeRef=reference)) == []
    assert refers_to({**train_job(), "apiVersion": "trainer.kubeflow.org/v1?x"}) is None


def test_a_runtime_of_the_namespace_is_read_there() -> None:
    made = train_job(runtimeRef={"name": "torch", "kind": "TrainingRuntime"})
    path = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/ml-team/trainingruntimes/torch"
    assert refers_to(made) == path


def ray_job(**spec: Any) -> Json:
    cluster = {"headGroupSpec": {"template": template({})}}
    return workload("ray.io/v1", "RayJob", {"rayClusterSpec": cluster, **spec})


def test_the_author_of_a_ray_job_learns_that_no_policy_reaches_its_submitter() -> None:
    """KubeRay gives that pod no label by which the API server could send it."""
    webhook = Webhook(policy_set(POOL))
    (warning,) = webhook.told(ray_job())
    mentions(warning, "RayJob train", "submitter", "spec.submitterPodTemplate", names.RUN)
    labelled = {"submitterPodTemplate": template({names.RUN: "train"})}
    assert webhook.told(ray_job(**labelled)) == []
    assert webhook.told(ray_job(submissionMode="HTTPMode")) == []


def test_nothing_is_said_of_unmarked_pods_where_the_webhook_gets_none_of_the_others() -> None:
    """The author's cluster does not place pods of Ray at all."""
    webhook = Webhook(policy_set(POOL), reaches=lambda _pod, _namespace: False)
    assert webhook.told(ray_job()) == []


@pytest.mark.parametrize("kind", ["CronWorkflow", "WorkflowTemplate"])
def test_authors_of_argo_s_lasting_objects_get_warnings(kind: str) -> None:
    """A Workflow is written by its controller at every step; these are written by people."""
    steps = {
        "podMetadata": {"labels": {names.RUN: "r"}},
        "nodeSelector": ELSEWHERE["nodeSelector"],
        "templates": [{"name": "train", "container": {"image": "i"}}],
    }
    spec = {"workflowSpec": steps} if kind == "CronWorkflow" else steps
    (warning,) = Webhook(policy_set(POOL)).told(workload("argoproj.io/v1alpha1", kind, spec))
    mentions(warning, f"{kind} train", "would be rejected")
    (described,) = SHIPPED.pod_kinds["argoproj.io", kind]
    assert described.resource


NODES_WITH_GPUS = [
    Node(name, {}, [], allocatable={"pods": 110, "cpu": 64_000, "nvidia.com/gpu": 8})
    for name in ("a", "b")
]


def on_gpus(**labels: str) -> Json:
    """The template of a pod of a run with 8 GPUs."""
    made = template({names.RUN: "r", **labels}, restartPolicy="Never")
    made["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "8"}}
    return made


def test_the_author_of_a_run_without_room_is_warned(wording: Wording) -> None:
    """Of replicas that meet as a warning, also when they become more; of a Job as a note."""
    webhook = Webhook(policy_set(), nodes=NODES_WITH_GPUS)
    made = {"spec": on_gpus()["spec"]}
    del made["spec"]["restartPolicy"]

    def of(count: int, **more: object) -> Json:
        return run(template=made, replicas={"worker": {"count": count}}, **more)

    (warning,) = webhook.told(of(16))
    mentions(warning, "Run train", "at most 2 of 16", "wait for the others")
    wording(warning)
    assert webhook.told(of(2)) == []
    assert webhook.told(of(16), of(2)) == [warning]
    assert webhook.told(of(16), of(16)) == []
    (note,) = webhook.told(of(16, pytorch={"elastic": {"minReplicas": 2}}))
    mentions(note, "Run train: note: at most 2 of 16", "elastic from 2")
    (note,) = webhook.told(job(on_gpus(), completions=9, parallelism=3))
    mentions(note, "Job train: note: at most 2 of 3")
    wording(note)
    assert webhook.told(job(on_gpus(), completions=9, parallelism=2)) == []


def test_room_is_not_judged_where_others_decide() -> None:
    """Pods that are part of no run, in a queue of Kueue, and on nodes that are not known."""
    webhook = Webhook(policy_set(), nodes=NODES_WITH_GPUS)
    crowd = {"completions": 9, "parallelism": 9}
    plain = on_gpus()
    plain["metadata"]["labels"] = {}
    assert webhook.told(job(plain, **crowd)) == []
    assert webhook.told(job(on_gpus(**{names.KUEUE_QUEUE: "q"}), **crowd)) == []
    assert Webhook(policy_set()).told(job(on_gpus(), **crowd)) == []
    many = [node._replace(name=f"{at}") for at in range(25_000) for node in NODES_WITH_GPUS]
    assert Webhook(policy_set(), nodes=many).told(job(on_gpus(), **crowd)) == []
