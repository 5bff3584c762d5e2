"""The laws of the engine, each a property over random pods and policies."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.laws import scheduler
from tests.laws.strategies import (
    CLASS_NAMES,
    CLASSES,
    MODES,
    NODE_NAMES,
    NOW,
    PATCHED,
    REQUIRED,
    WORLD,
    document,
    excepted_lists,
    exceptions,
    nodes,
    one,
    pods,
    policy_lists,
)
from tests.laws.world import decided, patched, policy_set
from webhook import names
from webhook.decision.arrival import Cluster
from webhook.errors import InvalidPod
from webhook.placement import capacity_request
from webhook.placement.nodes import Node

Json = dict[str, Any]
lawful = settings(
    max_examples=examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
SHAPES = {c["metadata"]["name"]: c["spec"].get("nodes", []) for c in CLASSES}
WORLD_NODES = list(scheduler.every_node(WORLD, [*NODE_NAMES, "n3"]))
# The same where zone is the operating system.
SYSTEMS = {names.OS_LABEL if key == "zone" else key: values for key, values in WORLD.items()}
SYSTEM_NODES = list(scheduler.every_node(SYSTEMS, [*NODE_NAMES, "n3"]))


def in_class_of(classes: Iterable[Json]) -> Callable[[str, Json], bool]:
    """Whether a node is of a class, read from the classes' documents alone."""
    shapes = {c["metadata"]["name"]: c["spec"].get("nodes", []) for c in classes}

    def is_in(name: str, node: Json) -> bool:
        if name == "on-demand":
            return not is_in("spot", node)
        labels = node["metadata"]["labels"]
        return any(
            all(labels.get(k) == v for k, v in shape.get("labels", {}).items())
            and all(
                scheduler.expression_holds(e, labels) for e in shape.get("matchExpressions", [])
            )
            for shape in shapes[name]
        )

    return is_in


in_class = in_class_of(CLASSES)


def class_keys(name: str) -> set[str]:
    """The label keys that tell the nodes of a class."""
    shapes = SHAPES["spot" if name == "on-demand" else name]
    return {k for s in shapes for k in s.get("labels", {})} | {
        e["key"] for s in shapes for e in s.get("matchExpressions", [])
    }


def excused_keys(policies: list[Json]) -> frozenset[str]:
    """The keys of which some override, by a nodeSelector key or a class, says otherwise."""
    found: set[str] = set()
    for policy in policies:
        overrides = policy["spec"].get("overrides", {})
        found |= overrides.get("nodeSelector", {}).keys()
        for setting in (*overrides.get("capacity", ()), *overrides.get("split", ())):
            found |= class_keys(setting["class"])
    return frozenset(found)


def some_node(pod: Json) -> bool:
    """Whether any node of the small world has labels that admit the pod."""
    return any(scheduler.labels_admit(pod, node) for node in WORLD_NODES)


@lawful
@given(pods(), excepted_lists(), st.lists(nodes(), min_size=5, max_size=30), st.booleans())
def test_law_1_a_patch_never_widens_placement_by_label(
    pod: Json, policies: list[Json], some_nodes: list[Json], kueue: bool
) -> None:
    """Save where an override says so of that very key; required affinity is never widened."""
    decision = decided(pod, policy_set(policies), kueue=kueue)
    after = patched(pod, decision)
    excused = excused_keys(policies)
    event(decision.result)
    for node in some_nodes:
        if scheduler.labels_admit(after, node):
            assert scheduler.labels_admit(pod, node, without=excused), node


@lawful
@given(
    pods(),
    one("spot", "on-demand", "pool-b", "old"),
    one(*MODES),
    one("overrides", "requirements"),
    st.lists(nodes(), min_size=5, max_size=30),
)
def test_law_2_modes_mean_what_they_say(
    pod: Json, name: str, mode: str, part: str, some_nodes: list[Json]
) -> None:
    """Constrain leaves only nodes of the class, Prevent none, Allow takes none away."""
    spec = {part: {"capacity": [{"class": name, "mode": mode}]}}
    pod["metadata"].pop("annotations", None)
    decision = decided(pod, policy_set([document("PlacementPolicy", "p", spec)]))
    assume(decision.allowed)
    after = patched(pod, decision)
    event(f"{mode} {decision.result}")
    for node in some_nodes:
        if mode == "Constrain" and scheduler.admits(after, node):
            assert in_class(name, node)
        if mode == "Prevent" and scheduler.admits(after, node):
            assert not in_class(name, node)
        if mode in ("Allow", "Prefer", "None") and scheduler.admits(pod, node):
            assert scheduler.admits(after, node)
        if mode == "None":
            assert after["spec"] == pod["spec"]
    if mode in ("Allow", "Constrain", "Prefer"):
        taints = [t for shape in SHAPES[name] for t in shape.get("taints", [])]
        tainted = {"metadata": {"name": "n", "labels": {}}, "spec": {"taints": taints}}
        assert scheduler.taints_admit(after, tainted)


