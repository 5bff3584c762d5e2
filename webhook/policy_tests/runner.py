"""Run the policy tests of one document against a policy set."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.decision.arrival import Cluster, may_have_history
from webhook.decision.engine import subject_of
from webhook.decision.prospects import Prospects
from webhook.errors import InvalidPod
from webhook.evaluation.one_pod import Unjudged, one_pod
from webhook.evaluation.plugins import (
    UNREAD,
    inputs_among,
    running_plugins,
    with_more_tolerations,
)
from webhook.evaluation.world import World
from webhook.identity import identify, misread
from webhook.placement import pod as pods_of
from webhook.placement.fallback import assumed
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import Node, by_name
from webhook.placement.quantity import amount
from webhook.policy_tests import load_tests, result
from webhook.policy_tests.policy_test_model import WITHOUT_PLACEMENT
from webhook.policy_tests.result import Failure, Verdict
from webhook.times import parse_span
from webhook.workloads.stored_pod import normal_fields, with_defaults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webhook.decision.arrival import Arrival
    from webhook.decision.decision import Audited, Decision
    from webhook.evaluation.evaluation import Evaluation
    from webhook.evaluation.plugins import PluginInputs
    from webhook.evaluation.surveys import Unknown
    from webhook.placement.fallback import History
    from webhook.placement.shapes import JsonObject, Taint
    from webhook.policy.policy_set import PolicySet
    from webhook.policy_tests import policy_test_model
    from webhook.policy_tests.load_tests import Document
    from webhook.policy_tests.policy_test_model import Case, Expectation

# The kubelet's default for maxPods, where a test gives other resources only.
_PODS, _USUAL_PODS = "pods", "110"
_PLUGINS: Final = "give cluster.plugins"
# The API server puts it on every namespace, and policies may select by it.


def run_tests(document: Document, policies: PolicySet) -> tuple[Verdict, ...]:
    """Return every test of the document, in its order, run over the policy set."""
    model = document.model
    nodes = [_whole_node(node) for node in model.nodes] or None
    default = model.cluster and model.cluster.default_priority_class
    world = World(
        policies,
        Cluster(default or "", node=by_name(nodes)),
        namespaces={},
        now=None,
        configuration=None,
        classes={},
        plugins=UNREAD,
        nodes=nodes,
        server=None,
        history=None,
    )
    devices = _plugins(model.cluster).devices
    prospects = Prospects(NodeGroups(nodes), lambda: devices) if nodes else None
    verdicts = []
    for at, case in enumerate(model.tests):
        try:
            with one_pod():
                verdicts.append(_verdict(document, at, case, world, prospects))
        except (InvalidPod, Unjudged) as error:
            failure = Failure("pod", "a pod that can be evaluated", str(error))
            line = document.locate(("tests", at))[0]
            verdicts.append(Verdict(case.name, document.file, line, failures=[failure]))
    return tuple(verdicts)


def _verdict(
    document: Document, at: int, case: Case, world: World, prospects: Prospects | None
) -> Verdict:
    policies = world.policies
    evaluation = _evaluate(case, world, document.model.cluster)
    arrival, decision = evaluation.arrival, evaluation.decision
    audited = decision.audited.policies if decision.audited else ()
    unread = _unread(arrival, decision)
    failures = [
        *_answer(case.expect, decision, [*_warnings(evaluation, prospects), *unread]),
        *(Failure("result", "a pod that the API server takes", why) for why in evaluation.refusals),
        *_unknown(case.expect, evaluation, prospects),
        *_labels(case.expect, unread),
        *_part(case.expect, arrival, decision, policies),
        *_audited(case.expect, evaluation.audited),
        *_placement(case.expect, evaluation),
        *_histories(case, arrival, policies),
    ]
    return Verdict(
        case.name,
        document.file,
        document.locate(("tests", at))[0],
        failures,
        decision.result,
        decision.policies,
        audited,
        case.expect.audited is not None,
        decision.trace,
    )


def _evaluate(case: Case, world: World, cluster: policy_test_model.Cluster | None) -> Evaluation:
    plugins, default = _plugins(cluster, case.namespace), world.cluster.default_priority_class
    listed = plugins.priorities
    world = replace(
        world,
        # A cluster of which PriorityClasses are given has no others.
        classes={} if listed is None else {"PriorityClass": {*listed, default}},
        namespaces={
            case.namespace: {names.NAMESPACE_NAME: case.namespace, **case.namespace_labels}
        },
        now=datetime.fromisoformat(case.now) if case.now else None,
        plugins=plugins,
        history=_history(case),
    )
    # The API server authenticates no node without this group.
    groups = (names.NODE_GROUP,) if case.user.startswith(names.NODE_USERS) else ()
    pod = with_defaults(
        load_tests.whole(case.pod),
        default,
        world.cluster.default_toleration_seconds,
    )
    return world.evaluate(pod, case.namespace, led=False, user=case.user, groups=groups)


def _plugins(cluster: policy_test_model.Cluster | None, namespace: str = "") -> PluginInputs:
    plugin_inputs = inputs_among((cluster and cluster.objects) or (), namespace)
    if cluster is None or cluster.plugins is None:
        return plugin_inputs
    return plugin_inputs._replace(running=running_plugins(cluster.plugins))


def _histories(case: Case, arrival: Arrival, policies: PolicySet) -> Iterator[Failure]:
    """Yield what no pod of the test has: a history of a class that no policy gives up, or any."""
    given_up = sorted({name for policy in policies.policies for name in policy.fallbacks})
    for name in case.history:
        if name not in given_up:
            allowed = ", ".join(given_up) or "none has one"
            yield Failure("history", f"a class with a fallback in a policy ({allowed})", name)
    if case.history and not may_have_history(arrival.pod, "Pod", policies.sources):
        wanted = f"a pod of a Run, as only these have a history (label {names.RUN})"
        yield Failure("history", wanted, "another pod")


def _history(case: Case) -> History | None:
    now = datetime.fromisoformat(case.now) if case.now else datetime.now(UTC)
    given = case.history.items()
    by_class = {
        name: (
            class_history.disruptions,
            parse_span(class_history.pending) if class_history.pending else None,
        )
        for name, class_history in given
    }
    return assumed(now, by_class) if by_class else None


def _unread(arrival: Arrival, decision: Decision) -> list[str]:
    """Return a line for each label of the pod or its namespace whose value is unknown and
    ignored."""
    problems: list[str] = []
    if decision.identity:
        metadata = arrival.pod["metadata"]
        problems += misread(metadata.get("labels") or {}, metadata.get("annotations") or {})
    place = arrival.namespace_labels.get(names.PLACE)
    kind = arrival.namespace_labels.get(names.KIND)
    if place is not None and place != names.PLACE_ALL:
        what = f"unknown value {place!r}, want {names.PLACE_ALL!r}; it is ignored"
        problems.append(f"namespace label {names.PLACE}: {what}")
    if kind is not None and kind.lower() not in names.KINDS:
        problems.append(f"namespace label {names.KIND}: unknown kind {kind!r}; it is ignored")
    return problems


def _labels(expect: Expectation, unread: Sequence[str]) -> Iterator[Failure]:
    """Fail for each label that cannot be read, unless the test expects the warning."""
    for line in unread:
        if not any(text in line for text in expect.warnings or ()):
            wanted = "every label can be read (or name this one in warnings)"
            yield Failure("labels", wanted, line)


def _unknown(
    expect: Expectation, evaluation: Evaluation, prospects: Prospects | None
) -> Iterator[Failure]:
    """Fail where what is expected depends on what the test does not say."""
    for unknown_fact in evaluation.undecided:
        yield _unanswered("result", "an answer", unknown_fact)
    nodes = evaluation.nodes
    if prospects and expect.warnings is not None and nodes and nodes.unread.what:
        yield _unanswered("warnings", "an answer", nodes.unread.unknown)


def _unanswered(field: str, wanted: str, unknown: Unknown) -> Failure:
    cure = unknown.cure("in cluster.objects", "cluster.plugins")
    return Failure(field, wanted, f"unknown: {unknown.reason}", [cure])


def _warnings(evaluation: Evaluation, prospects: Prospects | None) -> list[str]:
    """Return the warnings of the webhook, which watches the nodes of the test, if it has any."""
    decision, pod = evaluation.decision, evaluation.arrival.pod
    if decision.result == "not-sent":
        return []
    no_node = ""
    if prospects and not (evaluation.nodes and evaluation.nodes.unread.what):
        no_node = prospects.unplaceable(pod, decision, evaluation.world.policies)
    return evaluation.webhook_warnings(no_node)


def _answer(expect: Expectation, decision: Decision, given: Sequence[str]) -> Iterator[Failure]:
    actual = decision.result + (f": {decision.reason}" if decision.reason else "")
    if expect.result is not None and expect.result != decision.result:
        yield Failure("result", expect.result, actual)
    elif expect.result is None and not decision.allowed:
        yield Failure("result", "admitted", actual)
    elif expect.reason is not None and expect.reason not in decision.reason:
        yield Failure("reason", expect.reason, decision.reason or "none")
    every = "; ".join(given) or "none"
    for text in expect.warnings or ():
        if not any(text in warning for warning in given):
            yield Failure("warnings", text, every)
    if expect.warnings == [] and given:
        yield Failure("warnings", "none", every)


def _part(
    expect: Expectation,
    arrival: Arrival,
    decision: Decision,
    policies: PolicySet,
) -> Iterator[Failure]:
    """Compare the enforced policies that matched; without an expectation, one must match.

    Not required if the test expects something of policies under Audit.
    """
    if expect.policies is None:
        audited = decision.audited.policies if decision.audited else ()
        if not decision.policies and not (audited and expect.audited):
            why = [f"{name} matches, and is under Audit here" for name in audited]
            why += _why_not(arrival, decision, policies)
            wanted = "at least one enforced policy matches (or write policies: [], or audited)"
            yield Failure("policies", wanted, "none", why)
    elif set(expect.policies) != set(decision.policies):
        differing = set(expect.policies) ^ set(decision.policies)
        yield Failure(
            "policies",
            _listed(expect.policies),
            _listed(decision.policies),
            _why_not(arrival, decision, policies, differing),
        )


def _why_not(
    arrival: Arrival, decision: Decision, policies: PolicySet, only: set[str] | None = None
) -> list[str]:
    """For each policy (or only those named) that does not match, the very condition that fails."""
    pod = pods_of.parse_pod(arrival.pod)
    identity = identify(pod.labels, pod.annotations, arrival.namespace_labels, policies.sources)
    if identity is None:
        return [
            "the pod is not part of a run: it has no label that `fairlead policy sources` lists"
        ]
    if decision.result in ("left-alone", "not-sent"):
        return [decision.reason]
    subject = subject_of(arrival, pod, identity, policies)
    lines = []
    for policy in policies.policies:
        failed = policy.failed(subject)
        if failed is not None and (only is None or policy.name in only):
            lines.append(f"{policy.name} does not match: {failed}")
    for exception, taken in decision.set_aside.by:
        lines += [
            f"{name} is set aside by exception {exception.name}"
            for name in taken
            if only is None or name in only
        ]
    policy_names = {policy.name for policy in policies.policies}
    lines += [
        f"{name} is not a policy in this set" for name in sorted((only or set()) - policy_names)
    ]
    return lines


def _audited(expect: Expectation, actual: Audited | None) -> Iterator[Failure]:
    if expect.audited is None:
        return
    wanted = expect.audited
    names = actual.policies if actual else ()
    if wanted.policies is not None and set(wanted.policies) != set(names):
        yield Failure("audited.policies", _listed(wanted.policies), _listed(names))
    differs = bool(actual and actual.differs)
    if wanted.differs is not None and wanted.differs is not differs:
        yield Failure("audited.differs", str(wanted.differs).lower(), str(differs).lower())
    rejections = "; ".join(actual.rejections) if actual else ""
    if wanted.rejection is not None and wanted.rejection not in rejections:
        yield Failure("audited.rejection", wanted.rejection, rejections or "none")


def _placement(expect: Expectation, evaluation: Evaluation) -> Iterator[Failure]:
    """Yield the pod's fields as the API server stores them, and the nodes that then admit it."""
    asks = {
        "equals": expect.equals,
        "contains": expect.contains,
        "lacks": expect.lacks,
        "runsOn": expect.runs_on,
    }
    asked = [name for name, ask in asks.items() if ask is not None]
    if not asked:
        return
    decision = evaluation.decision
    if decision.result in WITHOUT_PLACEMENT:
        yield Failure(", ".join(asked), "a pod that is placed", decision.result)
        return
    stored = evaluation.stored()
    final = {**stored, "spec": normal_fields(stored["spec"])}
    more = [*chain(*evaluation.possible_tolerations.values())]
    wide = with_more_tolerations(final, more) if more else final
    if expect.equals is not None:
        yield from _if_known("equals", partial(result.equals, expect.equals), final, wide)
    if expect.contains is not None:
        yield from result.contains(expect.contains, final)
    if expect.lacks is not None:
        yield from _if_known("lacks", partial(result.lacks, expect.lacks), final, wide)
    if expect.runs_on is not None:
        yield from _runs_on(expect.runs_on, evaluation)


