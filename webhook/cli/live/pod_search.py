"""Search live pods for those that need attention: the question, the reading, the findings."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

import orjson

from webhook import names
from webhook.admission.prospects import Prospects
from webhook.cli.cluster_surroundings import read_labels
from webhook.cli.decisions import placement_of, unknown_classes
from webhook.cli.live.asking import Reader, made_by, node_list, policy_set
from webhook.cli.live.finding import (
    Discovery,
    as_object,
    controller_of,
    is_named,
    is_over,
)
from webhook.cli.live.missing_stamp import nothing_sent, sending_notes
from webhook.cli.live.pod_stamp import read_stamp
from webhook.cli.live.served_policies import not_served
from webhook.cli.offline import labels_of, unknown_labels
from webhook.cli.options import CLUSTER
from webhook.errors import ClusterError, InvalidPod
from webhook.identity import identify
from webhook.placement.node_groups import NodeGroups
from webhook.workloads.object import ANSWERED, Object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.cli.decisions import Replicas
    from webhook.cli.live.live_pods import Difference, LivePod
    from webhook.cli.live.missing_stamp import Why
    from webhook.cli.options import Where
    from webhook.kube.client import Client
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet
    from webhook.sandbox.progress import Progress
    from webhook.workloads.template import PodTemplate

Kind: TypeAlias = Literal["otherwise", "unplaced", "no-node"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
# A chain of owners is longer only if somebody has forged it.
_LONGEST_CHAIN: Final = 10


class Search(NamedTuple):
    """What to look for, and where; an empty namespace is all of them.

    Without `policies`, the cluster's are used.
    """

    kinds: frozenset[Kind]
    namespace: str
    policies: Sequence[Where]


class Owner(NamedTuple):
    """The topmost controller of a pod, or the pod itself."""

    group: str
    kind: str
    name: str

    def __str__(self) -> str:
        """The form that kubectl takes: `deployment.apps/web`."""
        word = self.kind.lower()
        return f"{word}.{self.group}/{self.name}" if self.group else f"{word}/{self.name}"


class Finding(NamedTuple):
    """A pod of one kind of findings, with the reason: `differences`, or `text`.

    `stamp_set` is the set of its stamp, `author` the source of what its author wrote, and `unsure`
    has the fields, as (policy, field), whose value of the policy is unknown. It keeps no part of
    the pod itself, which may be large.
    """

    kind: Kind
    namespace: str
    name: str
    owner: Owner
    text: str
    differences: Sequence[Difference]
    stamp_set: str
    author: str
    unsure: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Found:
    """The result. `unknown` names what could not be known, `notes` on what the result rests.

    `read` counts the live pods that the API server returned, `judged` those of runs.
    """

    search: Search
    policies: PolicySet
    nodes: Sequence[Node] | None
    read: int
    judged: int
    findings: Sequence[Finding]
    unknown: Sequence[str]
    notes: Sequence[str]

    def count(self, kind: Kind) -> int:
        """The number of pods of this kind."""
        return sum(each.kind == kind for each in self.findings)


class _Listed(NamedTuple):
    """A live pod as JSON text, which takes a tenth of the memory of the parsed object."""

    namespace: str
    text: bytes
    owner: Mapping[str, Any] | None


async def search_pods(client: Client, search: Search, progress: Progress) -> Found:
    """Read the pods and judge them. Raises FairleadError, with the cure if there is one."""
    with progress.step("Reading policies and nodes"):
        policies = await policy_set(client, search.policies)
        discovery = Discovery(client)
        unknown: list[str] = []
        nodes = await _nodes(client, search, unknown)
        reader = await _reader(client, discovery, policies, search, nodes)
    with progress.step("Reading pods"):
        listed, read = await _list_pods(client, discovery, search, reader, policies)
    with progress.step(f"Reading the owners of {len(listed):,} pods"):
        owners = await _Owners.of(client, discovery, search.namespace, listed, unknown)
    with progress.step(f"Deciding on {len(listed):,} pods"):
        findings, hashes, decided = _judge_all(listed, owners, reader, search, nodes, unknown)
    sending = sending_notes(reader.configuration)
    notes = [] if search.policies else await not_served(client, policies, hashes)
    if nothing := _nothing_sent(reader):
        cure = f"; {nothing.cure}" if nothing.cure else ""
        notes += [f"{nothing.reason}{cure}: the result is as if they were sent"]
    unknown += [each for each in reader.notes if each not in sending]
    unknown += unknown_labels(
        policies,
        [(each.arrival.namespace, each.template) for each in decided],
        reader.namespaces,
        "a right to get namespaces",
    )
    unknown += unknown_classes(decided, reader.classes)
    return Found(
        search,
        policies,
        nodes,
        read,
        len(listed),
        findings,
        list(dict.fromkeys(unknown)),
        [*notes, *sending],
    )


def _nothing_sent(reader: Reader) -> Why | None:
    """Why no pod at all is sent to the webhook today; None if some are, or if it is unknown."""
    return None if reader.configuration is None else nothing_sent(reader.configuration)


async def _nodes(client: Client, search: Search, unknown: list[str]) -> Sequence[Node] | None:
    if "no-node" not in search.kinds:
        return None
    try:
        return await node_list(client, CLUSTER)
    except ClusterError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        unknown.append(
            "you may not list nodes: which pods no node admits is unknown; kubectl auth can-i "
            "list nodes"
        )
        return None


async def _reader(
    client: Client,
    discovery: Discovery,
    policies: PolicySet,
    search: Search,
    nodes: Sequence[Node] | None,
) -> Reader:
    only = [search.namespace] if search.namespace else []
    reader = await Reader.of(client, discovery, policies, only, nodes)
    if not only:
        reader.namespaces |= await reader.allowed(read_labels(client, ""), "namespaces") or {}
    return reader


async def _list_pods(
    client: Client, discovery: Discovery, search: Search, reader: Reader, policies: PolicySet
) -> tuple[list[_Listed], int]:
    """The live pods that have a stamp or belong to a run, and how many live pods there are."""
    served = await discovery.by_word("pods")
    read = 0

    def keep(value: dict[str, Any]) -> _Listed | None:
        nonlocal read
        pod = as_object(served, value)
        if is_over(pod) or names.MIRROR_POD in (pod.metadata.get("annotations") or {}):
            return None
        read += 1
        known = labels_of(pod.namespace, reader.namespaces)
        own, annotations = pod.metadata.get("labels") or {}, pod.metadata.get("annotations") or {}
        is_run = identify(own, annotations, known, policies.sources) is not None
        if not is_run and read_stamp(pod) is None:
            return None
        kept = {key: each for key, each in pod.value.items() if key != "status"}
        return _Listed(pod.namespace, orjson.dumps(kept), controller_of(pod.metadata))

    path = served.path(search.namespace)
    try:
        items = (await client.list(path, keep)).items
    except ClusterError as error:
        if error.status == HTTPStatus.FORBIDDEN and not search.namespace:
            text = f"{error.words or error}; name a namespace whose pods you may list: -n NAME"
            raise ClusterError(text, status=error.status) from error
        raise
    return [each for each in items if each is not None], read


class _Owners:
    """The objects that created pods, and the owners above them; each kind is listed once."""

    def __init__(self) -> None:
        self._direct: dict[str, Object] = {}
        self._above: dict[str, Mapping[str, Any] | None] = {}
        self._unread: set[tuple[str, str]] = set()

    @classmethod
    async def of(
        cls,
        client: Client,
        discovery: Discovery,
        namespace: str,
        listed: Sequence[_Listed],
        unknown: list[str],
    ) -> _Owners:
        """Read them, kind by kind and upwards; kinds that may not be listed are `unknown`."""
        found = cls()
        wanted = {str(each.owner.get("uid")): each.owner for each in listed if each.owner}
        direct = True
        for _ in range(_LONGEST_CHAIN):
            kinds = {
                (str(each.get("apiVersion")), str(each.get("kind")))
                for each in wanted.values()
                if is_named(each)
            }
            above: dict[str, Mapping[str, Any]] = {}
            for kind in sorted(kinds):
                above |= await found._read(
                    client, discovery, kind, namespace, wanted, unknown, direct=direct
                )
            wanted = {uid: owner for uid, owner in above.items() if uid not in found._above}
            direct = False
            if not wanted:
                break
        return found

    async def _read(
        self,
        client: Client,
        discovery: Discovery,
        kind: tuple[str, str],
        namespace: str,
        wanted: Mapping[str, Mapping[str, Any]],
        unknown: list[str],
        *,
        direct: bool,
    ) -> dict[str, Mapping[str, Any]]:
        """Read the wanted objects of a kind; return their own owners by uid."""
        above: dict[str, Mapping[str, Any]] = {}
        try:
            served = await discovery.by_kind(*kind)
            if served is None or not served.namespaced:
                return above

            def keep(value: dict[str, Any]) -> None:
                uid = str(value["metadata"].get("uid"))
                owner = wanted.get(uid)
                if owner is None or owner.get("name") != value["metadata"].get("name"):
                    return
                if direct:
                    self._direct[uid] = as_object(served, value)
                self._above[uid] = upper = controller_of(value["metadata"])
                if upper is not None:
                    above[str(upper.get("uid"))] = upper

            await client.list(served.path(namespace), keep)
        except ClusterError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                raise
            if error.status == HTTPStatus.FORBIDDEN:
                self._unread.add(kind)
                where = f"in {namespace}" if namespace else "in all namespaces"
                scope = f"-n {namespace}" if namespace else "-A"
                unknown.append(
                    f"you may not list {kind[1]} objects {where}: whether their pods would be "
                    f"placed otherwise is unknown; kubectl auth can-i list {kind[1].lower()} "
                    f"{scope}"
                )
        return above

    def maker(self, listed: _Listed) -> Object | None:
        """The object that created the pod; None if it does not exist."""
        found = self._direct.get(str(listed.owner.get("uid"))) if listed.owner else None
        return found if found is not None and found.namespace == listed.namespace else None

    def is_unread(self, listed: _Listed) -> bool:
        """Whether the pod's owner is of a kind that may not be listed."""
        owner = listed.owner or {}
        return (str(owner.get("apiVersion")), str(owner.get("kind"))) in self._unread

    def top(self, listed: _Listed, pod: Object) -> Owner:
        """The last owner of the chain that is known."""
        owner, chain = listed.owner, 0
        if owner is None:
            return Owner("", "Pod", pod.name)
        while (upper := self._above.get(str(owner.get("uid")))) and chain < _LONGEST_CHAIN:
            owner, chain = upper, chain + 1
        group = str(owner.get("apiVersion")).rpartition("/")[0]
        return Owner(group, str(owner.get("kind")), str(owner.get("name")))


