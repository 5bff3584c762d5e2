"""Whether any node could admit a pod that was decided on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.admission.reviews import pod, policy_set
from tests.examples import examples
from tests.laws import strategies, world
from tests.objects import required_affinity
from tests.wording import Wording, mentions
from webhook import names
from webhook.decision import prospects
from webhook.decision.arrival import Arrival, Cluster
from webhook.decision.engine import decide
from webhook.decision.prospects import Prospects
from webhook.placement import pod as pods
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import Node, parse_node, survey
from webhook.policy.policy_set import PolicySet

Json = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GPU: Any = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
ROOM = {"cpu": 8000, "memory": 32 * 2**30, "nvidia.com/gpu": 4, "pods": 110}
HEAD = "apiVersion: fairlead.dev/v1alpha1\n"
SPOT = HEAD + (
    "kind: CapacityClass\nmetadata: {name: spot}\n"
    "spec: {nodes: [{labels: {lifecycle: spot}}], autoscaled: AUTOSCALED}\n"
)


def policy(name: str, spec: str) -> str:
    return f"{HEAD}kind: PlacementPolicy\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"


WORLD = (
    *(Node(f"ml-{at}", {"pool": "ml"}, [GPU], allocatable=ROOM) for at in range(12)),
    *(Node(f"web-{at}", {"pool": "web"}, [], allocatable=ROOM) for at in range(25)),
)


def said(
    came: Json, *texts: str, nodes: Any = WORLD, known: Prospects | None = None, **arrival: Any
) -> str:
    policies = policy_set(*texts)
    decision = decide(Arrival(came, "ml-team", {}, "someone", **arrival), policies, Cluster())
    return (known or Prospects(NodeGroups(nodes))).unplaceable(came, decision, policies)


def asking(**resources: str) -> Json:
    containers = [{"name": "main", "resources": {"requests": resources}}]
    return pod(containers=containers)


def test_a_pod_that_a_node_admits_produces_no_warning() -> None:
    assert said(pod()) == ""
    assert said(pod(nodeSelector={"pool": "web"})) == ""
    assert said(pod(), policy("p", "defaults: {nodeSelector: {pool: web}}")) == ""


def test_the_policy_that_shuts_the_pod_out_is_named(wording: Wording) -> None:
    """In the words of the pod that comes out."""
    tainted = said(pod(), policy("gpu-jobs", "defaults: {nodeSelector: {pool: ml}}"))
    mentions(tainted, "0 of 37 nodes: pool=ml (policy gpu-jobs)", "12", "taint gpu=true")
    wording(tainted)
    absent = said(pod(), policy("p", "overrides: {nodeSelector: {pool: none}}"))
    mentions(absent, "0 of 37 nodes: pool=none (policy p) matches none")
    assert "taint" not in absent
    wording(absent)


def test_a_policy_that_asks_what_the_pod_says_is_not_blamed(wording: Wording) -> None:
    text = said(
        pod(nodeSelector={"pool": "ml"}),
        policy("same", "defaults: {nodeSelector: {pool: ml}}"),
        policy("other", "defaults: {labels: {a: b}}"),
    )
    mentions(text, "0 of 37 nodes", ": pool=ml", "12", "taint gpu=true")
    assert "policy" not in text
    wording(text)


def test_both_are_named_where_neither_is_to_blame_alone(wording: Wording) -> None:
    """The pod's own word, and a policy's beside it."""
    nodes = (*WORLD, Node("z", {"zone": "a"}, [], allocatable=ROOM))
    text = said(
        pod(nodeSelector={"zone": "a"}),
        policy("p", "defaults: {nodeSelector: {pool: web}}"),
        nodes=nodes,
    )
    mentions(text, "0 of 38 nodes: ", "zone=a matches 1", "pool=web (policy p) 25", "both")
    wording(text)


def test_classes_are_called_by_their_names(wording: Wording) -> None:
    """Whoever brought them in: a policy, or the pod's own annotation."""
    spot = SPOT.replace("AUTOSCALED", "false")
    constrain = policy("cheap", "overrides: {capacity: [{class: spot, mode: Constrain}]}")
    text = said(pod(), spot, constrain)
    mentions(text, "0 of 37 nodes: class spot (policy cheap) matches none")
    wording(text)
    prevent = policy("steady", "overrides: {capacity: [{class: spot, mode: Prevent}]}")
    nodes = [Node("s", {"lifecycle": "spot"}, [], allocatable=ROOM)]
    text = said(pod(), spot, prevent, nodes=nodes)
    mentions(text, "0 of 1 nodes: outside class spot (policy steady) matches none")
    wording(text)
    asked = pod()
    asked["metadata"]["annotations"] = {names.CAPACITY: "spot=Constrain"}
    text = said(asked, spot, policy("p", "defaults: {labels: {a: b}}"))
    mentions(text, "0 of 37 nodes: class spot matches none")
    assert "policy" not in text
    wording(text)


