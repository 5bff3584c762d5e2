"""Policies that are objects are judged before they are stored, as whoever uses kubectl sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.test_policy_crds import SHIPPED
from tests.eventually import eventually
from tests.fast_yaml import load_yaml
from tests.wording import mentions
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import Webhook, start_webhook, stop_webhook
from webhook.sandbox.kubectl import Kubectl
from webhook.validating import POLICIES

pytest_plugins = ["tests.cluster.policy_fixtures"]

Json = dict[str, Any]
COLLECTION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
CONFIGURATION = f"{COLLECTION}/{names.WEBHOOK_CONFIGURATION}"
REFUSED = 'admission webhook "policies.fairlead.dev" denied the request: fairlead: '


@pytest.fixture(scope="module")
def judging(policy_api: ControlPlane) -> Iterator[Webhook]:
    """The webhook over the cluster's policies, registered for writes of them."""
    erase(policy_api)
    webhook = start_webhook(policy_api, None, options=("--nodes", "--log-level", "debug"))
    try:
        yield webhook
    finally:
        stop_webhook(policy_api, webhook)
        erase(policy_api)


@pytest.fixture
def kubectl(
    policy_api: ControlPlane, judging: Webhook, cluster_kubectl: Kubectl
) -> Iterator[Kubectl]:
    """kubectl for a cluster that judges writes, and has no policies."""
    assert judging.url
    yield cluster_kubectl
    erase(policy_api)


def erase(plane: ControlPlane) -> None:
    """Delete all policies, then all classes."""
    for resource in (names.PLACEMENT_POLICIES, names.CAPACITY_CLASSES):
        path = f"/apis/{names.API_VERSION}/{resource}"
        for each in plane.api.get(path)["items"]:
            status, answer = plane.api.call("DELETE", f"{path}/{each['metadata']['name']}")
            assert status == 200, answer


def text(kind: str, name: str, **spec: Any) -> str:
    """A document for kubectl."""
    document = {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name}}
    return "---\n" + yaml.safe_dump({**document, "spec": spec})


def policy(name: str, **spec: Any) -> str:
    """A policy's document."""
    return text(names.POLICY_KIND, name, **spec)


def setting(of: str, name: str = "setting") -> str:
    """A policy that prefers a class."""
    return policy(name, overrides={"capacity": [{"class": of, "mode": "Prefer"}]})


def pool(value: str) -> Json:
    """A placement in a pool."""
    return {"nodeSelector": {"pool": value}}


SPOT = text(names.CLASS_KIND, "spot", nodes=[{"labels": {"lifecycle": "spot"}}])
ON_DEMAND = text(names.CLASS_KIND, "on-demand", complementOf="spot")


def apply(kubectl: Kubectl, manifest: str, *flags: str) -> tuple[int, str]:
    """Exit code of `kubectl apply`, and what it says on stderr."""
    done = kubectl.run("apply", *flags, "-f", "-", stdin=manifest)
    return done.returncode, done.stderr


def refusal(kubectl: Kubectl, manifest: str, *flags: str) -> str:
    """Why the webhook refuses what is applied."""
    code, said = apply(kubectl, manifest, *flags)
    assert code == 1, said
    assert REFUSED in said
    return said.split(REFUSED)[1].strip()


def warnings(kubectl: Kubectl, manifest: str, *, of_nodes: bool = False) -> list[str]:
    """What the webhook warns of, of that which is applied; about nodes, or about all else."""
    code, said = apply(kubectl, manifest)
    assert code == 0, said
    before = "Warning: fairlead: "
    found = [line.removeprefix(before) for line in said.splitlines() if "Warning: " in line]
    return [line for line in found if (" nodes" in line and "none of the" in line) is of_nodes]


