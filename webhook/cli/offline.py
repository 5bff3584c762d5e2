"""What a decision needs, from files instead of a cluster: policies, objects, namespaces, nodes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.admission.arrival import Cluster
from webhook.cli.cluster_file import read_cluster_file
from webhook.cli.harmless import one_line
from webhook.cli.objects import counted, read_objects
from webhook.cli.unknown_labels import unknown_labels
from webhook.errors import UnreadableInput
from webhook.placement import nodes as nodes_of
from webhook.policy.findings import first_few
from webhook.policy.load import load
from webhook.policy.policy_set import PolicySet
from webhook.server.folder import read_folder
from webhook.workloads.find import pod_templates
from webhook.workloads.object import ANSWERED
from webhook.workloads.unread import unread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from webhook.placement.nodes import Node
    from webhook.workloads.object import Object
    from webhook.workloads.template import PodTemplate

_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Offline:
    """Everything that was read. `namespaces` has the labels of those that are known.

    `templates` are those of the objects, in order. `namespace` is for objects that give none. `now`
    is when their pods would come: exceptions end. `problems` are lines about files and objects that
    could not be read, `unread` about kinds whose pods nobody knows: both are left out. `nodes` and
    the `configuration` that sends pods to the webhook are None if they are not known; `notes` are
    about the cluster, where it was asked.
    """

    policies: PolicySet
    objects: Sequence[Object]
    templates: Sequence[PodTemplate]
    namespaces: Mapping[str, Mapping[str, str]]
    cluster: Cluster
    namespace: str
    now: datetime
    problems: Sequence[str] = ()
    unread: Sequence[str] = ()
    nodes: Sequence[Node] | None = None
    configuration: Mapping[str, Any] | None = None
    notes: Sequence[str] = ()

    def namespace_of(self, template: PodTemplate) -> str:
        """The namespace of the template's pods."""
        return template.source.namespace or self.namespace

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """A namespace's labels; of one that is not known, the label that each of them has."""
        return labels_of(namespace, self.namespaces)

    def unknown_namespaces(self) -> list[str]:
        """A line for each namespace whose labels are not known, though decisions go by them.

        What a cluster did not tell of objects that it answered was said when it was asked.
        """
        asked = [each for each in self.templates if each.source.file != ANSWERED]
        return unknown_labels(
            self.policies,
            ((self.namespace_of(each), each) for each in asked),
            self.namespaces,
            "--namespaces, or with -f",
        )

    def not_known(self) -> list[str]:
        """A line for all that could not be known: labels, kinds' pods, and who wrote a field."""
        return [*self.notes, *self.unknown_namespaces(), *self.unread, *self._placed_before()]

    def _placed_before(self) -> list[str]:
        """That pods of files were stored by an API server: not all they say is their author's."""
        placed = [
            template.source.title
            for template in self.templates
            if template.is_pod
            and template.source.file != ANSWERED
            and names.PLACEMENT in (template.source.metadata.get("annotations") or {})
        ]
        if not placed:
            return []
        which = first_few([one_line(each) for each in placed], _NAMED)
        was, it = ("was", "its author") if len(placed) == 1 else ("were", "their authors")
        what = f"{which} {was} placed before: what policies set then is taken for what {it} wrote"
        cure = "ask for the live pod (fairlead explain pod/NAME), or give the file that was applied"
        return [f"{what}; {cure}"]


