"""Read everything about a cluster's policies."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.cluster_objects.heartbeat import silence
from webhook.decision.stamp import HASH_LENGTH
from webhook.errors import InvalidDocuments, InvalidPod, PassOver
from webhook.evaluation.one_pod import Unjudged, one_pod
from webhook.evaluation.result import answers
from webhook.evaluation.sending import nothing_sent
from webhook.installation.doctor.cluster_state import takes_policies_from_cluster
from webhook.judgement.reporting.conditions import ACCEPTED, NOT_CHECKED, SATISFIABLE
from webhook.judgement.set_judgement import Objects
from webhook.judgement.together.effort import UNFINISHED
from webhook.placement.stamp_text import read_stamp
from webhook.policy import policy_documents
from webhook.policy.load import compiled
from webhook.policy.model import PlacementPolicy
from webhook.questions.cluster_surroundings import read_world
from webhook.questions.diff.comparison_input import is_live, owner_of, read_pods
from webhook.questions.live.served_policies import (
    ReplicaCounts,
    another_set,
    ask_replicas,
    count_of,
)
from webhook.questions.offline import policy_files, unknown_values
from webhook.questions.policies.policies_in_force import LivePod, PoliciesInForce, Template
from webhook.questions.where import Where, paths_of
from webhook.shortening import count_text, first_few, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.evaluation.evaluation import Evaluation
    from webhook.evaluation.world import World
    from webhook.kube.client import Client
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_documents import PolicyDocument
    from webhook.policy.policy_set import PolicySet
    from webhook.policy.reader import Documents
    from webhook.workloads.object import Object
    from webhook.workloads.template import PodTemplate

_DEPLOYMENT: Final = CollectionPath("apps/v1", "deployments", names.NAMESPACE).path_of(
    names.WEBHOOK
)
_NAMED: Final = 3


async def gather(
    client: Client, where: Sequence[Where], namespace: str, *, pods: bool, served: bool = True
) -> PoliciesInForce:
    """Read everything; `pods`: also live pods and templates, of one namespace or all.

    `served`: also what the webhook's replicas serve and count. Raises ClusterError,
    UnreadableInput, and UsageError for the cluster and paths at once.
    """
    paths = paths_of(where)
    documents, statuses = (
        (policy_documents.parse(policy_files(paths)), {}) if paths else await _cluster(client)
    )
    wrong: list[object] = []
    policies: PolicySet | None = None
    try:
        policies = compiled(documents).policies
    except InvalidDocuments as error:
        wrong = [
            finding for finding in error.findings if getattr(finding, "severity", "") == "error"
        ]
    answers = await ask_replicas(client) if served else ReplicaCounts(None, None)
    notes = [answers.note] if answers.note else []
    if not paths and (silent := await silence(client, datetime.now(UTC))):
        notes.append(silent)
    if unchecked := sorted(name for name, status in statuses.items() if _is_unchecked(status)):
        which = f"{count_text(len(unchecked), 'policy')} ({first_few(unchecked, _NAMED)})"
        notes.append(f"Satisfiable is not known of {which}: {UNFINISHED}")
    if not paths and policies is not None and answers.served is None:
        # If replicas answer, the result names the set of each.
        set_hash = policies.hash[:HASH_LENGTH]
        if another := await another_set(client, set_hash, answers):
            notes.append(f"{another}; this is about the policies in the cluster, set {set_hash}")
    models = {
        document.model.name: document.model
        for document in documents.documents
        if isinstance(document.model, PlacementPolicy)
    }
    live: Sequence[LivePod] = ()
    templates: Sequence[Template] = ()
    if pods and policies is not None:
        live, templates, left_out = await _touched(client, namespace, policies)
        notes += left_out
    return PoliciesInForce(
        ", ".join(map(str, paths)) or "the cluster",
        policies,
        wrong,
        models,
        {
            name: ""
            if condition["status"] == "True"
            else str(condition.get("message") or condition.get("reason"))
            for name, status in statuses.items()
            for condition in status.get("conditions") or ()
            if condition.get("type") == ACCEPTED
        },
        {
            # A policy's status goes back further than the replicas.
            name: count
            for name in models
            if (count := count_of(statuses.get(name, {})) or answers.of(name))
        },
        answers.served,
        True if paths else await _comparable(client),
        live,
        templates,
        notes,
    )


async def _cluster(
    client: Client,
) -> tuple[Documents[PolicyDocument], Mapping[str, Mapping[str, Any]]]:
    from webhook.cluster_objects.policy_objects import objects_of, read_whole_objects

    objects = await read_whole_objects(client)
    listed = await client.list(
        objects_of(names.PLACEMENT_POLICIES),
        lambda manifest: (str(manifest["metadata"]["name"]), manifest.get("status") or {}),
    )
    return Objects().documents(objects), dict(listed.items)


def _is_unchecked(status: Mapping[str, Any]) -> bool:
    return any(
        (condition.get("type"), condition.get("reason")) == (SATISFIABLE, NOT_CHECKED)
        for condition in status.get("conditions") or ()
    )


async def _comparable(client: Client) -> bool:
    with PassOver(HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
        deployment = await client.get(_DEPLOYMENT)
        return takes_policies_from_cluster({names.WEBHOOK: deployment}, None)
    return True


async def _touched(
    client: Client, namespace: str, policies: PolicySet
) -> tuple[Sequence[LivePod], Sequence[Template], Sequence[str]]:
    notes: list[str] = []
    world = await read_world(client, policies, [namespace] if namespace else [], None, notes)
    pods = await read_pods(client, namespace, world.namespaces, policies.sources)
    matcher = PolicyMatcher(world, pods.makers)
    live = [pod for live_pod in pods.live if (pod := matcher.pod(live_pod))]
    makers = [maker for maker in pods.makers if not is_live(maker)]
    templates = [matcher.template(maker) for maker in makers]
    notes += [*pods.notes, *matcher.unjudged, *unknown_values(policies, makers)]
    if nothing := nothing_sent(world.configuration):
        notes.append(f"{nothing.reason}, so no policy is asked; {nothing.cure}")
    return live, templates, notes


class PolicyMatcher:
    """Finds the policies that apply to pods; `templates` are those of the objects beside them.

    `unjudged` has a line for each pod that a fault of Fairlead itself leaves out, and for what
    decides and is not known.
    """

    def __init__(self, world: World, templates: Iterable[PodTemplate] = ()) -> None:
        self._world = world
        self.unjudged: dict[str, None] = {}
        self._led = {template.source.metadata.get("uid") for template in templates if template.led}

    def pod(self, pod: Object) -> LivePod | None:
        """Return a live pod; None if it has no run and no policy was applied to it."""
        stamp = read_stamp(pod.metadata)
        taken = tuple(stamp.policies) if stamp else ()
        evaluation = self._evaluate(pod.value, pod.namespace, led=owner_of(pod) in self._led)
        if evaluation is None:
            return LivePod(pod.namespace, pod.name, taken, frozenset(), {}) if taken else None
        if evaluation.decision.result == "not-sent":
            failed = dict.fromkeys(taken, evaluation.decision.reason)
            return LivePod(pod.namespace, pod.name, taken, frozenset(), failed)
        exceptions = evaluation.decision.set_aside.by
        excepted = {name: by.exception.name for by in exceptions for name in by.policies}
        applying = _applying(evaluation)
        gone = [name for name in taken if name not in applying]
        why = {answer.name: answer.why for answer in answers(evaluation)} if gone else {}
        failed = {
            name: f"set aside by the exception {excepted[name]}"
            if name in excepted
            else why.get(name, "")
            for name in gone
        }
        return LivePod(pod.namespace, pod.name, taken, applying, failed, excepted)

    def template(self, template: PodTemplate) -> Template:
        namespace, policies = template.source.namespace, self._world.policies
        every = [
            evaluation
            for index, _ in template.sample(
                lambda: {
                    *policies.turns(template.count, namespace),
                    *template.indexes_with(policies.tested_labels),
                }
            )
            if (evaluation := self._evaluate(template.pod(index), namespace, led=template.led))
        ]
        for unknown in (
            unknown_fact for evaluation in every for unknown_fact in evaluation.undecided
        ):
            what = f"{template.source.title} in {namespace}: which policies match is unknown"
            self.unjudged[one_line(f"{what}: {unknown.reason}")] = None
        matching = frozenset(name for evaluation in every for name in _applying(evaluation))
        return Template(namespace, template.source.title, matching)

    def _evaluate(self, pod: JsonObject, namespace: str, *, led: bool) -> Evaluation | None:
        """Return what happens to a pod; None if it has no run, or the API server rejects it."""
        try:
            with one_pod():
                evaluation = self._world.evaluate(pod, namespace, led=led)
        except InvalidPod:
            return None
        except Unjudged as error:
            title = one_line(f"Pod/{pod['metadata'].get('name')} in {namespace}")
            self.unjudged[f"{title} is left out: {error}"] = None
            return None
        return evaluation if evaluation.decision.identity else None


def _applying(evaluation: Evaluation) -> frozenset[str]:
    audited = evaluation.decision.audited
    return frozenset((*evaluation.decision.policies, *(audited.policies if audited else ())))
