"""The pods that objects in files make, Runs among them, and what files tell of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.cli.cluster_file import read_cluster_file
from webhook.cli.diff.comparison_input import Facts, Planned, Pods, Template
from webhook.cli.diff.runs import plan_of
from webhook.cli.objects import counted
from webhook.cli.offline import default_priority_class, merged, namespaces_among, read_nodes
from webhook.errors import InvalidRun, UnreadableInput
from webhook.workloads.find import pod_templates
from webhook.workloads.unread import unread

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from webhook.workloads.object import Object


def read_pods(objects: Sequence[Object], paths: Sequence[Path], namespace: str) -> Pods:
    """Whatever makes pods among the objects; `namespace` is for those that name none.

    Raises UnreadableInput with every Run that is none, or if nothing makes pods.
    """
    makers: list[Template | Planned] = []
    others: list[Object] = []
    problems: list[str] = []
    for each in objects:
        within = each.namespace or namespace
        if not each.is_own_run:
            templates = pod_templates(each)
            makers += [Template(template, within) for template in templates]
            others += [] if templates else [each]
            continue
        try:
            makers.append(Planned(each.place(), plan_of(each.value, within)))
        except InvalidRun as error:
            problems += [f"{each.place()}: {each.title}: {line}" for line in error.problems]
    if problems:
        raise UnreadableInput(problems)
    if not makers:
        there = f"only {counted(objects)}" if objects else "nothing"
        where = ", ".join(map(str, paths))
        raise UnreadableInput([f"{where}: no pod template in there, {there}", *unread(others)])
    return Pods(makers, unread(others))


def read_facts(
    objects: Sequence[Object], namespaces: Path | None, nodes: Path | None, cluster: Facts
) -> Facts:
    """What is known: by the objects, else by the files, else by the cluster.

    Raises UnreadableInput.
    """
    file = read_cluster_file(namespaces) if namespaces else None
    known = file.namespaces if file else cluster.namespaces
    default = file.default_priority_class if file else cluster.default_priority_class
    return Facts(
        merged(known, namespaces_among(objects)),
        default_priority_class(objects) or default or "",
        read_nodes(nodes) if nodes else cluster.nodes,
        cluster.configuration,
    )