def test_an_unknown_class_is_refused_with_the_cure(kubectl: Kubectl) -> None:
    """Every one at once, and in a dry run as well; nothing of it is stored."""
    apply(kubectl, SPOT)
    there = "(classes: spot)"
    settings = [{"class": each, "mode": "Prefer"} for each in ("spt", "large")]
    manifest = policy("setting", overrides={"capacity": settings})
    for flags in ([], ["--dry-run=server"]):
        head, first, second = refusal(kubectl, manifest, *flags).splitlines()
        assert head == "2 errors:"
        field = "- spec.overrides.capacity"
        mentions(first, f"{field}[0].class:", "'spt'", there, "did you mean 'spot'?")
        mentions(second, f"{field}[1].class:", "'large'", there, "create the class")
    assert kubectl.json("get", "placementpolicies")["items"] == []


def test_what_no_class_may_be_is_refused(kubectl: Kubectl) -> None:
    """Shapes that admit every node, and the complement of a complement."""
    apply(kubectl, SPOT + ON_DEMAND)
    shapes = [
        {"matchExpressions": [{"key": "lifecycle", "operator": operator}]}
        for operator in ("Exists", "DoesNotExist")
    ]
    (line,) = refusal(kubectl, text(names.CLASS_KIND, "all", nodes=shapes)).splitlines()
    assert line.startswith("spec.nodes: ")
    mentions(line, "class 'all'", "every node", "leave some node out")
    chain = text(names.CLASS_KIND, "spot-again", complementOf="on-demand")
    (line,) = refusal(kubectl, chain).splitlines()
    assert line.startswith("spec.complementOf: 'on-demand' ")
    mentions(line, "a complement itself", "class that has nodes")
    wrong = refusal(kubectl, text(names.CLASS_KIND, "spot", complementOf="large"))
    head, first, second = wrong.splitlines()
    assert head == "2 errors:"
    assert first.startswith("- class 'on-demand': spec.complementOf: 'spot' ")
    mentions(first, "a complement itself", "class that has nodes")
    assert second.startswith("- spec.complementOf: ")
    mentions(second, "'large'", "(classes: on-demand, spot)", "create the class")


def test_a_label_that_decides_what_matches_is_not_written(kubectl: Kubectl) -> None:
    """One of the table of marks, and one that another policy's selector reads, whoever is first."""
    mark = {"labels": {"ray.io/cluster": "mine"}}
    said = refusal(kubectl, policy("marks", overrides=mark))
    mentions(said, "spec.overrides.labels[ray.io/cluster]: ", "no policy may write")
    reads = policy("reads", match={"podSelector": {"matchLabels": {"team": "a"}}},
                   overrides=pool("a"))  # fmt: skip
    writes = policy("writes", defaults={"labels": {"team": "a"}})
    apply(kubectl, reads)
    (line,) = refusal(kubectl, writes).splitlines()
    assert line.startswith("spec.defaults.labels.team: ")
    mentions(line, "no policy may write", "policy reads (spec.match.podSelector)")
    kubectl("delete", "pp", "reads")
    apply(kubectl, writes)
    assert refusal(kubectl, reads).startswith("policy 'writes': spec.defaults.labels.team: ")


def test_a_class_can_be_deleted_only_when_no_policy_names_it(kubectl: Kubectl) -> None:
    """Those who do are named; once they are gone it goes, at once."""
    apply(kubectl, SPOT + ON_DEMAND + setting("spot"))
    done = kubectl.run("delete", "capacityclass", "spot")
    assert done.returncode == 1
    (line,) = done.stderr.split(REFUSED)[1].splitlines()
    assert line.startswith("class 'spot' ")
    named = "by class 'on-demand', policy 'setting' "
    mentions(line, named, "(capacityclasses/on-demand: spec.complementOf)", "change or delete")
    kubectl("delete", "pp/setting", "cc/on-demand", "cc/spot")


