"""`fairlead run preview`: what a Run would become, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from webhook.cli import noting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.cli.run.previewed import Group, Judge
    from webhook.cli.run.run_files import Planned
    from webhook.placement.nodes import Node

_PATH = click.Path(exists=True, path_type=Path, allow_dash=True)
_FILE = click.Path(exists=True, path_type=Path, dir_okay=False)


@click.command("preview")
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    required=True,
    type=_PATH,
    metavar="PATH",
    help="Runs, YAML or JSON: a file, a folder with all in it, or - for standard input. "
    "Repeatable.",
)
@click.option(
    "--policies",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="A folder of policies, or a file. Repeatable: all of them are one set. Without it the "
    "pods are shown as the webhook would get them.",
)
@click.option(
    "-n",
    "--namespace",
    default="default",
    show_default=True,
    metavar="NAME",
    help="The namespace of Runs that name none.",
)
@click.option(
    "--namespaces",
    "namespaces_file",
    type=_FILE,
    metavar="FILE",
    help="What `kubectl get ns,priorityclass -o yaml` prints: labels that policies ask for, and "
    "the default PriorityClass.",
)
@click.option(
    "--nodes",
    "nodes_file",
    type=_FILE,
    metavar="FILE",
    help="What `kubectl get nodes -o yaml` (or json) prints: how many admit the pods?",
)
@click.option(
    "--cluster-domain",
    default="",
    metavar="DOMAIN",
    help="As the controller's: appended to the replicas' addresses, such as cluster.local.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "yaml", "json"]),
    default="text",
    show_default=True,
    help="text: replicas that are alike together, with who set what; yaml: every object as it "
    "would be; json: objects, decisions and reasons.",
)
@click.pass_context
def command(
    context: click.Context,
    filenames: tuple[Path, ...],
    policies: tuple[Path, ...],
    namespace: str,
    namespaces_file: Path | None,
    nodes_file: Path | None,
    cluster_domain: str,
    output: str,
) -> None:
    """Show what a Run would become, without a cluster.

    Every pod that would come: its container's resources, what its framework tells it, where it
    may run, and which policy says so. The controller makes them by the same code, and the webhook
    places them by the same code.

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
    from webhook.cli.offline import read_nodes
    from webhook.cli.run import preview_json, preview_text, previewed
    from webhook.cli.run.run_files import read_plans
    from webhook.cli.yaml_out import yaml_documents

    plans = read_plans(filenames, namespace, cluster_domain)
    noting.tell(str(each) for planned in plans for each in planned.warnings)
    nodes = read_nodes(nodes_file) if nodes_file else None
    judge = _judge(policies, namespaces_file, plans, nodes)
    shown = [(planned, previewed.groups(planned.plan, judge)) for planned in plans]
    match output:
        case "text":
            texts = ("\n".join(preview_text.lines(*each, nodes)) for each in shown)
            click.echo("\n\n".join(texts))
        case "yaml":
            for number, (planned, groups) in enumerate(shown):
                if number:
                    click.echo("---")
                click.echo(yaml_documents(preview_json.manifests(planned.plan, groups)), nl=False)
        case _:
            runs = [preview_json.explanation(*each, nodes) for each in shown]
            found = {"set": judge.policies.hash if judge else None, "runs": runs}
            click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    rejected = _rejected(shown)
    if rejected:
        context.exit(1)


def _judge(
    policies: Sequence[Path],
    namespaces_file: Path | None,
    plans: Sequence[Planned],
    nodes: Sequence[Node] | None,
) -> Judge | None:
    """Who decides; None without policies. Says what it does not know."""
    from datetime import UTC, datetime

    from webhook.admission.arrival import Cluster
    from webhook.cli.cluster_file import read_cluster_file
    from webhook.cli.offline import labels_of, read_policies
    from webhook.cli.run.previewed import Judge
    from webhook.cli.unknown_labels import unknown_labels
    from webhook.placement.nodes import by_name

    file = read_cluster_file(namespaces_file) if namespaces_file else None
    if not policies:
        noting.tell(["without --policies, placement is what the Run itself asks for"])
        return None
    policy_set = read_policies(policies)
    known = file.namespaces if file else {}
    used = [(planned.plan.run.namespace, None) for planned in plans]
    noting.tell(unknown_labels(policy_set, used, known, "--namespaces"))
    default = file.default_priority_class if file else None
    now = datetime.now(UTC)
    cluster = Cluster(default or "", node=by_name(nodes))
    return Judge(policy_set, cluster, lambda name: labels_of(name, known), now)


def _rejected(shown: Sequence[tuple[Planned, Sequence[Group]]]) -> bool:
    """Whether pods would be rejected; which, and why, is said on stderr."""
    from webhook.cli.run.preview_text import subject

    found = False
    for planned, groups in shown:
        run = planned.plan.run
        for group in groups:
            if group.decision and not group.allowed:
                found = True
                who = f"Run/{run.name} in {run.namespace}, {subject(group)}"
                click.secho("rejected: ", fg="red", bold=True, nl=False, err=True)
                click.echo(f"{who}: {group.decision.reason}", err=True)
    return found