def _judge_all(
    listed: Sequence[_Listed],
    owners: _Owners,
    reader: Reader,
    search: Search,
    nodes: Sequence[Node] | None,
    unknown: list[str],
) -> tuple[list[Finding], set[str], list[Replicas]]:
    """The findings, the hashes of all stamps, and a decision for each namespace and
    classes."""
    prospects = Prospects(NodeGroups(nodes)) if nodes is not None else None
    findings: list[Finding] = []
    hashes: set[str] = set()
    decided: dict[tuple[object, ...], Replicas] = {}
    unsent = _nothing_sent(reader)
    templates_by_maker: dict[str, Sequence[PodTemplate]] = {}
    for each in listed:
        pod = Object(ANSWERED, orjson.loads(each.text))
        maker = owners.maker(each)
        uid = str(maker.metadata.get("uid")) if maker else ""
        if uid not in templates_by_maker:
            templates_by_maker[uid] = made_by(maker, reader.policies.sources)
        templates = None if owners.is_unread(each) else templates_by_maker[uid]
        try:
            judge = reader.judge(each.namespace)
            # A disabled webhook is no reason to restart: judged as if pods were sent, with a note.
            judge = judge._replace(configuration=None) if unsent else judge
            live = judge.judge_pod(pod, templates)
        except InvalidPod as error:
            unknown.append(f"{pod.title} in {pod.namespace} cannot be judged: {error}")
            continue
        owner = owners.top(each, pod)
        if live.stamp:
            hashes.add(live.stamp.set_hash)
        placement = placement_of(live.today)
        classes = placement and (placement.priority_class_name, placement.runtime_class_name)
        decided.setdefault((each.namespace, classes), live.today)
        findings += [
            _finding(kind, live, owner, text)
            for kind, text in _findings(live, pod.value, reader, search, prospects)
        ]
    return sorted(findings, key=_order), hashes, list(decided.values())


