"""Search live pods for those that need attention: the question, the reading, the findings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

import orjson

from webhook import names
from webhook.decision.prospects import Prospects
from webhook.errors import ClusterError, InvalidPod, PassOver
from webhook.evaluation.one_pod import Unjudged, one_pod
from webhook.evaluation.sending import nothing_sent
from webhook.evaluation.world import labels_of
from webhook.identity import identify
from webhook.placement.node_groups import NodeGroups
from webhook.placement.stamp_text import read_stamp
from webhook.questions.cluster_surroundings import read_world
from webhook.questions.decisions import unlisted_classes
from webhook.questions.live.live_answers import Reader, made_by, node_list, policy_set
from webhook.questions.live.live_objects import Discovery, as_object
from webhook.questions.live.live_pods import Difference, LivePod, State, compare_pod
from webhook.questions.live.missing_stamp import sending_notes, why_unstamped
from webhook.questions.live.pod_owners import ListedPod, Owner, Owners
from webhook.questions.live.served_policies import not_served
from webhook.questions.offline import unknown_labels
from webhook.questions.where import CLUSTER, Where
from webhook.run.controller_reference import controller_of
from webhook.shortening import harmless, one_line, shortened
from webhook.workloads.object import ANSWERED, Object
from webhook.workloads.stored_pod import is_over

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.comparison.authored import Credit
    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.world import World
    from webhook.kube.client import Client
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet
    from webhook.progress import Progress
    from webhook.workloads.rollout import Kept
    from webhook.workloads.template import PodTemplate

Kind: TypeAlias = Literal["otherwise", "unplaced", "no-node"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_REASONS: Final[dict[State, str]] = {
    "rejected": "it would be rejected: ",
    "refused": "the API server would refuse it: ",
    "not sent": "",
}


class Search(NamedTuple):
    """What to look for, and where; an empty namespace is all of them, an empty selector all pods.

    Without `policies`, the cluster's are used.
    """

    kinds: frozenset[Kind]
    namespace: str
    policies: Sequence[Where]
    selector: str = ""


class Finding(NamedTuple):
    """A pod of one kind of findings, with the keys of its JSON.

    `kept`: why no rollout of its owner replaces it; None if one does, or the owner has none.
    It has a `reason`, or the differences. `stamp_set` is the set of its stamp, `author` the source
    of what its author wrote, and `unsure` has the fields whose value of the policy is unknown. It
    keeps no part of the pod itself, which may be large.
    """

    namespace: str
    name: str
    finding: Kind
    reason: str | None
    owner: Owner
    stamp_set: str | None
    author: str
    differences: Sequence[Difference]
    unsure: Sequence[Credit]
    kept: str | None

    @property
    def text(self) -> str:
        """The reason, or the differences."""
        return self.reason or "; ".join(map(str, self.differences))


@dataclass(slots=True)
class Found:
    """The result. `unknown` names what could not be known, `notes` on what the result rests.

    `read` counts the live pods that the API server returned, `of_runs` those with a run or a stamp,
    `unjudged` those among these about which something that was asked is unknown.
    """

    search: Search
    policies: PolicySet
    nodes: Sequence[Node] | None = None
    read: int = 0
    of_runs: int = 0
    unjudged: int = 0
    findings: list[Finding] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def count(self, kind: Kind) -> int:
        return sum(finding.finding == kind for finding in self.findings)

    @property
    def judged(self) -> int:
        """The number of pods of runs about which everything is known."""
        return self.of_runs - self.unjudged


async def search_pods(client: Client, search: Search, progress: Progress) -> Found:
    """Read the pods and judge them. Raises FairleadError, with the cure if there is one."""
    with progress.step("Reading policies and nodes"):
        search_result = Found(search, await policy_set(client, search.policies))
        discovery = Discovery(client)
        if "no-node" in search.kinds:
            with PassOver(HTTPStatus.FORBIDDEN) as passed:
                search_result.nodes = await node_list(client, CLUSTER)
            if passed.status:
                search_result.unknown.append(
                    "you may not list nodes: which pods no node admits is unknown; kubectl auth "
                    "can-i list nodes"
                )
        unread: list[str] = []
        only = [search.namespace] if search.namespace else []
        world = await read_world(client, search_result.policies, only, search_result.nodes, unread)
        reader = Reader(discovery, world, unread)
    with progress.step("Reading pods"):
        listed = await _list_pods(discovery, search_result, world)
    with progress.step(f"Reading the owners of {len(listed):,} pods"):
        direct = [listed_pod.owner for listed_pod in listed if listed_pod.owner]
        owners = await Owners.of(discovery, search.namespace, direct)
        within = search.namespace
        where, scope = (f"in {within}", f"-n {within}") if within else ("in all namespaces", "-A")
        search_result.unknown += [
            f"you may not list {kind} objects {where}: whether their pods would be placed "
            f"otherwise is unknown; kubectl auth can-i list {kind.lower()} {scope}"
            for _, kind in owners.unread
        ]
    nothing = nothing_sent(world.configuration)
    with progress.step(f"Deciding on {len(listed):,} pods"):
        hashes, decided = await _judge_all(search_result, reader, owners, listed)
    sending = sending_notes(world.configuration)
    if not search.policies:
        search_result.notes += await not_served(client, search_result.policies, hashes)
    if nothing:
        cure = f"; {nothing.cure}" if nothing.cure else ""
        search_result.notes.append(f"{nothing.reason}{cure}: the result is as if they were sent")
    search_result.notes += sending
    used = [replicas.template for replicas in decided]
    search_result.unknown += [
        *(note for note in reader.notes if note not in sending),
        *unknown_labels(
            search_result.policies, used, world.namespaces, "a right to get namespaces"
        ),
        *unlisted_classes(decided),
    ]
    search_result.unknown = list(dict.fromkeys(search_result.unknown))
    return search_result


async def _list_pods(discovery: Discovery, search_result: Found, world: World) -> list[ListedPod]:
    """Return the live pods that have a stamp or belong to a run, and count them and all others."""
    served = await discovery.by_word("pods")

    def keep(value: dict[str, Any]) -> ListedPod | None:
        pod = as_object(served, value)
        if is_over(value) or names.MIRROR_POD in (pod.metadata.get("annotations") or {}):
            return None
        search_result.read += 1
        namespace_labels = labels_of(pod.namespace, world.namespaces)
        labels, annotations = (
            pod.metadata.get("labels") or {},
            pod.metadata.get("annotations") or {},
        )
        is_run = (
            identify(labels, annotations, namespace_labels, search_result.policies.sources)
            is not None
        )
        if not is_run and read_stamp(pod.metadata) is None:
            return None
        kept = {key: member for key, member in pod.value.items() if key != "status"}
        return ListedPod(pod.namespace, pod.name, orjson.dumps(kept), controller_of(pod.value))

    namespace, selector = search_result.search.namespace, search_result.search.selector
    query = {"labelSelector": selector} if selector else {}
    try:
        items = (await discovery.client.list(served.path(namespace), keep, query=query)).items
    except ClusterError as error:
        if error.status == HTTPStatus.FORBIDDEN and not namespace:
            text = f"{error.why}; name a namespace whose pods you may list: -n NAME"
            raise ClusterError(text, status=error.status) from error
        raise
    listed = [item for item in items if item is not None]
    search_result.of_runs = len(listed)
    return listed


async def _judge_all(
    search_result: Found, reader: Reader, owners: Owners, listed: Sequence[ListedPod]
) -> tuple[set[str], list[Replicas]]:
    """Add the findings, and return the hashes of all stamps, and a decision for each namespace and
    classes.
    """
    search, sources = search_result.search, search_result.policies.sources

    def world_of_senders() -> World:
        # A disabled webhook is no reason to restart: judged as if pods were sent, with a note.
        sent = nothing_sent(reader.world.configuration)
        return replace(reader.world, configuration=None) if sent else reader.world

    world = world_of_senders()
    prospects = None
    if search_result.nodes is not None:
        prospects = Prospects(NodeGroups(search_result.nodes), lambda: world.plugins.devices)
    kept_pods: dict[tuple[str, Owner, Kept], list[str]] = {}
    hashes: set[str] = set()
    decided: dict[tuple[object, ...], Replicas] = {}
    # `owners` keeps the makers.
    templates_by_maker: dict[int, Sequence[PodTemplate]] = {}
    for listed_pod in listed:
        pod = Object(ANSWERED, orjson.loads(listed_pod.text))
        try:
            with one_pod():
                maker = owners.maker(listed_pod)
                if id(maker) not in templates_by_maker:
                    templates_by_maker[id(maker)] = made_by(maker, sources)
                templates = None if owners.is_unread(listed_pod) else templates_by_maker[id(maker)]
                live = compare_pod(world, pod, templates)
                if live.today.evaluation.depends_on_node and await reader.read_nodes():
                    world = world_of_senders()
                    live = compare_pod(world, pod, templates)
                kinds = [*_findings(live, pod.value, reader, search, prospects)]
        except (InvalidPod, Unjudged) as error:
            title = one_line(f"{pod.title} in {pod.namespace}")
            search_result.unknown.append(f"{title} cannot be judged: {error}")
            search_result.unjudged += 1
            continue
        owner, kept = owners.top(listed_pod, pod), owners.kept(listed_pod)
        if "otherwise" in search.kinds:
            search_result.unjudged += live.state == "unknown"
            if live.doubt:
                search_result.unknown.append(f"{owner} in {pod.namespace}: {live.doubt}")
        if live.stamp:
            hashes.add(live.stamp.set_hash)
        placement = live.today.evaluation.placement
        classes = placement and (placement.priority_class_name, placement.runtime_class_name)
        decided.setdefault((listed_pod.namespace, classes), live.today)
        search_result.findings += [
            Finding(
                live.pod.namespace,
                live.pod.name,
                kind,
                reason,
                owner,
                (live.stamp.set_hash if live.stamp else "") or None,
                live.origin.evidence,
                () if reason else live.differences,
                live.origin.unsure,
                kept.why if kept else None,
            )
            for kind, reason in kinds
        ]
        if kept and kinds:
            kept_pods.setdefault((pod.namespace, owner, kept), []).append(pod.name)
    search_result.notes += [_restart(*about, pods_) for about, pods_ in sorted(kept_pods.items())]
    search_result.findings.sort(
        key=lambda finding: (finding.namespace, str(finding.owner), finding.finding, finding.name)
    )
    return hashes, list(decided.values())


def _restart(namespace: str, owner: Owner, kept: Kept, pods: Sequence[str]) -> str:
    """Return how pods are made again that no rollout replaces."""
    if kept.resumed:
        cure = f"resume it: kubectl rollout resume -n {namespace} {owner}"
    else:
        cure = f"delete them: kubectl delete pod -n {namespace} {' '.join(sorted(pods))}"
    text = f"kubectl rollout restart does not replace {shortened(sorted(pods))}"
    return one_line(f"{owner} in {namespace}: {kept.why}, and {text}; {cure}")


def _findings(
    live: LivePod,
    stored: JsonObject,
    reader: Reader,
    search: Search,
    prospects: Prospects | None,
) -> Iterator[tuple[Kind, str | None]]:
    if "otherwise" in search.kinds:
        # A pod that would not be sent, and would stay as it is, need not be restarted.
        if live.state in _REASONS and (live.state != "not sent" or live.differences):
            yield "otherwise", harmless(f"{_REASONS[live.state]}{live.reason}")
        elif live.state == "otherwise":
            yield "otherwise", None
    unplaced = "unplaced" in search.kinds and live.unstamped
    if unplaced and (why := why_unstamped(live, reader.world)):
        yield "unplaced", harmless(f"{why.reason}; cure: {why.cure}")
    if prospects is not None and live.is_run:
        text = prospects.unplaceable_as_stored(stored, live.today.decision, reader.world.policies)
        if text:
            yield "no-node", harmless(text)