def test_a_class_and_who_names_it_can_be_applied_together(kubectl: Kubectl) -> None:
    """The one before the other, as kubectl sends them: no replica has to have heard of it yet."""
    for at in range(3):
        classes = text(names.CLASS_KIND, f"c{at}", nodes=[{"labels": {"c": f"{at}"}}])
        code, said = apply(kubectl, classes + setting(f"c{at}", f"setting-{at}"))
        assert code == 0, said
    late = text(names.CLASS_KIND, "late", nodes=[{"labels": {"c": "late"}}])
    mentions(refusal(kubectl, setting("late") + late), "no capacity class 'late'")


def test_combined_policies_produce_warnings(kubectl: Kubectl) -> None:
    """Once, by the write that brings it."""
    apply(kubectl, policy("first", priority=9, overrides=pool("a")))
    second = policy("second", overrides=pool("b"))
    (line,) = warnings(kubectl, second)
    assert line.startswith("policy 'second': spec.overrides.nodeSelector.pool: ")
    mentions(line, "no pod gets it", "policy 'first': overrides")
    assert warnings(kubectl, second + policy("third", defaults={"schedulerName": "own"})) == []
    required = {"nodeSelector": {"zone": "a"}}
    apply(kubectl, policy("zone-a", match={"roles": ["worker"]}, requirements=required))
    required = {"nodeSelector": {"zone": "b"}}
    jobs = {"kinds": ["job"]}
    (line,) = warnings(kubectl, policy("zone-b", match=jobs, requirements=required))
    assert line.startswith("policy 'zone-b': spec.requirements.nodeSelector.zone: ")
    mentions(line, "contradicts", "policy 'zone-a' requires", "is rejected")


def test_what_seldom_is_meant_is_warned_of(kubectl: Kubectl) -> None:
    """A label that tells one node from all others, and a class of which there is no node now."""
    name = {"nodeSelector": {names.HOSTNAME_LABEL: "node-1"}}
    (line,) = warnings(kubectl, policy("one-node", defaults=name))
    field = f"spec.defaults.nodeSelector[{names.HOSTNAME_LABEL}]"
    assert line.startswith(f"policy 'one-node': {field}: ")
    mentions(line, "all nodes but one")
    nowhere = text(names.CLASS_KIND, "nowhere", nodes=[{"labels": {"nobody": "has-it"}}])
    (line,) = warnings(kubectl, nowhere, of_nodes=True)
    assert line.startswith("class 'nowhere': spec: ")
    mentions(line, "none of the ", "class nowhere")
    lost = policy("lost", match={"roles": ["ps"]}, overrides={"nodeSelector": {"nobody": "has-it"}})
    (line,) = warnings(kubectl, lost, of_nodes=True)
    mentions(line, "nobody=has-it leaves none of the ")


def test_a_set_that_is_wrong_can_be_mended_step_by_step(
    policy_api: ControlPlane, kubectl: Kubectl
) -> None:
    """What was wrong before refuses nobody: neither the one who mends it, nor anybody else."""
    configuration = policy_api.api.get(CONFIGURATION)
    unregister(policy_api)
    apply(kubectl, setting("spot") + setting("large", "other"))
    register(policy_api, configuration)
    kubectl("label", "pp", "setting", "team=a")
    assert apply(kubectl, policy("else", overrides=pool("a")))[0] == 0
    assert "'tiny'" in refusal(kubectl, setting("tiny"))
    assert apply(kubectl, SPOT)[0] == 0
    assert apply(kubectl, setting("spot", "other"))[0] == 0
    kubectl("delete", "pp", "setting", "other", "else")


def unregister(plane: ControlPlane) -> None:
    """Let writes pass, once the API server has heard of it."""
    plane.api.call("DELETE", CONFIGURATION)
    eventually("writes pass", lambda: not is_judged(plane))


def register(plane: ControlPlane, configuration: Json) -> None:
    """Have writes judged again, from when the API server has heard of it."""
    plane.api.create(COLLECTION, bare(configuration))
    eventually("writes are judged", lambda: is_judged(plane))


