"""`fairlead run preview`: what a Run would become, without a cluster."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from webhook.cli.dry_run import server_of
from webhook.cli.exit_codes import FAILED
from webhook.cli.options import cluster_options, filenames_option, namespace_option, policies_option
from webhook.cli.output import output_option, print_notes, print_result, say
from webhook.questions.class_history import HISTORY, history_of
from webhook.questions.dry_run import DRY_RUN_HELP
from webhook.questions.plugins_option import PLUGINS, PLUGINS_OPTION, with_plugins
from webhook.questions.where import WhereType
from webhook.settings import ObjectName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from pathlib import Path

    from webhook.evaluation.world import World
    from webhook.kube.kubeconfig import Kubeconfig
    from webhook.placement.nodes import Node
    from webhook.run_client.preview_report import Group
    from webhook.run_client.run_files import Planned

_POLICIES = WhereType(
    folders=True,
    cure="name a folder or a file of policies, or use the cluster's: fairlead explain -f PATH "
    "--policies cluster",
)
_NAMESPACES = WhereType(
    folders=False,
    cure="name a file: kubectl get ns,priorityclass,runtimeclass,limits -A -o yaml > cluster.yaml",
)
_NODES = WhereType(folders=False, cure="name a file: kubectl get nodes -o yaml > nodes.yaml")


@click.command("preview")
@filenames_option
@policies_option(
    "A folder of policies, or a file. Repeatable: all of them are one set. Without it the "
    "pods are shown as the webhook would get them.",
    kind=_POLICIES,
)
@namespace_option("The namespace of Runs without one.", "default")
@click.option(
    "--namespaces",
    "namespaces_file",
    type=_NAMESPACES,
    metavar="FILE",
    help="What `kubectl get ns,priorityclass,runtimeclass,limits -A -o yaml` prints: labels that "
    "policies use, the default PriorityClass, and the RuntimeClasses and LimitRanges by which the "
    "API server changes pods before policies apply. It may have DeviceClasses and Kueue's "
    "ResourceFlavors, too.",
)
@click.option(
    "--nodes",
    "nodes_file",
    type=_NODES,
    metavar="FILE",
    help="What `kubectl get nodes -o yaml` (or json) prints. Shows how many of them admit "
    "the pods.",
)
@click.option(PLUGINS, **PLUGINS_OPTION)
@click.option(
    "--cluster-domain",
    type=ObjectName(),
    default="",
    metavar="DOMAIN",
    help="As the controller's: appended to the replicas' addresses, such as cluster.local.",
)
@click.option("--history", **HISTORY)
@click.option("--dry-run", type=click.Choice(["server"]), help=DRY_RUN_HELP)
@cluster_options
@output_option(
    "text: equal replicas together, with the policy that set each field; yaml: every object "
    "as it would be created; json: objects, decisions and reasons.",
    ("text", "yaml", "json"),
    report="RunPreview",
    reports=("json",),
)
def command(
    filenames: tuple[Path, ...],
    policies: tuple[Path, ...],
    namespace: str,
    namespaces_file: Path | None,
    nodes_file: Path | None,
    plugins: tuple[str, ...] | None,
    cluster_domain: str,
    history: Sequence[tuple[str, int, timedelta | None]],
    dry_run: str | None,
    kubeconfig: Kubeconfig,
    output: str,
) -> None:
    """Preview a Run's objects and placement, without a cluster.

    For every pod: its container's resources, its environment from the framework, where it may run,
    and which policy decided. Controller and webhook use the same code. Pods of kube-system and
    fairlead-system are not sent to the webhook; `fairlead explain run` also checks which other
    namespaces an installation excludes.

    \b
    Examples:
      fairlead run preview -f run.yaml
      fairlead run preview -f run.yaml --policies policies/ -n research
      fairlead run preview -f run.yaml --policies policies/ --nodes nodes.yaml
      fairlead run preview -f run.yaml -o yaml | less
      fairlead run preview -f run.yaml --policies policies/ -o json | jq '.runs[].replicas[].trace'

    \b
    Exit codes:
      0  every pod would be admitted
      1  a pod would be rejected, or a file cannot be read, or a Run is wrong
      2  wrong usage
    """
    from webhook.questions.decisions import asked_alone, unasked, unknown_facts
    from webhook.questions.offline import read_nodes
    from webhook.run_client.preview_report import explanation, groups, lines, manifests
    from webhook.run_client.run_files import read_plans

    plans = read_plans(filenames, namespace, cluster_domain)
    print_notes(str(each) for planned in plans for each in planned.warnings)
    nodes = read_nodes(nodes_file) if nodes_file else None
    server = server_of(kubeconfig) if dry_run else None
    world = with_plugins(world_of(policies, namespaces_file, plans, nodes), plugins)
    world = replace(world, server=server, history=history_of(history, world.policies))
    judged = bool(policies or server)
    shown = [(planned, groups(planned, world, judged=judged)) for planned in plans]
    replicas = [each.replicas for _, found in shown for each in found]
    if judged:
        print_notes([*unknown_facts(replicas), *asked_alone(replicas)])
    print_notes(unasked(replicas))
    print_result(
        output,
        json=lambda: {
            "set": world.policies.hash if policies else None,
            "runs": [explanation(*each) for each in shown],
        },
        text=lambda: ["\n\n".join("\n".join(lines(*each)) for each in shown)],
        yaml=lambda: (
            manifest for planned, found in shown for manifest in manifests(planned, found)
        ),
    )
    if output != "text":
        _say_rejections(shown)
    if any(group.reasons for _, found in shown for group in found):
        sys.exit(FAILED)


def world_of(
    policies: Sequence[Path],
    namespaces_file: Path | None,
    plans: Sequence[Planned],
    nodes: Sequence[Node] | None,
) -> World:
    """Return what pods are evaluated by. Says what it does not know."""
    from webhook.policy.load import load
    from webhook.questions.offline import (
        read_policies,
        unknown_labels,
        unknown_values,
        unread_world,
        with_given,
        with_nodes,
    )

    policy_set = read_policies(policies) if policies else load({}).policies
    world = with_nodes(with_given(unread_world(policy_set), [], namespaces_file), nodes)
    templates = [each for planned in plans for each in planned.templates(policy_set.sources)]
    if policies:
        print_notes(unknown_labels(policy_set, templates, world.namespaces, "--namespaces"))
        print_notes(unknown_values(policy_set, templates))
    else:
        print_notes(["without --policies, placement is what the Run itself requests"])
    return world


def _say_rejections(shown: Sequence[tuple[Planned, Sequence[Group]]]) -> None:
    """Print which pods would be rejected, with the reasons, on stderr."""
    from webhook.run_client.preview_report import subject

    for planned, groups in shown:
        run = planned.run
        for group in groups:
            who = f"Run/{run.name} in {run.namespace}, {subject(group)}"
            for reason in group.reasons:
                say("rejected", f"{who}: {reason}")
