"""Ways round the webhook, one test each: what holds against them, and what Kubernetes leaves open.

`author` may do in a namespace what the ClusterRole edit lets anybody do there. What stays open is
in docs/security/bypasses.md.
"""

from __future__ import annotations

import json
from datetime import datetime
from subprocess import CompletedProcess

import pytest

from tests.cluster.guards import guarded, mutating, type_warnings
from tests.cluster.manifests import (
    SPOT,
    SPOT_CLASS,
    SPOT_TAINT,
    Json,
    pod,
    policy_text,
    required_terms,
    template,
    workload,
)
from tests.cluster.spaces import NewNamespace, Space, is_stamped, stamp
from tests.eventually import eventually
from tests.objects import an_object
from tests.wording import mentions
from webhook import names
from webhook.guards import node_name_guard
from webhook.interception import DEFAULT_SOURCES, webhooks
from webhook.placement.pod import REQUIRED

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running")

# Runs stay off spot nodes here, and are scheduled by the one scheduler that knows of quotas.
POLICIES = (
    SPOT_CLASS
    + policy_text(
        "never-on-spot",
        "match: {namespaceSelector: {matchLabels: {test: bypass}}}",
        "overrides: {capacity: [{class: spot, mode: Prevent}]}",
    )
    + policy_text(
        "amd64-only",
        "match: {namespaceSelector: {matchLabels: {test: bypass}}}",
        "requirements: {nodeSelector: {kubernetes.io/arch: amd64}}",
    )
    + policy_text(
        "one-scheduler",
        "match: {namespaceSelector: {matchLabels: {schedulers: one}}}",
        "overrides: {schedulerName: default-scheduler}",
    )
    + policy_text(
        "strictly-off-spot",
        'match: {namespaceSelector: {matchLabels: {strict: "yes"}}}',
        "overrides: {labels: {team: ml}}",
        "requirements: {capacity: [{class: spot, mode: Prevent}]}",
    )
    + policy_text(
        "linux-pool",
        "match: {namespaceSelector: {matchLabels: {system: linux}}}",
        "overrides: {nodeSelector: {kubernetes.io/os: linux}}",
        "requirements: {nodeSelector: {kubernetes.io/arch: amd64}, labels: {team: ml}}",
    )
    + """
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: not-spot}
spec: {complementOf: spot}
---"""
    + policy_text(
        "loosely-off-spot",
        "match: {namespaceSelector: {matchLabels: {test: overrides}}}",
        "overrides: {capacity: [{class: spot, mode: Prevent}]}",
    )
)
OFF_SPOT = {"key": SPOT, "operator": "NotIn", "values": ["true"]}
DAEMON_SETS = names.DAEMON_SET_CONTROLLER
AUTHOR = ("--as", "author")


@pytest.fixture
def space(new_namespace: NewNamespace) -> Space:
    """A namespace that the author may edit."""
    return space_of_author(new_namespace)


def space_of_author(new_namespace: NewNamespace, **labels: str) -> Space:
    space = new_namespace({"test": "bypass", **labels})
    space.kubectl("create", "rolebinding", "author", "--clusterrole=edit", "--user=author")
    return space


def create(space: Space, manifest: Json) -> CompletedProcess[str]:
    return space.kubectl.run("create", "-f", "-", *AUTHOR, stdin=json.dumps(manifest))


def created(space: Space, manifest: Json) -> Json:
    """As the API server has stored it. The author may."""
    done = create(space, manifest)
    assert done.returncode == 0, done.stderr
    seen: Json = space.kubectl.json("get", "pod", manifest["metadata"]["name"])
    return seen


def spot_node(space: Space) -> str:
    listed = space.kubectl.json("get", "nodes", "-l", f"{SPOT}=true")["items"]
    name: str = listed[0]["metadata"]["name"]
    return name


def assert_placed(seen: Json) -> None:
    """It is kept off spot nodes, whatever it said itself."""
    assert is_stamped(seen)
    assert all(OFF_SPOT in expressions for expressions in required_terms(seen))
    assert SPOT_TAINT not in seen["spec"].get("tolerations", ())


def test_no_label(new_namespace: NewNamespace, space: Space) -> None:
    """A pod that belongs to no run is nobody's business, unless its namespace is placed whole."""
    tolerating = pod("free", labels={}, tolerations=[SPOT_TAINT])
    assert not is_stamped(created(space, tolerating))
    whole = space_of_author(new_namespace, **{names.PLACE: names.PLACE_ALL})
    assert_placed(created(whole, tolerating))
    # Nor can the author take the namespace out of it.
    relabelled = whole.kubectl.run("label", "namespace", whole.name, f"{names.PLACE}-", *AUTHOR)
    assert "cannot patch resource" in relabelled.stderr