def _if_known(
    field: str,
    judge: Callable[[JsonObject], Iterator[Failure]],
    pod: JsonObject,
    wide: JsonObject,
) -> Iterator[Failure]:
    """Yield the failures of the pod; if only the pod with what plugins may add fails, that it is
    unknown."""
    failures = [*judge(pod)]
    yield from failures
    if not failures and any(judge(wide)):
        what = "unknown: a plugin of the API server may add tolerations"
        yield Failure(field, "an answer", what, [_PLUGINS])


def _runs_on(wanted: Sequence[str], evaluation: Evaluation) -> Iterator[Failure]:
    nodes = evaluation.nodes
    if nodes is None:
        cure = "give in nodes those that the test is about"
        yield Failure(
            "runsOn", _listed(wanted, "no node"), "unknown: the test has no nodes", [cure]
        )
        return
    if nodes.unread.what:
        yield _unanswered("runsOn", _listed(wanted, "no node"), nodes.unread.unknown)
        return
    actual = nodes.last.admitted
    if set(actual) != set(wanted):
        because = [
            f"{name}: {exclusion.condition}"
            for exclusion in nodes.last.shut
            for name in exclusion.nodes
        ]
        because += [f"{name}: the node admits the pod" for name in actual if name not in wanted]
        yield Failure("runsOn", _listed(wanted, "no node"), _listed(actual, "no node"), because)


def _listed(texts: Sequence[str], none: str = "none") -> str:
    return ", ".join(texts) or none


def _whole_node(node: policy_test_model.Node) -> Node:
    """Return the node, with the labels that the kubelet gives every node."""
    labels = {
        names.HOSTNAME_LABEL: node.name,
        names.OS_LABEL: "linux",
        "kubernetes.io/arch": "amd64",
        **(node.labels or {}),
    }
    taints: list[Taint] = [
        {"key": taint.key, "value": taint.value or "", "effect": taint.effect}
        for taint in node.taints or ()
    ]
    given = {_PODS: _USUAL_PODS, **node.allocatable} if node.allocatable else {}
    room = {resource: amount(resource, text) for resource, text in given.items()}
    return Node(node.name, labels, taints, bool(node.unschedulable), room or None)
