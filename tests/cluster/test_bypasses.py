"""Ways round the webhook, one test each: what holds against them, and what Kubernetes leaves open.

`author` may do in a namespace what the ClusterRole edit lets anybody do there. What stays open is
said in docs/security.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from tests.cluster.guards import guarded
from tests.cluster.manifests import SPOT, SPOT_CLASS, SPOT_TAINT, Json, pod, required_terms
from tests.cluster.rooms import NewNamespace, Room, is_stamped, stamp
from webhook import names
from webhook.guards import tolerations
from webhook.interception import DEFAULT_SOURCES, chosen, webhooks

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running")

# Runs stay off spot nodes here, and are scheduled by the one scheduler that knows of quotas.
POLICIES = (
    SPOT_CLASS
    + """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: never-on-spot}
spec:
  match: {namespaceSelector: {matchLabels: {test: bypass}}}
  overrides: {capacity: [{class: spot, mode: Prevent}]}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: amd64-only}
spec:
  match: {namespaceSelector: {matchLabels: {test: bypass}}}
  requirements: {nodeSelector: {kubernetes.io/arch: amd64}}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: one-scheduler}
spec:
  match: {namespaceSelector: {matchLabels: {schedulers: one}}}
  overrides: {schedulerName: default-scheduler}
"""
)
OFF_SPOT = {"key": SPOT, "operator": "NotIn", "values": ["true"]}
GUIDE = Path(__file__).parents[2] / "docs/security.md"
AUTHOR = ("--as", "author")


@pytest.fixture
def room(new_namespace: NewNamespace) -> Room:
    """A namespace that the author may edit."""
    return room_of_author(new_namespace)


def room_of_author(new_namespace: NewNamespace, **labels: str) -> Room:
    room = new_namespace({"test": "bypass", **labels})
    room.kubectl("create", "rolebinding", "author", "--clusterrole=edit", "--user=author")
    return room


def create(room: Room, manifest: Json) -> CompletedProcess[str]:
    """The author creates it."""
    return room.kubectl.run("create", "-f", "-", *AUTHOR, stdin=json.dumps(manifest))


def created(room: Room, manifest: Json) -> Json:
    """As the API server has stored it. The author may."""
    done = create(room, manifest)
    assert done.returncode == 0, done.stderr
    seen: Json = room.kubectl.json("get", "pod", manifest["metadata"]["name"])
    return seen


def spot_node(room: Room) -> str:
    """The name of some spot node."""
    listed = room.kubectl.json("get", "nodes", "-l", f"{SPOT}=true")["items"]
    name: str = listed[0]["metadata"]["name"]
    return name


def assert_placed(seen: Json) -> None:
    """It is kept off spot nodes, whatever it said itself."""
    assert is_stamped(seen)
    assert all(OFF_SPOT in expressions for expressions in required_terms(seen))
    assert SPOT_TAINT not in seen["spec"].get("tolerations", ())


def test_no_label(new_namespace: NewNamespace, room: Room) -> None:
    """A pod that belongs to no run is nobody's business, unless its namespace is placed whole."""
    tolerating = pod("free", labels={}, tolerations=[SPOT_TAINT])
    assert not is_stamped(created(room, tolerating))
    whole = room_of_author(new_namespace, **{names.PLACE: names.PLACE_ALL})
    assert_placed(created(whole, tolerating))
    # Nor can the author take the namespace out of it.
    relabelled = whole.kubectl.run("label", "namespace", whole.name, f"{names.PLACE}-", *AUTHOR)
    assert "cannot patch resource" in relabelled.stderr


def test_a_forged_stamp(room: Room) -> None:
    """It is never read, and written anew: also one that says that the pod was left alone."""
    honest = stamp(created(room, pod("honest")))
    for name, said in (
        ("left", '{"leftAlone":"mirror pod","set":"0000000000000000"}'),
        ("same", json.dumps(honest, separators=(",", ":"), sort_keys=True)),
        ("none", ""),
    ):
        forged = pod(name, annotations={names.PLACEMENT: said}, tolerations=[SPOT_TAINT])
        seen = created(room, forged)
        assert_placed(seen)
        assert stamp(seen)["policies"] == honest["policies"]


def test_a_forged_mirror_pod(room: Room) -> None:
    """The annotation of mirror pods is believed of nodes, and of nobody else."""
    mirror = {"kubernetes.io/config.mirror": "x"}
    forged = pod("mirror", annotations=mirror, nodeSelector={"kubernetes.io/arch": "arm64"})
    forged["spec"]["nodeName"] = spot_node(room)
    done = create(room, forged)
    assert done.returncode == 1
    assert "amd64-only" in done.stderr


def test_forged_labels_of_kueue(room: Room) -> None:
    """What says that Kueue chose the nodes is believed only where the namespace says so."""
    admitted = {names.RUN: "r", names.KUEUE_PODSET: "main", names.KUEUE_QUEUE: "ml"}
    forged = pod("p", labels=admitted, nodeSelector={SPOT: "true"}, tolerations=[SPOT_TAINT])
    assert_placed(created(room, forged))
    label = f"{names.KUEUE}={names.KUEUE_KEEP}"
    labelled = room.kubectl.run("label", "namespace", room.name, label, *AUTHOR)
    assert "cannot patch resource" in labelled.stderr


