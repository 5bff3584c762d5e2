"""Nodes in pools: those that admit a pod; and of a cluster by capacity class, with what runs there
and what waits."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from webhook import names
from webhook.api_paths import NODES, CollectionPath
from webhook.cluster_objects.policy_objects import read_whole_objects
from webhook.controller.classed_nodes import compile_classes
from webhook.controller.node_health import Nodes
from webhook.errors import ClusterError
from webhook.judgement.set_judgement import Objects
from webhook.judgement.together.warnings import AT_ONCE
from webhook.kube.cache import Cache
from webhook.placement.nodes import taint_text
from webhook.placement.pod_requests import requests
from webhook.placement.quantity import format_quantity
from webhook.policy.feasibility import unreached
from webhook.policy.node_settings import is_of
from webhook.questions import policy_check as check_report
from webhook.questions.cluster_surroundings import read_classes
from webhook.run_client.report import INTERRUPTIBLE, summarize_labels
from webhook.run_client.rows import on_classes
from webhook.shortening import count_text, first_few
from webhook.ui.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.evaluation.result import SurveyResult
    from webhook.judgement.set_judgement import SetJudgement
    from webhook.kube.watches import Watches
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.node_groups import Alike
    from webhook.placement.nodes import Node
    from webhook.run_client.rows import Row

    # The judgement, notes, and the nodes that no policy reaches.
    _Judged: TypeAlias = tuple[SetJudgement | None, list[str], list[Alike]]

# Causes for which pods wait that are shown.
MOST_CAUSES: Final = 50
# Runs that are named for each.
_MOST_NAMED: Final = 5
# Nodes of a pool that have a square: of a cluster's, and of those that admit a pod or do not.
MOST_SQUARES: Final = 200
MOST_ASKED: Final = 24
# Shown first, if there are any; then extended resources, by name.
_USUAL: Final = ("cpu", "memory", "pods")
_NO_CLASS: Final = "no class"
_UNKNOWN: Final = "class not known"
# Seconds in which a page waits for a check of the policies, and what it shows then.
_PATIENCE_SECONDS: Final = 0.5
_CHECKING: Final = "The policies are being checked."
# Labels that do not tell one pool from another.
_OF_EACH_NODE: Final = (
    "kubernetes.io/hostname",
    *(f"{beta}kubernetes.io/{key}" for beta in ("", "beta.") for key in ("os", "arch")),
)


class PodOfRun(NamedTuple):
    """A live pod of a run: with a stamp or the label. since: its creation."""

    namespace: str
    name: str
    run: str
    node: str
    requests: Mapping[str, int]
    since: str
    why: str


class NodeSquare(NamedTuple):
    """A node in the picture of its pool. state: cordoned, free or Running, with pods of runs;
    interruptible: by its labels."""

    title: str
    state: str
    interruptible: bool


class PoolRow(NamedTuple):
    """Nodes with the same classes. resources: a name, its amounts used and allocatable as text, and
    the share that is used.

    used is what pods of runs request; pods: how many these are. squares: of the first nodes.
    """

    classes: str
    nodes: int
    cordoned: int
    pods: int
    resources: Sequence[tuple[str, str, str, float]]
    squares: Sequence[NodeSquare] = ()


class Cause(NamedTuple):
    """Pods that wait for the same reason. runs: their names; first: the pod that waits longest."""

    why: str
    pods: int
    runs: str
    first: PodOfRun


class Square(NamedTuple):
    """A node in the picture. why: the condition that keeps the pods away; empty if it admits
    them."""

    name: str
    why: str


class Pool(NamedTuple):
    """Nodes with the same labels and taints. more: of those that are not shown, how many admit the
    pods, and how many do not."""

    title: str
    squares: Sequence[Square]
    admitted: int
    total: int
    more: tuple[int, int]


def pod_of(raw: Mapping[str, Any]) -> PodOfRun | None:
    """Return the pod; None if it is of no run, or has ended."""
    metadata, status, spec = raw["metadata"], raw.get("status") or {}, raw.get("spec") or {}
    labels = metadata.get("labels") or {}
    of_run = names.RUN in labels or names.PLACEMENT in (metadata.get("annotations") or {})
    if not of_run or status.get("phase") in names.TERMINAL_PHASES:
        return None
    waits = [
        str(condition.get("message") or "")
        for condition in status.get("conditions") or ()
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False"
    ]
    return PodOfRun(
        namespace=metadata["namespace"],
        name=metadata["name"],
        run=labels.get(names.RUN, ""),
        node=spec.get("nodeName") or "",
        requests=requests(spec),
        since=metadata.get("creationTimestamp") or "",
        why=next(iter(waits), ""),
    )


class Pools(Watching):
    """Nodes and pods of a cluster; the policies are read for each look."""

    def __init__(self, watches: Watches, namespace: str = "") -> None:
        super().__init__(watches)
        self.pods = self.add(CollectionPath("v1", "pods", namespace or None), Cache(pod_of))
        self._judged: tuple[object, _Judged] | None = None
        # A check that goes on, and of what it is.
        self._judging: asyncio.Task[_Judged] | None = None
        self._asked: object = None
        self._health = Nodes()
        self._nodes = self.add(NODES, self._health.cache)
        classes = CollectionPath(names.API_VERSION, names.CAPACITY_CLASSES)
        self.add(classes, self._health.classes, may_lack=True)

    def by_run(self) -> dict[tuple[str, str], str]:
        """Return on how many nodes' classes the pods of each Run are: `spot 3, on-demand 1`.

        By namespace and name. A pod without a node, or on one without a class, is left out.
        """
        nodes_by_run: dict[tuple[str, str], list[str]] = {}
        for pod in self.pods.items().values():
            if pod.run:
                nodes_by_run.setdefault((pod.namespace, pod.run), []).append(pod.node)
        return {run: on_classes(self._health, nodes) for run, nodes in nodes_by_run.items()}

    def prices(self) -> dict[str, float]:
        """Return the relative prices of the classes that have one, by name."""
        models = self._health.classes.items()
        return {
            name: price
            for name, model in models.items()
            if (price := model.spec.relative_price) is not None
        }

    async def judged(self) -> dict[str, Any]:
        """Return the findings about the policies, as `fairlead check` has them."""
        judged, notes, _ = await self._judge()
        return {"findings": judged.findings if judged else None, "notes": notes}

    async def _judge(self, seconds: float | None = None) -> _Judged:
        """Return what is known of the policies after so many seconds; None: after a whole check."""
        nodes = [watched_node.node for watched_node in self._nodes.items().values()]
        try:
            objects = await read_whole_objects(self.client)
            classes = await read_classes(self.client)
        except ClusterError as error:
            return None, [f"The policies are not read: {error}"], []
        asked = dict(objects), classes, nodes
        if self._judged is None or self._judged[0] != asked:
            if self._judging is None:
                # It may take seconds, in which other pages are not to wait.
                self._judging = asyncio.create_task(asyncio.to_thread(_judged, *asked))
                self._asked = asked
            judging = self._judging
            await asyncio.wait({judging}, timeout=seconds)
            # Several pages may wait for it.
            if judging.done() and judging is self._judging:
                self._judging = None
                self._judged = self._asked, judging.result()
        return self._judged[1] if self._judged else (None, [_CHECKING], [])

    def _classes(self) -> list[CapacityClass]:
        models = {model.metadata.name: model for model in self._health.classes.items().values()}
        return [node_class.compiled for node_class in compile_classes(models) if node_class]

    async def overview(self, without_room: Sequence[Row]) -> dict[str, Any]:
        """Return what the page shows; without the policies, if they cannot be read."""
        judged, notes, unknown = await self._judge(_PATIENCE_SECONDS)
        nodes = [watched_node.node for watched_node in self._nodes.items().values()]
        pods = list(self.pods.items().values())
        waiting = causes_of(pods)
        return {
            "answer": answer_of(waiting, len(without_room)),
            "without_room": without_room[:MOST_CAUSES],
            "more_without_room": max(0, len(without_room) - MOST_CAUSES),
            "pools": pool_rows(
                nodes,
                pods,
                self._classes(),
                _NO_CLASS if self._health.classes.synced else _UNKNOWN,
            ),
            "empty": _empty(judged),
            "unreached": _by_taints(unknown),
            "findings": judged.findings if judged else None,
            "notes": notes,
            "waiting": waiting[:MOST_CAUSES],
            "more": max(0, len(waiting) - MOST_CAUSES),
        }


def _judged(
    objects: Mapping[str, bytes], classes: Mapping[str, Mapping[str, Any]], nodes: Sequence[Node]
) -> _Judged:
    unknown: list[Alike] = []
    given = check_report.CheckInput(sorted(objects), Objects().documents(objects), nodes, classes)
    judged = check_report.check(given, datetime.now(UTC), AT_ONCE)
    if judged and judged.policies and judged.policies.policies:
        unknown = unreached(judged.policies, nodes, classes.get("RuntimeClass", {}))
    return judged, list(check_report.notes(given, judged)) if judged else [], unknown


def _by_taints(groups: Iterable[Alike]) -> list[tuple[int, str]]:
    """Return how many nodes have which taints, most nodes first."""
    counts = Counter[str]()
    for group in groups:
        counts[_taints(group.node)] += group.count
    return [(count, taints) for taints, count in counts.most_common()]


def _taints(node: Node) -> str:
    return ", ".join(map(taint_text, node.taints)) or "none"


def _empty(judged: SetJudgement | None) -> list[str]:
    """Return the classes without a node that do not make nodes on demand."""
    reaches = judged.feasibility.reaches if judged and judged.feasibility else ()
    return [
        reach.name
        for reach in reaches
        if reach.kind == "CapacityClass" and not reach.chosen and not reach.on_demand
    ]


def causes_of(pods: Iterable[PodOfRun]) -> list[Cause]:
    """Return why pods have no node, the cause of most pods first.

    Of the scheduler's message, its further sentences are no part of the cause: they are about
    preemption.
    """
    by_cause: dict[str, list[PodOfRun]] = {}
    for pod in pods:
        if not pod.node:
            by_cause.setdefault(pod.why.partition(". ")[0], []).append(pod)
    causes = []
    for why, waiting in by_cause.items():
        runs = sorted({f"{pod.namespace}/{pod.run}" for pod in waiting if pod.run})
        first = min(waiting, key=lambda pod: (pod.since, pod.namespace, pod.name))
        causes.append(Cause(why, len(waiting), first_few(runs, _MOST_NAMED), first))
    return sorted(causes, key=lambda cause: (-cause.pods, cause.first.since, cause.why))


def answer_of(causes: Sequence[Cause], without_room: int = 0) -> str:
    """Return how many pods of runs wait for a node, and the cause of most of them; how many runs
    the nodes have no room for."""
    short = f"nodes have no room for {count_text(without_room, 'run')}" if without_room else ""
    if not causes:
        return f"{'; '.join(filter(None, ('No pod of a run waits for a node', short)))}."
    count = sum(cause.pods for cause in causes)
    text = f"{count_text(count, 'pod')} of runs {'waits' if count == 1 else 'wait'} for a node"
    why = causes[0].why or "the scheduler has not said why yet"
    text += f"{'' if len(causes) == 1 else f'; {causes[0].pods:,} of them'}: {why}"
    return f"{text}; {short}" if short else text


def pool_rows(
    nodes: Iterable[Node],
    pods: Iterable[PodOfRun],
    classes: Sequence[CapacityClass],
    without: str = _NO_CLASS,
) -> list[PoolRow]:
    """Return a row for each combination of classes that a node has; `without` for none."""
    nodes = list(nodes)
    of_node: dict[str, str] = {}
    allocatable: dict[str, Counter[str]] = {}
    count: Counter[str] = Counter()
    cordoned: Counter[str] = Counter()
    for node in nodes:
        node_classes = [capacity_class for capacity_class in classes if is_of(capacity_class, node)]
        title = ", ".join(sorted(capacity_class.name for capacity_class in node_classes)) or without
        of_node[node.name] = title
        count[title] += 1
        cordoned[title] += node.unschedulable
        allocatable.setdefault(title, Counter()).update(node.allocatable or {})
    used: dict[str, Counter[str]] = {title: Counter() for title in count}
    running: Counter[str] = Counter()
    on_node: Counter[str] = Counter()
    for pod in pods:
        if title := of_node.get(pod.node, ""):
            running[title] += 1
            on_node[pod.node] += 1
            used[title].update({**pod.requests, "pods": 1})
    squares: dict[str, list[NodeSquare]] = {title: [] for title in count}
    for node in nodes:
        here = on_node[node.name]
        state = "cordoned" if node.unschedulable else "Running" if here else "free"
        text = f"{node.name}: {count_text(here, 'pod')} of runs"
        text += ", cordoned" if node.unschedulable else ""
        interruptible = summarize_labels(node.labels).capacity in INTERRUPTIBLE
        squares[of_node[node.name]].append(NodeSquare(text, state, interruptible))
    return [
        PoolRow(
            title,
            count[title],
            cordoned[title],
            running[title],
            [
                (
                    key,
                    format_quantity(key, used[title][key]),
                    format_quantity(key, allocatable[title][key]),
                    min(1.0, used[title][key] / allocatable[title][key]),
                )
                for key in (*_USUAL, *sorted(allocatable[title].keys() - set(_USUAL)))
                if allocatable[title][key]
            ],
            squares[title][:MOST_SQUARES],
        )
        for title in sorted(count)
    ]


def pools(nodes: Sequence[Node], titles: Mapping[str, str], survey: SurveyResult) -> Iterator[Pool]:
    """Yield the nodes in pools by their titles, and which of them admit the pods."""
    why = {name: shut.condition for shut in survey.shut for name in shut.nodes}
    by_title: dict[str, list[Square]] = {}
    for node in nodes:
        square = Square(node.name, why.get(node.name, ""))
        by_title.setdefault(titles[node.name], []).append(square)
    for title, squares in by_title.items():
        shown, rest = squares[:MOST_ASKED], squares[MOST_ASKED:]
        open_rest = sum(not square.why for square in rest)
        admitted = sum(not square.why for square in squares)
        yield Pool(title, shown, admitted, len(squares), (open_rest, len(rest) - open_rest))


def title_of(node: Node, classes: Sequence[CapacityClass]) -> str:
    """Return what nodes of one pool have in common: classes, and labels and taints of no class."""
    node_classes = [capacity_class for capacity_class in classes if is_of(capacity_class, node)]
    class_keys = set(_OF_EACH_NODE).union(*(capacity_class.keys for capacity_class in node_classes))
    labels = [f"{key}={node.labels[key]}" for key in sorted(node.labels.keys() - class_keys)]
    taints = [
        f"taint {taint_text(taint)}"
        for taint in node.taints
        if not any(taint in capacity_class.taints for capacity_class in node_classes)
    ]
    cordon = ["cordoned"] if node.unschedulable else []
    names = [capacity_class.name for capacity_class in node_classes]
    return ", ".join([*names, *labels, *taints, *cordon]) or "no labels"