def test_a_forged_stamp(space: Space) -> None:
    """It is never read, and written again: also one that says that the pod was left alone."""
    honest = stamp(created(space, pod("honest")))
    for name, said in (
        ("left", '{"leftAlone":"mirror pod","set":"0000000000000000"}'),
        ("same", json.dumps(honest, separators=(",", ":"), sort_keys=True)),
        ("none", ""),
    ):
        forged = pod(name, annotations={names.PLACEMENT: said}, tolerations=[SPOT_TAINT])
        seen = created(space, forged)
        assert_placed(seen)
        assert stamp(seen)["policies"] == honest["policies"]


def test_a_forged_mirror_pod(space: Space) -> None:
    """The annotation of mirror pods is believed of nodes, and of nobody else."""
    mirror = {"kubernetes.io/config.mirror": "x"}
    forged = pod("mirror", annotations=mirror, nodeSelector={"kubernetes.io/arch": "arm64"})
    forged["spec"]["nodeName"] = spot_node(space)
    done = create(space, forged)
    assert done.returncode == 1
    assert "amd64-only" in done.stderr


def test_forged_labels_of_kueue(space: Space) -> None:
    """Labels that say that Kueue chose the nodes count only in a namespace with Kueue's label."""
    admitted = {names.RUN: "r", names.KUEUE_PODSET: "main", names.KUEUE_QUEUE: "ml"}
    forged = pod("p", labels=admitted, nodeSelector={SPOT: "true"}, tolerations=[SPOT_TAINT])
    assert_placed(created(space, forged))
    label = f"{names.KUEUE}={names.KUEUE_KEEP}"
    labelled = space.kubectl.run("label", "namespace", space.name, label, *AUTHOR)
    assert "cannot patch resource" in labelled.stderr


def test_node_name(new_namespace: NewNamespace, space: Space) -> None:
    """A requirement about nodes that cannot be checked rejects it; without one it is bound.

    Overrides do not reach it: it passes by the scheduler. The guard refuses it in any case.
    """
    node = spot_node(space)
    refused = create(space, pod("strict", nodeName=node))
    mentions(refused.stderr, "policy amd64-only", "kubernetes.io/arch", "remove nodeName")
    loose = space_of_author(new_namespace, test="overrides")
    seen = created(loose, pod("bound", nodeName=node))
    assert is_stamped(seen)
    assert seen["spec"]["nodeName"] == node
    whole = space_of_author(new_namespace, test="none", **{names.PLACE: names.PLACE_ALL})
    spaces = [loose.name, whole.name]
    sources = [*DEFAULT_SOURCES, "mlrun"]
    guard = node_name_guard(webhooks(sources, only_namespaces=spaces), ["fairlead-admin"])
    of_mlrun = pod("of-mlrun", labels={"mlrun/class": "job"}, nodeName=node)
    # Marked by Fairlead, by MLRun, and by the namespace alone.
    named = [(loose, pod("again", nodeName=node)), (loose, of_mlrun)]
    named += [(whole, pod("plain", labels={}, nodeName=node))]

    def refused_by_guard() -> bool:
        return all("not allowed for a pod of a run" in create(*each).stderr for each in named)

    with guarded(space.plane, guard, refused_by_guard):
        assert type_warnings(space.plane, names.NODE_NAMES_GUARD) == []
        for where, manifest in named:
            done = create(where, manifest)
            assert done.returncode == 1
            mentions(done.stderr, names.NODE_NAMES_GUARD, f"spec.nodeName: {node}", "nodeSelector")
        created(loose, pod("scheduled"))
        created(loose, pod("free", labels={}, nodeName=node))
        # Who is exempt, and here is not the author.
        loose.create(pod("exempt", nodeName=node))