def test_node_name(room: Room) -> None:
    """It passes by the scheduler, its taints and every capacity class; requirements still reject.

    The policy of the guide refuses it.
    """
    node = spot_node(room)
    contrary = pod("contrary", nodeName=node, nodeSelector={"kubernetes.io/arch": "arm64"})
    assert "amd64-only" in create(room, contrary).stderr
    seen = created(room, pod("bound", nodeName=node))
    assert is_stamped(seen)
    assert seen["spec"]["nodeName"] == node
    guide = GUIDE.read_text().partition("# no-node-names.yaml\n")[2].partition("```")[0]
    documents = list(yaml.safe_load_all(guide))
    here = {"matchLabels": {"kubernetes.io/metadata.name": room.name}}
    documents[1]["spec"]["matchResources"]["namespaceSelector"] = here

    def refused() -> bool:
        probe = json.dumps(pod("again", nodeName=node))
        done = room.kubectl.run("create", "--dry-run=server", "-f", "-", stdin=probe)
        return "names its node" in done.stderr

    with guarded(room.plane, documents, refused):
        assert create(room, pod("again", nodeName=node)).returncode == 1
        assert_placed(created(room, pod("scheduled")))
        assert create(room, pod("free", labels={}, nodeName=node)).returncode == 0


def test_a_binding(room: Room) -> None:
    """Pods are bound by the scheduler: whoever may edit a namespace may not."""
    created(room, pod("waits", schedulerName="nobody"))
    node = {"apiVersion": "v1", "kind": "Node", "name": spot_node(room)}
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "waits"},
        "target": node,
    }
    path = f"/api/v1/namespaces/{room.name}"
    for raw in (f"{path}/pods/waits/binding", f"{path}/bindings"):
        done = room.kubectl.run(
            "create", "--raw", raw, "-f", "-", *AUTHOR, stdin=json.dumps(binding)
        )
        assert "forbidden" in done.stderr.lower()
    # The right to bind is the right to put any pod anywhere: no admission of pods is asked.
    room.plane.api.create(f"{path}/pods/waits/binding", binding)
    seen = room.get("pods", "waits")
    assert seen["spec"]["nodeName"] == node["name"]
    assert_placed(seen)


def test_tolerations_added_later(room: Room) -> None:
    """The required nodes cannot be changed, so Prevent holds; with the guard, tolerations too."""
    created(room, pod("waits", schedulerName="nobody"))
    add = [{"op": "add", "path": "/spec/tolerations/-", "value": SPOT_TAINT}]
    patch = ("patch", "pod", "waits", "--type=json", "-p", json.dumps(add), *AUTHOR)
    affinity = [{"op": "remove", "path": "/spec/affinity"}]
    removed = room.kubectl.run(
        "patch", "pod", "waits", "--type=json", "-p", json.dumps(affinity), *AUTHOR
    )
    assert "Forbidden: pod updates may not change fields" in removed.stderr
    marks = [mark for source in chosen(DEFAULT_SOURCES) for mark in source.marks]
    guard = tolerations.documents(webhooks(only_namespaces=[room.name]), marks, [SPOT])

    def refused() -> bool:
        return "gets no toleration" in room.kubectl.run(*patch, "--dry-run=server").stderr

    with guarded(room.plane, guard, refused):
        done = room.kubectl.run(*patch)
        assert done.returncode == 1
        assert f"no toleration of {SPOT} after" in done.stderr
        unmark = room.kubectl.run("label", "pod", "waits", f"{names.RUN}-", *AUTHOR)
        assert "is not taken off" in unmark.stderr
    # Without it Kubernetes lets the author add it.
    while room.kubectl.run(*patch).returncode:
        pass
    seen = room.get("pods", "waits")
    assert SPOT_TAINT in seen["spec"]["tolerations"]
    assert required_terms(seen) == [[OFF_SPOT]]


def test_another_scheduler(new_namespace: NewNamespace, room: Room) -> None:
    """The pod is placed as any other; a policy can say which scheduler it gets."""
    seen = created(room, pod("elsewhere", schedulerName="mine"))
    assert_placed(seen)
    assert seen["spec"]["schedulerName"] == "mine"
    one = room_of_author(new_namespace, schedulers="one")
    assert created(one, pod("here", schedulerName="mine"))["spec"]["schedulerName"] == (
        names.DEFAULT_SCHEDULER
    )


@pytest.mark.parametrize("namespace", ["kube-system", names.NAMESPACE])
def test_an_exempt_namespace(room: Room, namespace: str) -> None:
    """Pods there never reach Fairlead; who may create them there is a matter of rights.

    And no namespace can pass for one of them: its name is a label that the API server writes.
    """
    exempt = Room(room.plane, room.kubectl.within(namespace), namespace)
    done = create(exempt, pod("exempt", tolerations=[SPOT_TAINT]))
    assert "cannot create resource" in done.stderr
    key = "kubernetes.io/metadata.name"
    room.kubectl.run("label", "namespace", room.name, f"{key}={namespace}", "--overwrite")
    labels = room.kubectl.json("get", "namespace", room.name)["metadata"]["labels"]
    assert labels[key] == room.name
    assert_placed(created(room, pod("still", tolerations=[SPOT_TAINT])))


def test_a_label_added_later(room: Room) -> None:
    """The pod stays as it was made: no mark makes a placed pod of it, and it has no stamp."""
    created(room, pod("late", labels={}, tolerations=[SPOT_TAINT]))
    room.kubectl("label", "pod", "late", f"{names.RUN}=r", *AUTHOR)
    seen = room.get("pods", "late")
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
def test_what_the_webhook_stands_on(room: Room, what: str) -> None:
    """Neither `edit` nor `admin` of a namespace gives a right to write any of it."""
    room.kubectl("create", "rolebinding", "owner", "--clusterrole=admin", "--user=owner")
    for user in ("author", "owner"):
        for verb in ("create", "update", "patch", "delete"):
            done = room.kubectl.run("auth", "can-i", verb, what, "--as", user)
            assert done.stdout.strip() == "no", (user, verb, done)