@lawful
@given(pods(), excepted_lists(), st.booleans())
def test_law_3_deciding_on_our_own_output_gives_no_patch(
    pod: Json, policies: list[Json], kueue: bool
) -> None:
    """The API server may call twice; it also runs the Priority plugin again in between."""
    compiled = policy_set(policies)
    decision = decided(pod, compiled, kueue=kueue)
    event(decision.result)
    assume(decision.allowed)
    after = patched(pod, decision)
    after["spec"].setdefault("priority", 10)
    again = decided(after, compiled, kueue=kueue)
    assert again.allowed, again.reason
    assert not again.patch


@lawful
@given(pods(), excepted_lists(), st.randoms(use_true_random=False), st.booleans())
def test_law_4_the_order_of_documents_changes_nothing(
    pod: Json, policies: list[Json], random: Any, kueue: bool
) -> None:
    """Files and documents may come in any order."""
    shuffled = [*policies]
    random.shuffle(shuffled)
    one_way, other_way = policy_set(policies), policy_set(shuffled, reversed(CLASSES))
    assert one_way.hash == other_way.hash
    assert decided(pod, one_way, kueue=kueue) == decided(pod, other_way, kueue=kueue)


@lawful
@given(pods(), excepted_lists(), st.booleans())
def test_law_5_every_patch_applies_and_makes_a_valid_pod(
    pod: Json, policies: list[Json], kueue: bool
) -> None:
    """What the API server would refuse by itself never comes of a patch."""
    decision = decided(pod, policy_set(policies), kueue=kueue)
    assume(decision.allowed)
    spec = patched(pod, decision)["spec"]
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if required is not None:
        assert required["nodeSelectorTerms"]
    spread = [
        (c["topologyKey"], c["whenUnsatisfiable"])
        for c in spec.get("topologySpreadConstraints") or []
    ]
    assert len(spread) == len(set(spread))
    for toleration in spec.get("tolerations") or []:
        if "tolerationSeconds" in toleration:
            assert toleration["effect"] == "NoExecute"
    if spec.get("priorityClassName") != pod["spec"].get("priorityClassName"):
        assert "priority" not in spec


@lawful
@given(pods(), excepted_lists(), st.booleans())
def test_law_6_a_patch_reaches_placement_fields_only(
    pod: Json, policies: list[Json], kueue: bool
) -> None:
    """Never a container, a volume, a service account; no label that was there is changed."""
    after = patched(pod, decided(pod, policy_set(policies), kueue=kueue))
    assert {k: v for k, v in after["spec"].items() if k not in PATCHED} == {
        k: v for k, v in pod["spec"].items() if k not in PATCHED
    }
    assert after["metadata"]["labels"].items() >= pod["metadata"]["labels"].items()
    assert {k: v for k, v in after["metadata"].items() if k not in ("labels", "annotations")} == {
        k: v for k, v in pod["metadata"].items() if k not in ("labels", "annotations")
    }


@lawful
@given(
    pods(),
    st.lists(
        st.tuples(one("defaults", "overrides", "requirements"), one(0, 5, 20, 30, 40, 60)),
        min_size=1,
        max_size=5,
    ),
)
def test_a_required_grace_period_is_the_most_that_a_pod_gets(
    pod: Json, wanted: list[tuple[str, int]]
) -> None:
    """A pod that says more is rejected, any other gets the first setting within every maximum."""
    policies = [
        document("PlacementPolicy", f"p{at}", {part: {"terminationGracePeriodSeconds": value}})
        for at, (part, value) in enumerate(wanted)
    ]
    pod["metadata"].pop("annotations", None)
    own = pod["spec"].get("terminationGracePeriodSeconds", 30)
    most = min((value for part, value in wanted if part == "requirements"), default=600)
    within = [
        (part, value)
        for part in ("overrides", "defaults")
        for of, value in wanted
        if of == part and value <= most
    ]
    decision = decided(pod, policy_set(policies))
    event(decision.result)
    assert decision.allowed is (own == 30 or own <= most)
    if decision.allowed:
        part, value = within[0] if within else ("defaults", min(30, most))
        expected = value if part == "overrides" or own == 30 else own
        assert patched(pod, decision)["spec"].get("terminationGracePeriodSeconds", 30) == expected