def test_a_daemon_set(new_namespace: NewNamespace) -> None:
    """Its controller makes the pods; requirements hold for them, where it can be seen."""
    strict = space_of_author(new_namespace, test="none", strict="yes")
    on_spot = template(nodeSelector={SPOT: "true"}, tolerations=[SPOT_TAINT])
    done = create(strict, workload("DaemonSet", "on-spot", on_spot))
    assert done.returncode == 0, done.stderr

    def attempts() -> list[datetime]:
        return [
            datetime.fromisoformat(event["requestReceivedTimestamp"])
            for event in strict.plane.audit_events(strict.name)
            if event["verb"] == "create" and event["user"]["username"] == DAEMON_SETS
        ]

    def backs_off() -> bool:
        seen = attempts()
        return len(seen) > 2 and (seen[-1] - seen[-2]).total_seconds() > 1

    eventually("the controller waits longer each time", backs_off)
    assert strict.pods() == []
    described = strict.kubectl("describe", "daemonset", "on-spot", *AUTHOR)
    mentions(described, "FailedCreate", "policy strictly-off-spot", "requirements.capacity[spot]")

    # What only tolerates the taint stays off spot nodes, and each pod on the node it was made for.
    tolerating = template(labels={"app": "two"}, tolerations=[SPOT_TAINT])
    two = workload("DaemonSet", "two", tolerating, selector={"matchLabels": {"app": "two"}})
    assert create(strict, two).returncode == 0

    def settled() -> bool:
        seen = strict.pods()
        bound = [each["spec"]["nodeName"] for each in seen if "nodeName" in each["spec"]]
        return len(bound) == 4 and all(each.startswith("on-demand-") for each in bound)

    eventually("the pods on other nodes are bound", settled, explain=strict.pods)
    for seen in strict.pods():
        assert set(stamp(seen)["policies"]) <= {"strictly-off-spot"}
        assert SPOT_TAINT not in seen["spec"]["tolerations"]
        (term,) = required_terms(seen)
        assert term == [OFF_SPOT]
        assert named_node(seen)


def test_a_daemon_set_without_a_mark(new_namespace: NewNamespace) -> None:
    """Where a namespace is placed as a whole, requirements hold for it, and tolerate what it may:
    unless the namespace's label says that they do not, which no author writes."""
    whole = space_of_author(
        new_namespace, test="none", strict="yes", **{names.PLACE: names.PLACE_ALL}
    )
    everywhere = template(labels={"app": "all"}, tolerations=[{"operator": "Exists"}])
    del everywhere["metadata"]["labels"][names.RUN]
    made = workload("DaemonSet", "all", everywhere, selector={"matchLabels": {"app": "all"}})
    assert create(whole, made).returncode == 0

    def nodes() -> set[str]:
        return {each["spec"]["nodeName"] for each in whole.pods() if "nodeName" in each["spec"]}

    spot = spot_node(whole)
    listed = whole.kubectl.json("get", "nodes", "-l", f"{SPOT}!=true")["items"]
    others = {each["metadata"]["name"] for each in listed}
    eventually("it runs on the other nodes", lambda: nodes() == others, explain=whole.pods)
    assert all(OFF_SPOT in each for seen in whole.pods() for each in required_terms(seen))

    keep = f"{names.DAEMON_SETS}={names.DAEMON_SETS_KEEP}"
    refused = whole.kubectl.run("label", "namespace", whole.name, keep, *AUTHOR)
    assert "cannot patch resource" in refused.stderr
    whole.kubectl("label", "namespace", whole.name, keep)
    whole.kubectl("delete", "pods", "--all", "--wait=false")
    eventually("it runs everywhere", lambda: nodes() >= {spot, *others}, explain=whole.pods)
    # What only claims to be its pod is nobody's exception.
    (owner,) = [each["metadata"]["ownerReferences"][0] for each in whole.pods()[:1]]
    forged = pod("forged", labels={}, tolerations=[SPOT_TAINT])
    forged["metadata"]["ownerReferences"] = [owner]
    assert_placed(created(whole, forged))


def test_a_daemon_set_whose_annotation_contradicts_itself(new_namespace: NewNamespace) -> None:
    """The capacity annotation of its pods has no effect, and exempts them from nothing."""
    strict = space_of_author(new_namespace, strict="yes")
    elsewhere = template(nodeSelector={"kubernetes.io/arch": "arm64"})
    elsewhere["metadata"]["annotations"] = {names.CAPACITY: "spot=Prevent,not-spot=Prevent"}
    # The controller makes pods for nodes that the template admits, and no others.
    node = {"kubernetes.io/arch": "arm64", "kubernetes.io/hostname": "arm-0"}
    metadata = {"name": "arm-0", "labels": node}
    strict.plane.api.create("/api/v1/nodes", an_object("v1", "Node", metadata))
    try:
        assert create(strict, workload("DaemonSet", "evil", elsewhere)).returncode == 0

        def is_told() -> bool:
            described = strict.kubectl("describe", "daemonset", "evil", *AUTHOR)
            return "policy amd64-only: requirements.nodeSelector" in described

        eventually("its pods are refused, and the reason is told", is_told)
        assert strict.pods() == []
    finally:
        strict.plane.api.delete("/api/v1/nodes/arm-0")


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"kubernetes.io/os": "windows", "kubernetes.io/arch": "arm64"}},
        {"os": {"name": "windows"}, "nodeSelector": {"kubernetes.io/arch": "arm64"}},
    ],
)
def test_another_operating_system(new_namespace: NewNamespace, spec: Json) -> None:
    """It takes a policy's defaults and overrides away, and no requirement."""
    space = space_of_author(new_namespace, test="none", system="linux")
    done = create(space, pod("windows", **spec))
    mentions(done.stderr, "policy linux-pool", "requirements.nodeSelector[kubernetes.io/arch]")