def test_required_affinity_is_described_by_its_requirements(wording: Wording) -> None:
    one = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a", "b"]}]}
    two = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["c"]}]}

    def affine(*terms: Json) -> Json:
        return pod(affinity=required_affinity(*terms))

    text = said(affine(one))
    mentions(text, "0 of 37 nodes", ": pool In [a, b] matches none")
    wording(text)
    text = said(affine(one, two))
    assert text.endswith(": required affinity matches none")
    wording(text)
    assert said(affine({})).endswith("required affinity matches none")
    many = [{"matchExpressions": [{"key": "k", "operator": "In", "values": [f"{at}"]}]}
            for at in range(500)]  # fmt: skip
    assert said(affine(*many)).endswith("required affinity matches none")
    setting = f"requirements: {{affinity: {{nodeAffinity: {{{REQUIRED}: {{nodeSelectorTerms: ["
    setting += "{matchExpressions: [{key: pool, operator: In, values: [c]}]}]}}}}"
    mentions(
        said(pod(), policy("p", setting)), "0 of 37 nodes: pool In [c] (policy p) matches none"
    )


def test_a_request_beyond_every_node_is_reported(wording: Wording) -> None:
    """However empty it were; devices as well as cpu."""
    text = said(asking(**{"nvidia.com/gpu": "8"}), nodes=WORLD[12:])
    mentions(text, "0 of 25 nodes", "nvidia.com/gpu 4", "requests 8")
    wording(text)
    assert said(asking(**{"nvidia.com/gpu": "4"}), nodes=WORLD[12:]) == ""
    fpga = asking(**{"example.com/fpga": "1"})
    without, with_one = (
        Prospects(NodeGroups(WORLD), lambda names=names: names)  # type: ignore[misc]
        for names in ((), ("example.com/fpga",))
    )
    assert "example.com/fpga" in said(fpga, known=without)
    # A DeviceClass provides it, or may.
    assert said(fpga, known=with_one) == said(fpga) == ""


def test_some_pods_are_not_checked_against_nodes() -> None:
    """Those of no run, those that are left alone, refused or bound, and what is behind a gate."""
    hopeless = {"nodeSelector": {"pool": "none"}}
    refuse = policy("r", "requirements: {nodeSelector: {pool: x}}")
    assert said(pod(labels={}, **hopeless)) == ""
    assert said(pod(**hopeless), refuse) == ""
    assert said(pod(nodeName="ml-1", **hopeless)) == ""
    mirror = pod(**hopeless)
    mirror["metadata"]["annotations"] = {names.MIRROR_POD: "x"}
    policies = policy_set()
    decision = decide(Arrival(mirror, "ml-team", {}), policies, Cluster())
    assert decision.result == "left-alone"
    assert Prospects(NodeGroups(WORLD)).unplaceable(mirror, decision, policies) == ""


def test_behind_a_gate_taints_may_still_be_tolerated() -> None:
    """Whoever lifts it adds tolerations; labels that no node has stay demanded."""
    gates: Json = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    assert said(pod(nodeSelector={"pool": "ml"}, **gates)) == ""
    assert "pool=none matches none" in said(pod(nodeSelector={"pool": "none"}, **gates))


def test_a_pod_for_a_queue_gets_its_gate_after_the_first_call() -> None:
    """Kueue's webhook comes later by its name; once it has admitted the pod, it adds no more."""
    came = pod(nodeSelector={"pool": "ml"})
    came["metadata"].setdefault("labels", {})[names.KUEUE_QUEUE] = "research"
    assert said(came) == ""
    came["metadata"]["labels"][names.KUEUE_PODSET] = "main"
    assert said(came)


def test_a_runtime_class_that_the_pod_gets_may_tolerate_taints() -> None:
    """A received pod already has those of its own class; labels stay demanded."""
    sandboxed = policy("sandboxed", "defaults: {runtimeClassName: gvisor}")
    assert said(pod(nodeSelector={"pool": "ml"}), sandboxed) == ""
    assert "pool=none matches none" in said(pod(nodeSelector={"pool": "none"}), sandboxed)
    assert "not tolerated" in said(pod(nodeSelector={"pool": "ml"}, runtimeClassName="gvisor"))


def test_nodes_on_demand_produce_no_warning(wording: Wording) -> None:
    """If one of an autoscaled class could admit the pod, once it is there."""
    constrain = policy("cheap", "overrides: {capacity: [{class: spot, mode: Constrain}]}")
    made = SPOT.replace("AUTOSCALED", "true")
    assert said(pod(), made, constrain) == ""
    assert "matches none" in said(pod(), SPOT.replace("AUTOSCALED", "false"), constrain)
    text = said(pod(nodeSelector={"typo": "x"}), made, constrain)
    mentions(text, "0 of 37 nodes: typo=x and class spot (policy cheap) match none")
    wording(text)


