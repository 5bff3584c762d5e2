"""Read everything about a cluster's policies."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.admission.engine import subject_of
from webhook.cli.cluster_surroundings import read_world
from webhook.cli.diff.comparison_input import Template as Maker
from webhook.cli.diff.comparison_input import future_pods, owner_of, read_pods, relevant_pod
from webhook.cli.live import pod_stamp
from webhook.cli.live.served_policies import (
    NotServed,
    ReplicaCounts,
    ask_replicas,
    count_of,
    not_served,
)
from webhook.cli.offline import policy_files, unknown_values
from webhook.cli.options import paths_of
from webhook.cli.policies.policies_in_force import LivePod, PoliciesInForce, Template
from webhook.errors import ClusterError, InvalidDocuments, InvalidPod
from webhook.evaluation.result import answer_of
from webhook.evaluation.sending import nothing_sent
from webhook.installation.doctor.cluster_state import takes_policies_from_cluster
from webhook.judgement.cluster_objects import Objects
from webhook.placement import pod as pods
from webhook.policy import policy_documents
from webhook.policy.load import compiled
from webhook.policy.model import PlacementPolicy
from webhook.workloads.object import from_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.admission.arrival import Arrival
    from webhook.admission.decision import Decision
    from webhook.cli.options import Where
    from webhook.cli.policies.policies_in_force import Count
    from webhook.evaluation.world import World
    from webhook.kube.client import Client
    from webhook.placement.shapes import JsonObject
    from webhook.policy.kinds import PolicyDocument
    from webhook.policy.policy_set import PolicySet
    from webhook.policy.reader import Documents
    from webhook.workloads.object import Object
    from webhook.workloads.template import PodTemplate

_DEPLOYMENT: Final = f"/apis/apps/v1/namespaces/{names.NAMESPACE}/deployments/{names.WEBHOOK}"
_ACCEPTED: Final = "Accepted"


class _Set(NamedTuple):
    """The documents, the policy set, and the status of each policy."""

    documents: Documents[PolicyDocument]
    policies: PolicySet | None
    wrong: Sequence[str]
    statuses: Mapping[str, Mapping[str, Any]]


async def gather(
    client: Client, where: Sequence[Where], namespace: str, *, pods: bool, served: bool = True
) -> PoliciesInForce:
    """Read everything; `pods`: also live pods and templates, of one namespace or all.

    `served`: also what the webhook's replicas serve and count. Raises ClusterError,
    UnreadableInput, and UsageError for the cluster and paths at once.
    """
    paths = paths_of(where)
    if paths:
        read = _compiled(policy_documents.parse(policy_files(paths)), {})
    else:
        read = await _cluster(client)
    answers = await ask_replicas(client) if served else ReplicaCounts(None, None)
    notes = [answers.note] if answers.note else []
    if not paths and read.policies is not None and answers.served is None:
        # If replicas answer, the result names the set of each.
        notes += await _elsewhere(client, read.policies, answers)
    models = {
        each.model.name: each.model
        for each in read.documents.documents
        if isinstance(each.model, PlacementPolicy)
    }
    live: Sequence[LivePod] = ()
    templates: Sequence[Template] = ()
    if pods and read.policies is not None:
        live, templates, left_out = await _touched(client, namespace, read.policies)
        notes += left_out
    return PoliciesInForce(
        ", ".join(map(str, paths)) or "the cluster",
        read.policies,
        read.wrong,
        models,
        _accepted(read.statuses),
        _counts(models, read.statuses, answers),
        answers.served,
        True if paths else await _comparable(client),
        live,
        templates,
        notes,
    )


async def _elsewhere(client: Client, policies: PolicySet, answers: ReplicaCounts) -> list[str]:
    """Return a note if the webhook serves other policies, as far as its configuration shows."""
    try:
        await not_served(client, policies, (), answers)
    except NotServed as error:
        return [error.note]
    return []


async def _cluster(client: Client) -> _Set:
    from webhook.kube.policy_objects import GROUP, read_objects

    objects = await read_objects(client)
    listed = await client.list(
        f"{GROUP}/{names.PLACEMENT_POLICIES}",
        lambda one: (str(one["metadata"]["name"]), one.get("status") or {}),
    )
    return _compiled(Objects().documents(objects), dict(listed.items))


def _compiled(
    documents: Documents[PolicyDocument], statuses: Mapping[str, Mapping[str, Any]]
) -> _Set:
    try:
        return _Set(documents, compiled(documents).policies, (), statuses)
    except InvalidDocuments as error:
        wrong = [str(each) for each in error.findings if getattr(each, "severity", "") == "error"]
        return _Set(documents, None, wrong, statuses)


def _accepted(statuses: Mapping[str, Mapping[str, Any]]) -> Mapping[str, str]:
    return {
        name: "" if each["status"] == "True" else str(each.get("message") or each.get("reason"))
        for name, status in statuses.items()
        for each in status.get("conditions") or ()
        if each.get("type") == _ACCEPTED
    }


def _counts(
    models: Mapping[str, PlacementPolicy],
    statuses: Mapping[str, Mapping[str, Any]],
    answers: ReplicaCounts,
) -> Mapping[str, Count]:
    """Return counts by policy: from its status, which goes back further, else from the replicas."""
    found = {}
    for name in models:
        count = count_of(statuses.get(name, {})) or answers.of(name)
        if count is not None:
            found[name] = count
    return found


async def _comparable(client: Client) -> bool:
    """Return whether the webhook reads its policies from the cluster, by its Deployment."""
    try:
        deployment = await client.get(_DEPLOYMENT)
    except ClusterError as error:
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            raise
        return True
    return takes_policies_from_cluster({names.WEBHOOK: deployment}, None)


async def _touched(
    client: Client, namespace: str, policies: PolicySet
) -> tuple[Sequence[LivePod], Sequence[Template], Sequence[str]]:
    notes: list[str] = []
    world = await read_world(client, policies, [namespace] if namespace else [], None, notes)
    found = await read_pods(client, namespace, world.namespaces)
    matcher = PolicyMatcher(world, [each.template for each in found.makers])
    within = f"/namespaces/{namespace}" if namespace else ""
    listed = await client.list(
        f"/api/v1{within}/pods", lambda pod: _live(matcher, relevant_pod(pod, world.namespaces))
    )
    templates = [matcher.template(each) for each in found.makers if not each.live]
    notes += [*found.notes, *unknown_values(policies, future_pods(found.makers))]
    configuration = world.configuration
    if configuration is not None and (nothing := nothing_sent(configuration)):
        notes.append(f"{nothing.reason}, so no policy is asked; {nothing.cure}")
    return [pod for pod in listed.items if pod is not None], templates, notes


def _live(matcher: PolicyMatcher, pod: dict[str, Any] | None) -> LivePod | None:
    if pod is None:
        return None
    return matcher.pod(from_answer("v1", "Pod", pod))


class PolicyMatcher:
    """Finds the policies that apply to pods; `templates` are those of the objects beside them."""

    def __init__(self, world: World, templates: Iterable[PodTemplate] = ()) -> None:
        self._world = world
        self._led = {each.source.metadata.get("uid") for each in templates if each.led}
        self._positions = {each.name: at for at, each in enumerate(world.policies.policies)}

    def pod(self, pod: Object) -> LivePod | None:
        """Return a live pod; None if it has no run and no policy was applied to it."""
        stamp = pod_stamp.read_stamp(pod)
        taken = tuple(stamp.policies) if stamp else ()
        decided = self._decide(pod.value, pod.namespace, led=owner_of(pod) in self._led)
        if decided is None:
            return LivePod(pod.namespace, pod.name, taken, frozenset(), {}) if taken else None
        if decided.decision.result == "not-sent":
            failed = dict.fromkeys(taken, decided.decision.reason)
            return LivePod(pod.namespace, pod.name, taken, frozenset(), failed)
        exceptions = decided.decision.set_aside.by
        excepted = {name: by.exception.name for by in exceptions for name in by.policies}
        failed = {
            name: f"set aside by the exception {excepted[name]}"
            if name in excepted
            else self._explain(name, decided)
            for name in taken
            if name not in decided.applying
        }
        return LivePod(pod.namespace, pod.name, taken, decided.applying, failed, excepted)

    def template(self, maker: Maker) -> Template:
        """Return an object that creates pods, and the policies that apply to some of them."""
        found: set[str] = set()
        template = maker.template
        for index, _ in template.sample():
            decided = self._decide(template.pod(index), maker.namespace, led=template.led)
            if decided is not None:
                found |= decided.applying
        return Template(maker.namespace, template.source.title, frozenset(found))

    def _decide(self, pod: JsonObject, namespace: str, *, led: bool) -> _Decided | None:
        """Return the decision on a pod; None if it has no run, or the API server would reject
        it."""
        try:
            found = self._world.evaluate(pod, namespace, led=led)
        except InvalidPod:
            return None
        decision = found.decision
        if decision.identity is None:
            return None
        audited = decision.audited.policies if decision.audited else ()
        return _Decided(found.arrival, decision, frozenset((*decision.policies, *audited)))

    def _explain(self, name: str, decided: _Decided) -> str:
        """Return why the policy does not apply to the pod; empty for an unknown policy."""
        arrival, decision = decided.arrival, decided.decision
        at = self._positions.get(name)
        if at is None or decision.identity is None:
            return ""
        own = pods.parse_pod(arrival.pod)
        subject = subject_of(arrival, own, decision.identity, self._world.policies)
        return answer_of(at, decision, arrival, subject, self._world.policies).why


class _Decided(NamedTuple):
    """The decision on a pod. `applying` are the policies that apply, also those under Audit."""

    arrival: Arrival
    decision: Decision
    applying: frozenset[str]