def test_a_required_label_changed_later(new_namespace: NewNamespace) -> None:
    """What requires a label holds at creation; Kubernetes lets its author change it afterwards."""
    space = space_of_author(new_namespace, test="none", system="linux")
    mentions(
        create(space, pod("other", labels={names.RUN: "r", "team": "x"})).stderr, "labels[team]"
    )
    assert created(space, pod("ours"))["metadata"]["labels"]["team"] == "ml"
    space.kubectl("label", "pod", "ours", "team=x", "--overwrite", *AUTHOR)
    assert space.get("pods", "ours")["metadata"]["labels"]["team"] == "x"


def named_node(seen: Json) -> str:
    """The node that the DaemonSet controller has made the pod for."""
    required = seen["spec"]["affinity"]["nodeAffinity"][REQUIRED]
    (term,) = required["nodeSelectorTerms"]
    ((name,),) = [each["values"] for each in term["matchFields"]]
    return str(name)


def test_other_ways_to_change_a_pod(space: Space) -> None:
    """Resizing it, giving it a debugging container, applying it as somebody else: none moves it."""
    created(space, pod("waits", schedulerName="nobody"))
    selector = {"spec": {"nodeSelector": {SPOT: "true"}, "affinity": None}}
    for subresource in ("resize", "ephemeralcontainers"):
        space.kubectl.run(
            *("patch", "pod", "waits", "--subresource", subresource, "--type=strategic"),
            *("-p", json.dumps(selector), *AUTHOR),
        )
    applied = pod("waits", schedulerName="nobody", nodeSelector={SPOT: "true"}, affinity={})
    done = space.kubectl.run(
        *("apply", "--server-side", "--force-conflicts", "--field-manager=other", "-f", "-"),
        *AUTHOR,
        stdin=json.dumps(applied),
    )
    assert "pod updates may not change fields" in done.stderr
    seen = space.get("pods", "waits")
    assert_placed(seen)
    assert SPOT not in seen["spec"].get("nodeSelector", {})


def test_other_makers_of_pods(space: Space) -> None:
    """A ReplicationController's pods come by as any others, and a PodTemplate makes none."""
    made = template(tolerations=[SPOT_TAINT])
    controller = an_object(
        "v1",
        "ReplicationController",
        "rc",
        {"replicas": 1, "selector": {"app": "app"}, "template": made},
    )
    stored = an_object("v1", "PodTemplate", "t", template=made)
    space.create(stored)
    assert create(space, controller).returncode == 0
    (seen,) = space.wait_for_pods(1)
    assert_placed(seen)


