"""The input of decisions from files: policies, objects, namespaces, nodes, and what is unknown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.decision.arrival import Cluster
from webhook.errors import InvalidPod, InvalidRun, UnreadableInput
from webhook.evaluation.plugins import UNREAD, merge_inputs
from webhook.evaluation.templates import templates_of
from webhook.evaluation.world import World
from webhook.identity import Identity, identify
from webhook.judgement.set_judgement import load_sound
from webhook.placement import nodes as nodes_of
from webhook.placement import pod as pods
from webhook.placement.kueue import flavor_of
from webhook.placement.nodes import Node, NodeKinds, by_name
from webhook.questions.objects import (
    count_kinds,
    default_priority_class,
    namespaces_among,
    plugin_inputs,
    read_cluster_objects,
    read_files,
    read_objects,
)
from webhook.questions.where import paths_of
from webhook.run.backends.engine_object import delegated_object
from webhook.run.run_documents import run_of
from webhook.shortening import first_few, one_line
from webhook.workloads.object import ANSWERED, Object
from webhook.workloads.template import PodTemplate, find_unknown_labels
from webhook.workloads.template_search import unread

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.placement.pod import PodPlacement
    from webhook.policy.policy_set import PolicySet
    from webhook.questions.where import Where
    from webhook.sources.table import SourceTable

_NAMED: Final = 3
# The path of an empty set.
_NO_POLICIES: Final = "/dev/null"
CURE: Final = f"use {_NO_POLICIES} for no policies at all"


@dataclass(frozen=True, slots=True)
class Offline:
    """The whole input.

    world:     what evaluations depend on
    templates: the pod templates of the objects, in order
    problems:  lines about files and objects that could not be read; they are left out
    unread:    lines about kinds whose pods are unknown; they are left out
    notes:     lines about a cluster that was asked
    """

    world: World
    objects: Sequence[Object]
    templates: Sequence[PodTemplate]
    problems: Sequence[str] = ()
    unread: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def policies(self) -> PolicySet:
        return self.world.policies

    def describe_unknown(self, option: str = "--namespaces, or with -f") -> list[str]:
        """Return a line for each unknown fact: labels, pods of a kind, and the author of a field.

        `option` takes Namespaces.
        """
        return [
            *self.notes,
            # About labels of a cluster that was asked, there is a note already.
            *unknown_labels(
                self.policies,
                [template for template in self.templates if template.source.file != ANSWERED],
                self.world.namespaces,
                option,
            ),
            *unknown_values(self.policies, self.templates),
            *self.unread,
            *self._placed_before(),
        ]

    def _placed_before(self) -> list[str]:
        """Return a note about pods in files that have a stamp: policies set some of their
        fields."""
        placed = [
            template.source.title
            for template in self.templates
            if template.is_pod
            and template.source.file != ANSWERED
            and names.PLACEMENT in (template.source.metadata.get("annotations") or {})
        ]
        if not placed:
            return []
        which = first_few([one_line(text) for text in placed], _NAMED)
        was, it = ("was", "its author") if len(placed) == 1 else ("were", "their authors")
        what = f"{which} {was} placed before: what policies set then is taken for what {it} wrote"
        cure = "ask for the live pod (fairlead explain pod/NAME), or give the file that was applied"
        return [f"{what}; {cure}"]


def unread_world(policies: PolicySet) -> World:
    """Return what evaluations depend on, as far as policies are all that is known."""
    now = datetime.now(UTC)
    return World.for_pods_as_sent(policies, Cluster(), {}, now, UNREAD)


def with_nodes(world: World, nodes: Sequence[Node] | None) -> World:
    """Return the world with these nodes; None if they are unknown."""
    kinds = nodes if nodes is None or isinstance(nodes, NodeKinds) else NodeKinds(nodes)
    return replace(world, nodes=kinds, cluster=replace(world.cluster, node=by_name(nodes)))


def with_given(base_world: World, objects: Sequence[Object], namespaces: Path | None) -> World:
    """Return the world with the file `namespaces`, and with objects that would be created too.

    Namespaces and PriorityClasses among the objects count as they would in the cluster, and go
    before those of the file, which go before what is known. Labels of a Namespace among the objects
    add to known ones, as `kubectl apply` of it adds them. Raises UnreadableInput.
    """
    file = read_cluster_objects(namespaces) if namespaces else []
    default = default_priority_class(objects) or default_priority_class(file)
    labels = {**base_world.namespaces, **namespaces_among(file)}
    for name, namespace_labels in namespaces_among(objects).items():
        labels[name] = namespace_labels.added_to(labels.get(name, {}))
    classes = base_world.classes and {
        kind: {*names, *(manifest.name for manifest in objects if manifest.kind == kind)}
        for kind, names in base_world.classes.items()
    }
    cluster = base_world.cluster
    return replace(
        base_world,
        cluster=replace(cluster, default_priority_class=default) if default else cluster,
        namespaces=labels,
        classes=classes,
        plugins=merge_inputs(
            plugin_inputs(objects), merge_inputs(plugin_inputs(file), base_world.plugins)
        ),
    )


def read_offline(
    objects: Sequence[Path],
    policies: Sequence[Path] | World,
    namespace: str,
    namespaces: Path | None,
    sources: SourceTable | None = None,
) -> Offline:
    """Read everything; `policies` are the paths of their files, or a world that has them.

    What cannot be read is among the problems. Raises UnreadableInput if nothing else makes pods,
    and InvalidDocuments.
    """
    base_world = policies if isinstance(policies, World) else unread_world(read_policies(policies))
    problems: list[str] = []
    given = read_objects(objects, problems)
    offline = offline_of(base_world, given, problems, namespace, namespaces, sources)
    if not offline.templates:
        expanded_objects = offline.objects
        contents = (
            f"only {count_kinds(manifest.kind for manifest in expanded_objects)}"
            if expanded_objects
            else "nothing"
        )
        where = ", ".join(map(str, objects))
        nothing = [f"{where}: it has no pod template, {contents}", *offline.unread]
        raise UnreadableInput(
            problems if problems and not expanded_objects else [*problems, *nothing]
        )
    return offline


def offline_of(
    base_world: World,
    objects: Sequence[Object],
    problems: list[str],
    namespace: str,
    namespaces: Path | None = None,
    sources: SourceTable | None = None,
) -> Offline:
    """Return the input of these objects, which may make no pods; invalid Runs are added to the
    problems. Raises UnreadableInput.
    """
    sources = sources or base_world.policies.sources
    expanded_objects = [
        made
        for manifest in objects
        for made in _made_of(replace(manifest, default_namespace=namespace), problems)
    ]
    templates = [
        template
        for manifest in expanded_objects
        for template in templates_of(manifest, expanded_objects, sources)
    ]
    world = with_given(base_world, expanded_objects, namespaces)
    return Offline(world, expanded_objects, templates, problems, unread(expanded_objects, sources))


def read_policies(paths: Sequence[Path]) -> PolicySet:
    """Return the set of all policy files at the paths. Raises UnreadableInput and
    InvalidDocuments."""
    return load_sound(policy_files(paths))


def policy_files(paths: Sequence[Path]) -> dict[str, bytes]:
    """Return the content of all policy files at the paths. Raises UnreadableInput, also without
    any.
    """
    files = read_files(paths)
    check_not_empty(files, ", ".join(map(str, paths)))
    return files


def policy_texts(where: Sequence[Where], kubeconfig: Kubeconfig) -> dict[str, bytes]:
    """Return the content of policy files, or of the cluster's objects, by their places.

    Raises UnreadableInput and ClusterError, and WrongUsage for both.
    """
    from webhook.cluster_objects.policy_objects import read_whole_objects

    if paths := paths_of(where):
        return policy_files(paths)
    objects = kubeconfig.ask(read_whole_objects)
    if not objects:
        raise UnreadableInput(["the cluster has no policies; if they are files, name them"])
    return objects


def check_not_empty(files: Mapping[str, bytes], where: str, cure: str = "") -> None:
    """Raise UnreadableInput if there is no file, or none with a document.

    _NO_POLICIES says so on purpose.
    """
    if not files:
        raise UnreadableInput([f"{where}: it has no policy file (*.yaml, *.yml, *.json){cure}"])
    lines = (line for content in files.values() for line in content.splitlines())
    text = (line.partition(b"#")[0].strip() for line in lines)
    if [*files] != [_NO_POLICIES] and not any(content not in (b"", b"---") for content in text):
        raise UnreadableInput([f"{where}: it is empty; {CURE}"])


def read_nodes(path: Path) -> list[Node]:
    """Return the nodes of a file, as `kubectl get nodes -o yaml` prints them. Raises
    UnreadableInput.
    """
    problems: list[str] = []
    nodes = nodes_among(read_objects([path]), problems)
    if not nodes and not problems:
        problems.append(f"{path}: it has no nodes; use the output of `kubectl get nodes -o yaml`")
    if problems:
        raise UnreadableInput(problems)
    return nodes


def nodes_among(objects: Iterable[Object], problems: list[str]) -> list[Node]:
    """Return the objects as nodes; what is no node is added to the problems."""
    nodes: list[Node] = []
    for manifest in objects:
        if manifest.kind != "Node":
            problems.append(
                f"{manifest.place()}: want Nodes, as kubectl prints them, not {manifest.title}"
            )
            continue
        try:
            nodes.append(nodes_of.parse_node(manifest.value))
        except nodes_of.InvalidNode as error:
            problems.append(f"{manifest.place()}: {manifest.title}: {error}")
    return nodes


def _made_of(source: Object, problems: list[str]) -> Iterator[Object]:
    """Yield the object itself; for a delegated Run, the object that it becomes, at the Run's place.

    A Run that is not valid is among the problems.
    """
    if not source.is_own_run:
        yield source
        return
    try:
        run = run_of(source.value, source.namespace)
        if run.spec.delegated:
            yield replace(source, value=delegated_object(run))
        elif templates_of(source):
            yield source
    except InvalidRun as error:
        where = f"{source.place()}: {source.title}"
        problems += [f"{where}: {line}" for line in error.problems]


def unknown_labels(
    policies: PolicySet,
    templates: Iterable[PodTemplate],
    namespaces: Container[str],
    option: str,
) -> list[str]:
    """Return a line for each namespace whose labels are not known, though decisions depend on them.

    `option` names the option that takes labels.
    """
    unknown: dict[str, list[PodTemplate]] = {}
    for template in templates:
        name = template.source.namespace
        if policies.policies and name not in namespaces:
            unknown.setdefault(name, []).append(template)
    asking = list(_asking(policies))
    texts = []
    for name, pod_templates in unknown.items():
        if reasons := [*asking, *_of_pods(policies, pod_templates)]:
            texts.append(
                f"the labels of namespace {one_line(name)} are not known, and "
                f"{', and '.join(reasons)}: give its Namespace with {option}"
            )
    return texts


def unknown_values(policies: PolicySet, templates: Iterable[PodTemplate]) -> list[str]:
    """Return a line for each fact that policies compare, and that pods have only after their
    creation.

    These are labels whose values only a controller knows, which have no value of a policy until
    then.
    """
    asking: dict[str, list[str]] = {}
    for who, tested in (
        *((f"policy {policy.name}", policy.tested) for policy in policies.policies),
        *((f"exception {exception.name}", exception.tested) for exception in policies.exceptions),
    ):
        pairs: Any = tested.get("pod_selector", ())
        for key in {key for key, value in pairs if value is not None}:
            asking.setdefault(key, []).append(who)
    unmade: dict[str, list[str]] = {}
    for template in templates if asking else ():
        for key in find_unknown_labels(template.pod(0)) & asking.keys():
            unmade.setdefault(key, []).append(template.source.title)
    return [
        f"the value of label {key} on pods of {_few(titles)} is known only after "
        f"their creation, and {', '.join(asking[key])} compares it: use Exists, or another label"
        for key, titles in sorted(unmade.items())
    ]


def _asking(policies: PolicySet) -> Iterator[str]:
    for singular, several, named in (
        ("policy", "policies", policies.policies),
        ("exception", "exceptions", policies.exceptions),
    ):
        if asking := [item.name for item in named if "namespace_selector" in item.tested]:
            who, ask = (singular, "asks") if len(asking) == 1 else (several, "ask")
            yield f"{who} {', '.join(asking)} {ask} for them"


def _of_pods(policies: PolicySet, templates: Sequence[PodTemplate]) -> Iterator[str]:
    """Yield what the labels could decide about pods that do not decide it themselves."""
    placements = [
        (template.source.title, placement)
        for template in templates
        if (placement := _placement(template))
    ]
    sources = policies.sources
    unmarked = [
        title for title, placement in placements if _identity(placement, {}, sources) is None
    ]
    if unmarked:
        place = f"{names.PLACE}: {names.PLACE_ALL}"
        yield f"pods of {_few(unmarked)} are part of a run if {place} is one of them"
    kindless = [
        title
        for title, placement in placements
        if _identity(placement, {}, sources) and not _has_fixed_kind(placement, sources)
    ]
    if kindless and "kinds" in policies.tested:
        yield f"the kind of pods of {_few(kindless)} depends on {names.KIND} among them"
    queued = [title for title, placement in placements if flavor_of(placement, (), {})]
    if queued:
        keep = f"{names.KUEUE}: {names.KUEUE_KEEP}"
        yield f"what Kueue chose for pods of {_few(queued)} goes first if {keep} is one"


def _placement(template: PodTemplate) -> PodPlacement | None:
    try:
        return pods.parse_pod(template.pod(0))
    except InvalidPod:
        return None  # reported by the decision


def _identity(
    placement: PodPlacement, labels: Mapping[str, str], sources: SourceTable
) -> Identity | None:
    return identify(placement.labels, placement.annotations, labels, sources)


def _has_fixed_kind(placement: PodPlacement, sources: SourceTable) -> bool:
    """Return whether the pod's kind does not depend on its namespace."""
    identity, other = (
        _identity(placement, {names.PLACE: names.PLACE_ALL, names.KIND: kind}, sources)
        for kind in names.KINDS[:2]
    )
    return identity == other


def _few(titles: Iterable[str]) -> str:
    return first_few([one_line(title) for title in dict.fromkeys(titles)], _NAMED)