def labels_of(namespace: str, known: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """A namespace's labels; of one that is not known, the label that each of them has."""
    return known.get(namespace) or {_NAMESPACE_NAME: namespace}


def read_offline(
    objects: Sequence[Path],
    policies: Sequence[Path] | PolicySet,
    namespace: str,
    namespaces: Path | None,
) -> Offline:
    """Read everything; `policies` is a set, or where its files are.

    Namespaces and PriorityClasses among the objects count as they would in the cluster, and go
    before those of the file `namespaces`. What cannot be read is among the problems, and so are
    Runs. Raises UnreadableInput if nothing else makes pods, and InvalidDocuments.
    """
    policy_set = policies if isinstance(policies, PolicySet) else read_policies(policies)
    problems: list[str] = []
    found = read_objects(objects, problems)
    runs = [each for each in found if each.is_own_run]
    problems += map(_of_run, runs)
    found = [each for each in found if each not in runs]
    made = [(each, pod_templates(each)) for each in found]
    templates = [template for _, of_one in made for template in of_one]
    not_read = unread(each for each, of_one in made if not of_one)
    if not templates:
        there = f"only {counted(found)}" if found else "nothing"
        where = ", ".join(map(str, objects))
        nothing = [f"{where}: no pod template in there, {there}", *not_read]
        raise UnreadableInput(problems if problems and not found else [*problems, *nothing])
    file = read_cluster_file(namespaces) if namespaces else None
    default = default_priority_class(found) or (file and file.default_priority_class)
    known = merged(file.namespaces if file else {}, namespaces_among(found))
    now = datetime.now(UTC)
    return Offline(
        policy_set,
        found,
        templates,
        known,
        Cluster(default or ""),
        namespace,
        now,
        problems,
        not_read,
    )


def merged(
    known: Mapping[str, Mapping[str, str]], given: Mapping[str, Mapping[str, str]]
) -> dict[str, Mapping[str, str]]:
    """Labels by namespace; those that are given go first, and take none of the others away.

    So does `kubectl apply`: it leaves labels alone that its file does not have.
    """
    return {**known, **{name: {**known.get(name, {}), **own} for name, own in given.items()}}


def read_policies(paths: Sequence[Path]) -> PolicySet:
    """The set of all policy files at the paths. Raises UnreadableInput and InvalidDocuments."""
    return load(policy_files(paths)).policies


def policy_files(paths: Sequence[Path]) -> dict[str, bytes]:
    """What stands in all policy files at the paths. Raises UnreadableInput, also without any."""
    files: dict[str, bytes] = {}
    for path in paths:
        files |= read_folder(path)
    if not files:
        where = ", ".join(map(str, paths))
        raise UnreadableInput([f"{where}: no policy file (*.yaml, *.yml, *.json) in there"])
    return files


def read_nodes(path: Path) -> list[Node]:
    """The nodes of a file, as `kubectl get nodes -o yaml` prints them. Raises UnreadableInput."""
    found: list[Node] = []
    problems: list[str] = []
    for each in read_objects([path]):
        if each.kind != "Node":
            problems.append(f"{each.place()}: want Nodes, as kubectl prints them, not {each.title}")
            continue
        try:
            found.append(nodes_of.read(each.value))
        except nodes_of.InvalidNode as error:
            problems.append(f"{each.place()}: {each.title}: {error}")
    if not found and not problems:
        problems.append(f"{path}: no nodes in there; see `kubectl get nodes -o yaml`")
    if problems:
        raise UnreadableInput(problems)
    return found


def _of_run(run: Object) -> str:
    """No one template is that of a Run's pods."""
    return (
        f"{run.place()}: {run.title}: `fairlead run preview -f {run.file}` shows its pods, and who "
        "places them; leave it out here"
    )


def namespaces_among(objects: Sequence[Object]) -> dict[str, Mapping[str, str]]:
    """The labels of the Namespaces among the objects, by name."""
    found: dict[str, Mapping[str, str]] = {}
    for each in objects:
        if (each.kind, each.value.get("apiVersion")) == ("Namespace", "v1"):
            labels = each.metadata.get("labels")
            texts = labels.items() if isinstance(labels, dict) else ()
            own = {key: value for key, value in texts if isinstance(value, str)}
            found[each.name] = {_NAMESPACE_NAME: each.name, **own}
    return found


def default_priority_class(objects: Sequence[Object]) -> str | None:
    """The name of the globalDefault PriorityClass; of several the one of the lowest value."""
    defaults = [
        (value if isinstance(value := each.value.get("value"), int) else 0, each.name)
        for each in objects
        if each.kind == "PriorityClass" and each.value.get("globalDefault") is True
    ]
    return min(defaults)[1] if defaults else None