def test_cached_explanations_are_dropped_when_a_node_changes() -> None:
    groups = NodeGroups(WORLD)
    known = Prospects(groups)
    came = pod(nodeSelector={"pool": "new"})
    assert "matches none" in said(came, known=known)
    groups.update("n", Node("n", {"pool": "new"}, [], allocatable=ROOM))
    assert said(came, known=known) == ""
    groups.update("n", None)
    assert "matches none" in said(came, known=known)


def test_the_same_is_reported_again_of_another_pod_of_the_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = Prospects(NodeGroups(WORLD))
    texts = (policy("p", "defaults: {nodeSelector: {pool: ml}}"),)
    first = said(pod(), *texts, known=known)
    with monkeypatch.context() as patch:
        patch.setattr(prospects, "shortfall", None)
        patch.setattr(prospects, "admits", None)
        assert said(pod(), *texts, known=known) == first
    assert "policy q" in said(pod(), texts[0].replace("name: p", "name: q"), known=known)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Authors choose what there is to remember."""
    monkeypatch.setattr(prospects, "_CACHED_RESULTS", 3)
    known = Prospects(NodeGroups(WORLD))
    odd = [pod(nodeSelector={"k" * 2000: str(at)}) for at in range(10)]
    for each in odd:
        assert said(each, known=known)
        assert len(prospects._key(pods.parse_pod(each))) <= 1024  # noqa: SLF001
    monkeypatch.setattr(prospects, "shortfall", None)
    assert said(odd[-1], known=known)
    with pytest.raises(TypeError):
        said(odd[0], known=known)


def test_a_pod_that_takes_too_long_to_look_at_is_let_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its creation, and everybody else's, would wait."""
    monkeypatch.setattr(prospects, "_MOST_WORK", 3)
    assert said(pod(nodeSelector={"pool": "none", "zone": "none", "x": "y"})) == ""


def _expressions(*expressions: Json) -> Json:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"affinity": {"nodeAffinity": {REQUIRED: terms}}}


def _without(*names_of_pools: str) -> Json:
    return {"key": "pool", "operator": "NotIn", "values": list(names_of_pools)}


@pytest.mark.parametrize(
    "spec",
    [
        _expressions({"key": "pool", "operator": "In", "values": [f"{n}" for n in range(40_000)]}),
        _expressions(*(_without("ml", "web", f"{n}") for n in range(3000))),
        {"nodeSelector": {f"key-{n}": "x" for n in range(3000)}},
        {"nodeSelector": {"pool": "x"}, "tolerations": [{"key": f"{n}"} for n in range(3000)]},
        {"containers": [{"resources": {"requests": {f"x.io/{n}": "1" for n in range(3000)}}}]},
    ],
    ids=["values", "requirements", "selector", "tolerations", "resources"],
)
def test_a_pod_with_absurdly_large_requests_is_not_checked(spec: Json) -> None:
    """Some of these took half a minute, in which nobody else's pod was decided on."""
    assert said(pod(**spec)) == ""


def test_long_explanations_are_summarized() -> None:
    """Not each two of some hundred conditions are held against each other."""
    odd = [_without("ml" if at % 2 else "web", f"{at}") for at in range(100)]
    assert said(pod(**_expressions(*odd))).endswith("required affinity matches none")
    much = {"pool": "ml", **{f"key-{at}": "x" for at in range(100)}}
    assert said(pod(nodeSelector=much)).endswith("nodeSelector matches none")


@settings(deadline=None, max_examples=examples(80), suppress_health_check=list(HealthCheck))
@given(
    st.lists(strategies.pods(), min_size=1, max_size=3),
    st.lists(strategies.nodes(), max_size=6),
    strategies.policy_lists(),
)
def test_a_warning_appears_exactly_if_no_node_admits(
    pods: list[Json], drawn: list[Json], documents: list[Json]
) -> None:
    """As looking at every node finds; and never more than one line of a terminal or two."""
    nodes = [parse_node(each)._replace(name=f"n{at}") for at, each in enumerate(drawn)]
    policies: PolicySet = world.policy_set(documents)
    known = Prospects(NodeGroups(nodes))
    for came in (*pods, pods[0]):
        decision = world.decided(came, policies)
        text = known.unplaceable(came, decision, policies)
        final = decision.placement
        if final is None or decision.result not in ("placed", "unchanged") or final.node_name:
            assert text == ""
            continue
        if came["spec"].get("schedulingGates"):
            final = final._replace(tolerations=[{"operator": "Exists"}])
        assert bool(text) == (not survey(final, {}, nodes).admitted)
        assert len(text) <= 200