def test_a_gated_pod(space: Space) -> None:
    """While it is gated its author may narrow what it asks of nodes, and take nothing away."""
    created(space, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    narrowed = {"spec": {"nodeSelector": {SPOT: "true"}}}
    patch = ("patch", "pod", "gated", "-p", json.dumps(narrowed), *AUTHOR)
    assert space.kubectl.run(*patch).returncode == 0
    widened = [{"op": "remove", "path": "/spec/affinity"}]
    refused = space.kubectl.run(
        "patch", "pod", "gated", "--type=json", "-p", json.dumps(widened), *AUTHOR
    )
    assert refused.returncode == 1
    seen = space.get("pods", "gated")
    # No node is on spot and off it: such a pod waits for ever.
    assert seen["spec"]["nodeSelector"][SPOT] == "true"
    assert required_terms(seen) == [[OFF_SPOT]]


def test_another_admission_that_widens(space: Space) -> None:
    """The last call puts right what other webhooks remove before it."""
    name = f"widen-{space.name}"
    expression = (
        "has(object.spec.affinity) ? "
        '[JSONPatch{op: "remove", path: "/spec/affinity"}, '
        'JSONPatch{op: "add", path: "/metadata/labels/widened", value: "yes"}] : '
        '[JSONPatch{op: "add", path: "/metadata/labels/seen", value: "yes"}]'
    )

    def in_force() -> bool:
        seen = space.create(pod("probe"), dry_run=True)
        return "widened" in seen["metadata"]["labels"]

    with guarded(space.plane, mutating(space, name, expression), in_force):
        assert_placed(created(space, pod("widened")))


def test_a_binding(space: Space) -> None:
    """Pods are bound by the scheduler: whoever may edit a namespace may not."""
    created(space, pod("waits", schedulerName="nobody"))
    node = {"apiVersion": "v1", "kind": "Node", "name": spot_node(space)}
    binding = an_object("v1", "Binding", "waits", target=node)
    path = f"/api/v1/namespaces/{space.name}"
    for raw in (f"{path}/pods/waits/binding", f"{path}/bindings"):
        done = space.kubectl.run(
            "create", "--raw", raw, "-f", "-", *AUTHOR, stdin=json.dumps(binding)
        )
        assert "forbidden" in done.stderr.lower()
    # The right to bind is the right to put any pod anywhere: no admission of pods is asked.
    space.plane.api.create(f"{path}/pods/waits/binding", binding)
    seen = space.get("pods", "waits")
    assert seen["spec"]["nodeName"] == node["name"]
    assert_placed(seen)


def test_tolerations_added_later(space: Space) -> None:
    """The required nodes cannot be changed, so Prevent holds; tolerations can, without a guard."""
    created(space, pod("waits", schedulerName="nobody"))
    add = [{"op": "add", "path": "/spec/tolerations/-", "value": SPOT_TAINT}]
    patch = ("patch", "pod", "waits", "--type=json", "-p", json.dumps(add), *AUTHOR)
    affinity = [{"op": "remove", "path": "/spec/affinity"}]
    removed = space.kubectl.run(
        "patch", "pod", "waits", "--type=json", "-p", json.dumps(affinity), *AUTHOR
    )
    assert "Forbidden: pod updates may not change fields" in removed.stderr
    space.kubectl(*patch)
    seen = space.get("pods", "waits")
    assert SPOT_TAINT in seen["spec"]["tolerations"]
    assert required_terms(seen) == [[OFF_SPOT]]


def test_another_scheduler(new_namespace: NewNamespace, space: Space) -> None:
    """The pod is placed as any other; a policy can say which scheduler it gets."""
    seen = created(space, pod("elsewhere", schedulerName="mine"))
    assert_placed(seen)
    assert seen["spec"]["schedulerName"] == "mine"
    one = space_of_author(new_namespace, schedulers="one")
    assert created(one, pod("here", schedulerName="mine"))["spec"]["schedulerName"] == (
        names.DEFAULT_SCHEDULER
    )


@pytest.mark.parametrize("namespace", ["kube-system", names.NAMESPACE])
def test_an_exempt_namespace(space: Space, namespace: str) -> None:
    """Pods there never reach Fairlead; who may create them there is a matter of rights.

    And no namespace can pass for one of them: its name is a label that the API server writes.
    """
    exempt = Space(space.plane, space.kubectl.within(namespace), namespace)
    done = create(exempt, pod("exempt", tolerations=[SPOT_TAINT]))
    assert "cannot create resource" in done.stderr
    key = "kubernetes.io/metadata.name"
    space.kubectl.run("label", "namespace", space.name, f"{key}={namespace}", "--overwrite")
    labels = space.kubectl.json("get", "namespace", space.name)["metadata"]["labels"]
    assert labels[key] == space.name
    assert_placed(created(space, pod("still", tolerations=[SPOT_TAINT])))


def test_a_label_added_later(space: Space) -> None:
    """The pod stays as it was made: no mark makes a placed pod of it, and it has no stamp."""
    created(space, pod("late", labels={}, tolerations=[SPOT_TAINT]))
    space.kubectl("label", "pod", "late", f"{names.RUN}=r", *AUTHOR)
    seen = space.get("pods", "late")
    assert seen["metadata"]["labels"][names.RUN] == "r"
    assert not is_stamped(seen)


@pytest.mark.parametrize(
    "what",
    [
        "mutatingwebhookconfigurations.admissionregistration.k8s.io/fairlead",
        f"validatingadmissionpolicies.admissionregistration.k8s.io/{names.STAMP_GUARD}",
        f"validatingadmissionpolicybindings.admissionregistration.k8s.io/{names.STAMP_GUARD}",
        "namespaces",
    ],
)
def test_what_the_webhook_stands_on(space: Space, what: str) -> None:
    """Neither `edit` nor `admin` of a namespace gives a right to write any of it."""
    space.kubectl("create", "rolebinding", "owner", "--clusterrole=admin", "--user=owner")
    for user in ("author", "owner"):
        for verb in ("create", "update", "patch", "delete"):
            done = space.kubectl.run("auth", "can-i", verb, what, "--as", user)
            assert done.stdout.strip() == "no", (user, verb, done)