@lawful
@given(pods(), excepted_lists(), st.booleans())
def test_law_7_a_contradiction_is_reported_not_created(
    pod: Json, policies: list[Json], kueue: bool
) -> None:
    """What some node could run before is refused, or some node can run it after."""
    asked = pod["metadata"].get("annotations", {}).get(names.CAPACITY, "")
    decision = decided(pod, policy_set(policies), kueue=kueue)
    assume(not any(mode in asked for mode in ("Constrain", "Prevent")))
    before = some_node(pod)
    event(f"{before} {decision.result}")
    if before and decision.allowed:
        assert some_node(patched(pod, decision))


REQUIREMENTS = ("defaults", "overrides", "requirements", "requirements")
DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}


@st.composite
def written(draw: st.DrawFn, name: str) -> tuple[Json, str]:
    """A pod as its author likes it, and the user: of a DaemonSet, with nodeName, or neither."""
    pod: Json = draw(pods())
    asked = [
        f"{each}={draw(one(*MODES))}" for each in draw(st.lists(one(*CLASS_NAMES), unique=True))
    ]
    pod["metadata"]["annotations"] = {names.CAPACITY: ",".join(asked)}
    if system := draw(one("", "", "a", "b")):
        pod["spec"]["os"] = {"name": system}
    maker = draw(one("author", "nodeName", "DaemonSet"))
    if maker == "nodeName":
        pod["spec"].pop("schedulingGates", None)
        pod["spec"]["nodeName"] = name
    if maker == "DaemonSet":
        pod["metadata"]["ownerReferences"] = [DAEMON_SET]
        node = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
        terms = node.get(REQUIRED, {}).get("nodeSelectorTerms", [{}])
        field = {"key": "metadata.name", "operator": "In", "values": [name]}
        node[REQUIRED] = {"nodeSelectorTerms": [{**t, "matchFields": [field]} for t in terms]}
        return pod, names.DAEMON_SET_CONTROLLER
    return pod, "somebody"


def required_of(pod: Json, policies: list[Json], classes: Any) -> Iterator[Callable[[Json], bool]]:
    """What the requirements of policies that are in force for the pod ask of a node."""
    labels = pod["metadata"]["labels"]
    in_force = [
        each["spec"]["requirements"]
        for each in policies
        if "requirements" in each["spec"]
        and {
            "roles": labels.get(names.ROLE) == "worker",
            "podSelector": labels.get("stage") == "prod",
            "serviceAccounts": pod["spec"].get("serviceAccountName") == "trainer",
        }.get(next(iter(each["spec"].get("match", {})), ""), True)
        and not ("exclude" in each["spec"] and labels.get("stage") == "debug")
        and "rollout" not in each["spec"]
    ]
    # A policy that requires None of a class may stand before one that requires more of it.
    capacity = [setting for placement in in_force for setting in placement.get("capacity", [])]
    waived = {setting["class"] for setting in capacity if setting["mode"] == "None"}
    for setting in capacity:
        if setting["class"] not in waived and setting["mode"] in ("Constrain", "Prevent"):
            inside = setting["mode"] == "Constrain"
            yield lambda node, w=setting, i=inside: classes(w["class"], node) is i  # type: ignore[misc]
    for placement in in_force:
        asked = {
            "nodeSelector": placement.get("nodeSelector", {}),
            "affinity": placement.get("affinity", {}),
        }
        yield lambda node, spec=asked: scheduler.labels_admit({"spec": spec}, node)  # type: ignore[misc]