def _order(found: Finding) -> tuple[str, ...]:
    return (found.namespace, str(found.owner), found.kind, found.name)


def _finding(kind: Kind, live: LivePod, owner: Owner, text: str) -> Finding:
    return Finding(
        kind,
        live.pod.namespace,
        live.pod.name,
        owner,
        text,
        () if text else live.differences,
        live.stamp.set_hash if live.stamp else "",
        live.origin.evidence,
        live.origin.unsure,
    )


def _findings(
    live: LivePod,
    stored: JsonObject,
    reader: Reader,
    search: Search,
    prospects: Prospects | None,
) -> Iterator[tuple[Kind, str]]:
    """The kinds of findings about a pod, each with the reason if it is not a difference."""
    if "otherwise" in search.kinds and not live.unread:
        if not live.today.decision.allowed:
            text = f"it would be rejected: {live.today.decision.reason}"
            yield "otherwise", text
        elif live.today.refusals:
            text = f"the API server would refuse it: {'; '.join(live.today.refusals)}"
            yield "otherwise", text
        elif live.differences:
            yield "otherwise", ""
    if "unplaced" in search.kinds and live.unstamped:
        reason = reader.unstamped([live])[live.pod.namespace, live.pod.name]
        yield "unplaced", f"{reason.reason}; cure: {reason.cure}"
    if prospects is not None and live.is_run:
        text = prospects.unplaceable_as_stored(stored, live.today.decision, reader.policies)
        if text:
            yield "no-node", text
