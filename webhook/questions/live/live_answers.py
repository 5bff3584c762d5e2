"""Read live objects and their pod templates from a cluster, and answer a question about them."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from webhook.api_paths import NODES
from webhook.errors import (
    ClusterError,
    FairleadError,
    InvalidPod,
    InvalidRun,
    PassOver,
    UnreadableInput,
)
from webhook.evaluation.audits import needs_nodes
from webhook.evaluation.one_pod import Unjudged, one_pod
from webhook.evaluation.templates import templates_of
from webhook.placement import nodes as nodes_of
from webhook.questions.cluster_surroundings import read_world, with_selecting
from webhook.questions.decisions import decisions, misshapen, unknown_facts
from webhook.questions.live.live_objects import Discovery, ObjectReference, find, find_all
from webhook.questions.live.live_pods import Answer, Answers, LivePod, compare_pod
from webhook.questions.live.pod_owners import maker_of, pods_of
from webhook.questions.live.served_policies import not_served
from webhook.questions.offline import (
    Offline,
    read_nodes,
    read_policies,
    unknown_labels,
    unknown_values,
    with_nodes,
)
from webhook.questions.plugins_option import with_plugins
from webhook.questions.where import CLUSTER, Where, paths_of
from webhook.shortening import one_line
from webhook.workloads.template import PodTemplate
from webhook.workloads.template_search import unread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.evaluation.world import World
    from webhook.kube.client import Client
    from webhook.placement.nodes import Node
    from webhook.policy.policy_set import PolicySet
    from webhook.sources.table import SourceTable
    from webhook.workloads.object import Object


async def ask(
    client: Client,
    targets: Sequence[ObjectReference],
    namespace: str,
    where: Sequence[Where],
    nodes_at: Where | None,
    plugins: tuple[str, ...] | None = None,
    *,
    labels: str = "",
) -> Answers:
    """Return the answers about objects; without places of policies by the cluster's.

    `labels`: the selector of targets without a name; without a namespace they are in any.

    `plugins`: those of the API server that are given; None to learn them by a dry run.

    Raises FairleadError, with the cure, if something cannot be read.
    """
    policies = await policy_set(client, where)
    discovery = Discovery(client)
    objects: list[Object] = []
    for word, name in targets:
        served = await discovery.by_word(word)
        if name:
            objects.append(await find(client, served, namespace, name))
        else:
            objects += await find_all(client, served, namespace, labels)
    nodes = await node_list(client, nodes_at)
    notes: list[str] = []
    used = [source.namespace for source in objects]
    world = with_plugins(await read_world(client, policies, used, nodes, notes), plugins)
    world = await with_selecting(client, world, used, notes)
    reader = Reader(discovery, world, notes)
    answers = [answer for source in objects if (answer := await reader.answer(source))]
    if not answers:
        raise UnreadableInput([*reader.unjudged])
    templates = [template for answer in answers for template in answer.templates]
    unknown = unknown_labels(policies, templates, world.namespaces, "a right to get namespaces")
    if not where:
        stamped = {pod.stamp.set_hash for answer in answers for pod in answer.pods if pod.stamp}
        notes += await not_served(client, policies, stamped)
    doubts = [
        f"{answer.source.title} in {live.pod.namespace}: {live.origin.doubt}"
        for answer in answers
        for live in answer.pods
        if live.origin.doubt
    ]
    return Answers(
        reader.world,
        answers,
        [
            *notes,
            *unknown,
            *unknown_values(policies, templates),
            *dict.fromkeys(doubts),
            *unknown_facts([replicas for answer in answers for replicas in answer.replicas]),
        ],
        [*reader.unjudged],
    )


async def policy_set(client: Client, where: Sequence[Where]) -> PolicySet:
    """Return the set at these places, by default the cluster's. Raises UsageError for both."""
    if paths := paths_of(where):
        return read_policies(paths)
    from webhook.questions.cluster_surroundings import read_policies as read_cluster

    try:
        return (await read_cluster(client)).policies
    except ClusterError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        text = f"{error}; if the webhook serves files, name them: --policies DIR"
        raise ClusterError(text, status=error.status) from error