@lawful
@given(
    st.data(),
    policy_lists(REQUIREMENTS),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    one(None, {}, {names.DAEMON_SETS: "Keep"}),
)
def test_law_10_no_author_gets_round_a_requirement_about_nodes(
    data: st.DataObject,
    policies: list[Json],
    kueue: bool,
    known: bool,
    systems: bool,
    whole: Json | None,
) -> None:
    """Whatever he writes, annotation included, whoever makes the pod, and with or without nodes.

    systems: zone is the label of operating systems, which the pod's os speaks of too.
    whole: the pod has no mark of its own, but its namespace is placed as a whole, with these labels
    """
    the_node: Json = data.draw(nodes())
    name = the_node["metadata"]["name"]
    pod, user = data.draw(written(name))
    space = {}
    if whole is not None:
        del pod["metadata"]["labels"][names.RUN]
        space = {names.PLACE: names.PLACE_ALL, **whole}
    world, classes = WORLD_NODES, list(CLASSES)
    if systems:
        told = json.dumps([pod, policies, classes, the_node])
        told = re.sub('"zone"', f'"{names.OS_LABEL}"', told)
        pod, policies, classes, the_node = json.loads(told)
        world = SYSTEM_NODES
    node = Node(name, the_node["metadata"]["labels"], ()) if known else None
    cluster = Cluster(node=(lambda _: node) if known else None)
    decision = decided(
        pod, policy_set(policies, classes), cluster, kueue=kueue, user=user, space=space
    )
    event(f"{user} {decision.result}")
    assume(decision.allowed)
    after = patched(pod, decision)
    wanted = list(required_of(pod, policies, in_class_of(classes)))
    if "nodeName" in pod["spec"]:
        about_nodes = [each for each in wanted if not all(map(each, world))]
        assert known or not about_nodes
        assert all(each(the_node) for each in about_nodes)
        return
    for each in wanted:
        for other in world:
            assert each(other) or not scheduler.labels_admit(after, other), other


def lost(pod: Json) -> Json:
    """The pod with a word of its own that no node can meet."""
    spec = pod["spec"]
    spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), "pool": "a"}
    node = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    terms = node.get(REQUIRED, {}).get("nodeSelectorTerms", [{}])
    other_pool = {"key": "pool", "operator": "In", "values": ["b"]}
    node[REQUIRED] = {
        "nodeSelectorTerms": [
            {**term, "matchExpressions": [*term.get("matchExpressions", []), other_pool]}
            for term in terms
        ]
    }
    return pod


@lawful
@given(pods().map(lost), policy_lists(parts=("defaults", "overrides")), st.booleans())
def test_law_7_a_pod_that_was_lost_before_is_never_rejected(
    pod: Json, policies: list[Json], kueue: bool
) -> None:
    """It is warned if it still is lost afterwards."""
    assert not some_node(pod)
    decision = decided(pod, policy_set(policies), kueue=kueue)
    assert decision.allowed
    if not some_node(patched(pod, decision)):
        assert decision.warnings


@lawful
@given(pods(), policy_lists(parts=("overrides",)), st.booleans())
def test_law_7_a_rejection_is_of_what_no_node_can_meet(
    pod: Json, policies: list[Json], kueue: bool
) -> None:
    """An override that leaves some node never rejects, and a rejection names policy and field."""
    pod["metadata"].pop("annotations", None)
    decision = decided(pod, policy_set(policies), kueue=kueue)
    event(decision.result)
    if not decision.allowed:
        assert some_node(pod)
        assert "policy p" in decision.reason
        assert "overrides." in decision.reason


def admitted(pod: Json) -> Json:
    """The pod as Kueue has admitted it."""
    pod["metadata"]["labels"][names.KUEUE_PODSET] = "main"
    pod["spec"].pop("schedulingGates", None)
    return pod


@lawful
@given(pods().map(admitted), policy_lists(parts=("defaults", "overrides")))
def test_what_kueue_put_into_a_pod_stays_where_it_is_to_stay(
    pod: Json, policies: list[Json]
) -> None:
    """Whatever overrides want, also of a pod that no node could run."""
    decision = decided(pod, policy_set(policies), kueue=True)
    event(decision.result)
    after = patched(pod, decision)["spec"]
    own = pod["spec"].get("nodeSelector", {})
    assert (after.get("nodeSelector") or {}).items() >= own.items()


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@lawful
@given(
    pods(),
    excepted_lists(),
    st.sampled_from(sorted(PATCHED | {"containers", "volumes", "os", "nodeName"})),
    junk,
)
def test_law_8_a_pod_of_the_wrong_shape_is_an_error_and_never_no_match(
    pod: Json, policies: list[Json], field: str, value: Any
) -> None:
    """Whatever stands in a field, the answer is a decision on a run's pod, or InvalidPod."""
    pod["spec"][field] = value
    try:
        answer: str = decided(pod, policy_set(policies)).result
    except InvalidPod as error:
        answer = str(error)
    event(answer.split(" ")[0])
    assert answer in ("placed", "unchanged", "left-alone", "rejected") or field in answer


