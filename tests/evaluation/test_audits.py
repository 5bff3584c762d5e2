"""Audit of a pod: the effect of a policy under Audit is what evaluating it enforced says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given

from tests.laws.strategies import document, pods
from tests.laws.test_audit_laws import audits, under_audit
from tests.laws.test_laws import lawful, unstamped
from tests.laws.world import CLUSTER, policy_set
from tests.wording import mentions
from webhook import names
from webhook.audited import records_of_pods, tally
from webhook.decision.arrival import Cluster
from webhook.decision.decision import TOGETHER, Effect
from webhook.evaluation.evaluation import Evaluation
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.replicas import Replicas, evaluate_template
from webhook.evaluation.templates import templates_of
from webhook.evaluation.world import World
from webhook.placement.nodes import Node, by_name
from webhook.workloads.object import Object

Json = dict[str, Any]
NODES = [Node(f"n{at}", {"zone": "a" if at < 2 else "b"}, []) for at in range(5)]
CLASSES = {"PriorityClass": ["there"], "RuntimeClass": ["gvisor"]}


def policy(name: str, *, audit: bool = True, **spec: Any) -> Json:
    ways = {"enforcement": "Audit"} if audit else {}
    return document(names.POLICY_KIND, name, {**ways, **spec})


def world(
    *policies: Json,
    classes: Mapping[str, Sequence[str]] | None = CLASSES,
    nodes: Sequence[Node] | None = None,
) -> World:
    return World(
        policies=policy_set(policies),
        cluster=Cluster(node=by_name(nodes)),
        namespaces={},
        now=None,
        configuration=None,
        classes=classes,
        plugins=UNREAD,
        nodes=nodes,
        server=None,
        history=None,
    )


def pod(**spec: Any) -> Json:
    labels = {names.RUN: "r"}
    return {
        "metadata": {"name": "p", "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "x"}], **spec},
    }


def effects(found: World, of: Json) -> Mapping[str, Effect]:
    audited = found.evaluate(of, "research", led=False).audited
    assert audited is not None
    return audited.effects


def daemon_set(found: World) -> Sequence[Replicas]:
    template = {"metadata": {"labels": {"app": "e", names.RUN: "r"}}, **pod()}
    template["metadata"]["labels"] = {"app": "e", names.RUN: "r"}
    value = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "research"},
        "spec": {"selector": {"matchLabels": {"app": "e"}}, "template": template},
    }
    (made,) = templates_of(Object("f.yaml", value))
    return evaluate_template(found, made, "research")


SYSCTL = {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}


@pytest.mark.parametrize(
    ("setting", "own", "texts"),
    [
        ({"overrides": {"priorityClassName": "gone"}}, {}, ("PriorityClass 'gone'",)),
        ({"overrides": {"runtimeClassName": "gone"}}, {}, ("RuntimeClass 'gone'",)),
        (
            {"defaults": {"securityContext": SYSCTL}},
            {"hostIPC": True},
            ("policy p sets securityContext[sysctls]",),
        ),
    ],
)
def test_a_pod_that_the_api_server_would_refuse_counts_as_rejected(
    setting: Json, own: Json, texts: tuple[str, ...]
) -> None:
    """With the same text as if the policy were enforced; beside one that changes the pod."""
    other = policy("q", overrides={"labels": {"team": "a"}})
    found = effects(world(policy("p", **setting), other), pod(**own))
    outcomes = {name: each.outcome for name, each in found.items()}
    assert outcomes == {"p": "rejects", "q": "changes", TOGETHER: "rejects"}
    mentions("; ".join(found["p"].rejections), *texts)
    enforced = world(policy("p", audit=False, **setting)).evaluate(
        pod(**own), "research", led=False
    )
    assert list(found["p"].rejections) == list(enforced.refusals)


def test_a_pod_that_is_refused_today_stays_the_same_unless_it_would_be_taken() -> None:
    """What is refused otherwise is no difference, and no policy is charged with it."""
    today = policy("today", audit=False, defaults={"priorityClassName": "gone"})
    worse = policy("worse", overrides={"runtimeClassName": "gone"})
    mends = policy("mends", overrides={"priorityClassName": "there"})
    strict = policy("strict", requirements={"labels": {"team": "a"}})
    found = effects(world(today, worse, mends, strict), pod())
    outcomes = {name: each.outcome for name, each in found.items()}
    assert outcomes == {"worse": "same", "mends": "changes", "strict": "same", TOGETHER: "same"}


@pytest.mark.parametrize("classes", [None, {}, {"RuntimeClass": ["gvisor"]}])
def test_a_class_that_is_not_read_makes_the_effect_unknown(
    classes: Mapping[str, Sequence[str]] | None,
) -> None:
    """The pod differs at any rate; it is unknown whether it is changed or refused."""
    named = policy("p", overrides={"priorityClassName": "there"})
    found = world(named, classes=classes).evaluate(pod(), "research", led=False)
    assert found.audited is not None
    effect = found.audited.alone["p"]
    assert (effect.outcome, found.audited.differs) == ("not-judged", True)
    mentions(effect.unknown, "whether the cluster has the PriorityClass there is not read")
    (known,) = effects(world(named), pod()).values()
    assert known.outcome == "changes"


def test_a_daemon_sets_pods_are_judged_by_their_nodes() -> None:
    """Of five nodes three are in another zone than a policy under Audit requires."""
    zone = policy("zone", requirements={"nodeSelector": {"zone": "a"}})
    (found,) = daemon_set(world(zone, nodes=NODES))
    assert found.evaluation.audited is not None
    effect = found.evaluation.audited.alone["zone"]
    assert (effect.outcome, effect.nodes) == ("rejects", ["n2", "n3", "n4"])
    mentions("; ".join(effect.rejections), "on n2, n3, n4: policy zone:", "pod's node n2")
    (row,) = tally(records_of_pods(found))
    assert (row.now.rejects, row.now.changes, row.now.same) == (3, 2, 0)


def test_nodes_that_a_policy_in_force_excludes_are_not_charged_to_one_under_audit() -> None:
    """Of the pods that are made, the policy under Audit rejects one more."""
    zone = policy("zone", audit=False, requirements={"nodeSelector": {"zone": "a"}})
    one = policy("one", requirements={"nodeSelector": {"zone": "a", "disk": "ssd"}})
    nodes = [NODES[0]._replace(labels={"zone": "a", "disk": "ssd"}), *NODES[1:]]
    groups = daemon_set(world(zone, one, nodes=nodes))
    rows = tally([each for group in groups for each in records_of_pods(group)])
    assert [(row.policy, row.now.rejects, row.now.changes, row.now.same) for row in rows] == [
        ("one", 1, 1, 3)
    ]


def test_without_nodes_the_effect_on_a_daemon_set_is_unknown() -> None:
    """And known where the policy asks nothing of nodes."""
    zone = policy("zone", requirements={"nodeSelector": {"zone": "a"}})
    label = policy("label", requirements={"allowedTolerations": {"patterns": []}})
    (found,) = daemon_set(world(zone, label))
    assert found.evaluation.audited is not None
    alone = found.evaluation.audited.alone
    assert {name: each.outcome for name, each in alone.items()} == {
        "zone": "not-judged",
        "label": "same",
    }
    mentions(alone["zone"].unknown, "the nodes are unknown here: give --nodes")


def outcome(now: Evaluation, then: Evaluation) -> str:
    """What two evaluations of a pod differ by, for the pod."""
    if now.allowed and then.allowed:
        one, other = (unstamped(each.patched) for each in (now, then))
        return "same" if one == other else "changes"
    if now.allowed:
        return "rejects"
    return "changes" if then.allowed else "same"


@lawful
@given(pods(), audits())
def test_the_effect_is_what_the_set_with_the_policy_enforced_does(
    pod: Json, sets: tuple[list[Json], list[Json]]
) -> None:
    """By an evaluation of that other set, for each policy alone and for all of them.

    Only one of the cluster's PriorityClasses is there.
    """
    enforced, tried = sets

    def evaluate(*more: Json) -> Evaluation:
        there = world(*enforced, *more, classes={"PriorityClass": ["high"], "RuntimeClass": []})
        there = replace(there, cluster=CLUSTER)
        return there.evaluate(json.loads(json.dumps(pod)), "ml-team", led=False)

    now, audited = evaluate(), evaluate(*under_audit(tried)).audited
    alone = audited.alone if audited else {}
    for each in tried:
        name = each["metadata"]["name"]
        expected = outcome(now, evaluate(each))
        event(f"{expected}, refused: {bool(evaluate(each).refusals)}")
        assert (alone[name].outcome if name in alone else "same") == expected, name
    together = audited.effects.get(TOGETHER) or audited.together if audited else None
    assert (together.outcome if together else "same") == outcome(now, evaluate(*tried))