async def node_list(client: Client, where: Where | None) -> Sequence[Node] | None:
    """Return the nodes of a file, or of the cluster; None if none are asked for."""
    if where is None:
        return None
    if where is not CLUSTER:
        return read_nodes(where)
    return (await client.list(NODES, nodes_of.parse_node)).items


class Reader:
    """Reads objects of one cluster, and evaluates them; notes what may not be read.

    `unjudged` has a line for each pod that cannot be judged, once each.
    """

    def __init__(self, discovery: Discovery, world: World, notes: list[str]) -> None:
        self._discovery = discovery
        self.world = world
        self.notes = notes
        self.unjudged: dict[str, None] = {}
        self._asked_for_nodes = False

    async def answer(self, source: Object) -> Answer | None:
        """Return the answer for a pod or a workload; None for a pod that cannot be judged.

        Raises FairleadError for another object.
        """
        judge = await self._reading(source)
        answer = judge()
        if answer is None:
            return None
        today = (*answer.replicas, *(pod.today for pod in answer.pods))
        unknown = any(needs_nodes(replicas.evaluation) for replicas in today)
        return judge() if unknown and await self.read_nodes() else answer

    async def _reading(self, source: Object) -> Callable[[], Answer | None]:
        """Read what belongs to an object; return how to judge it in the present world."""
        sources = self.world.policies.sources
        if (source.kind, source.value["apiVersion"]) == ("Pod", "v1"):
            maker, obstacle = await maker_of(self._discovery, source)
            self.notes += [obstacle] if obstacle else []
            return partial(self._of_pod, source, None if obstacle else made_by(maker, sources))
        templates = templates_of(source, sources=sources)
        if not templates:
            what = "; ".join(unread([source], sources)) or f"{source.title} makes no pods"
            raise FairleadError(
                f"{source.title} in {source.namespace}: {what}; want a pod, or what has a pod "
                "template, such as a job, a deployment or a run"
            )
        pairs = await pods_of(self._discovery, source, self.notes)
        by_maker: dict[int, Sequence[PodTemplate]] = {id(source): templates}
        live = []
        for pod, maker in pairs:
            if maker is not None and id(maker) not in by_maker:
                by_maker[id(maker)] = made_by(maker, sources)
            live.append((pod, by_maker.get(id(maker))))
        return partial(self._of_workload, source, templates, live)

    def _of_pod(self, pod: Object, templates: Sequence[PodTemplate] | None) -> Answer | None:
        live = self._judged(pod, templates)
        if live is None:
            return None
        today = live.today
        return Answer(today.template.source, [today.template], [today], [live], is_pod=True)

    def _of_workload(
        self,
        source: Object,
        templates: Sequence[PodTemplate],
        live: Sequence[tuple[Object, Sequence[PodTemplate] | None]],
    ) -> Answer:
        replicas = decisions(Offline(self.world, [source], templates))
        pods = [
            judged for pod, pod_templates in live if (judged := self._judged(pod, pod_templates))
        ]
        return Answer(source, templates, replicas, pods)

    def _judged(self, pod: Object, templates: Sequence[PodTemplate] | None) -> LivePod | None:
        try:
            with one_pod():
                return compare_pod(self.world, pod, templates)
        except InvalidPod as error:
            self.unjudged[misshapen(PodTemplate(pod, ()), error)] = None
        except Unjudged as error:
            self.unjudged[one_line(f"{pod.title} in {pod.namespace}: {error}")] = None
        return None

    async def read_nodes(self) -> bool:
        """Read the nodes if they are not known, and return whether they have become known.

        For pods that depend on them: those of a DaemonSet, and those that name their node. Without
        the right, they stay unknown, with a note.
        """
        if self.world.cluster.node is not None or self._asked_for_nodes:
            return False
        self._asked_for_nodes = True
        with PassOver(HTTPStatus.FORBIDDEN):
            nodes = await node_list(self._discovery.client, CLUSTER)
            self.world = with_nodes(self.world, nodes)
            return True
        self.notes.append("you may not list nodes: kubectl auth can-i list nodes")
        return False


def made_by(maker: Object | None, sources: SourceTable) -> Sequence[PodTemplate]:
    """Return the templates of the owner of a pod; none if they are unknown now."""
    try:
        return templates_of(maker, sources=sources) if maker else []
    except InvalidRun:
        return []  # it was edited since