def bare(configuration: Json) -> Json:
    """The configuration as it was before it was stored."""
    return {**configuration, "metadata": {"name": configuration["metadata"]["name"]}}


def is_judged(plane: ControlPlane) -> bool:
    """Whether a policy for a class that nobody has is refused."""
    body = load_yaml(setting("of-nobody", "probe").removeprefix("---\n"))
    path = f"/apis/{names.API_VERSION}/{names.PLACEMENT_POLICIES}?dryRun=All"
    return plane.api.call("POST", path, body)[0] == 403


def test_all_that_ships_can_be_applied(kubectl: Kubectl) -> None:
    """In the order of the folder, classes first; only nodes and PriorityClasses may be missing."""
    files = [flag for path in SHIPPED for flag in ("-f", str(path))]
    done = kubectl.run("apply", *files)
    assert done.returncode == 0, done.stderr
    for line in done.stderr.splitlines():
        assert "no PriorityClass" in line or ("none of the" in line and " nodes" in line), line


def test_without_the_webhook_no_policy_is_written_and_pods_go_on(
    policy_api: ControlPlane, kubectl: Kubectl, namespace: str
) -> None:
    """Nobody has judged it, and that is told; only writes of policies wait for it."""
    configuration = policy_api.api.get(CONFIGURATION)
    unregister(policy_api)
    (entry,) = (each for each in configuration["webhooks"] if each["name"] == POLICIES)
    nobody = {**entry, "clientConfig": {"url": "https://127.0.0.1:1/validate"}}
    policy_api.api.create(COLLECTION, {**bare(configuration), "webhooks": [nobody]})
    eventually(
        "the API server asks in vain", lambda: apply(kubectl, SPOT, "--dry-run=server")[0] != 0
    )
    code, said = apply(kubectl, SPOT)
    assert code == 1
    assert 'failed calling webhook "policies.fairlead.dev"' in said
    kubectl.within(namespace).create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "labels": {names.RUN: "r"}},
            "spec": {"containers": [{"name": "main", "image": "example.invalid/none"}]},
        }
    )
    policy_api.api.call("DELETE", CONFIGURATION)
    register(policy_api, configuration)


def test_a_set_that_rejects_every_pod_is_refused(kubectl: Kubectl) -> None:
    """The second of two policies that require different zones of every run."""
    first, second = (
        policy(name, requirements={"nodeSelector": {"zone": zone}})
        for name, zone in (("one", "a"), ("two", "b"))
    )
    assert apply(kubectl, first)[0] == 0
    mentions(refusal(kubectl, second), "every pod of every run", "'a'", "'b'")


def test_a_key_without_a_value_is_reported_although_the_api_server_drops_it(
    kubectl: Kubectl,
) -> None:
    """What kubectl sends as null arrives as an empty mapping."""
    manifest = policy("keys", defaults={"schedulerName": "x"}, overrides={"nodeSelector": {}})
    manifest = manifest.replace("nodeSelector: {}", "nodeSelector: {pool: }")
    (line,) = warnings(kubectl, manifest)
    mentions(line, "spec.overrides.nodeSelector: ", "is empty and sets nothing")
    (line,) = warnings(
        kubectl, policy("empty", defaults={"schedulerName": "x", "nodeSelector": {}})
    )
    mentions(line, "spec.defaults.nodeSelector", "is empty and sets nothing")


def test_of_many_policies_in_one_file_each_warning_names_its_own(kubectl: Kubectl) -> None:
    """kubectl prints them below each other, and says of none which object it is about."""
    one_node = policy("one-node", defaults={"nodeSelector": {names.HOSTNAME_LABEL: "node-1"}})
    empty = policy("empty", defaults={"schedulerName": "x", "nodeSelector": {}})
    lines = warnings(kubectl, one_node + SPOT + empty)
    assert sorted(line.split(":")[0] for line in lines) == ["policy 'empty'", "policy 'one-node'"]