@lawful
@given(st.text(max_size=20))
def test_law_8_a_capacity_annotation_that_cannot_be_read_rejects(text: str) -> None:
    """It is the author's word; to ignore it would be a guess."""
    pod = {
        "metadata": {"labels": {names.RUN: "r"}, "annotations": {names.CAPACITY: text}},
        "spec": {"containers": []},
    }
    decision = decided(pod, policy_set([]))
    try:
        capacity_request.parse(text, {"spot", "on-demand", "pool-b", "old"})
    except capacity_request.InvalidRequest:
        assert not decision.allowed
        assert names.CAPACITY in decision.reason
    else:
        assert decision.allowed


PROGRAM = """
import orjson, sys
from tests.examples import examples
from tests.laws.strategies import excepted_lists, pods
from tests.laws.world import decided, policy_set
from hypothesis import given, seed, settings, strategies as st, HealthCheck, Phase

@seed(7)
@settings(max_examples=examples(150), database=None, deadline=None, phases=[Phase.generate],
          suppress_health_check=list(HealthCheck))
@given(pods(), excepted_lists(), st.booleans())
def run(pod, policies, kueue):
    decision = decided(pod, policy_set(policies), kueue=kueue)
    trace = list(map(list, decision.trace))
    out = [decision.patch, list(decision.warnings), decision.reason, trace]
    sys.stdout.buffer.write(orjson.dumps(out) + b"\\n")

run()
"""


@pytest.mark.property
def test_law_9_the_same_input_gives_the_same_bytes() -> None:
    """In another process, with another seed of Python's hashes, a decision is the same."""
    outputs = []
    for hash_seed in ("1", "4711"):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
            capture_output=True,
        )
        assert run.returncode == 0, run.stderr.decode()
        outputs.append(run.stdout)
    assert outputs[0]
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(MODES, 2)))
def test_two_policies_that_want_one_class_go_by_priority(first: str, second: str) -> None:
    """The higher priority decides the mode of a class; the other is lost, and the trace says so."""
    setting = {
        mode: document(
            "PlacementPolicy",
            mode.lower(),
            {"priority": 2 - at, "overrides": {"capacity": [{"class": "spot", "mode": mode}]}},
        )
        for at, mode in enumerate((first, second))
    }
    pod = {"metadata": {"labels": {names.RUN: "r"}}, "spec": {"containers": []}}
    alone = patched(pod, decided(pod, policy_set([setting[first]])))
    together = decided(pod, policy_set(list(setting.values())))
    assert patched(pod, together)["spec"] == alone["spec"]
    assert any(e.policy == second.lower() and e.outcome == "lost" for e in together.trace)


@lawful
@given(pods(), policy_lists(), exceptions("e0"), st.booleans())
def test_an_exception_in_force_leaves_what_the_other_policies_say(
    pod: Json, policies: list[Json], exception: Json, kueue: bool
) -> None:
    """The decision is the one without the policies that it names, but for the stamp."""
    spec, labels = exception["spec"], pod["metadata"]["labels"]
    for_it = {
        "roles": labels.get(names.ROLE) == "worker",
        "namespaces": spec["match"].get("namespaces") == ["ml-*"],
        "podSelector": labels.get("stage") == "prod",
        "serviceAccounts": pod["spec"].get("serviceAccountName") == "trainer",
    }
    ended = spec["until"] == NOW
    gone = spec["policies"] if for_it[next(iter(spec["match"]))] and not ended else []
    left = [p for p in policies if p["metadata"]["name"] not in gone and gone != ["*"]]
    decision = decided(pod, policy_set([*policies, exception]), kueue=kueue)
    without = decided(pod, policy_set(left), kueue=kueue)
    event(f"{bool(decision.set_aside.by)} {decision.result}")
    assert (decision.result, decision.reason) == (without.result, without.reason)
    assert decision.policies == without.policies
    one_way, other_way = (unstamped(patched(pod, each)) for each in (decision, without))
    assert one_way == other_way
    if not ended:
        assert decision.warnings == without.warnings


def unstamped(pod: Json) -> Json:
    """The pod without our annotation, in which the hash of the set stands."""
    annotations = pod["metadata"].get("annotations", {})
    annotations.pop(names.PLACEMENT, None)
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}
